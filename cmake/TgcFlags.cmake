# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Languages, warnings, sanitizers, ccache and the linker: what holds for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_C_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1 -fno-omit-frame-pointer")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g1 -fno-omit-frame-pointer")

add_compile_options(-Wall -Wextra -Wshadow -Wconversion -Werror $<$<COMPILE_LANGUAGE:CXX>:-Wno-sign-conversion>
                    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
# clang blames the caller for what libstdc++ 12's stable_sort calls inside.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-deprecated-declarations>)
# Numbers mean the same on every compiler: no contraction of a*b+c behind our back.
add_compile_options(-ffp-contract=off)
# The cache of compiled kernels knows a compiler by its build id.
add_link_options(-Wl,--build-id)

if(TGC_SANITIZE)
  add_compile_options(-fsanitize=${TGC_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TGC_SANITIZE})
endif()

if(TGC_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_program(TGC_CCACHE ccache)
if(TGC_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${TGC_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TGC_CCACHE})
endif()

# g++ looks for a program called ld.lld; Debian calls it ld.lld-19.
find_program(TGC_LLD NAMES ld.lld-19 ld.lld)
if(TGC_LLD)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/ld)
  file(CREATE_LINK ${TGC_LLD} ${CMAKE_BINARY_DIR}/ld/ld.lld SYMBOLIC)
  add_link_options(-fuse-ld=lld -B${CMAKE_BINARY_DIR}/ld)
endif()
