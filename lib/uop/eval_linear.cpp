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

// Storage of an access; an access outside [0, numel) is reported with the label.
struct Memory {
  std::byte* data = nullptr;
  int64_t numel = 0;
  std::string label;
};

// A load or store with the addresses of its operands' elements, one per element of the access (index: one per `lanes`).
struct Access {
  Memory memory;
  bool whole = false;                               ///< a register buffer: element i is memory element i
  int64_t lanes = 1, count = 0, step = 1;           ///< step: memory elements per element of the access
  std::vector<const std::byte*> index, gate, value; ///< gate may be empty; value is a load's alternative, or empty
};

struct Instruction {
  Ref node;
  size_t jump = 0; ///< Range: its End; End: its Range
  Register* out = nullptr;
  Register* first = nullptr; ///< source 0, if it is a value; Range and End: the extent (and `out` the counter)
  int64_t row_size = 0;
  Strided in[3];
  std::vector<Row> rows;
  Access access;
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
        set_scalar(reg(node->src[0]), dims_(node->src[0]));
      }
      ins.out = &create(node, {});
      ins.first = &reg(node->src[0]);
      open_.push_back(program_.size());
    } else if (node->is(Ops::End)) {
      if (open_.empty() || !(program_[open_.back()].node == node->src[0]))
        fail(node, "does not close the innermost open range");
      ins.jump = open_.back();
      ins.out = program_[ins.jump].out;
      ins.first = program_[ins.jump].first;
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
    if (node->dtype != DType::Void) ins.out = &create(node, dims_(node->shape));
    if (!node->src.empty() && !is_storage(node->src[0])) ins.first = &reg(node->src[0]);
    if (node->is(Ops::Load)) prepare_load(node, ins.access);
    if (node->is(Ops::Store)) prepare_store(node, ins.access);
    if (is_elementwise(node)) prepare_elementwise(ins);
  }

  void prepare_elementwise(Instruction& ins) {
    const Ref node = ins.node;
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
      set_scalar(*ins.out, 0);
      return scalar(*ins.first) > 0 ? pc : ins.jump;
    }
    case Ops::End: {
      const int64_t next = scalar(*ins.out) + 1;
      set_scalar(*ins.out, next);
      return next < scalar(*ins.first) ? ins.jump : pc;
    }
    case Ops::Load: load(ins); return pc;
    case Ops::Store: store(ins); return pc;
    case Ops::Reduce: reduce(node); return pc;
    case Ops::Cast:
      cast_array(node->dtype, node->src[0]->dtype, ins.first->numel, {ins.first->data, 1}, ins.out->data);
      return pc;
    default: break;
    }
    if (!is_elementwise(node)) {
      other(node);
      return pc;
    }
    std::byte* out = ins.out->data;
    for (const Row& row : ins.rows) {
      const Strided in[3] = {{ins.in[0].data + row.in[0], ins.in[0].stride},
                             {ins.in[1].data + row.in[1], ins.in[1].stride},
                             {ins.in[2].data + row.in[2], ins.in[2].stride}};
      apply_array(node->op, node->src.back()->dtype, ins.row_size, in, out + row.out);
    }
    return pc;
  }

  static int64_t scalar(const Register& r) { return static_cast<int64_t>(load_bits(DType::I64, r.data)); }
  static void set_scalar(Register& r, int64_t value) { store_bits(DType::I64, r.data, static_cast<Bits>(value)); }

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
    // Leading dims: the rows that fold into each row of the result.
    std::vector<std::vector<int64_t>> rows(static_cast<size_t>(to.numel));
    int64_t results = 0;
    for (int64_t row = 0; row < from.numel / lanes; ++row) {
      int64_t rest = row, at = 0, step = 1;
      for (size_t dim = rank == 0 ? 0 : rank - 1; dim-- > 0; rest /= from.shape[dim]) {
        if (reduced[dim]) continue;
        at += rest % from.shape[dim] * step;
        step *= from.shape[dim];
      }
      rows[static_cast<size_t>(at)].push_back(row);
      results = std::max(results, at + 1);
    }
    const bool over_lanes = rank > 0 && reduced.back();
    std::byte* out = to.data;
    for (int64_t at = 0; at < results; ++at) {
      std::vector<Bits> folded;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        std::vector<Bits> terms;
        for (const int64_t row : rows[static_cast<size_t>(at)])
          terms.push_back(load_bits(node->dtype, from.data + (row * lanes + lane) * size));
        folded.push_back(fold(fn, std::move(terms)));
      }
      if (over_lanes) folded = {fold(fn, std::move(folded))};
      for (const Bits x : folded) {
        store_bits(node->dtype, out, x);
        out += size;
      }
    }
  }

  // A power of two values: a tree of halves; else in order.
  static Bits fold(ScalarFn fn, std::vector<Bits> v) {
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

  // The address of each element of `node`'s value broadcast to `shape`.
  std::vector<const std::byte*> addresses(Ref node, const std::vector<int64_t>& shape) {
    const Dense x = dense_broadcast(view(node), shape);
    std::vector<const std::byte*> out(static_cast<size_t>(x.numel()));
    for (size_t i = 0; i < out.size(); ++i) {
      int64_t rest = static_cast<int64_t>(i), at = 0;
      for (size_t dim = shape.size(); dim-- > 0; rest /= shape[dim]) at += rest % shape[dim] * x.stride[dim];
      out[i] = x.data + at * byte_size(x.dtype);
    }
    return out;
  }

  void prepare_access(Ref node, Access& access, const std::vector<int64_t>& shape) {
    access.memory = memory(node->src[0]);
    access.whole = is_register(node->src[0]);
    access.count = 1;
    for (int64_t dim : shape) access.count *= dim;
    access.lanes = std::max<int64_t>(node->i(Attr::Lanes, 1), 1);
    if (node->is(Ops::Load)) access.step = elements_per_load(node);
    if (access.whole) {
      if (const_int(node->src[1]) != 0) fail(node, "a register buffer is accessed whole, at index 0");
      return;
    }
    std::vector<int64_t> index_shape = shape;
    if (node->has(Attr::Lanes) && !shape.empty()) index_shape.back() = 1;
    access.index = addresses(node->src[1], index_shape);
  }

  void prepare_load(Ref node, Access& access) {
    const std::vector<int64_t>& shape = reg(node).shape;
    prepare_access(node, access, shape);
    if (node->src.size() > 2) access.gate = addresses(node->src[2], shape);
    if (node->src.size() > 3) access.value = addresses(node->src[3], shape);
  }

  void prepare_store(Ref node, Access& access) {
    if (node->src.size() < 3) fail(node, "a kernel's store has a buffer, an index and a value");
    const Ref storage = storage_of(node->src[0]), value = node->src[2];
    if (storage->dtype != value->dtype) fail(node, std::string("stores ") + tgc::name(value->dtype));
    std::vector<int64_t> shape;
    if (is_register(storage))
      shape = reg(storage).shape;
    else
      for (Ref s : node->src.subspan(1)) widen(shape, reg(s).shape);
    if (node->has(Attr::Lanes)) widen(shape, {node->i(Attr::Lanes)});
    prepare_access(node, access, shape);
    access.value = addresses(value, shape);
    if (node->src.size() > 3) access.gate = addresses(node->src[3], shape);
  }

  // The memory element that element `i` of the access touches.
  int64_t element(const Access& a, int64_t i, const char* what) const {
    if (a.whole) return i;
    const int64_t first = static_cast<int64_t>(load_bits(DType::I64, a.index[static_cast<size_t>(i / a.lanes)]));
    const int64_t at = first + i % a.lanes * a.step;
    if (at < 0 || at > a.memory.numel - a.step)
      eval_error("kernel " + env_.name + ", " + a.memory.label, std::string(what) + " at index " + std::to_string(at) +
                                                                    " of " + std::to_string(a.memory.numel) +
                                                                    " elements");
    return at;
  }

  void load(const Instruction& ins) const {
    const Access& a = ins.access;
    const DType dtype = ins.node->dtype;
    const int size = byte_size(dtype);
    for (int64_t i = 0; i < a.count; ++i) {
      const size_t k = static_cast<size_t>(i);
      std::byte* to = ins.out->data + i * size;
      if (!a.gate.empty() && *a.gate[k] == std::byte{0})
        store_bits(dtype, to, a.value.empty() ? 0 : load_bits(dtype, a.value[k]));
      else
        std::memcpy(to, a.memory.data + element(a, i, "load") * (size / a.step), static_cast<size_t>(size));
    }
  }

  void store(const Instruction& ins) const {
    const Access& a = ins.access;
    const int size = byte_size(ins.node->src[2]->dtype);
    for (int64_t i = 0; i < a.count; ++i) {
      const size_t k = static_cast<size_t>(i);
      if (!a.gate.empty() && *a.gate[k] == std::byte{0}) continue;
      std::memcpy(a.memory.data + element(a, i, "store") * size, a.value[k], static_cast<size_t>(size));
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
