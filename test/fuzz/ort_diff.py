#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random nodes of every operator, through tgc and tgrun and through ONNX Runtime: do the numbers agree?

  test/fuzz/ort_diff.py [--cases N] [--first SEED] [--op OP] [--opset N] [--bin DIR] [--keep DIR]

A case is one node with random attributes, shapes and inputs, the same for the same seed. Those that ONNX Runtime takes
are put together, some forty to a model, so that one compile serves all. A node that tgc says it does not support is
counted; one that differs is printed with its seed and, with --keep, written as DIR/<seed>.onnx, unless ONNX's own
reference evaluator sides with tgc. Inputs stay where the ONNX specification defines a result: no division of integers
by zero, no cast out of range.
"""
import argparse, collections, os, re, subprocess, sys, tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f"ort_diff: skipped: {missing}; pip install onnx onnxruntime numpy")
    sys.exit(77)

import ort_cases

PER_MODEL = 40

# ---- running --------------------------------------------------------------------------------------------------------

def model_of(cases):
    inputs, constants, outputs = [], [], []
    for c in cases:
        for name, v in c.inputs.items():
            inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape))
        constants += [numpy_helper.from_array(v, name) for name, v in c.constants.items()]
        outputs += [onnx.ValueInfoProto(name=o) for o in c.node.output]
    graph = helper.make_graph([c.node for c in cases], "g", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", ort_cases.OPSET)], ir_version=8)


def expected(c):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(model_of([c]).SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, c.inputs)
    except Exception:  # ONNX Runtime has no kernel for the type, or refuses the attributes
        return None


def reference_agrees(c, got):
    from onnx.reference import ReferenceEvaluator
    try:
        with np.errstate(all="ignore"):
            want = ReferenceEvaluator(model_of([c])).run(None, c.inputs)
    except Exception:  # not every operator is there
        return False
    return all(difference(w, got[name]) is None for name, w in zip(c.node.output, want))


def run_tgc(cases, tools, folder):
    """{output name: array}, and the seeds of cases that tgc does not support."""
    unsupported = {}
    while cases:
        onnx.save(model_of(cases), f"{folder}/m.onnx")
        done = subprocess.run([f"{tools}/tgc", f"{folder}/m.onnx", "-o", f"{folder}/m.bundle", "--cache=off"],
                              capture_output=True, text=True)
        if done.returncode == 0:
            break
        named = {int(m): line for line in done.stderr.splitlines() for m in re.findall(r'node "n(\d+)"', line)}
        if done.returncode != 1 or not named:
            print(f"tgc exits with {done.returncode} on seeds {[c.seed for c in cases]}:\n{done.stderr}")
            return {}, {c.seed: "tgc" for c in cases}
        unsupported.update(named)
        cases = [c for c in cases if c.seed not in named]
    if not cases:
        return {}, unsupported
    arguments = []
    for c in cases:
        for name, value in c.inputs.items():
            np.save(f"{folder}/{name}.npy", value)
            arguments += ["--input", f"{name}={folder}/{name}.npy"]
    done = subprocess.run([f"{tools}/tgrun", f"{folder}/m.bundle", "--guard", "--save", folder] + arguments,
                          capture_output=True, text=True)
    if done.returncode != 0:
        print(f"tgrun exits with {done.returncode} on seeds {[c.seed for c in cases]}:\n{done.stderr}")
        return {}, {c.seed: "tgrun" for c in cases}
    names = [o for c in cases for o in c.node.output]
    return {name: np.load(f"{folder}/output_{i}.npy") for i, name in enumerate(names)}, unsupported


def difference(want, got):
    want, got = np.asarray(want), np.asarray(got)
    if want.dtype != got.dtype or want.shape != got.shape:
        return f"got {got.dtype}{list(got.shape)}, want {want.dtype}{list(want.shape)}"
    if want.dtype.kind != "f":
        right = want == got
    else:
        relative = 2e-3 if want.dtype == np.float16 else 1e-4
        finite = want[np.isfinite(want)]
        scale = np.max(np.abs(finite)) if finite.size else 0
        right = np.isclose(got, want, relative, 1e-5 * scale + 1e-7, equal_nan=True)
    if right.all():
        return None
    at = np.unravel_index(int(np.argmin(right)), want.shape)
    return f"{int((~right).sum())} of {want.size} differ, first at {[int(i) for i in at]}: got {got[at]}, want {want[at]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--op")
    parser.add_argument("--opset", type=int, default=ort_cases.OPSET)
    parser.add_argument("--bin", default=os.path.join(os.path.dirname(__file__), "../../build/release/bin"))
    parser.add_argument("--keep")
    options = parser.parse_args()
    ort_cases.OPSET = options.opset
    counts, refused, wrong, batch = collections.Counter(), collections.Counter(), 0, []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.first, options.first + options.cases):
            case = ort_cases.make_case(seed, options.op)
            case.want = expected(case)
            counts["ort refuses" if case.want is None else "ort runs"] += 1
            if case.want is not None:
                batch.append(case)
            if batch and (len(batch) == PER_MODEL or seed + 1 == options.first + options.cases):
                got, unsupported = run_tgc(batch, options.bin, folder)
                for c in batch:
                    text = None
                    if c.seed in unsupported:
                        counts["tgc refuses"] += 1
                        refused[c.node.op_type + ": " + re.sub(r".*error ", "", unsupported[c.seed])] += 1
                        continue
                    for name, want in zip(c.node.output, c.want):
                        text = text or difference(want, got[name])
                    if text and reference_agrees(c, got):
                        counts["ort alone differs"] += 1
                        continue
                    counts["differs" if text else "agrees"] += 1
                    if text:
                        print(f"seed {c.seed}: {c.node.op_type}: {text}")
                        print("   ", [list(v.shape) for v in (*c.inputs.values(), *c.constants.values())],
                              {a.name: helper.get_attribute_value(a) for a in c.node.attribute})
                        if options.keep:
                            os.makedirs(options.keep, exist_ok=True)
                            onnx.save(model_of([c]), f"{options.keep}/{c.seed}.onnx")
                batch = []
    for text, n in refused.most_common(40):
        print(f"refused {n:4} {text}")
    print(", ".join(f"{k} {v}" for k, v in sorted(counts.items())))
    return 4 if counts["differs"] else 0


if __name__ == "__main__":
    sys.exit(main())
