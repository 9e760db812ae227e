# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Holds the source tree to its layout. Run by ctest as `rooms`, or by hand: cmake -P scripts/check_rooms.cmake
#   - a room includes only itself and the rooms below it;
#   - a package's headers are included by one file only;
#   - the environment is read by tools/ only;
#   - every file states its licence, and none outgrows 600 lines (headers 300; *.def tables excepted).
cmake_minimum_required(VERSION 3.25)
get_filename_component(root ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)
if(DEFINED TGC_CHECK_ROOT)
  set(root ${TGC_CHECK_ROOT})
endif()

# What each room may include, itself first.
set(may_uop uop)
set(may_rewrite rewrite uop)
set(may_frontend frontend uop)
set(may_schedule schedule rewrite uop)
set(may_render render rewrite uop)
set(may_runtime runtime)
set(rooms uop rewrite frontend schedule render runtime)

# Which one file (or folder) may include headers that match.
set(packages
    "^llvm|^lld/|^clang/" "^lib/render/compile_llvm\\.cpp$"
    "^google/protobuf|^onnx/|\\.pb\\.h$" "^lib/frontend/onnx_reader\\.cpp$"
    "^nlohmann/" "^lib/frontend/json_reader\\.cpp$"
    "^CLI/|^CLI11" "^tools/[a-z-]+/options\\.cpp$"
    "^gtest/|^gmock/" "^test/"
    "^benchmark/" "^bench/")

set_property(GLOBAL PROPERTY faults "")
function(fault text)
  set_property(GLOBAL APPEND_STRING PROPERTY faults "  ${text}\n")
endfunction()

function(check_includes file)
  file(STRINGS ${root}/${file} lines REGEX "^[ \t]*#[ \t]*include")
  set(room "")
  if(file MATCHES "^lib/([a-z]+)/")
    set(room ${CMAKE_MATCH_1})
  endif()
  foreach(line ${lines})
    if(NOT line MATCHES "include[ \t]*[<\"]([^>\"]+)[>\"]")
      continue()
    endif()
    set(header ${CMAKE_MATCH_1})
    if(room AND header MATCHES "^([a-z_0-9-]+)/")
      set(to ${CMAKE_MATCH_1})
      if(to IN_LIST rooms AND NOT to IN_LIST may_${room})
        fault("${file}: room ${room} must not include \"${header}\"; it may include: ${may_${room}}")
      endif()
    endif()
    set(rest ${packages})
    while(rest)
      list(POP_FRONT rest pattern owner)
      if(header MATCHES "${pattern}" AND NOT file MATCHES "${owner}")
        fault("${file}: <${header}> may be included only where the path matches ${owner}")
      endif()
    endwhile()
  endforeach()
endfunction()

function(check_text file)
  file(READ ${root}/${file} text)
  string(SUBSTRING "${text}" 0 200 head)
  if(NOT head MATCHES "SPDX-License-Identifier: Apache-2\\.0 WITH LLVM-exception")
    fault("${file}: the first line must be SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception")
  endif()
  if(file MATCHES "^lib/" AND text MATCHES "[^a-z_]((secure_)?getenv) ?\\(")
    fault("${file}: ${CMAKE_MATCH_1}: only tools/ reads the environment")
  endif()
  string(REGEX REPLACE "[^\n]+" "" newlines "${text}")
  string(LENGTH "${newlines}" length)
  set(limit 600)
  if(file MATCHES "\\.h$")
    set(limit 300)
  endif()
  if(length GREATER limit AND NOT file MATCHES "\\.def$")
    fault("${file}: ${length} lines, the limit is ${limit}")
  endif()
endfunction()

set(globs "")
foreach(folder lib tools test bench models scripts cmake)
  foreach(suffix cpp h c def cmake sh py)
    list(APPEND globs ${root}/${folder}/*.${suffix})
  endforeach()
endforeach()
file(GLOB_RECURSE files RELATIVE ${root} ${globs} ${root}/CMakeLists.txt)
list(SORT files)
foreach(file ${files})
  check_text(${file})
  if(file MATCHES "\\.(cpp|h|c|def)$")
    check_includes(${file})
  endif()
endforeach()

get_property(faults GLOBAL PROPERTY faults)
list(LENGTH files count)
if(faults)
  message(FATAL_ERROR "the source tree breaks its own layout:\n${faults}")
endif()
message(STATUS "${count} files keep to their rooms")
