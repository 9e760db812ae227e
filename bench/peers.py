# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runtimes that compare.py times. A peer has a `package`, is made with the pinned dims and a folder, and has

  compile(path, feeds, threads) writes to the folder what setup needs, in a process of its own; may be slow
  setup(path, feeds, threads)   loads the ONNX file; feeds: {input: array}, bound without a copy where it can be
  run()                         runs once
  outputs()                     arrays of the last run, in the model's order

in that order. Its settings are the best for the latency of one request on N pinned CPUs. Tgc is the same but for a
bundle that is made before."""
import ctypes
import os
import subprocess
import sys

import numpy as np


class Tgc:
    """libtgrt by ctypes, inputs bound in place."""

    DTYPES = [None, np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64,
              np.float16, None, np.float32, np.float64]

    class TensorInfo(ctypes.Structure):
        _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_uint32), ("bytes", ctypes.c_uint32),
                    ("rank", ctypes.c_uint32)]

    class ContextOptions(ctypes.Structure):
        _fields_ = [("struct_size", ctypes.c_size_t), ("flags", ctypes.c_uint32), ("threads", ctypes.c_uint32),
                    ("allocator", ctypes.c_void_p), ("pool", ctypes.c_void_p), ("profile", ctypes.c_void_p),
                    ("user", ctypes.c_void_p)]

    class Error(ctypes.Structure):
        _fields_ = [("code", ctypes.c_int), ("text", ctypes.c_char * 1020)]

    def __init__(self, library, bundle):
        self.lib = ctypes.CDLL(str(library))
        self.lib.tgrt_model_dim.restype = ctypes.c_int64
        self.lib.tgrt_data.restype = ctypes.c_void_p
        self.error, self.model, self.context = self.Error(), ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.lib.tgrt_load_file(os.fsencode(bundle), None, ctypes.byref(self.model),
                                           ctypes.byref(self.error)))

    def check(self, code):
        if code:
            raise RuntimeError(self.error.text.decode())

    def tensors(self, kind):
        """[(name, dtype, shape)] of the inputs (0) or outputs (1)."""
        found = []
        for i in range(self.lib.tgrt_tensor_count(self.model, kind)):
            info, name = self.TensorInfo(), ctypes.c_char_p()
            self.lib.tgrt_get_tensor(self.model, kind, i, ctypes.byref(info))
            shape = [self.lib.tgrt_model_dim(self.model, kind, i, axis, ctypes.byref(name)) for axis in range(info.rank)]
            if -1 in shape:
                raise RuntimeError(f"{info.name.decode()} has a symbolic dim {(name.value or b'?').decode()}: pin it, "
                                   "--dim NAME=VALUE")
            if not self.DTYPES[info.dtype]:
                raise RuntimeError(f"{info.name.decode()}: numpy has no bfloat16")
            found.append((info.name.decode(), np.dtype(self.DTYPES[info.dtype]), shape))
        return found

    def setup(self, path, feeds, threads):
        options = self.ContextOptions(struct_size=ctypes.sizeof(self.ContextOptions), threads=threads)
        self.check(self.lib.tgrt_create_context(self.model, ctypes.byref(options), ctypes.byref(self.context),
                                                ctypes.byref(self.error)))
        self.feeds = list(feeds.values())
        for i, feed in enumerate(self.feeds):
            self.check(self.lib.tgrt_bind_input(self.context, i, feed.ctypes.data_as(ctypes.c_void_p),
                                                ctypes.c_size_t(feed.nbytes), ctypes.byref(self.error)))

    def run(self):
        self.check(self.lib.tgrt_run(self.context, ctypes.byref(self.error)))

    def outputs(self):
        arrays = []
        for i, (_, dtype, shape) in enumerate(self.tensors(1)):
            data = self.lib.tgrt_data(self.context, 1, i, ctypes.byref(self.error))
            count = int(np.prod(shape))
            raw = (ctypes.c_char * (count * dtype.itemsize)).from_address(data) if count else b""
            arrays.append(np.frombuffer(raw, dtype).reshape(shape).copy())
        return arrays


class Peer:
    """What is common to all: nothing to compile beforehand."""

    def __init__(self, dims, folder):
        self.dims, self.folder = dims, folder

    def compile(self, path, feeds, threads):
        pass


class Ort(Peer):
    """ONNX Runtime, CPU provider: all graph optimisations, sequential, N threads within an op, arena and spinning on,
    dims pinned, inputs and outputs bound."""

    package = "onnxruntime"

    def setup(self, path, feeds, threads):
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.enable_cpu_mem_arena = options.enable_mem_pattern = True
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "1")
        for name, value in self.dims.items():
            options.add_free_dimension_override_by_name(name, value)
        self.session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        for name, feed in feeds.items():
            self.binding.bind_cpu_input(name, feed)
        for output in self.session.get_outputs():
            self.binding.bind_output(output.name)

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def outputs(self):
        return self.binding.copy_outputs_to_cpu()


class OpenVino(Peer):
    """OpenVINO, CPU device: latency hint, one stream of N threads, f32 (its default may be bfloat16), dims pinned."""

    package = "openvino"

    def setup(self, path, feeds, threads):
        import openvino
        core = openvino.Core()
        model = core.read_model(path)
        model.reshape({name: list(feed.shape) for name, feed in feeds.items()})
        self.request = core.compile_model(model, "CPU", {
            "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
        for name, feed in feeds.items():
            self.request.set_tensor(name, openvino.Tensor(feed, shared_memory=True))

    def run(self):
        self.request.infer()

    def outputs(self):
        return [output.data.copy() for output in self.request.output_tensors]


def input_names(model):
    """Names of an ONNX model's inputs in order, without those that are initializers."""
    constants = {tensor.name for tensor in model.graph.initializer}
    return [value.name for value in model.graph.input if value.name not in constants]


class Tvm(Peer):
    """TVM, Relax and LLVM for this CPU: the default pipeline at opt_level 3, all shapes static. Not tuned: no schedules
    are searched, which TVM's speed depends on. Its threads are not bound: the process is."""

    package = "tvm"

    def shared_object(self):
        return os.path.join(self.folder, "tvm.so")

    def compile(self, path, feeds, threads):
        import onnx
        import tvm
        from tvm.relax.frontend.onnx import from_onnx
        shapes = {name: list(feed.shape) for name, feed in feeds.items()}
        module = from_onnx(onnx.load(path), shape_dict=shapes)
        cpu = tvm.target.codegen.llvm_get_system_cpu()
        target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": threads})
        with tvm.transform.PassContext(opt_level=3):
            tvm.compile(module, target=target).export_library(self.shared_object())

    def setup(self, path, feeds, threads):
        os.environ |= {"TVM_NUM_THREADS": str(threads), "TVM_BIND_THREADS": "0"}
        import onnx
        import tvm
        self.machine = tvm.relax.VirtualMachine(tvm.runtime.load_module(self.shared_object()), tvm.cpu())
        names = input_names(onnx.load(path, load_external_data=False))
        self.machine.set_input("main", *[tvm.runtime.tensor(feeds[name]) for name in names])

    def run(self):
        self.machine.invoke_stateful("main")

    def outputs(self):
        found = self.machine.get_outputs("main")
        return [tensor.numpy() for tensor in (found if isinstance(found, (list, tuple)) else [found])]


class Iree(Peer):
    """IREE, llvm-cpu for this CPU: data tiling, and stack enough for it; one thread runs inline (local-sync), N are
    workers on the N CPUs (local-task)."""

    package = "iree.compiler"
    FLAGS = ["--iree-llvmcpu-target-cpu=host", "--iree-opt-data-tiling",
             "--iree-llvmcpu-stack-allocation-limit=1048576"]

    def file(self, name):
        return os.path.join(self.folder, name)

    def compile(self, path, feeds, threads):
        import iree.compiler.tools
        import onnx
        model = onnx.load(path)
        for value in [value for value in model.graph.input if value.name in feeds]:
            for dim, size in zip(value.type.tensor_type.shape.dim, feeds[value.name].shape):
                dim.dim_value = size
        onnx.save(model, self.file("iree.onnx"))
        done = subprocess.run([sys.executable, "-m", "iree.compiler.tools.import_onnx", self.file("iree.onnx"),
                               "--opset-version=17", "-o", self.file("iree.mlir")], stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise RuntimeError("import: " + done.stderr.strip().splitlines()[-1])
        iree.compiler.tools.compile_file(self.file("iree.mlir"), output_file=self.file("iree.vmfb"),
                                         target_backends=["llvm-cpu"], extra_args=self.FLAGS)

    def setup(self, path, feeds, threads):
        import iree.runtime as rt
        import onnx
        cpus = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        rt.flags.parse_flags(f"--task_topology_cpu_ids={cpus}")
        self.device = rt.get_driver("local-task" if threads > 1 else "local-sync").create_default_device()
        config = rt.Config(device=self.device)
        system = rt.SystemContext(config=config)
        module = rt.VmModule.mmap(system.instance, self.file("iree.vmfb"))
        system.add_vm_module(module)
        name = next(n for n in module.function_names if "$" not in n and not n.startswith("__"))
        self.function, self.context = module.lookup_function(name), system.vm_context
        names = input_names(onnx.load(path, load_external_data=False))
        self.inputs = rt.VmVariantList(len(names))
        for name in names:
            self.inputs.push_ref(rt.asdevicearray(self.device, feeds[name])._buffer_view)
        self.rt = rt

    def run(self):
        self.results = self.rt.VmVariantList(8)
        self.context.invoke(self.function, self.inputs, self.results)

    def outputs(self):
        views = [self.results.get_as_object(i, self.rt.HalBufferView) for i in range(len(self.results))]
        return [self.rt.DeviceArray(self.device, view, implicit_host_transfer=True).to_host() for view in views]


PEERS = {"ort": Ort, "openvino": OpenVino, "tvm": Tvm, "iree": Iree}
