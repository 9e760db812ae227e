# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
if(TARGET test_tools)
  target_sources(test_tools PRIVATE ${CMAKE_SOURCE_DIR}/test/tools/random_graph.cpp
                                    ${CMAKE_SOURCE_DIR}/test/tools/shrink_case.cpp)
endif()
if(TARGET test_tools AND TARGET tgc AND TARGET tgrun)
  target_compile_definitions(test_tools PRIVATE TGC_PROGRAM="$<TARGET_FILE:tgc>" TGRUN_PROGRAM="$<TARGET_FILE:tgrun>")
  add_dependencies(test_tools tgc tgrun)
endif()
if(TARGET tgc-onnx-suite)
  add_test(NAME onnx-suite COMMAND ${CMAKE_SOURCE_DIR}/scripts/onnx_suite.sh ${CMAKE_BINARY_DIR})
  set_tests_properties(onnx-suite PROPERTIES LABELS suite SKIP_RETURN_CODE 77 TIMEOUT 1500 RUN_SERIAL ON)
endif()

# The layout check must catch what it is for: a tree with one fault of each kind.
set(tree ${CMAKE_BINARY_DIR}/bad_tree)
set(licence "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n")
string(REPEAT "//\n" 300 tall)
file(WRITE ${tree}/lib/uop/a.cpp "${licence}#include \"rewrite/pattern.h\"\n#include <llvm/IR/Module.h>\n")
file(WRITE ${tree}/lib/uop/b.cpp "int b;\n")
file(WRITE ${tree}/lib/uop/c.cpp "${licence}char* c = getenv(\"C\");\n")
file(WRITE ${tree}/lib/uop/d.h "${licence}${tall}")
file(WRITE ${tree}/tools/tgc/e.cpp "${licence}#include <gtest/gtest.h>\n")
add_test(NAME rooms-catches COMMAND ${CMAKE_COMMAND} -DTGC_CHECK_ROOT=${tree}
                                    -P ${CMAKE_SOURCE_DIR}/scripts/check_rooms.cmake)
string(JOIN ".*" faults
       "a.cpp: room uop must not include \"rewrite/pattern.h\""
       "a.cpp: <llvm/IR/Module.h> may be included only"
       "b.cpp: the first line must be SPDX"
       "c.cpp: getenv: only tools/ reads the environment"
       "d.h: 301 lines, the limit is 300"
       "e.cpp: <gtest/gtest.h> may be included only")
set_tests_properties(rooms-catches PROPERTIES PASS_REGULAR_EXPRESSION "${faults}" LABELS layout)
