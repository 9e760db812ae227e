# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What is particular to libtgrt: plain C11, sections that a linker can drop, a shared twin on request, and the files that
# let other projects find it (find_package(tgrt), pkg-config tgrt).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
option(TGRT_SHARED "Also build libtgrt as a shared library" OFF)

set(TGRT_HEADERS tgrt.h tgrt_bundle.h tgrt_errors.def)
list(TRANSFORM TGRT_HEADERS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/lib/runtime/)

set(TGRT_TARGETS tgrt)
get_target_property(tgrt_sources tgrt SOURCES)
if(TGRT_SHARED)
  add_library(tgrt_shared SHARED ${tgrt_sources})
  set_target_properties(tgrt_shared PROPERTIES OUTPUT_NAME tgrt VERSION ${PROJECT_VERSION} SOVERSION 0)
  target_include_directories(tgrt_shared PRIVATE ${CMAKE_SOURCE_DIR}/lib ${TGC_GENERATED})
  target_link_libraries(tgrt_shared PRIVATE Threads::Threads)
  list(APPEND TGRT_TARGETS tgrt_shared)
endif()
foreach(target ${TGRT_TARGETS})
  target_compile_options(${target} PRIVATE -pedantic -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wcast-align
                                           -ffunction-sections -fdata-sections -fvisibility=hidden)
endforeach()

# Outside the source tree the headers stand side by side: #include <tgrt.h>.
get_target_property(tgrt_includes tgrt INTERFACE_INCLUDE_DIRECTORIES)
set_target_properties(tgrt PROPERTIES INTERFACE_INCLUDE_DIRECTORIES
  "$<BUILD_INTERFACE:${tgrt_includes}>;$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
if(TGRT_SHARED)
  target_include_directories(tgrt_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endif()

set(tgrt_package ${CMAKE_INSTALL_LIBDIR}/cmake/tgrt)
install(FILES ${TGRT_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT tgrt)
install(TARGETS ${TGRT_TARGETS} EXPORT tgrt-targets COMPONENT tgrt)
install(EXPORT tgrt-targets NAMESPACE tgrt:: DESTINATION ${tgrt_package} COMPONENT tgrt)
file(CONFIGURE OUTPUT ${TGC_GENERATED}/tgrt-config.cmake @ONLY CONTENT [[
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/tgrt-targets.cmake)
]])
write_basic_package_version_file(${TGC_GENERATED}/tgrt-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${TGC_GENERATED}/tgrt-config.cmake ${TGC_GENERATED}/tgrt-config-version.cmake
        DESTINATION ${tgrt_package} COMPONENT tgrt)
file(RELATIVE_PATH tgrt_prefix /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
file(CONFIGURE OUTPUT ${TGC_GENERATED}/tgrt.pc @ONLY CONTENT [[
prefix=${pcfiledir}/@tgrt_prefix@
Name: tgrt
Description: Loads and runs bundles of compiled neural networks
Version: @PROJECT_VERSION@
Cflags: -I${prefix}/@CMAKE_INSTALL_INCLUDEDIR@
Libs: -L${prefix}/@CMAKE_INSTALL_LIBDIR@ -ltgrt -pthread
]])
install(FILES ${TGC_GENERATED}/tgrt.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT tgrt)
