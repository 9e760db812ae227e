#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times tgc's bundles against other runtimes on the same models, in the same minutes, on the same cores.

ratio = peer_ms / tgc_ms: above 1, tgc is faster. Best and median of all runs are given; on a shared machine trust the
best, and repeat.

How it is fair. Each model and number of threads N gets a fresh process, pinned to the first N CPUs. All runtimes are
loaded there and take turns: a block of runs of one (0.1 s, at least one run), then of the next, until each has had
--seconds. Before each block the process waits until it burns no CPU time, so that no runtime's spinning threads slow
down another. Inputs and outputs are bound before timing: no copies are timed, and about a microsecond of Python (tgc;
for a peer up to twenty) is. Peers run at their best settings for latency: see peers.py. Each peer compiles a model and
runs it once in a process of its own first; where that fails, dies or takes longer than --peer-compile-seconds, the peer
is skipped and the reason printed.

Inputs are seeded (--seed): floats normal, integers uniform in [0, 2), which is in range of any table; --ints raises
that limit for all or for one input. Outputs are compared: agree = every |tgc - peer| <= 1e-3 |peer| + 1e-4 max|peer|,
NaN equal to NaN, integers equal; err = max|tgc - peer| / max|peer| over all outputs.

Also per model: seconds and peak memory of tgc itself (all CPUs, nothing cached), bytes of the bundle, peak memory of
one run (tgrun with N threads, weights included). MB are 10^6 bytes. --json, --plot and --document write the same as
data, as a picture and into a page. Needs numpy, a peer's package for each peer (onnxruntime; openvino; apache-tvm, onnx;
iree-base-compiler, iree-base-runtime, onnx), and libtgrt as a shared library: configure with -DTGRT_SHARED=ON.
"""
import argparse
import datetime
import importlib.metadata
import importlib.util
import json
import multiprocessing
import os
import pathlib
import signal
import statistics
import sys
import tempfile
import time
from unittest import mock

import numpy as np

import report
from peers import PEERS, Tgc

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK_SECONDS = 0.1  # long enough that a runtime has its caches and its threads awake for most runs of a block
LEAST_BLOCKS = 3
RTOL, ATOL_OF_MAX = 1e-3, 1e-4  # sums in another order: a few hundred roundings of f32, relative to the largest output


# ---- one process per model and number of threads --------------------------------------------------------------------
def make_feeds(tensors, seed, limits):
    random = np.random.default_rng(seed)
    feeds = {}
    for name, dtype, shape in tensors:
        if dtype.kind == "f":
            feeds[name] = np.ascontiguousarray(random.standard_normal(shape), dtype)
        else:
            limit = 2 if dtype.kind == "b" else limits.get(name, limits.get("", 2))
            feeds[name] = np.ascontiguousarray(random.integers(0, limit, shape), dtype)
    return feeds


def settle():
    """Returns when no thread of this process is busy, a second later at most: spinning threads are asleep by then."""
    for _ in range(100):
        before = time.process_time()
        time.sleep(0.01)
        if time.process_time() - before < 0.002:
            return


def block_of(runtime, runs):
    settle()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        runtime.run()
        times.append(time.perf_counter() - start)
    return times


def compare_outputs(ours, theirs):
    """(agree, err) as the header of this file defines them."""
    agree, err = len(ours) == len(theirs), 0.0
    for a, b in zip(ours, theirs):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False, float("inf")
        if a.dtype.kind != "f":
            agree = agree and np.array_equal(a, b)
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        largest = np.max(np.abs(b), where=np.isfinite(b), initial=0)
        agree = agree and np.allclose(a, b, RTOL, ATOL_OF_MAX * largest, equal_nan=True)
        finite = np.isfinite(a) & np.isfinite(b)
        err = max(err, float(np.max(np.abs(a - b), where=finite, initial=0) / (largest or 1)))
    return bool(agree), err


def worker(connection, job):
    """Sends ("row", dict) for each peer, or ("error", text) for what failed."""
    os.sched_setaffinity(0, job["cpus"])
    try:
        tgc = Tgc(job["library"], job["bundle"])
        feeds = make_feeds(tgc.tensors(0), job["seed"], job["ints"])
        runtimes = {"tgc": tgc}
        runtimes.update((name, PEERS[name](job["dims"], job["folder"])) for name in job["peers"])
        for name, runtime in list(runtimes.items()):
            try:
                runtime.setup(job["model"], feeds, job["threads"])
                runtime.run()
            except Exception as error:  # whatever a peer throws is its answer to this model
                connection.send(("error", f"{name}: {str(error).strip()}"))
                del runtimes[name]
        if "tgc" not in runtimes:
            return
        runs = {name: max(1, int(BLOCK_SECONDS / min(block_of(r, 2)))) for name, r in runtimes.items()}
        times = {name: [] for name in runtimes}
        blocks = 0
        while blocks < LEAST_BLOCKS or min(map(sum, times.values())) < job["seconds"]:
            for name, runtime in runtimes.items():
                times[name] += block_of(runtime, runs[name])
            blocks += 1
        best = {name: 1e3 * min(t) for name, t in times.items()}
        median = {name: 1e3 * statistics.median(t) for name, t in times.items()}
        ours = tgc.outputs()
        for name in list(runtimes)[1:]:
            agree, err = compare_outputs(ours, runtimes[name].outputs())
            connection.send(("row", {
                "peer": name, "peer_ms": best[name], "tgc_ms": best["tgc"], "ratio": best[name] / best["tgc"],
                "agree": agree, "peer_median_ms": median[name], "tgc_median_ms": median["tgc"],
                "median_ratio": median[name] / median["tgc"], "err": err, "runs": len(times["tgc"])}))
    except Exception as error:
        connection.send(("error", f"tgc: {error}"))


def rehearse(connection, job, peer):
    """Compiles for `peer` and runs once; sends ("skip", why) if that fails. What it prints goes to a file."""
    os.setpgid(0, 0)  # so that its compilers end with it
    log = os.open(f"{job['folder']}/{peer}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        feeds = make_feeds(Tgc(job["library"], job["bundle"]).tensors(0), job["seed"], job["ints"])
        runtime = PEERS[peer](job["dims"], job["folder"])
        runtime.compile(job["model"], feeds, job["threads"])
        os.sched_setaffinity(0, job["cpus"])
        runtime.setup(job["model"], feeds, job["threads"])
        runtime.run()
        runtime.outputs()
    except BaseException as error:  # whatever a peer throws is its answer to this model
        connection.send(("skip", reason(error)))


def reason(error):
    """One short line of an exception: its first that names an error, else its first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return next((line for line in lines if "error: " in line), lines[0])[:200]


def run_process(function, job, *more, seconds=None):
    """All messages of `function` in a fresh process; a crash is a message too, and so is exceeding `seconds`."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=function, args=(theirs, job, *more))
    process.start()
    theirs.close()
    messages = []
    latest = time.monotonic() + seconds if seconds else None
    try:
        while ours.poll(latest and max(0, latest - time.monotonic())):
            messages.append(ours.recv())
        messages.append(("skip", f"took more than {seconds:g} s"))
    except EOFError:
        process.join()
        if process.exitcode:
            messages.append(("skip", f"the process died with {process.exitcode}"))
    finally:
        if process.is_alive():
            end(process)
    return messages


def end(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:  # it leads no group
        process.kill()
    process.join()


# ---- the whole ------------------------------------------------------------------------------------------------------
def measured(command):
    """(exit code, standard error, seconds, peak MB) of a program."""
    with tempfile.TemporaryFile() as errors, open(os.devnull, "w") as nothing:
        start = time.perf_counter()
        pid = os.posix_spawn(command[0], command, os.environ, file_actions=[
            (os.POSIX_SPAWN_DUP2, nothing.fileno(), 1), (os.POSIX_SPAWN_DUP2, errors.fileno(), 2)])
        _, status, usage = os.wait4(pid, 0)
        seconds = time.perf_counter() - start
        errors.seek(0)
        return os.waitstatus_to_exitcode(status), errors.read().decode(), seconds, usage.ru_maxrss * 1024 / 1e6


def name_and_number(text):
    name, _, number = text.rpartition("=")
    return name, int(number)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path, metavar="MODEL",
                        help="ONNX files, or folders of them")
    parser.add_argument("--peers", default=",".join(PEERS),
                        help=f"comma-separated (default: {','.join(PEERS)}; those not installed are skipped)")
    parser.add_argument("--peer-compile-seconds", type=float, default=300, metavar="S",
                        help="longest time in which a peer compiles a model and runs it once (default: 300)")
    parser.add_argument("--threads", default="1,2", help="comma-separated numbers of threads (default: 1,2)")
    parser.add_argument("--seconds", type=float, default=3, help="least time of runs per runtime (default: 3)")
    parser.add_argument("--dim", action="append", default=[], type=name_and_number, metavar="NAME=VALUE",
                        help="pins a symbolic dim, for all runtimes; repeatable")
    parser.add_argument("--ints", action="append", default=[], type=name_and_number, metavar="[NAME=]LIMIT",
                        help="integers are below LIMIT, those of input NAME or of all others; repeatable")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs (default: 0)")
    parser.add_argument("--target", default="cpu", help="passed to tgc (default: cpu)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", metavar="DIR",
                        help="build folder with bin/tgc, bin/tgrun, libtgrt.so (default: build/release)")
    parser.add_argument("--json", type=argparse.FileType("w"), metavar="FILE",
                        help="write the rows: [{model, threads, peer, peer_ms, tgc_ms, ratio, agree, …}]")
    parser.add_argument("--plot", type=pathlib.Path, metavar="FILE.svg", help="draw the ratios")
    parser.add_argument("--document", type=pathlib.Path, metavar="FILE.md",
                        help="replace what a former run wrote into this page, which shows the --plot too")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    peers = []
    for peer in arguments.peers.split(","):
        if peer not in PEERS:
            sys.exit(f"compare.py: unknown peer {peer}; known: {', '.join(PEERS)}")
        if installed(PEERS[peer].package):
            peers.append(peer)
        else:
            print(f"{peer}: skipped: Python has no package {PEERS[peer].package}")
    library = next(arguments.build.glob("**/libtgrt.so"), None)
    if not library or not (arguments.build / "bin/tgc").exists():
        sys.exit(f"compare.py: {arguments.build} has no bin/tgc or no libtgrt.so; build tgc, tgrun and tgrt_shared there, "
                 "configured with -DTGRT_SHARED=ON")
    models = report.model_files("compare.py", arguments.models)
    cpus = sorted(os.sched_getaffinity(0))
    threads = [int(text) for text in arguments.threads.split(",")]
    for count in [n for n in threads if n > len(cpus)]:
        print(f"{count} threads: skipped, there are {len(cpus)} CPUs")
    job = {"library": library, "peers": peers, "seed": arguments.seed, "dims": dict(arguments.dim),
           "ints": dict(arguments.ints), "seconds": arguments.seconds, "limit": arguments.peer_compile_seconds}
    rows = []
    print("ratio = peer / tgc, above 1 tgc is faster; ms: best and median of each; seed", arguments.seed)
    print(f"{'model':<20} thr {'peer':<9}{'peer ms':>18}{'tgc ms':>20}{'ratio':>8}{'of medians':>11}  agree {'err':>8}"
          f"{'run MB':>8}{'tgc s':>7}{'tgc MB':>8}{'bundle MB':>10}")
    for model in models:
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, XDG_CACHE_HOME=folder):
            # a cache of its own: nothing was compiled before
            rows += compare_model(arguments, model, job | {"folder": folder, "bundle": folder + "/m.bundle"},
                                  [n for n in threads if n <= len(cpus)])
    for line in report.summary(rows):
        print(line)
    write_files(arguments, rows)
    return 1 if any(row["agree"] is False for row in rows) else 0


def installed(package):
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # of the package that holds it
        return False


def write_files(arguments, rows):
    if arguments.json:
        json.dump(rows, arguments.json, indent=1)
    with open("/proc/cpuinfo") as lines:
        cpu = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "CPU")
    distributions = importlib.metadata.packages_distributions()
    packages = dict.fromkeys(PEERS[row["peer"]].package.split(".")[0] for row in rows)
    names = [distributions[package][0] for package in packages if package in distributions]
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    caption = (f"{datetime.date.today()}; {cpu}, {os.cpu_count()} CPUs; at least {arguments.seconds:g} s of runs each; "
               f"{versions}.")
    if arguments.plot:
        arguments.plot.write_text(report.picture(rows, caption))
    if arguments.document:
        image = arguments.plot and os.path.relpath(arguments.plot, arguments.document.parent)
        arguments.document.write_text(report.document(arguments.document.read_text(), rows, caption, image))


def compare_model(arguments, model, job, threads):
    """The rows of one model, printed as they come."""
    tool, bundle = str(arguments.build / "bin"), job["bundle"]
    dims = [f"--dim={name}={value}" for name, value in arguments.dim]
    code, errors, seconds, megabytes = measured([tool + "/tgc", str(model), "-o", bundle,
                                                 f"--target={arguments.target}", *dims])
    name, rows = model.stem, []
    if code:
        print(f"{name}: tgc: {errors.strip().splitlines()[0] if errors.strip() else code}", flush=True)
        return [failed_row(name, n, peer) for n in threads for peer in job["peers"]]
    skipped = {}
    for count in threads:
        usage = measured([tool + "/tgrun", bundle, f"--threads={count}"])[3]
        cpus = sorted(os.sched_getaffinity(0))[:count]
        one = job | {"model": str(model), "threads": count, "cpus": cpus}
        for peer in [p for p in job["peers"] if p not in skipped]:
            for _, why in run_process(rehearse, one, peer, seconds=job["limit"]):
                skipped[peer] = why
                print(f"{name}, {peer}: skipped: {why}", flush=True)
        left = [peer for peer in job["peers"] if peer not in skipped]
        messages = run_process(worker, one | {"peers": left}) if left else []
        for text in [content for kind, content in messages if kind != "row"]:
            print(f"{name}, {count} threads: {text}", flush=True)
        found = {content["peer"]: content for kind, content in messages if kind == "row"}
        for peer in job["peers"]:
            row = failed_row(name, count, peer) | found.get(peer, {})
            if peer in skipped:
                row |= {"agree": None, "skipped": skipped[peer]}
            row |= {"compile_s": seconds, "compile_rss_mb": megabytes, "run_rss_mb": usage,
                    "bundle_bytes": os.path.getsize(bundle)}
            rows.append(row)
            if peer in found:
                print_row(row)
    return rows


def failed_row(model, threads, peer):
    return {"model": model, "threads": threads, "peer": peer, "peer_ms": None, "tgc_ms": None, "ratio": None,
            "agree": False}


def print_row(r):
    print(f"{r['model']:<20} {r['threads']:>3} {r['peer']:<9}{r['peer_ms']:>9.3f}{r['peer_median_ms']:>9.3f}"
          f"{r['tgc_ms']:>11.3f}{r['tgc_median_ms']:>9.3f}{r['ratio']:>8.3f}{r['median_ratio']:>11.3f}  "
          f"{'yes' if r['agree'] else 'NO':<5} {r['err']:>8.1e}{r['run_rss_mb']:>8.0f}{r['compile_s']:>7.1f}"
          f"{r['compile_rss_mb']:>8.0f}{r['bundle_bytes'] / 1e6:>10.1f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
