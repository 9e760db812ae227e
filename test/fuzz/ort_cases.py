# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random nodes of every operator for ort_diff.py: attributes, shapes and inputs, the same for the same seed."""
import sys

import numpy as np
from onnx import helper

OPSET = 18  # --opset
FLOAT = "f4"


class Case:
    """One node under construction: its operands are graph inputs, or initializers where they must be known."""

    def __init__(self, seed):
        self.seed, self.random = seed, np.random.default_rng(seed)
        self.inputs, self.constants, self.node = {}, {}, None

    def below(self, n):
        return int(self.random.integers(n))

    def between(self, lo, hi):
        return lo + self.below(hi - lo + 1)

    def any(self, *choices):
        return choices[self.below(len(choices))]

    def maybe(self, percent):
        return self.below(100) < percent

    def shape(self, lo=0, hi=4):
        return [self.any(1, 2, 3, 4, 5, 7, 8, 13) if rank < 3 else self.any(1, 2, 3) for rank in range(self.between(lo, hi))]

    def values(self, shape, dtype=FLOAT, low=None, high=None):
        kind = np.dtype(dtype).kind
        if kind == "b":
            return self.random.integers(0, 2, shape).astype(bool)
        if kind in "iu":
            low = (-9 if kind == "i" else 0) if low is None else low
            return self.random.integers(low, 9 if high is None else high, shape).astype(dtype)
        data = self.random.uniform(-4 if low is None else low, 4 if high is None else high, shape)
        return (np.round(data * 4) / 4 if self.maybe(50) else data).astype(dtype)

    def input(self, value):
        name = f"n{self.seed}_i{len(self.inputs) + len(self.constants)}"
        self.inputs[name] = np.asarray(value)
        return name

    def constant(self, value):
        name = f"n{self.seed}_i{len(self.inputs) + len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def x(self, shape, dtype=FLOAT, **bounds):
        return self.input(self.values(shape, dtype, **bounds))

    def ints(self, values):
        return self.constant(np.array(values, "i8"))

    def make(self, op, inputs, outputs=1, **attributes):
        names = [f"n{self.seed}_o{i}" for i in range(outputs)]
        self.node = helper.make_node(op, inputs, names, name=f"n{self.seed}", **attributes)

    def some(self, **attributes):
        """Each attribute or, one time in three, its default."""
        return {k: v for k, v in attributes.items() if not self.maybe(33)}


def broadcastable(c, shape):
    part = shape[c.below(len(shape) + 1) if c.maybe(30) else 0:]
    return [1 if c.maybe(25) else d for d in part]


def axis_of(c, shape):
    axis = c.below(len(shape))
    return axis - len(shape) if c.maybe(30) else axis


# ---- generators: one per family, with the operators it makes --------------------------------------------------------

def unary(c, op):
    low, high = {"Sqrt": (0, 9), "Log": (0.1, 9), "Acos": (-1, 1), "Asin": (-1, 1), "Atanh": (-0.95, 0.95),
                 "Acosh": (1, 9), "Reciprocal": (0.5, 4), "Tan": (-1.4, 1.4)}.get(op, (None, None))
    dtype = c.any("f4", "f4", "f8", "i4", "i8") if op in ("Abs", "Neg", "Sign", "Relu") else c.any("f4", "f4", "f4", "f8")
    value = c.values(c.shape(), dtype, low, high)
    if value.dtype.kind == "f" and c.maybe(20) and op in ("Abs", "Neg", "Relu", "Floor", "Ceil", "Round", "IsNaN", "IsInf",
                                                           "Sigmoid", "Tanh", "Exp", "Erf", "Sign"):
        specials = np.array([np.nan, np.inf, -np.inf, -0.0] if op != "Sign" else [np.inf, -np.inf, -0.0], dtype)
        value = np.where(c.random.random(value.shape) < 0.2, c.random.choice(specials, value.shape), value).astype(dtype)
    c.make(op, [c.input(value)])


def activation(c, op):
    attributes = {"LeakyRelu": dict(alpha=0.1), "Elu": dict(alpha=1.5), "Celu": dict(alpha=0.7),
                  "HardSigmoid": dict(alpha=0.3, beta=0.4), "ThresholdedRelu": dict(alpha=0.5),
                  "Shrink": dict(lambd=0.7, bias=0.2), "Selu": dict(alpha=1.2, gamma=0.9)}.get(op, {})
    c.make(op, [c.x(c.shape(1))], **c.some(**attributes))


def binary(c, op):
    dtype = c.any("f4", "f4", "f8", "i4", "i8", "u1", "i2") if op in ("Add", "Sub", "Mul", "Div") else c.any("f4", "i4", "i8")
    shape = c.shape()
    a, b = c.values(shape, dtype), c.values(broadcastable(c, shape), dtype)
    if op == "Div":
        b = np.where(b == 0, 1, b).astype(dtype)
    operands = [a, b] if c.maybe(50) or op == "Div" else [b, a]
    c.make(op, [c.input(v) if c.maybe(70) else c.constant(v) for v in operands])


def modulo(c):
    dtype = c.any("f4", "i4", "i8", "u1", "i1", "u4")
    fmod = 1 if dtype == "f4" or c.maybe(30) else 0
    shape = c.shape()
    b = c.values(broadcastable(c, shape), dtype)
    c.make("Mod", [c.x(shape, dtype), c.input(np.where(b == 0, 3, b).astype(dtype))], fmod=fmod)


def power(c):
    shape = c.shape()
    exponent = c.any(c.values(broadcastable(c, shape), "f4"), np.array(c.any(2, 3, 0.5, -1, 0, 1), "f4"))
    c.make("Pow", [c.x(shape, low=0.25), c.input(exponent) if c.maybe(50) else c.constant(exponent)])


def compare(c, op):
    shape, dtype = c.shape(), c.any("f4", "i4", "i8")
    c.make(op, [c.x(shape, dtype, low=-3, high=3), c.x(broadcastable(c, shape), dtype, low=-3, high=3)])


def logical(c, op):
    shape = c.shape()
    c.make(op, [c.x(shape, "?")] + ([] if op == "Not" else [c.x(broadcastable(c, shape), "?")]))


def bits(c, op):
    shape, dtype = c.shape(), c.any("i4", "u1", "i8", "u4")
    if op == "BitShift":
        dtype = c.any("u1", "u4", "u8")
        return c.make(op, [c.x(shape, dtype), c.x(broadcastable(c, shape), dtype, high=7)], direction=c.any("LEFT", "RIGHT"))
    c.make(op, [c.x(shape, dtype)] + ([] if op == "BitwiseNot" else [c.x(broadcastable(c, shape), dtype)]))


def variadic(c, op):
    shape, dtype = c.shape(), c.any("f4", "f4", "f8") if op in ("Sum", "Mean") else c.any("f4", "f8", "i4", "i8")
    c.make(op, [c.x(broadcastable(c, shape) if i else shape, dtype) for i in range(c.between(1, 4))])


def where(c):
    shape, dtype = c.shape(), c.any("f4", "i4", "i8")
    c.make("Where", [c.x(broadcastable(c, shape), "?"), c.x(shape, dtype), c.x(broadcastable(c, shape), dtype)])


def clip(c):
    dtype = c.any("f4", "i4", "i8")
    low, high = np.array(-1, dtype), np.array(2, dtype)
    c.make("Clip", [c.x(c.shape(), dtype), c.constant(low) if c.maybe(70) else "", c.input(high) if c.maybe(70) else ""])


def cast(c):
    source, target = c.any("f4", "f8", "i4", "i8", "u1", "?", "f2"), c.any("f4", "f8", "i4", "i8", "u1", "i1", "?", "f2")
    low = 0 if target == "u1" else -9
    to = helper.np_dtype_to_tensor_dtype(np.dtype(target))
    c.make("Cast", [c.input(c.values(c.shape(), source, None if source in ("?", "u1") else low, 9))], to=to)


def reduce(c, op):
    shape = c.shape(1)
    axes = [int(a) for a in c.random.permutation(len(shape))[: c.between(1, len(shape))]]
    axes = [a - len(shape) if c.maybe(30) else a for a in axes]
    low, high = (0.5, 2) if op in ("ReduceLogSum", "ReduceProd") else (None, None)
    dtype = c.any("f4", "f4", "f8", "i4") if op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean") else "f4"
    if dtype == "i4":
        low = high = None
    inputs = [c.x(shape, dtype, low=low, high=high)]
    attributes = c.some(keepdims=c.below(2))
    if (op == "ReduceSum" and OPSET >= 13) or OPSET >= 18:
        if c.maybe(85):
            inputs.append(c.ints(axes))
    elif c.maybe(85):
        attributes["axes"] = axes
    c.make(op, inputs, **attributes)


def arg(c, op):
    shape = c.shape(1)
    value = c.random.integers(-2, 3, shape).astype(c.any("f4", "i4"))
    c.make(op, [c.input(value)], **c.some(axis=axis_of(c, shape), keepdims=c.below(2), select_last_index=c.below(2)))


def softmax(c, op):
    shape = c.shape(1)
    c.make(op, [c.x(shape)], **c.some(axis=axis_of(c, shape)))


def matmul(c):
    m, k, n = c.between(1, 33), c.between(1, 33), c.between(1, 33)
    lead = c.shape(0, 2)
    a, b = lead + [m, k], broadcastable(c, lead) + [k, n]
    if c.maybe(15):
        a = [k]
    elif c.maybe(15):
        b = [k]
    dtype = c.any("f4", "f4", "f8", "i4")
    c.make("MatMul", [c.x(a, dtype), c.x(b, dtype) if c.maybe(50) else c.constant(c.values(b, dtype))])


def gemm(c):
    m, k, n, ta, tb = c.between(1, 20), c.between(1, 20), c.between(1, 20), c.below(2), c.below(2)
    bias = c.any([], [n], [1, n], [m, 1], [m, n], [1])
    c.make("Gemm", [c.x([k, m] if ta else [m, k]), c.constant(c.values([n, k] if tb else [k, n]))]
           + ([c.x(bias)] if c.maybe(70) else []), transA=ta, transB=tb, **c.some(alpha=0.5, beta=2.0))


def window(c, rank):
    kernel = [c.between(1, 4) for _ in range(rank)]
    dilation = [c.between(1, 2) for _ in range(rank)]
    strides = [c.between(1, 3) for _ in range(rank)]
    span = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    extent = [s + c.between(0, 8) for s in span]
    return kernel, dilation, strides, extent


def padding(c, kernel, **other):
    if c.maybe(25):
        return dict(auto_pad=c.any("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"))
    return dict(pads=[c.below(k) for k in kernel + kernel]) if c.maybe(70) else {}


def conv(c, op):
    rank, group = c.between(1, 3) if op == "Conv" else c.between(1, 2), c.any(1, 1, 2, 3)
    kernel, dilation, strides, extent = window(c, rank)
    inner, outer = c.between(1, 5), c.between(1, 5)
    batch = c.between(1, 3)
    weights = [group * outer, inner] + kernel if op == "Conv" else [group * inner, outer] + kernel
    operands = [c.x([batch, group * inner] + extent), c.constant(c.values(weights)) if c.maybe(80) else c.x(weights)]
    if c.maybe(50):
        operands.append(c.constant(c.values([group * outer])))
    attributes = padding(c, kernel)
    if op == "ConvTranspose":
        attributes.pop("auto_pad", None)
        if c.maybe(30):
            attributes["output_padding"] = [c.below(s) for s in strides]
    if "auto_pad" in attributes:
        dilation = [1] * rank
    c.make(op, operands, group=group, strides=strides, dilations=dilation, **c.some(kernel_shape=kernel), **attributes)


def pool(c, op):
    rank = c.between(1, 3)
    kernel, dilation, strides, extent = window(c, rank)
    attributes = padding(c, kernel)
    if op == "MaxPool" and "auto_pad" not in attributes:
        attributes["dilations"] = dilation
    if op == "AveragePool":
        attributes.update(c.some(count_include_pad=c.below(2)))
    if op == "LpPool":
        attributes.update(c.some(p=c.between(1, 3)))
    elif "auto_pad" not in attributes:
        attributes.update(c.some(ceil_mode=c.below(2)))
    c.make(op, [c.x([c.between(1, 2), c.between(1, 4)] + extent)], kernel_shape=kernel, strides=strides, **attributes)


def global_pool(c, op):
    c.make(op, [c.x([c.between(1, 2), c.between(1, 5)] + c.shape(1, 3))])


def normalization(c, op):
    shape = [c.between(1, 3), c.any(2, 4, 6)] + c.shape(1, 2)
    channels = shape[1]
    scale = lambda: c.constant(c.values([channels], low=0.5, high=2))
    if op == "BatchNormalization":
        return c.make(op, [c.x(shape), scale(), scale(), scale(), scale()], **c.some(epsilon=1e-3))
    if op == "InstanceNormalization":
        return c.make(op, [c.x(shape), scale(), scale()], **c.some(epsilon=1e-3))
    if op == "LRN":
        return c.make(op, [c.x(shape[:2] + [3, 3])], size=c.any(1, 3, 5), **c.some(alpha=0.01, beta=0.6, bias=1.5))
    if op == "LpNormalization":
        return c.make(op, [c.x(shape, low=0.5)], **c.some(axis=axis_of(c, shape), p=c.between(1, 2)))
    if op == "MeanVarianceNormalization":
        return c.make(op, [c.x(shape[:2] + [3, 4])])
    axis = axis_of(c, shape)
    tail = shape[axis:]
    c.make(op, [c.x(shape), c.constant(c.values(tail))] + ([c.constant(c.values(tail))] if c.maybe(60) else []),
           axis=axis, **c.some(epsilon=1e-3))


def reshape(c):
    shape = c.shape(1)
    target = list(shape)
    c.random.shuffle(target)
    if len(target) > 1 and c.maybe(50):
        target[-2:] = [target[-2] * target[-1]]
    if c.maybe(50):
        target[c.below(len(target))] = -1
    elif c.maybe(30):
        target.insert(c.below(len(target) + 1), 1)
    c.make("Reshape", [c.x(shape), c.ints(target)])


def transpose(c):
    shape = c.shape(1)
    c.make("Transpose", [c.x(shape, c.any("f4", "i8", "?"))], **c.some(perm=[int(i) for i in c.random.permutation(len(shape))]))


def squeeze(c, op):
    shape = c.shape(1)
    if op == "Flatten":
        return c.make(op, [c.x(shape)], **c.some(axis=c.between(-len(shape), len(shape))))
    if op == "Unsqueeze":
        axes = [int(a) for a in c.random.permutation(len(shape) + 2)[:2]]
        return c.make(op, [c.x(shape), c.ints(axes)])
    shape.insert(c.below(len(shape)), 1)
    axes = [i - len(shape) if c.maybe(30) else i for i, d in enumerate(shape) if d == 1]
    c.make(op, [c.x(shape), c.ints(axes)] if c.maybe(70) else [c.x(shape)])


def slices(c):
    shape = c.shape(1)
    axes = [int(a) for a in c.random.permutation(len(shape))[: c.between(1, len(shape))]]
    starts, ends, steps, has_steps = [], [], [], c.maybe(70)
    for a in axes:
        step = c.any(1, 1, 1, 2, 3, -1, -2) if has_steps else 1
        steps.append(step)
        starts.append(c.between(-shape[a] - 2, shape[a] + 2))
        # ONNX Runtime takes INT_MAX for "to the end" backwards too, where the specification clamps it.
        ends.append(c.any(c.between(-shape[a] - 2, shape[a] + 2), 2**63 - 1 if step > 0 else -(2**63)))
    inputs = [c.x(shape, c.any("f4", "i8")), c.ints(starts), c.ints(ends), c.ints(axes)]
    c.make("Slice", inputs + ([c.ints(steps)] if has_steps else []))


def concat(c):
    shape = c.shape(1)
    axis = axis_of(c, shape)
    operands = []
    for _ in range(c.between(1, 4)):
        shape[axis] = c.between(1, 9)
        operands.append(c.x(shape))
    c.make("Concat", operands, axis=axis)


def split(c):
    shape = c.shape(1)
    axis = axis_of(c, shape)
    parts = [c.between(1, 4) for _ in range(c.between(1, 4))]
    shape[axis] = sum(parts)
    c.make("Split", [c.x(shape), c.ints(parts)], len(parts), axis=axis)


def pad(c):
    shape = c.shape(1)
    mode = c.any("constant", "reflect", "edge", "wrap" if OPSET >= 19 else "edge")
    most = 3 if mode == "constant" else min(min(shape) - 1, 3)
    if most < 0 or (mode != "constant" and most == 0):
        mode, most = "constant", 3
    pads = [c.between(-1 if mode == "constant" and min(shape) > 2 else 0, most) for _ in range(2 * len(shape))]
    extra = [c.constant(np.array(c.any(0, 1.5, -np.inf), "f4"))] if mode == "constant" and c.maybe(60) else []
    c.make("Pad", [c.x(shape), c.ints(pads)] + extra, mode=mode)


def expand(c, op):
    shape = c.shape(1)
    if op == "Tile":
        return c.make(op, [c.x(shape), c.ints([c.between(1, 3) for _ in shape])])
    c.make(op, [c.x(broadcastable(c, shape)), c.ints(shape)])


def gather(c, op):
    shape = c.shape(1, 3)
    axis = axis_of(c, shape)
    n = shape[axis]
    if op == "Gather":
        index = c.random.integers(-n, n, c.shape(0, 2))
    elif op == "GatherElements":
        index = c.random.integers(-n, n, [c.between(1, d) if i != axis % len(shape) else c.between(1, 9)
                                          for i, d in enumerate(shape)])
    else:
        depth = c.between(1, len(shape))
        lead = c.shape(0, 2)
        index = np.stack([c.random.integers(-d, d, lead) for d in shape[:depth]], -1)
        return c.make(op, [c.x(shape), c.input(index.astype("i8"))])
    index = index.astype(c.any("i4", "i8"))
    c.make(op, [c.x(shape, c.any("f4", "i8")), c.input(index) if c.maybe(60) else c.constant(index)], axis=axis)


def scatter(c, op):
    shape = c.shape(1, 3)
    if op == "ScatterND":
        depth = c.between(1, len(shape))
        rows = c.between(1, int(np.prod(shape[:depth])))
        flat = c.random.permutation(int(np.prod(shape[:depth])))[:rows]  # no duplicates: their order is not defined
        index = np.stack(np.unravel_index(flat, shape[:depth]), -1).astype("i8")
        return c.make(op, [c.x(shape), c.input(index), c.x([rows] + shape[depth:])],
                      **c.some(reduction=c.any("none", "add", "mul", "max", "min")))
    axis = axis_of(c, shape)
    index_shape = [c.between(1, d) for d in shape]
    order = np.argsort(c.random.random(index_shape[:axis % len(shape)] + [shape[axis]] + index_shape[axis % len(shape) + 1:]),
                       axis % len(shape))
    index = np.take(order, range(index_shape[axis]), axis % len(shape)).astype("i8")
    c.make(op, [c.x(shape), c.input(index), c.x(index_shape)], axis=axis,
           **c.some(reduction=c.any("none", "add", "mul", "max", "min")))


def cumulative(c, op):
    shape = c.shape(1)
    c.make(op, [c.x(shape, c.any("f4", "i4")), c.constant(np.array(axis_of(c, shape), "i8"))],
           **c.some(exclusive=c.below(2), reverse=c.below(2)))


def depth_space(c, op):
    block = c.between(1, 3)
    if op == "SpaceToDepth":
        return c.make(op, [c.x([c.between(1, 2), c.between(1, 3), block * c.between(1, 3), block * c.between(1, 3)])],
                      blocksize=block)
    c.make(op, [c.x([c.between(1, 2), block * block * c.between(1, 3), c.between(1, 4), c.between(1, 4)])],
           blocksize=block, **c.some(mode=c.any("DCR", "CRD")))


def resize(c):
    extent = [c.between(1, 8), c.between(1, 8)]
    mode = c.any("nearest", "linear", "cubic")
    attributes = dict(mode=mode, coordinate_transformation_mode=c.any(
        "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"))
    if mode == "nearest":
        attributes.update(c.some(nearest_mode=c.any("round_prefer_floor", "floor", "ceil", "round_prefer_ceil")))
    if mode == "cubic":
        attributes.update(c.some(cubic_coeff_a=-0.5, exclude_outside=c.below(2)))
    x = c.x([c.between(1, 2), c.between(1, 2)] + extent)
    if c.maybe(50):
        return c.make("Resize", [x, "", c.constant(np.array([1, 1, c.any(0.5, 1.5, 2, 3), c.any(0.5, 1, 2, 2.5)], "f4"))], **attributes)
    sizes = list(next(iter(c.inputs.values())).shape[:2]) + [c.between(1, 12), c.between(1, 12)]
    c.make("Resize", [x, "", "", c.ints(sizes)], **attributes)


def topk(c):
    shape = c.shape(1)
    axis = axis_of(c, shape)
    value = c.random.permutation(int(np.prod(shape))).reshape(shape).astype(c.any("f4", "i8"))  # no ties
    c.make("TopK", [c.input(value), c.ints([c.between(1, shape[axis])])], 2, axis=axis, **c.some(largest=c.below(2)), sorted=1)


def onehot(c):
    depth = c.between(1, 7)
    index = c.random.integers(-depth, depth, c.shape(0, 3)).astype("i8")
    c.make("OneHot", [c.input(index), c.constant(np.array(depth, "i8")), c.constant(c.values([2]))],
           axis=c.between(-1, index.ndim))


def trilu(c):
    shape = c.shape(2)
    c.make("Trilu", [c.x(shape)] + ([c.constant(np.array(c.between(-4, 4), "i8"))] if c.maybe(70) else []),
           **c.some(upper=c.below(2)))


def einsum(c):
    sizes = dict(zip("abcd", [c.between(1, 6) for _ in range(4)]))
    terms = c.any("ab,bc->ac", "abc,acd->abd", "ab,ab->a", "a,b->ab", "abc->cab", "ab->", "aab->ab", "ab,bc", "abc,abc->",
                  "...ab,...bc->...ac")
    if "a" not in terms:
        return
    shapes = [[sizes[letter] for letter in part.replace("...", "")] for part in terms.split("->")[0].split(",")]
    c.make("Einsum", [c.x(s) for s in shapes], equation=terms)


def quantize(c, op):
    shape = [c.between(1, 4), c.between(1, 5), c.between(1, 4)]
    axis = c.any(None, axis_of(c, shape))
    count = [] if axis is None else [shape[axis]]
    dtype = c.any("u1", "i1")
    scale = c.constant(c.values(count, low=0.05, high=0.3).clip(0.05, None))
    zero = c.constant(c.values(count, dtype, low=0, high=9))
    x = c.x(shape) if op == "QuantizeLinear" else c.x(shape, dtype, low=0, high=100)
    c.make(op, [x, scale, zero], **({} if axis is None else dict(axis=axis)))


def miscellaneous(c, op):
    if op == "Range":
        return c.make(op, [c.constant(np.array(v, "i8")) for v in c.any((0, 7, 1), (3, -9, -2), (2, 30, 5))])
    if op == "EyeLike":
        return c.make(op, [c.x(c.shape(2, 2))], **c.some(k=c.between(-3, 3)))
    if op == "Size" or op == "Shape":
        return c.make(op, [c.x(c.shape(1))])
    if op == "PRelu":
        shape = c.shape(1)
        return c.make(op, [c.x(shape), c.constant(c.values(broadcastable(c, shape)))])
    if op == "ReverseSequence":
        shape = [c.between(1, 6), c.between(1, 4), c.between(1, 3)]
        return c.make(op, [c.x(shape), c.input(c.random.integers(1, shape[0] + 1, [shape[1]]).astype("i8"))],
                      time_axis=0, batch_axis=1)
    shape = [c.between(1, 3), c.between(1, 3), c.between(2, 5), c.between(2, 5)]  # GridSample
    c.make(op, [c.x(shape), c.x([shape[0], 3, 4, 2], low=-1.2, high=1.2)], **c.some(
        mode=c.any("linear" if OPSET >= 20 else "bilinear", "nearest"), padding_mode=c.any("zeros", "border", "reflection"),
        align_corners=c.below(2)))


FAMILIES = {
    unary: "Abs Neg Sqrt Exp Log Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Tanh Sigmoid Erf Sign Floor Ceil "
           "Round Reciprocal Relu IsNaN IsInf Identity",
    activation: "LeakyRelu Elu Celu HardSigmoid HardSwish ThresholdedRelu Shrink Selu Softplus Softsign Mish",
    binary: "Add Sub Mul Div", modulo: None, power: None, compare: "Equal Less LessOrEqual Greater GreaterOrEqual",
    logical: "And Or Xor Not", bits: "BitShift BitwiseAnd BitwiseOr BitwiseXor BitwiseNot", variadic: "Max Min Sum Mean",
    where: None, clip: None, cast: None,
    reduce: "ReduceSum ReduceMax ReduceMin ReduceMean ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare",
    arg: "ArgMax ArgMin", softmax: "Softmax LogSoftmax Hardmax", matmul: None, gemm: None, conv: "Conv ConvTranspose",
    pool: "MaxPool AveragePool LpPool", global_pool: "GlobalAveragePool GlobalMaxPool GlobalLpPool",
    normalization: "BatchNormalization InstanceNormalization LayerNormalization LRN LpNormalization MeanVarianceNormalization",
    reshape: None, transpose: None, squeeze: "Squeeze Unsqueeze Flatten", slices: None, concat: None, split: None, pad: None,
    expand: "Expand Tile", gather: "Gather GatherElements GatherND", scatter: "ScatterElements ScatterND",
    cumulative: "CumSum", depth_space: "DepthToSpace SpaceToDepth", resize: None, topk: None, onehot: None, trilu: None,
    einsum: None, quantize: "QuantizeLinear DequantizeLinear",
    miscellaneous: "Range EyeLike Size Shape PRelu ReverseSequence GridSample",
}


def make_case(seed, only):
    c = Case(seed)
    for _ in range(1000):
        family = c.any(*FAMILIES)
        ops = FAMILIES[family]
        op = c.any(*ops.split()) if ops else None
        c.inputs, c.constants, c.node = {}, {}, None
        family(c, op) if op else family(c)
        if c.node and (not only or c.node.op_type == only):
            return c
    sys.exit(f"ort_diff: no generator makes {only}")
