#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds every kernel of a model against what the machine can do, and prints the worst or the slowest.

The roof of a kernel is the least time in which this machine could do its operations and move its bytes, whichever is
longer: max(operations / peak of multiply-adds, bytes / bandwidth of reading memory), both measured by bench_peak in the
same run on as many threads. "of roof" is that time over the time taken. Bytes ("MB") are counted once per buffer, so a
kernel that reads its input twice from memory has at most half its roof; one whose data stay in the caches may pass
100 %.
Kernels below --share of the model's time are left out: they are many, small, and bound by neither. --slowest N prints
the N that take the most time instead, the slowest first.

Then, per model: kernels run and kernels distinct, bytes moved by all kernels against the least that any program must
move (weights, inputs and outputs once), and the sum of all roofs against the time.

--document FILE.md replaces what follows a marker line of that page by a table of the slowest kernels (--slowest, 5 by
default) of each model; there, runs of one kernel are one row.

Needs a build with -DTGC_BENCH=ON: bin/tgc, bin/tgrun and bin/bench_peak. MODEL may be anything tgc compiles, a folder of
ONNX files, or a .bundle.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from report import model_files

ROOT = pathlib.Path(__file__).resolve().parent.parent


def output_of(command, cpus=None):
    """Standard output of a program that runs on `cpus`."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          preexec_fn=(lambda: os.sched_setaffinity(0, cpus)) if cpus else None)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[0] if done.stderr.strip() else f"exit {done.returncode}")
    return done.stdout


def least_bytes(plan, dims):
    """Bytes of weights, inputs and outputs; a tensor with a dim that is an expression counts as 0."""
    widths = {"bool": 1, "bf16": 2}
    dims = {var["name"]: var["min"] for var in plan["vars"]} | dims
    total = sum(weight["bytes"] for weight in plan["weights"])
    for tensor in plan["inputs"] + plan["outputs"]:
        count = widths.get(tensor["dtype"]) or int(tensor["dtype"][1:]) // 8
        for dim in tensor["dims"]:
            count *= dim if isinstance(dim, int) else dims.get(dim, 0)
        total += count
    return total


def report(arguments, bundle, name, cpus):
    tool = arguments.build / "bin"
    peak = json.loads(output_of([tool / "bench_peak", arguments.threads], cpus))
    options = [f"--dim={dim}" for dim in arguments.dim]
    profile = json.loads(output_of([tool / "tgrun", bundle, "--profile", "--json", f"--threads={arguments.threads}",
                                    *options], cpus))
    plan = json.loads(output_of([tool / "tgrun", bundle, "--describe"]))
    kernels, total = profile["kernels"], profile["total_us"]
    for kernel in kernels:
        kernel["roof_us"] = max(kernel["flops"] / peak["gflops"], kernel["bytes"] / peak["gbs"]) / 1e3
        kernel["of_roof"] = kernel["roof_us"] / kernel["us"]
    if arguments.slowest:
        shown = sorted(kernels, key=lambda k: -k["us"])[:arguments.slowest]
    else:
        shown = sorted((k for k in kernels if k["us"] >= arguments.share / 100 * total), key=lambda k: k["of_roof"])
        shown = shown[:arguments.worst]
    least = least_bytes(plan, {name: int(value) for name, _, value in (dim.rpartition("=") for dim in arguments.dim)})
    result = {"model": name, "threads": arguments.threads, "peak_gflops": peak["gflops"], "peak_gbs": peak["gbs"],
              "us": total, "roof_us": sum(k["roof_us"] for k in kernels), "runs": len(kernels),
              "distinct": len({k["kernel"] for k in kernels}), "moved_bytes": sum(k["bytes"] for k in kernels),
              "least_bytes": least, "kernels": kernels}
    print(f"{name}, {arguments.threads} threads: peak {peak['gflops']:.0f} GFLOP/s, {peak['gbs']:.1f} GB/s")
    print(f"{'of roof':>8} {'share':>6} {'us':>10} {'GFLOP/s':>8} {'GB/s':>7} {'MB':>8} bound   kernel (nodes)")
    for k in shown:
        bound = "compute" if k["flops"] / peak["gflops"] > k["bytes"] / peak["gbs"] else "memory"
        print(f"{100 * k['of_roof']:>7.1f}% {100 * k['us'] / total:>5.1f}% {k['us']:>10.1f} "
              f"{k['flops'] / k['us'] / 1e3:>8.1f} {k['bytes'] / k['us'] / 1e3:>7.2f} {k['bytes'] / 1e6:>8.2f} {bound:<7} "
              f"{k['kernel']} ({k['nodes']})")
    print(f"{100 * result['roof_us'] / total:>7.1f}% of the time is what the roofs add up to; {len(kernels)} kernels run, "
          f"{result['distinct']} distinct")
    print(f"         {result['moved_bytes'] / 1e6:.1f} MB moved, {least / 1e6:.1f} MB at least (weights, inputs, outputs): "
          f"{result['moved_bytes'] / max(least, 1):.2f} times", flush=True)
    return result


MARKER = "<!-- Everything below is written by bench/roofline.py. -->"


def document(text, results, count):
    """`text`, a Markdown page, with everything after MARKER replaced by a table of the `count` slowest kernels of each
    model."""
    head, marker, _ = text.partition(MARKER)
    if not marker:
        raise ValueError(f"there is no line {MARKER}")
    lines = ["| model | kernel | computes | runs | us each | share | of roof | bound |", "|---|---|---|--:|--:|--:|--:|---|"]
    for result in results:
        groups = {}
        for kernel in result["kernels"]:
            groups.setdefault(kernel["kernel"], []).append(kernel)
        for group in sorted(groups.values(), key=lambda g: -sum(k["us"] for k in g))[:count]:
            us, roof = sum(k["us"] for k in group), sum(k["roof_us"] for k in group)
            compute = group[0]["flops"] / result["peak_gflops"] > group[0]["bytes"] / result["peak_gbs"]
            nodes = ["/".join(node.split("/")[-2:]) for node in group[0]["nodes"].split(", ")]
            named = ", ".join(nodes[:2]) + (", …" if len(nodes) > 2 else "")
            lines.append(f"| {result['model']} | `{group[0]['kernel']}` | {named} | {len(group)} | {us / len(group):.0f} | "
                         f"{100 * us / result['us']:.0f} % | {100 * roof / us:.0f} % | {'compute' if compute else 'memory'} |")
    peaks = [(r["peak_gflops"], r["peak_gbs"]) for r in results]
    caption = (f"{datetime.date.today()}; {results[0]['threads']} thread{'s' if results[0]['threads'] > 1 else ''}; "
               f"{min(p[0] for p in peaks):.0f} to {max(p[0] for p in peaks):.0f} GFLOP/s of multiply-adds, "
               f"{min(p[1] for p in peaks):.1f} to {max(p[1] for p in peaks):.1f} GB/s of reads, measured before each model.")
    return "\n\n".join([head + MARKER, caption, "\n".join(lines)]) + "\n"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path, metavar="MODEL")
    parser.add_argument("--threads", type=int, default=1, help="and as many CPUs (default: 1)")
    parser.add_argument("--worst", type=int, default=10, help="how many kernels to print (default: 10)")
    parser.add_argument("--slowest", type=int, metavar="N", help="print the N slowest kernels, whatever their share")
    parser.add_argument("--share", type=float, default=1, help="least share of the time, in per cent (default: 1)")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=VALUE", help="passed to tgrun; repeatable")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", metavar="DIR",
                        help="build folder (default: build/release)")
    parser.add_argument("--document", type=pathlib.Path, metavar="FILE.md", help="rewrite the page's table")
    parser.add_argument("--json", type=argparse.FileType("w"), metavar="FILE", help="write everything")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    cpus = sorted(os.sched_getaffinity(0))[:arguments.threads]
    results, failed = [], False
    for path in model_files("roofline.py", arguments.models):
        with tempfile.TemporaryDirectory() as folder:
            try:
                bundle = path
                if path.suffix != ".bundle":
                    bundle = pathlib.Path(folder, "m.bundle")
                    output_of([arguments.build / "bin/tgc", path, "--cache=off", "-o", bundle])
                results.append(report(arguments, bundle, path.stem, cpus))
            except RuntimeError as error:
                print(f"{path.stem}: {error}", flush=True)
                failed = True
    if arguments.document and results:
        arguments.document.write_text(document(arguments.document.read_text(), results, arguments.slowest or 5))
    if arguments.json:
        json.dump(results, arguments.json, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
