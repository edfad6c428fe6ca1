# A room is one folder under src/: an object library that sees the rooms it names and nothing else.

add_library(sinkscope_flags INTERFACE)
target_compile_options(sinkscope_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                                                 -Wnon-virtual-dtor -Woverloaded-virtual)
if(SINKSCOPE_WERROR)
  target_compile_options(sinkscope_flags INTERFACE -Werror)
endif()
target_include_directories(sinkscope_flags INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(sinkscope_flags INTERFACE SINKSCOPE_VERSION="${PROJECT_VERSION}")

# sinkscope_room(NAME DEPENDS target...): object library room_NAME of src/NAME/*.cc and the folders in it
function(sinkscope_room name)
  cmake_parse_arguments(ROOM "" "" "DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cc ${PROJECT_SOURCE_DIR}/src/${name}/*/*.cc)
  list(FILTER sources EXCLUDE REGEX "_kernels\\.cc$")
  add_library(room_${name} OBJECT ${sources})
  target_link_libraries(room_${name} PRIVATE sinkscope_flags PUBLIC ${ROOM_DEPENDS})
  set_property(GLOBAL APPEND PROPERTY SINKSCOPE_OBJECTS $<TARGET_OBJECTS:room_${name}>)
endfunction()

# sinkscope_kernels(ROOM FILE...): the FILEs are compiled once per instruction set, each into its own namespace; the
# room picks one when the program runs. The portable copy uses what every processor of the architecture has.
function(sinkscope_kernels room)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/src/${room}/ OUTPUT_VARIABLE files)
  set(levels portable)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND levels avx2 avx512 avx512_bf16)
    set(flags_avx2 -mavx2 -mfma -mf16c)
    set(flags_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c -mprefer-vector-width=512)
    set(flags_avx512_bf16 ${flags_avx512} -mavx512bf16)
    target_compile_definitions(room_${room} PRIVATE SINKSCOPE_X86_KERNELS)
  endif()
  foreach(level ${levels})
    add_library(kernels_${room}_${level} OBJECT ${files})
    target_link_libraries(kernels_${room}_${level} PRIVATE sinkscope_flags)
    target_compile_definitions(kernels_${room}_${level} PRIVATE SINKSCOPE_KERNEL_LEVEL=${level})
    # -O3 in every build type but debug: these loops are written to be vectorised. No flag that lets the compiler
    # reorder sums is given.
    target_compile_options(kernels_${room}_${level} PRIVATE ${flags_${level}} $<$<NOT:$<CONFIG:Debug>>:-O3> -fno-math-errno
                                                            -fno-trapping-math)
    set_property(GLOBAL APPEND PROPERTY SINKSCOPE_OBJECTS $<TARGET_OBJECTS:kernels_${room}_${level}>)
    list(APPEND kernels kernels_${room}_${level})
  endforeach()
  # For a test program of this room alone.
  set(SINKSCOPE_KERNELS_${room} ${kernels} PARENT_SCOPE)
endfunction()

# sinkscope_library(NAME): all rooms so far as one library
function(sinkscope_library name)
  get_property(objects GLOBAL PROPERTY SINKSCOPE_OBJECTS)
  add_library(${name} ${objects})
  add_library(${name}::${name} ALIAS ${name})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_link_libraries(${name}
    PUBLIC fmt::fmt nlohmann_json::nlohmann_json sinkscope::torch
    PRIVATE CURL::libcurl OpenSSL::Crypto ZLIB::ZLIB PkgConfig::pcre2 PkgConfig::utf8proc PkgConfig::seccomp sinkscope::dnnl OpenMP::OpenMP_CXX)
endfunction()
