# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The runtime's tests write bundles with tgc's writer, without the rest of tgc.
if(TARGET test_runtime)
  file(GLOB writer CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tools/tgc/bundle_*.cpp)
  target_sources(test_runtime PRIVATE ${writer} ${CMAKE_SOURCE_DIR}/tools/tgc/boundary.cpp)
  target_include_directories(test_runtime PRIVATE ${CMAKE_SOURCE_DIR}/tools)
  target_compile_definitions(test_runtime PRIVATE TGRT_LIBRARY="$<TARGET_FILE:tgrt>")
  tgc_link(test_runtime PRIVATE tgc_uop)
endif()
