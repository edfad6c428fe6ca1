# cmake --install: the program, the library with its public headers, the built-in models, and a CMake package:
#   find_package(sinkscope REQUIRED)
#   target_link_libraries(mine PRIVATE sinkscope::sinkscope)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sinkscope)

install(TARGETS sinkscope sinkscope_program EXPORT sinkscopeTargets)
install(DIRECTORY include/sinkscope DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY models DESTINATION ${CMAKE_INSTALL_DATADIR}/sinkscope)
install(EXPORT sinkscopeTargets NAMESPACE sinkscope:: DESTINATION ${package_dir})
write_basic_package_version_file(sinkscopeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
file(WRITE ${PROJECT_BINARY_DIR}/sinkscopeConfig.cmake
  "include(\${CMAKE_CURRENT_LIST_DIR}/dependencies.cmake)\ninclude(\${CMAKE_CURRENT_LIST_DIR}/sinkscopeTargets.cmake)\n")
install(FILES ${PROJECT_BINARY_DIR}/sinkscopeConfig.cmake ${PROJECT_BINARY_DIR}/sinkscopeConfigVersion.cmake
              cmake/dependencies.cmake DESTINATION ${package_dir})
