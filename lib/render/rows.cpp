// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Linear kernel → row code. Width is shape in a kernel: a value of shape [6,16] is six rows of sixteen lanes. This file
// walks the instructions once, in order, and gives each value its rows: leading dims become rows, the last dim lanes,
// size-1 dims are shared (a [6,1] value is six scalars, splatted where they meet a vector). Everything scalar is left
// to RowBuilder. Index and bool vectors are made where they are used, because most of them only name the addresses of a
// gather, whose lanes are then computed one by one as scalars instead of being pulled out of a vector.
// Not handled: values with symbolic dims, and ops without a native form; both are reported, with the kernel's name.
#include "render/rows.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "render/renderer.h"
#include "render/row_builder.h"
#include "render/row_order.h"
#include "render/row_share.h"
#include "render/stride.h"
#include "uop/diag.h"
#include "uop/scalar.h"

namespace tgc {
namespace {

using Dims = std::vector<int64_t>;

/// The rows of one value, in row-major order of the leading dims.
struct Shaped {
  Dims dims;
  std::vector<RowId> rows; ///< lanes of each: the last dim
};

int64_t lanes_of(const Dims& dims) { return dims.empty() ? 1 : dims.back(); }
int64_t rows_of(const Dims& dims) {
  int64_t n = 1;
  for (size_t i = 0; i + 1 < dims.size(); ++i) n *= dims[i];
  return n;
}

/// The row of a value of dims `from` that broadcasts to row `row` of a value of dims `to`.
int64_t source_row(const Dims& from, const Dims& to, int64_t row) {
  int64_t result = 0, stride = 1;
  for (size_t k = 1; k < to.size(); ++k) { // from the innermost leading dim outwards
    const int64_t extent = to[to.size() - 1 - k], at = row % extent;
    row /= extent;
    if (k >= from.size()) continue;
    const int64_t own = from[from.size() - 1 - k];
    if (own > 1) result += at * stride;
    stride *= own;
  }
  return result;
}

constexpr int64_t kMaxLanes = 1024, kMaxRows = 4096; // far beyond any register file: a runaway upcast

class RowLowering {
public:
  RowLowering(Ref func, std::span<const std::string> vars, const RowOptions& options)
      : func_(func), vars_(vars), target_(*options.target), builder_(code_, options), scopes_(1) {}

  RowCode run();

private:
  [[noreturn]] void unsupported(Ref x, const std::string& what) const;
  Dims dims_of(Ref x) const;
  void find_wanted();
  void instruction(Ref x);
  bool is_pure(Ref x);
  bool is_lazy(Ref x);
  bool is_known(Ref x) const;
  void open_loop(Ref range);
  void close_loop();

  const Shaped& shaped(Ref x);
  RowId scalar(Ref x);
  /// Row `row` of x as broadcast to `to`: one vector, or one scalar for all lanes.
  RowId row_of(Ref x, const Dims& to, int64_t row) {
    const Shaped& value = shaped(x);
    return value.rows[static_cast<size_t>(source_row(value.dims, to, row))];
  }
  RowId lane_of(Ref x, int64_t row, int64_t lane);
  RowId lane_of_broadcast(Ref x, const Dims& to, int64_t row, int64_t lane);

  Shaped compute(Ref x);
  Shaped compute_leaf(Ref x);
  Shaped compute_elementwise(Ref x);
  Shaped compute_reduce(Ref x);
  RowId reduce_rows(Ref x, Ops op, std::vector<RowId> rows);
  RowId reduce_lanes(Ref x, Ops op, RowId v);
  RowId combine(Ref x, Ops op, std::initializer_list<RowId> args);
  RowId one_elementwise(Ref x, std::span<const RowId> args);

  Shaped compute_load(Ref x);
  bool has_scalar_rest(Ref load);
  RowId gather(Ref x, int64_t row, const Dims& dims);
  void store(Ref x);
  int64_t buffer(Ref x);
  void place_scratch();
  const std::vector<int64_t>& registers(Ref x);

  Ref func_;
  std::span<const std::string> vars_;
  const TargetInfo& target_;
  RowCode code_;
  RowBuilder builder_;
  struct Scope {
    std::unordered_map<uint32_t, Shaped> values;
    std::unordered_map<uint64_t, RowId> lanes;
  };
  std::vector<Scope> scopes_;
  std::vector<Ref> loops_;
  std::unordered_map<uint32_t, bool> pure_;
  std::unordered_set<uint32_t> wanted_; ///< lazy instructions that are used as vectors, not only lane by lane
  std::unordered_map<uint32_t, int64_t> buffers_;
  std::unordered_map<uint32_t, std::vector<int64_t>> registers_;
  Ref scratch_; ///< bytes used so far
};

/// Right-aligned broadcast of `dims` with `other`.
void widen(Dims& dims, const Dims& other) {
  if (other.size() > dims.size()) dims.insert(dims.begin(), other.size() - dims.size(), 1);
  for (size_t i = 0; i < other.size(); ++i) {
    int64_t& dim = dims[dims.size() - other.size() + i];
    if (dim == 1) dim = other[i];
  }
}

/// A whole number of 64 bytes, as an expression over dims.
Ref buffer_bytes(Ref buffer) {
  Context& ctx = *buffer->ctx;
  Ref bytes = dim_mul(numel(ctx, buffer->shape), ctx.index(byte_size(buffer->dtype)));
  return dim_mul(dim_floordiv(dim_add(bytes, ctx.index(63)), ctx.index(64)), ctx.index(64));
}

bool is_scratch(Ref x) { return x->is(Ops::Buffer) && x->s(Attr::Space) == "scratch"; }
bool is_register(Ref x) { return x->is(Ops::Buffer) && x->s(Attr::Space) == "reg"; }
Ref storage(Ref x) {
  while (x->is(Ops::After)) x = x->src[0];
  return x;
}
/// An `after` that orders a value, not storage.
bool is_value(Ref after) {
  const Ref x = storage(after);
  return !x->is(Ops::Param) && !x->is(Ops::Buffer);
}
bool is_elementwise(Ref x) {
  const OpClass c = x->cls();
  return c == OpClass::Unary || c == OpClass::Binary || c == OpClass::Compare || c == OpClass::Ternary;
}
/// Depends on leaves and loop variables only, so that it means the same wherever it is computed in its loops.
bool RowLowering::is_pure(Ref x) {
  if (x->cls() == OpClass::Leaf) return !x->is(Ops::Param) && !x->is(Ops::Buffer);
  if (!is_elementwise(x)) return false;
  if (const auto it = pure_.find(x->id); it != pure_.end()) return it->second;
  bool pure = true;
  for (Ref s : x->src) pure = pure && is_pure(s);
  return pure_[x->id] = pure;
}

/// Made at its uses, lane by lane or as a vector, rather than where it stands.
bool RowLowering::is_lazy(Ref x) {
  return is_pure(x) && !x->is(Ops::Range) &&
         (x->dtype == DType::Index || x->dtype == DType::Bool || !is_elementwise(x));
}

bool RowLowering::is_known(Ref x) const {
  return std::any_of(scopes_.begin(), scopes_.end(), [&](const Scope& scope) { return scope.values.contains(x->id); });
}

void RowLowering::unsupported(Ref x, const std::string& what) const {
  std::string op = name(x->op);
  if (x->dtype != DType::Void) op += std::string(" ") + name(x->dtype) + shape_text(x->shape);
  throw CompileError({ErrorCode::E402, "kernel \"" + code_.name + "\"", "`" + op + "` " + what,
                      "it must be decomposed before rendering; report the kernel (--emit=linear)"});
}

Dims RowLowering::dims_of(Ref x) const {
  const std::optional<Dims> dims = static_shape(x->shape);
  if (!dims) unsupported(x, "has a symbolic shape");
  if (lanes_of(*dims) > kMaxLanes || rows_of(*dims) > kMaxRows)
    unsupported(x, "is wider than " + std::to_string(kMaxRows) + " rows of " + std::to_string(kMaxLanes) + " lanes");
  return *dims;
}

RowCode RowLowering::run() {
  TGC_CHECK(func_->is(Ops::Func) && func_->src[0]->is(Ops::Linear), "a renderer needs a func of a linear");
  code_.name = func_->s(Attr::Name);
  const bool is_name = !code_.name.empty() && !std::isdigit(static_cast<unsigned char>(code_.name[0])) &&
                       std::all_of(code_.name.begin(), code_.name.end(),
                                   [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
  if (!is_name)
    throw CompileError({ErrorCode::E403, "kernel \"" + code_.name + "\"", "its name is not a C identifier",
                        "kernel names are letters, digits and underscores"});
  find_wanted();
  place_scratch();
  for (Ref x : func_->src[0]->src) instruction(x);
  TGC_CHECK(loops_.empty(), "kernel " + code_.name + " leaves a range open");
  share_loads(code_);
  order_rows(code_);
  return std::move(code_);
}

/// Scratch buffers in order of appearance, those of known size first: their places are numbers.
void RowLowering::place_scratch() {
  scratch_ = func_->ctx->index(0);
  for (const bool known : {true, false})
    for (Ref x : func_->src[0]->src)
      for (Ref s : x->src)
        if (Ref b = storage(s); is_scratch(b) && dim_int(buffer_bytes(b)).has_value() == known) buffer(b);
}

/// From the last instruction to the first: what is needed in rows makes its operands needed in rows, except that
/// gathers and scatters take index, gate and alternative lane by lane.
void RowLowering::find_wanted() {
  const Refs body = func_->src[0]->src;
  for (size_t i = body.size(); i-- > 0;) {
    const Ref x = body[i];
    if (is_lazy(x) && !wanted_.contains(x->id)) continue;
    const bool accesses = x->is(Ops::Load) || x->is(Ops::Store);
    const bool by_lane = accesses && x->i(Attr::Lanes, 1) == 1 && !is_register(storage(x->src[0]));
    for (size_t k = accesses ? 1 : 0; k < x->src.size(); ++k)
      if (!by_lane || lanes_of(dims_of(x->src[k])) == 1) wanted_.insert(x->src[k]->id);
  }
}

void RowLowering::instruction(Ref x) {
  if (x->is(Ops::Range)) return open_loop(x);
  if (x->is(Ops::End)) {
    TGC_CHECK(!loops_.empty() && loops_.back() == x->src[0], "`end` closes a range that is not the innermost");
    return close_loop();
  }
  if (x->is(Ops::Store)) return store(x);
  if (x->is(Ops::Buffer)) { // scratch offsets follow the order of appearance
    if (is_register(x))
      registers(x);
    else
      buffer(x);
    return;
  }
  if (x->is(Ops::After) && !is_value(x)) return;
  if (is_lazy(x) && !wanted_.contains(x->id)) return;
  if (is_pure(x) && is_known(x)) return;
  // A node that stands here again, such as a load of a register, is done again.
  Shaped value = compute(x);
  scopes_.back().values.insert_or_assign(x->id, std::move(value));
}

void RowLowering::open_loop(Ref range) {
  const bool thread = range->s(Attr::Axis) == "thread";
  if (thread && !loops_.empty()) unsupported(range, "is a thread axis inside another loop");
  RowInst loop{.kind = RowKind::Loop, .dtype = DType::Index};
  if (!thread) {
    loop.args = {scalar(range->src[0])};
    loop.positive = range->src[0]->lo >= 1;
  }
  scopes_.emplace_back();
  builder_.open_scope();
  loops_.push_back(range);
  const RowId id = builder_.emit(std::move(loop));
  scopes_.back().values.emplace(range->id, Shaped{{}, {id}});
}

void RowLowering::close_loop() {
  builder_.emit({.kind = RowKind::EndLoop});
  loops_.pop_back();
  scopes_.pop_back();
  builder_.close_scope();
}

// ---- values ---------------------------------------------------------------------------------------------------------

const Shaped& RowLowering::shaped(Ref x) {
  for (size_t i = scopes_.size(); i-- > 0;)
    if (const auto it = scopes_[i].values.find(x->id); it != scopes_[i].values.end()) return it->second;
  if (!is_lazy(x)) // text by hand: the specs look at nodes, not at the loops around them
    throw CompileError({ErrorCode::E103, "kernel \"" + code_.name + "\"",
                        std::string("`") + name(x->op) + "` is used before it is done, or after its loop",
                        "what a loop computes is read inside it"});
  // Sources first, without recursion: chains of index arithmetic can be long.
  std::vector<Ref> stack{x};
  while (!stack.empty()) {
    Ref top = stack.back();
    const size_t before = stack.size();
    if (is_elementwise(top))
      for (Ref s : top->src)
        if (!is_known(s)) stack.push_back(s);
    if (stack.size() > before) continue;
    stack.pop_back();
    if (is_known(top)) continue;
    TGC_CHECK(!top->is(Ops::Range), "kernel " + code_.name + " uses a range outside its loop");
    Shaped value = compute(top);
    scopes_.back().values.emplace(top->id, std::move(value));
  }
  return scopes_.back().values.at(x->id);
}

RowId RowLowering::scalar(Ref x) {
  const Shaped& value = shaped(x);
  if (value.rows.size() != 1 || lanes_of(value.dims) != 1) unsupported(x, "is used as a scalar");
  return value.rows[0];
}

Shaped RowLowering::compute(Ref x) {
  if (x->cls() == OpClass::Leaf) return compute_leaf(x);
  if (is_elementwise(x)) return compute_elementwise(x);
  if (x->is(Ops::Reduce)) return compute_reduce(x);
  if (x->is(Ops::Permute))
    return {dims_of(x), builder_.exchanged(shaped(x->src[0]).rows, dims_of(x->src[0]), x->ints(Attr::Axes).back())};
  if (x->is(Ops::Load)) return compute_load(x);
  if (x->is(Ops::After)) return shaped(x->src[0]);
  unsupported(x, "has no place in a linear kernel");
}

Shaped RowLowering::compute_leaf(Ref x) {
  Shaped value{dims_of(x), {}};
  if (x->is(Ops::Const)) {
    value.rows = {builder_.constant(x->dtype, const_bits(x))};
  } else if (x->is(Ops::Var)) {
    const auto it = std::find(vars_.begin(), vars_.end(), x->s(Attr::Name));
    TGC_CHECK(it != vars_.end(), "var " + x->s(Attr::Name) + " is not in the module's table");
    value.rows = {builder_.emit({.kind = RowKind::Var, .dtype = DType::Index, .imm = it - vars_.begin()})};
  } else if (x->is(Ops::Iota)) {
    const int64_t lanes = lanes_of(value.dims), rows = rows_of(value.dims);
    if (lanes > 1)
      value.rows = {builder_.emit({.kind = RowKind::Iota, .dtype = DType::Index, .lanes = static_cast<int>(lanes)})};
    else
      for (int64_t i = 0; i < rows; ++i) value.rows.push_back(builder_.integer(DType::Index, i));
  } else {
    unsupported(x, "is used as a value");
  }
  return value;
}

RowId RowLowering::one_elementwise(Ref x, std::span<const RowId> args) {
  if (!target_.supports(x->op))
    unsupported(x, "is not native to " + target_.device + ":" + target_.renderer + ":" + target_.arch);
  RowBuilder::Facts facts;
  if (is_int(x->dtype)) {
    facts.no_wrap = x->dtype == DType::Index && x->lo > INT64_MIN && x->hi < INT64_MAX;
    facts.positive = x->src.size() == 2 && x->src[0]->lo >= 0 && x->src[1]->lo >= 1;
  }
  const RowId id = builder_.elementwise(x->op, x->dtype, args, facts);
  if (id < 0) unsupported(x, "has no native form for this type");
  return id;
}

Shaped RowLowering::compute_elementwise(Ref x) {
  Shaped value{dims_of(x), {}};
  const int64_t rows = rows_of(value.dims), lanes = lanes_of(value.dims);
  for (int64_t row = 0; row < rows; ++row) {
    RowId args[3];
    for (size_t i = 0; i < x->src.size(); ++i) args[i] = row_of(x->src[i], value.dims, row);
    const RowId id = one_elementwise(x, {args, x->src.size()});
    value.rows.push_back(builder_.splat(id, static_cast<int>(lanes)));
  }
  return value;
}

RowId RowLowering::lane_of_broadcast(Ref x, const Dims& to, int64_t row, int64_t lane) {
  const Dims from = dims_of(x);
  return lane_of(x, source_row(from, to, row), lanes_of(from) == 1 ? 0 : lane);
}

// One lane as a scalar. Index arithmetic is redone on scalars; anything else is computed as a vector and picked from.
RowId RowLowering::lane_of(Ref x, int64_t row, int64_t lane) {
  const Dims dims = dims_of(x);
  const bool redo = is_lazy(x) && is_elementwise(x) && lanes_of(dims) > 1;
  if (!redo) return builder_.extract(shaped(x).rows[static_cast<size_t>(row)], static_cast<int>(lane));
  const uint64_t key = uint64_t{x->id} << 32 | static_cast<uint64_t>(row) << 12 | static_cast<uint64_t>(lane);
  for (const Scope& scope : scopes_)
    if (const auto it = scope.lanes.find(key); it != scope.lanes.end()) return it->second;
  RowId args[3];
  for (size_t i = 0; i < x->src.size(); ++i) args[i] = lane_of_broadcast(x->src[i], dims, row, lane);
  const RowId id = one_elementwise(x, {args, x->src.size()});
  scopes_.back().lanes.emplace(key, id);
  return id;
}

// ---- reduction over dims --------------------------------------------------------------------------------------------

RowId RowLowering::combine(Ref x, Ops op, std::initializer_list<RowId> args) {
  const RowId id = builder_.elementwise(op, x->dtype, {args.begin(), args.size()}, {});
  if (id < 0) unsupported(x, "has no native form for this type");
  return id;
}

RowId RowLowering::reduce_rows(Ref x, Ops op, std::vector<RowId> rows) {
  if (reduce_is_tree(static_cast<int64_t>(rows.size()))) {
    for (size_t half = rows.size() / 2; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i) rows[i] = combine(x, op, {rows[i], rows[half + i]});
    return rows[0];
  }
  for (size_t i = 1; i < rows.size(); ++i) rows[0] = combine(x, op, {rows[0], rows[i]});
  return rows[0];
}

RowId RowLowering::reduce_lanes(Ref x, Ops op, RowId v) {
  int n = builder_.lanes(v);
  if (reduce_is_tree(n)) {
    while (n > 1) {
      n /= 2;
      RowInst half{.kind = RowKind::Slice, .dtype = x->dtype, .lanes = n, .imm = 0, .args = {v}};
      if (n == 1) half.kind = RowKind::Extract;
      const RowId low = builder_.emit(half);
      half.imm = n;
      v = combine(x, op, {low, builder_.emit(half)});
    }
    return v;
  }
  RowId sum = builder_.extract(v, 0);
  for (int i = 1; i < n; ++i) sum = combine(x, op, {sum, builder_.extract(v, i)});
  return sum;
}

Shaped RowLowering::compute_reduce(Ref x) {
  if (x->src.size() != 1) unsupported(x, "still reduces over ranges");
  const Ops op = reduce_op(x);
  const Shaped& source = shaped(x->src[0]);
  const size_t rank = source.dims.size();
  Dims kept = source.dims; // with size 1 where reduced
  bool over_lanes = false;
  for (const int64_t axis : x->has(Attr::Axes) ? x->ints(Attr::Axes) : Dims{}) {
    kept[static_cast<size_t>(axis)] = 1;
    over_lanes |= static_cast<size_t>(axis) + 1 == rank;
  }
  std::vector<std::vector<RowId>> terms(static_cast<size_t>(rows_of(kept)));
  for (size_t row = 0; row < source.rows.size(); ++row)
    terms[static_cast<size_t>(source_row(kept, source.dims, static_cast<int64_t>(row)))].push_back(source.rows[row]);
  std::vector<RowId> rows;
  for (std::vector<RowId>& own : terms) {
    const RowId row = reduce_rows(x, op, std::move(own));
    rows.push_back(over_lanes ? reduce_lanes(x, op, row) : row);
  }
  Shaped value{dims_of(x), std::move(rows)};
  if (lanes_of(value.dims) != (over_lanes ? 1 : lanes_of(kept))) {
    // The lane dim was dropped: rows of the dim before it become lanes.
    const auto n = static_cast<size_t>(lanes_of(value.dims));
    std::vector<RowId> built;
    for (size_t i = 0; i < value.rows.size(); i += n)
      built.push_back(builder_.emit(
          {.kind = RowKind::Build,
           .dtype = x->dtype,
           .lanes = static_cast<int>(n),
           .args = {value.rows.begin() + static_cast<int64_t>(i), value.rows.begin() + static_cast<int64_t>(i + n)}}));
    value.rows = std::move(built);
  }
  return value;
}

// ---- memory ---------------------------------------------------------------------------------------------------------

int64_t RowLowering::buffer(Ref x) {
  const auto [it, is_new] = buffers_.try_emplace(x->id, static_cast<int64_t>(code_.buffers.size()));
  if (!is_new) return it->second;
  if (x->is(Ops::Buffer) && !is_scratch(x)) unsupported(x, "is neither scratch nor reg");
  if (!x->is(Ops::Buffer) && !x->is(Ops::Param)) unsupported(x, "is not storage");
  RowBuffer made{.scratch = is_scratch(x), .slot = x->i(Attr::Slot), .offset = 0, .dtype = x->dtype};
  if (made.scratch) {
    made.offset = const_int(scratch_).value_or(-1);
    if (made.offset < 0) builder_.emit({.kind = RowKind::Base, .imm = it->second, .args = {scalar(scratch_)}});
    scratch_ = dim_add(scratch_, buffer_bytes(x));
  }
  code_.buffers.push_back(made);
  return it->second;
}

const std::vector<int64_t>& RowLowering::registers(Ref x) {
  const auto [it, is_new] = registers_.try_emplace(x->id);
  if (!is_new) return it->second;
  const Dims dims = dims_of(x);
  for (int64_t row = 0; row < rows_of(dims); ++row) {
    it->second.push_back(static_cast<int64_t>(code_.registers.size()));
    code_.registers.push_back({x->dtype, static_cast<int>(lanes_of(dims))});
  }
  return it->second;
}

Shaped RowLowering::compute_load(Ref x) {
  const Ref from = storage(x->src[0]);
  Shaped value;
  if (is_register(from)) {
    value.dims = dims_of(from);
    for (const int64_t reg : registers(from))
      value.rows.push_back(builder_.emit({.kind = RowKind::RegGet,
                                          .dtype = from->dtype,
                                          .lanes = static_cast<int>(lanes_of(value.dims)),
                                          .imm = reg}));
    return value;
  }
  value.dims = dims_of(x);
  const int64_t which = buffer(from), lanes = lanes_of(value.dims);
  // A masked access would need a mask of bytes.
  const bool is_masked = x->src.size() > 2 && elements_per_load(x) > 1 && lanes_of(dims_of(x->src[2])) > 1;
  const bool by_lane = lanes > 1 && x->i(Attr::Lanes, 1) == 1;
  if (is_masked && !by_lane) unsupported(x, "reads words of bytes under a mask");
  StridedLoad access{1, 0, x->src[1], x->src.size() > 2 ? x->src[2] : Ref()};
  if (by_lane) {
    const std::optional<StridedLoad> found = is_pure(x->src[1]) && has_scalar_rest(x) ? strided(x) : std::nullopt;
    for (int64_t row = 0; row < rows_of(value.dims) && !found; ++row) value.rows.push_back(gather(x, row, value.dims));
    if (!found) return value;
    access = *found;
  }
  Dims dims = value.dims; // of what is read
  if (!dims.empty()) dims.back() *= access.step;
  for (int64_t row = 0; row < rows_of(dims); ++row) {
    RowId gate = access.gate ? row_of(access.gate, dims, row) : -1;
    if (gate >= 0 && builder_.is_const(gate) && builder_.inst(gate).bits != 0) gate = -1;
    const int all = static_cast<int>(lanes_of(dims));
    RowId other = gate >= 0 && x->src.size() > 3 ? row_of(x->src[3], dims, row) : -1;
    if (other >= 0) other = builder_.splat(other, all);
    const RowId index = row_of(access.index, dims, row);
    RowInst load{.kind = RowKind::Load, .dtype = x->dtype, .lanes = all, .imm = which, .args = {index, gate, other}};
    value.rows.push_back(builder_.emit(std::move(load)));
    if (access.step > 1)
      value.rows.back() = builder_.emit({.kind = RowKind::Slice,
                                         .dtype = x->dtype,
                                         .lanes = static_cast<int>(lanes),
                                         .imm = access.first,
                                         .step = static_cast<int>(access.step),
                                         .args = {value.rows.back()}});
    if (const int64_t ahead = x->i(Attr::Ahead, 0);
        ahead > 0 && gate < 0) // of two lines that lie in a pair, one is enough
      builder_.emit({.kind = RowKind::Prefetch, .imm = which, .bits = static_cast<uint64_t>(ahead), .args = {index}});
  }
  return value;
}

/// May gate and alternative be computed for lanes that `load` does not have?
bool RowLowering::has_scalar_rest(Ref load) {
  return load->src.size() < 3 ||
         (is_pure(load->src[2]) && (load->src.size() < 4 || lanes_of(dims_of(load->src[3])) == 1));
}

RowId RowLowering::gather(Ref x, int64_t row, const Dims& dims) {
  const int64_t which = buffer(storage(x->src[0])), lanes = lanes_of(dims);
  std::vector<RowId> elements;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    const auto part = [&](size_t i) {
      return x->src.size() > i ? lane_of_broadcast(x->src[i], dims, row, lane) : RowId{-1};
    };
    elements.push_back(
        builder_.emit({.kind = RowKind::Load, .dtype = x->dtype, .imm = which, .args = {part(1), part(2), part(3)}}));
  }
  return builder_.emit(
      {.kind = RowKind::Build, .dtype = x->dtype, .lanes = static_cast<int>(lanes), .args = std::move(elements)});
}

void RowLowering::store(Ref x) {
  const Ref to = storage(x->src[0]);
  if (is_register(to)) {
    const Dims dims = dims_of(to);
    const std::vector<int64_t>& regs = registers(to);
    for (size_t row = 0; row < regs.size(); ++row) {
      const RowId value =
          builder_.splat(row_of(x->src[2], dims, static_cast<int64_t>(row)), static_cast<int>(lanes_of(dims)));
      builder_.emit({.kind = RowKind::RegSet, .imm = regs[row], .args = {value}});
    }
    return;
  }
  const int64_t which = buffer(to);
  code_.buffers[static_cast<size_t>(which)].stored = true;
  const bool vector = x->i(Attr::Lanes, 1) > 1;
  Dims dims; // of the access: what index, value and gate broadcast to
  for (const Ref part : x->src.subspan(1)) widen(dims, dims_of(part));
  if (vector) widen(dims, {x->i(Attr::Lanes)});
  const bool scatter = lanes_of(dims) > 1 && !vector;
  const int64_t lanes = lanes_of(dims);
  const bool gated = x->src.size() > 3;
  for (int64_t row = 0; row < rows_of(dims); ++row) {
    if (!scatter) {
      const RowId value = builder_.splat(row_of(x->src[2], dims, row), static_cast<int>(lanes));
      const RowId gate = gated ? row_of(x->src[3], dims, row) : -1;
      builder_.emit({.kind = RowKind::Store, .imm = which, .args = {row_of(x->src[1], dims, row), value, gate}});
      continue;
    }
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const RowId gate = gated ? lane_of_broadcast(x->src[3], dims, row, lane) : -1;
      const RowId value = lane_of_broadcast(x->src[2], dims, row, lane);
      const RowId index = lane_of_broadcast(x->src[1], dims, row, lane);
      builder_.emit({.kind = RowKind::Store, .imm = which, .args = {index, value, gate}});
    }
  }
}

} // namespace

RowCode lower_to_rows(Ref func, std::span<const std::string> vars, const RowOptions& options) {
  return RowLowering(func, vars, options).run();
}

Ref scratch_bytes(Ref func) {
  Ref total = func->ctx->index(0);
  for (Ref x : toposort(func))
    if (is_scratch(x)) total = dim_add(total, buffer_bytes(x));
  return total;
}

} // namespace tgc
