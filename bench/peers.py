# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runtimes that compare.py times. A peer has a `package`, is made with the pinned dims, and has

  setup(path, feeds, threads)   loads the ONNX file; feeds: {input: array}, bound without a copy where it can be
  run()                         runs once
  outputs()                     arrays of the last run, in the model's order

in that order. Its settings are the best for the latency of one request on N pinned CPUs. Tgc is the same but for a
bundle that is made before."""
import ctypes
import os

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


class Ort:
    """ONNX Runtime, CPU provider: all graph optimisations, sequential, N threads within an op, arena and spinning on,
    dims pinned, inputs and outputs bound."""

    package = "onnxruntime"

    def __init__(self, dims):
        self.dims = dims

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


class OpenVino:
    """OpenVINO, CPU device: latency hint, one stream of N threads, f32 (its default may be bfloat16), dims pinned."""

    package = "openvino"

    def __init__(self, dims):
        self.dims = dims

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


PEERS = {"ort": Ort, "openvino": OpenVino}
