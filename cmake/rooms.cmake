# A room is one folder under src/: an object library that sees the rooms it names and nothing else.

add_library(sinkscope_flags INTERFACE)
target_compile_options(sinkscope_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                                                 -Wnon-virtual-dtor -Woverloaded-virtual)
if(SINKSCOPE_WERROR)
  target_compile_options(sinkscope_flags INTERFACE -Werror)
endif()
target_include_directories(sinkscope_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
target_compile_definitions(sinkscope_flags INTERFACE SINKSCOPE_VERSION="${PROJECT_VERSION}")

# libtorch as system headers, without the flags its package adds to everybody's command line.
if(NOT SINKSCOPE_FUZZ)
  add_library(sinkscope_torch INTERFACE)
  target_include_directories(sinkscope_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  target_link_libraries(sinkscope_torch INTERFACE ${TORCH_LIBRARIES})
endif()

# sinkscope_room(NAME [TORCH] DEPENDS target...): object library room_NAME of src/NAME/*.cc
function(sinkscope_room name)
  cmake_parse_arguments(ROOM "TORCH" "" "DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_kernels\\.cc$")
  add_library(room_${name} OBJECT ${sources})
  target_link_libraries(room_${name} PRIVATE sinkscope_flags PUBLIC ${ROOM_DEPENDS})
  if(ROOM_TORCH)
    target_link_libraries(room_${name} PUBLIC sinkscope_torch)
  endif()
endfunction()

# sinkscope_kernels(ROOM FILE): FILE is compiled once per instruction set, each into its own namespace; the room picks
# one when the program runs. The portable copy uses what every processor of the architecture has.
function(sinkscope_kernels room file)
  set(levels portable)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND levels avx2 avx512)
    set(flags_avx2 -mavx2 -mfma -mf16c)
    set(flags_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c -mprefer-vector-width=512)
    target_compile_definitions(room_${room} PRIVATE SINKSCOPE_X86_KERNELS)
  endif()
  foreach(level ${levels})
    add_library(kernels_${room}_${level} OBJECT ${PROJECT_SOURCE_DIR}/src/${room}/${file})
    target_link_libraries(kernels_${room}_${level} PRIVATE sinkscope_flags)
    target_compile_definitions(kernels_${room}_${level} PRIVATE SINKSCOPE_KERNEL_LEVEL=${level})
    # -O3 in every build type but debug: these loops are written to be vectorised. Contraction is left to the
    # level; no flag that lets the compiler reorder sums is given.
    target_compile_options(kernels_${room}_${level} PRIVATE ${flags_${level}} $<$<NOT:$<CONFIG:Debug>>:-O3> -fno-math-errno -fno-trapping-math)
    target_sources(room_${room} PUBLIC $<TARGET_OBJECTS:kernels_${room}_${level}>)
  endforeach()
endfunction()

# sinkscope_library(NAME ROOMS room...): all rooms as one library
function(sinkscope_library name)
  cmake_parse_arguments(LIB "" "" "ROOMS" ${ARGN})
  add_library(${name})
  add_library(${name}::${name} ALIAS ${name})
  foreach(room ${LIB_ROOMS})
    target_link_libraries(${name} PRIVATE room_${room})
  endforeach()
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()
