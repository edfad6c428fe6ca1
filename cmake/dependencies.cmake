# The libraries that sinkscope links; also read by the installed CMake package. packages.txt lists the Debian packages,
# docs/dependencies.md the reasons.
find_package(PkgConfig REQUIRED)
find_package(CURL 7.85 REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(ZLIB REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET GLOBAL libpcre2-8)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET GLOBAL libutf8proc)

if(NOT SINKSCOPE_FUZZ)
  pkg_check_modules(seccomp REQUIRED IMPORTED_TARGET GLOBAL libseccomp)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  # By hand: Debian's dnnl-config.cmake insists on an OpenCL that the CPU library does not use.
  find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp REQUIRED)
  find_library(DNNL_LIBRARY dnnl REQUIRED)
  if(NOT TARGET sinkscope::dnnl)
    add_library(sinkscope::dnnl UNKNOWN IMPORTED GLOBAL)
    set_target_properties(sinkscope::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY}
                          INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
  endif()
  # As system headers, and without the flags that libtorch's package adds to everybody's command line.
  find_package(Torch REQUIRED)
  if(NOT TARGET sinkscope::torch)
    add_library(sinkscope::torch INTERFACE IMPORTED GLOBAL)
    set_target_properties(sinkscope::torch PROPERTIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${TORCH_INCLUDE_DIRS}"
                          INTERFACE_INCLUDE_DIRECTORIES "${TORCH_INCLUDE_DIRS}" INTERFACE_LINK_LIBRARIES "${TORCH_LIBRARIES}")
  endif()
endif()
