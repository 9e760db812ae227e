# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Not a test of its own: it needs the ONNX backend tests, which are not part of the project.
if(TARGET tgc_frontend)
  add_executable(onnx_corpus EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/test/frontend/onnx_corpus.cpp)
  target_include_directories(onnx_corpus PRIVATE ${CMAKE_SOURCE_DIR}/test)
  target_link_libraries(onnx_corpus PRIVATE tgc_frontend)
endif()
