# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# LLVM and lld, which only compile_llvm.cpp includes. With TGC_LLVM=OFF the room still renders LLVM IR, but cpu:llvm
# reports that it cannot compile.
option(TGC_LLVM "Compile kernels in process with LLVM 19 and lld" ON)
if(TGC_LLVM)
  find_package(LLVM 19.1 REQUIRED CONFIG HINTS /usr/lib/llvm-19/lib/cmake/llvm)
  find_package(LLD REQUIRED CONFIG HINTS ${LLVM_LIBRARY_DIRS}/cmake/lld)
  target_include_directories(tgc_render SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
  target_link_libraries(tgc_render PRIVATE lldELF lldCommon LLVM Threads::Threads)
  target_compile_definitions(tgc_render PRIVATE TGC_LLVM=1)
else()
  get_target_property(sources tgc_render SOURCES)
  list(FILTER sources EXCLUDE REGEX "/compile_llvm\\.cpp$")
  set_property(TARGET tgc_render PROPERTY SOURCES ${sources})
  target_link_libraries(tgc_render PRIVATE Threads::Threads)
endif()
