// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Evaluation of a linear kernel body: one instruction after the other, each on its own register (the bytes of a small
// dense array). Operands, shapes and broadcasts are resolved once before the first instruction runs, so a loop body
// costs one switch and one typed loop per instruction. Results are those of the operations as written: f32 stays f32,
// nothing is reassociated or contracted; a reduce over a value's own dims folds in the order of ops.def, rounding each
// time. What renderers emit must equal this bit for bit (transcendental ops aside, which no lowered kernel contains).
// Not handled: values that leave the loop that defines them are allowed here, though a spec may forbid them.

#include <algorithm>
#include <cstring>

#include "uop/eval_kernel.h"

namespace tgc {
namespace {

// One row of a broadcast elementwise op: byte offsets into the result and the operands.
struct Row {
  int64_t out, in[3];
};

struct Register {
  std::vector<int64_t> shape;
  int64_t numel = 0;
  std::byte* data = nullptr;
};

struct Instruction {
  Ref node;
  size_t jump = 0; ///< Range: its End; End: its Range
  int64_t row_size = 0;
  Strided in[3];
  std::vector<Row> rows;
};

class LinearEval {
public:
  LinearEval(Ref linear, const KernelEnv& env) : env_(env), dims_(*env.vars) {
    for (Ref node : toposort(linear))
      if (node->is(Ops::Const) || node->is(Ops::Var) || node->is(Ops::Iota))
        set_leaf(node);
      else if (node->is(Ops::Buffer))
        set_buffer(node);
    for (Ref node : linear->src) add(node);
    if (!open_.empty()) fail(program_[open_.back()].node, "the range is not closed");
  }

  void run() {
    for (size_t pc = 0; pc < program_.size(); ++pc) pc = step(pc);
  }

private:
  [[noreturn]] void fail(Ref node, const std::string& why) const {
    eval_error("kernel " + env_.name, describe(node) + ": " + why);
  }

  // ---- preparation --------------------------------------------------------------------------------------------------
  // The node's register; an instruction that stands in the sequence several times has one.
  Register& create(Ref node, std::vector<int64_t> shape) {
    Register& r = registers_[node->id];
    if (r.data != nullptr) return r;
    std::byte* data = nullptr;
    Dense storage = dense_new(node->dtype, shape, &data);
    r = {std::move(shape), storage.numel(), data};
    std::memset(data, 0xff, static_cast<size_t>(r.numel * byte_size(node->dtype))); // NaN until written
    owners_.push_back(std::move(storage.owner));
    return r;
  }

  void set_leaf(Ref node) {
    Register& r = create(node, dims_(node->shape));
    dense_copy_to(eval_op(node, {}, {}, dims_), r.data);
  }
  void set_buffer(Ref node) {
    const std::string& space = node->s(Attr::Space);
    if (space != "reg" && space != "scratch") fail(node, "space \"" + space + "\" is not local to a kernel");
    create(node, dims_(node->shape));
  }

  static Ref storage_of(Ref node) {
    while (node->is(Ops::After)) node = node->src[0];
    return node;
  }
  static bool is_storage(Ref node) {
    node = storage_of(node);
    return node->is(Ops::Param) || node->is(Ops::Buffer);
  }

  Register& reg(Ref node) {
    const auto found = registers_.find(node->id);
    if (found == registers_.end()) fail(node, "is used before it is executed");
    return found->second;
  }

  static bool is_leaf(Ref node) { return node->cls() == OpClass::Leaf && !node->is(Ops::Range); }

  void add(Ref node) {
    if (is_leaf(node)) return;
    Instruction ins;
    ins.node = node;
    if (node->is(Ops::Range)) {
      if (!registers_.contains(node->src[0]->id)) { // an extent over Vars that is not itself an instruction
        create(node->src[0], {});
        set_scalar(node->src[0], dims_(node->src[0]));
      }
      create(node, {});
      open_.push_back(program_.size());
    } else if (node->is(Ops::End)) {
      if (open_.empty() || !(program_[open_.back()].node == node->src[0]))
        fail(node, "does not close the innermost open range");
      ins.jump = open_.back();
      program_[ins.jump].jump = program_.size();
      open_.pop_back();
    } else if (!(node->is(Ops::After) && is_storage(node))) {
      for (size_t i = 0; i < node->src.size(); ++i)
        if (!is_storage(node->src[i])) reg(node->src[i]);
      prepare(ins);
    } else {
      return;
    }
    program_.push_back(std::move(ins));
  }

  static bool is_elementwise(Ref node) {
    const OpClass cls = node->cls();
    return cls == OpClass::Binary || cls == OpClass::Compare || cls == OpClass::Ternary ||
           (cls == OpClass::Unary && !node->is(Ops::Cast) && !node->is(Ops::Bitcast));
  }

  void prepare(Instruction& ins) {
    const Ref node = ins.node;
    // One node may stand in several places (a load of a register, say): they share its storage.
    if (node->dtype != DType::Void && !registers_.contains(node->id)) create(node, dims_(node->shape));
    if (!is_elementwise(node)) return;
    const DType operand = node->src.back()->dtype;
    if (scalar_fn(node->op, operand) == nullptr) fail(node, std::string("is not defined for ") + tgc::name(operand));
    const std::vector<int64_t>& shape = reg(node).shape;
    ins.row_size = shape.empty() ? 1 : shape.back();
    std::vector<Dense> wide;
    for (size_t k = 0; k < 3; ++k) {
      const Ref s = node->src[std::min(k, node->src.size() - 1)];
      wide.push_back(dense_broadcast(view(s), shape));
      ins.in[k].stride = shape.empty() ? 0 : wide[k].stride.back();
    }
    const int64_t rows = ins.row_size == 0 ? 0 : reg(node).numel / ins.row_size;
    for (int64_t row = 0; row < rows; ++row) {
      Row r{row * ins.row_size * byte_size(node->dtype), {0, 0, 0}};
      for (size_t k = 0; k < 3; ++k) {
        int64_t rest = row, at = 0;
        for (size_t dim = shape.empty() ? 0 : shape.size() - 1; dim-- > 0; rest /= shape[dim])
          at += rest % shape[dim] * wide[k].stride[dim];
        r.in[k] = at * byte_size(wide[k].dtype);
      }
      ins.rows.push_back(r);
    }
    for (size_t k = 0; k < 3; ++k) ins.in[k].data = wide[k].data;
  }

  Dense view(Ref node) {
    const Register& r = reg(node);
    return dense_over(node->dtype, r.shape, r.data);
  }

  // ---- execution ----------------------------------------------------------------------------------------------------
  // Returns the index of the instruction after which to go on.
  size_t step(size_t pc) {
    Instruction& ins = program_[pc];
    const Ref node = ins.node;
    switch (node->op) {
    case Ops::Range: {
      set_scalar(node, 0);
      return scalar(node->src[0]) > 0 ? pc : ins.jump;
    }
    case Ops::End: {
      const Ref range = node->src[0];
      const int64_t next = scalar(range) + 1;
      set_scalar(range, next);
      return next < scalar(range->src[0]) ? ins.jump : pc;
    }
    case Ops::Load: load(node); return pc;
    case Ops::Store: store(node); return pc;
    case Ops::Reduce: reduce(node); return pc;
    case Ops::Cast: {
      const Register& from = reg(node->src[0]);
      cast_array(node->dtype, node->src[0]->dtype, from.numel, {from.data, 1}, reg(node).data);
      return pc;
    }
    default: break;
    }
    if (!is_elementwise(node)) {
      other(node);
      return pc;
    }
    std::byte* out = reg(node).data;
    for (const Row& row : ins.rows) {
      const Strided in[3] = {{ins.in[0].data + row.in[0], ins.in[0].stride},
                             {ins.in[1].data + row.in[1], ins.in[1].stride},
                             {ins.in[2].data + row.in[2], ins.in[2].stride}};
      apply_array(node->op, node->src.back()->dtype, ins.row_size, in, out + row.out);
    }
    return pc;
  }

  int64_t scalar(Ref node) { return static_cast<int64_t>(load_bits(DType::I64, reg(node).data)); }
  void set_scalar(Ref node, int64_t value) { store_bits(DType::I64, reg(node).data, static_cast<Bits>(value)); }

  void other(Ref node) {
    if (node->cls() == OpClass::Control && !node->is(Ops::After)) fail(node, "not an instruction");
    if (node->cls() == OpClass::Memory) fail(node, "not an instruction");
    std::vector<Dense> src{view(node->src[0])};
    dense_copy_to(eval_op(node, src, reg(node).shape, dims_), reg(node).data);
  }

  // In the value's own type and in the order that ops.def states, so that compiled code can match it.
  void reduce(Ref node) {
    if (node->src.size() > 1) fail(node, "reduces over ranges; linear form has loops for that");
    const Ops kind = reduce_op(node);
    const ScalarFn fn = scalar_fn(kind, node->dtype);
    if (fn == nullptr) fail(node, std::string("is not defined for ") + tgc::name(node->dtype));
    const Register &from = reg(node->src[0]), &to = reg(node);
    const std::vector<bool> reduced = reduced_dims(node);
    const int size = byte_size(node->dtype);
    for (int64_t i = 0; i < to.numel; ++i)
      store_bits(node->dtype, to.data + i * size, reduce_identity(kind, node->dtype));
    if (from.numel == 0) return;
    const size_t rank = from.shape.size();
    const int64_t lanes = rank == 0 ? 1 : from.shape.back();
    // Leading dims: row after row into the row of the result that it belongs to.
    std::vector<std::vector<Bits>> rows(static_cast<size_t>(from.numel / lanes));
    for (int64_t row = 0; row < from.numel / lanes; ++row) {
      int64_t rest = row, at = 0, step = 1;
      for (size_t dim = rank == 0 ? 0 : rank - 1; dim-- > 0; rest /= from.shape[dim]) {
        if (reduced[dim]) continue;
        at += rest % from.shape[dim] * step;
        step *= from.shape[dim];
      }
      std::vector<Bits>& into = rows[static_cast<size_t>(at)];
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const Bits x = load_bits(node->dtype, from.data + (row * lanes + lane) * size);
        if (static_cast<int64_t>(into.size()) == lane)
          into.push_back(x);
        else
          into[static_cast<size_t>(lane)] = fn(into[static_cast<size_t>(lane)], x, 0);
      }
    }
    const bool over_lanes = rank > 0 && reduced.back();
    std::byte* out = to.data;
    for (std::vector<Bits>& row : rows) {
      if (over_lanes && !row.empty()) row = {reduce_lanes(fn, row)};
      for (const Bits x : row) {
        store_bits(node->dtype, out, x);
        out += size;
      }
    }
  }

  // The last dim: a tree of halves for a power of two, else from lane 0 on.
  static Bits reduce_lanes(ScalarFn fn, std::vector<Bits> v) {
    const size_t n = v.size();
    if ((n & (n - 1)) != 0) {
      for (size_t i = 1; i < n; ++i) v[0] = fn(v[0], v[i], 0);
      return v[0];
    }
    for (size_t half = n / 2; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i) v[i] = fn(v[i], v[half + i], 0);
    return v[0];
  }

  // ---- memory -------------------------------------------------------------------------------------------------------
  struct Memory {
    std::byte* data;
    int64_t numel;
    std::string label;
  };
  Memory memory(Ref node) {
    const Ref storage = storage_of(node);
    if (storage->is(Ops::Param)) {
      const BufferArg& b = kernel_buffer(env_, storage);
      return {b.data, b.numel, "slot " + std::to_string(storage->i(Attr::Slot))};
    }
    if (!storage->is(Ops::Buffer)) fail(storage, "is no storage");
    return {reg(storage).data, reg(storage).numel, "scratch " + std::to_string(storage->i(Attr::Slot))};
  }

  static bool is_register(Ref node) {
    const Ref storage = storage_of(node);
    return storage->is(Ops::Buffer) && storage->s(Attr::Space) == "reg";
  }

  // Strides of `node`'s value within a result of `shape`, for walking by element number.
  class Walk {
  public:
    Walk(const Dense& x, const std::vector<int64_t>& shape) : x_(dense_broadcast(x, shape)), plain_(x_.contiguous()) {}
    const std::byte* at(int64_t i) const {
      int64_t offset = plain_ ? i : 0;
      if (!plain_)
        for (size_t dim = x_.shape.size(); dim-- > 0; i /= x_.shape[dim]) offset += i % x_.shape[dim] * x_.stride[dim];
      return x_.data + offset * byte_size(x_.dtype);
    }

  private:
    Dense x_;
    bool plain_;
  };

  [[noreturn]] void out_of_range(const char* access, const Memory& m, int64_t element) const {
    eval_error("kernel " + env_.name + ", " + m.label, std::string(access) + " at index " + std::to_string(element) +
                                                           " of " + std::to_string(m.numel) + " elements");
  }

  void load(Ref node) {
    const Memory m = memory(node->src[0]);
    Register& out = reg(node);
    const int size = byte_size(node->dtype);
    if (is_register(node->src[0])) {
      if (const_int(node->src[1]) != 0) fail(node, "a register buffer is read whole, at index 0");
      std::memcpy(out.data, m.data, static_cast<size_t>(m.numel * size));
      return;
    }
    const int64_t lanes = std::max<int64_t>(node->i(Attr::Lanes, 1), 1);
    std::vector<int64_t> index_shape = out.shape;
    if (node->has(Attr::Lanes)) index_shape.back() = 1;
    const Walk index(view(node->src[1]), index_shape);
    const bool gated = node->src.size() > 2, has_alt = node->src.size() > 3;
    const Walk gate(view(node->src[gated ? 2 : 1]), out.shape), alt(view(node->src[has_alt ? 3 : 1]), out.shape);
    for (int64_t i = 0; i < out.numel; ++i) {
      if (gated && *gate.at(i) == std::byte{0}) {
        store_bits(node->dtype, out.data + i * size, has_alt ? load_bits(node->dtype, alt.at(i)) : 0);
        continue;
      }
      const int64_t first = static_cast<int64_t>(load_bits(DType::I64, index.at(i / lanes))),
                    element = first + i % lanes;
      if (first < 0 || element >= m.numel) out_of_range("load", m, element);
      std::memcpy(out.data + i * size, m.data + element * size, static_cast<size_t>(size));
    }
  }

  void store(Ref node) {
    if (node->src.size() < 3) fail(node, "a kernel's store has a buffer, an index and a value");
    const Memory m = memory(node->src[0]);
    const Ref value = node->src[2];
    if (storage_of(node->src[0])->dtype != value->dtype) fail(node, std::string("stores ") + tgc::name(value->dtype));
    std::vector<int64_t> shape;
    const bool whole = is_register(node->src[0]), gated = node->src.size() > 3;
    if (whole) {
      if (const_int(node->src[1]) != 0) fail(node, "a register buffer is written whole, at index 0");
      shape = reg(storage_of(node->src[0])).shape;
    } else {
      for (Ref s : node->src.subspan(1)) widen(shape, reg(s).shape);
    }
    const int64_t lanes = std::max<int64_t>(node->i(Attr::Lanes, 1), 1);
    std::vector<int64_t> index_shape = shape;
    if (node->has(Attr::Lanes) && !shape.empty()) index_shape.back() = 1;
    const Walk index(view(node->src[1]), index_shape), from(view(value), shape),
        gate(view(node->src[gated ? 3 : 2]), shape);
    const int size = byte_size(value->dtype);
    int64_t count = 1;
    for (int64_t dim : shape) count *= dim;
    for (int64_t i = 0; i < count; ++i) {
      if (gated && *gate.at(i) == std::byte{0}) continue;
      const int64_t first = whole ? i : static_cast<int64_t>(load_bits(DType::I64, index.at(i / lanes)));
      const int64_t element = whole ? i : first + i % lanes;
      if (first < 0 || element >= m.numel) out_of_range("store", m, element);
      std::memcpy(m.data + element * size, from.at(i), static_cast<size_t>(size));
    }
  }

  // Right-aligned broadcast of `shape` with `other`.
  static void widen(std::vector<int64_t>& shape, const std::vector<int64_t>& other) {
    if (other.size() > shape.size()) shape.insert(shape.begin(), other.size() - shape.size(), 1);
    for (size_t i = 0; i < other.size(); ++i) {
      int64_t& dim = shape[shape.size() - other.size() + i];
      if (dim == 1) dim = other[i];
    }
  }

  const KernelEnv& env_;
  DimValues dims_;
  std::vector<Instruction> program_;
  std::vector<size_t> open_; // ranges being closed, while preparing
  std::unordered_map<uint32_t, Register> registers_;
  std::vector<std::shared_ptr<std::byte[]>> owners_;
};

} // namespace

void eval_linear_body(Ref linear, const KernelEnv& env) { LinearEval(linear, env).run(); }

} // namespace tgc
