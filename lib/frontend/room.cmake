# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ONNX messages: onnx.proto as libonnx-dev installs it, for the lite runtime; and nlohmann-json, header only.
find_package(Protobuf REQUIRED)
find_path(TGC_ONNX_PROTO_DIR onnx.proto PATH_SUFFIXES onnx REQUIRED)
set(onnx_messages ${TGC_GENERATED}/frontend/onnx_messages)
file(READ ${TGC_ONNX_PROTO_DIR}/onnx.proto onnx_proto)
if(NOT onnx_proto MATCHES "\n *option optimize_for")
  string(APPEND onnx_proto "\noption optimize_for = LITE_RUNTIME;\n")
endif()
file(MAKE_DIRECTORY ${onnx_messages})
file(CONFIGURE OUTPUT ${onnx_messages}/onnx.proto CONTENT "${onnx_proto}" @ONLY)
add_custom_command(
  OUTPUT ${onnx_messages}/onnx.pb.cc ${onnx_messages}/onnx.pb.h
  COMMAND protobuf::protoc --cpp_out=${onnx_messages} -I ${onnx_messages} onnx.proto
  DEPENDS ${onnx_messages}/onnx.proto)
add_library(tgc_onnx_messages STATIC ${onnx_messages}/onnx.pb.cc ${onnx_messages}/onnx.pb.h)
target_compile_options(tgc_onnx_messages PRIVATE -w)
target_link_libraries(tgc_onnx_messages PUBLIC protobuf::libprotobuf-lite)
target_include_directories(tgc_onnx_messages SYSTEM PUBLIC ${onnx_messages})
target_link_libraries(tgc_frontend PRIVATE tgc_onnx_messages)
