# libparacord-cuda.so, the plug-in that makes NVIDIA GPUs devices. It is built where nvcc is found; the library itself
# is the same with and without it.
set(PARACORD_WITH_CUDA AUTO CACHE STRING "NVIDIA GPUs (nvcc): AUTO builds the plug-in where nvcc is found; ON, OFF")
option(PARACORD_CUDA_RELEASE "Machine code for every GPU generation that nvcc knows from 7.5 on" OFF)
option(PARACORD_CUDA_DRAFT "Kernels are compiled fast instead of for speed: where they are checked, and no GPU runs them" OFF)

set(PARACORD_CUDA OFF)
set(state "off (asked)")
if(PARACORD_WITH_CUDA AND (PARACORD_SANITIZE OR CMAKE_CROSSCOMPILING OR PARACORD_FUZZ))
  set(state "off (sanitizers and other machines' code do without)")
elseif(PARACORD_WITH_CUDA)
  find_program(PARACORD_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_PATH ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES bin)
  if(PARACORD_NVCC AND NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    set(CMAKE_CUDA_COMPILER ${PARACORD_NVCC})
  endif()
  if(PARACORD_CUDA_RELEASE)
    set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 86-real 89-real 90-real 100-real 120)
  elseif(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90) # its machine code and PTX
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  set(state "off (nvcc not found)")
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(PARACORD_CUDA ON)
    list(JOIN CMAKE_CUDA_ARCHITECTURES " " architectures)
    set(state "CUDA ${CUDAToolkit_VERSION}, code for ${architectures}")
  elseif(NOT PARACORD_WITH_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "PARACORD_WITH_CUDA=${PARACORD_WITH_CUDA}, but there is no nvcc; set CUDACXX to its path")
  endif()
endif()
message(STATUS "NVIDIA GPUs (libparacord-cuda.so): ${state}")

if(PARACORD_CUDA_RELEASE OR CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.9) # which cannot
  set(PARACORD_CUDA_DRAFT OFF)
endif()
if(PARACORD_CUDA_DRAFT) # nor is what runs on the CPU made fast
  string(REPLACE "-O3" "" CMAKE_CUDA_FLAGS_RELEASE "${CMAKE_CUDA_FLAGS_RELEASE}")
endif()

# What the plug-in shares with the library as source: small, and without state.
set(PARACORD_CUDA_SHARED src/tensor/dtype.c src/tensor/shape.c src/tensor/freeze.c src/tensor/floats.c)

function(paracord_cuda)
  if(NOT PARACORD_CUDA)
    return()
  endif()
  file(GLOB rooms CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src/cuda/*)
  paracord_sources(sources ${rooms})
  add_library(paracord_cuda_host OBJECT ${sources} ${PARACORD_CUDA_SHARED})
  paracord_target(paracord_cuda_host)
  target_link_libraries(paracord_cuda_host PRIVATE CUDA::cudart_static)
  set(generations ${CMAKE_CUDA_ARCHITECTURES})
  list(SORT generations COMPARE NATURAL)
  list(GET generations 0 lowest) # the oldest GPU that there is code for
  if(NOT lowest MATCHES "^[0-9]") # native, all
    set(lowest 75)
  endif()
  string(REGEX REPLACE "[^0-9].*" "" lowest ${lowest})
  target_compile_definitions(paracord_cuda_host PRIVATE PC__CUDA_LOWEST=${lowest})

  file(GLOB kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cuda/*/*.cu)
  add_library(paracord_cuda MODULE ${kernels} $<TARGET_OBJECTS:paracord_cuda_host>)
  target_include_directories(paracord_cuda PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(paracord_cuda PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -Xcompiler=-Wall,-fvisibility=hidden>
    $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<NOT:$<BOOL:${PARACORD_CUDA_DRAFT}>>>:-O3>)
  if(PARACORD_CUDA_RELEASE AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8) # a third of the size
    target_compile_options(paracord_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=size>)
  endif()
  if(PARACORD_WERROR)
    target_compile_options(paracord_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
  endif()
  # The CPU's bits, or those of calls of their own: products as written.
  set_source_files_properties(src/cuda/data/augment.cu src/cuda/data/epoch.cu src/cuda/data/random.cu src/cuda/lessons/mandelbrot.cu
    src/cuda/norm/rows_backward.cu src/cuda/norm/rows_backward_warps.cu PROPERTIES COMPILE_OPTIONS -fmad=false)
  # Weights of attention: a power of two is one instruction where what is next to 0 becomes it.
  set_source_files_properties(src/cuda/attention/units.cu src/cuda/attention/units_backward.cu PROPERTIES
    COMPILE_OPTIONS -ftz=true)
  if(PARACORD_CUDA_DRAFT)
    list(FILTER kernels EXCLUDE REGEX "/conv/conv[.]cu$") # whose shared memory is too much until unused parts of it are gone
    set_property(SOURCE ${kernels} APPEND PROPERTY COMPILE_OPTIONS --Ofast-compile=max)
  endif()
  set_target_properties(paracord_cuda PROPERTIES OUTPUT_NAME paracord-cuda PREFIX lib LINKER_LANGUAGE CUDA
    CUDA_RUNTIME_LIBRARY Static CUDA_STANDARD 17 LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/cuda.map)
  target_link_libraries(paracord_cuda PRIVATE CUDA::cudart_static m)
  target_link_options(paracord_cuda PRIVATE LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/cuda.map
    LINKER:-z,defs -static-libstdc++ -static-libgcc)
  install(TARGETS paracord_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()
