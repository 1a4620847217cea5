# How Paracord's own code is compiled: warnings, sanitizers, SIMD levels.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden) # what PC_API marks comes out of the shared library, nothing else
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
add_link_options(LINKER:--as-needed)
option(PARACORD_DRAFT "Compiled fast instead of for speed: where warnings are looked at, and nothing runs it" OFF)
if(PARACORD_DRAFT) # no option of Release's
  set(CMAKE_BUILD_TYPE Debug)
  set(CMAKE_C_FLAGS_DEBUG -DNDEBUG)
endif()

function(paracord_sources variable)
  set(found)
  foreach(folder ${ARGN})
    file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
    list(APPEND found ${files})
  endforeach()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# Adds to a list of sources a C file with the bytes of these files, in variables whose names begin with the prefix.
function(paracord_embed sources prefix)
  set(made ${PROJECT_BINARY_DIR}/embedded/${prefix}.c)
  add_custom_command(OUTPUT ${made} DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake VERBATIM
    COMMAND ${CMAKE_COMMAND} "-DIN=${ARGN}" -DOUT=${made} -DPREFIX=${prefix}
      -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
  set(${sources} ${${sources}} ${made} PARENT_SCOPE)
endfunction()

function(paracord_flags target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wpointer-arith -Wvla -fno-math-errno -fno-trapping-math -fno-semantic-interposition
    $<$<C_COMPILER_ID:Clang>:-Wno-unknown-pragmas>) # those that tell GCC how to make loops faster
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE ${PARACORD_DEFINITIONS} ${PARACORD_LEVEL_DEFINITIONS})
  target_include_directories(${target} SYSTEM PRIVATE ${PARACORD_INCLUDES})
  if(PARACORD_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(PARACORD_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(PARACORD_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${PARACORD_SANITIZE} -fno-omit-frame-pointer
      -fno-sanitize-recover=all)
  endif()
endfunction()

# All but the kernels keep frame pointers: src/base/site.c walks them to find where a call came from.
function(paracord_target target)
  paracord_flags(${target})
  target_compile_options(${target} PRIVATE -fno-omit-frame-pointer)
endfunction()

# A library of these objects, shared (TARGET) and static (TARGET_static), in files of that name. What comes out of the shared
# one is in cmake/exports.map; calls among its own functions go nowhere else.
function(paracord_library target name)
  add_library(${target} SHARED ${ARGN})
  add_library(${target}_static STATIC ${ARGN})
  foreach(library ${target} ${target}_static)
    target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
    target_link_libraries(${library} PRIVATE ${PARACORD_LIBRARIES} ${CMAKE_DL_LIBS})
    set_target_properties(${library} PROPERTIES OUTPUT_NAME ${name})
    add_library(paracord::${library} ALIAS ${library})
  endforeach()
  set(exports ${PROJECT_BINARY_DIR}/exports.map)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/exports.map.in ${exports} @ONLY)
  set_target_properties(${target} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    LINK_DEPENDS ${exports})
  target_link_options(${target} PRIVATE LINKER:--version-script=${exports} LINKER:-Bsymbolic-functions)
endfunction()

# A test or benchmark that the package can carry to other machines (install component `tests`).
function(paracord_carried target)
  set(folder ${CMAKE_INSTALL_LIBEXECDIR}/paracord/tests)
  file(RELATIVE_PATH to_lib /${folder} /${CMAKE_INSTALL_LIBDIR})
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${to_lib}")
  install(TARGETS ${target} RUNTIME DESTINATION ${folder} COMPONENT tests EXCLUDE_FROM_ALL)
endfunction()

# Tests are hundreds of executables with the whole library each: by the first of these that there is. binutils' usual linker takes
# three times as long as mold.
include(CheckLinkerFlag)
foreach(linker mold gold)
  unset(PARACORD_LINKS_BY_${linker} CACHE) # asked each time: packages come and go
  check_linker_flag(C -fuse-ld=${linker} PARACORD_LINKS_BY_${linker})
  if(PARACORD_LINKS_BY_${linker} AND NOT PARACORD_QUICK_LINKER)
    set(PARACORD_QUICK_LINKER
      $<$<AND:$<LINK_LANGUAGE:C>,$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>>:-fuse-ld=${linker}>)
  endif()
endforeach()

if(PARACORD_SANITIZE)
  # Executables are 40 MB each then, a third of which would be relocated at each start.
  set(program $<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>)
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    # Each access of memory calls the thread sanitizer, functions with arrays the other one: in a fifth less of the time, and in a
    # tenth, where it is part of the program. What is opened has it from there.
    set(inside -static-libasan)
    set(opened -fsanitize=undefined)
    if(PARACORD_SANITIZE STREQUAL "thread")
      set(inside -static-libtsan)
      set(opened)
    endif()
    add_link_options("$<${program}:-fsanitize=${PARACORD_SANITIZE};${inside};LINKER:--export-dynamic>"
      "$<$<NOT:${program}>:${opened}>")
  else()
    add_link_options(-fsanitize=${PARACORD_SANITIZE})
  endif()
  add_link_options($<${program}:-no-pie> ${PARACORD_QUICK_LINKER})
endif()

# Kernels in src/cpu/level are compiled once per SIMD level of the architecture, each into names of its own
# (PC__LEVEL is pasted to them); src/cpu/level.c chooses one when the program runs.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(PARACORD_LEVELS base v3 v4)
  set(PARACORD_LEVEL_FLAGS_base -march=x86-64)
  set(PARACORD_LEVEL_FLAGS_v3 -march=x86-64-v3)
  set(PARACORD_LEVEL_FLAGS_v4 -march=x86-64-v4 -mprefer-vector-width=512)
else()
  set(PARACORD_LEVELS base)
endif()

# Counts of the Mandelbrot set are the same everywhere: sums and products rounded one by one.
set_source_files_properties(src/cpu/level/mandelbrot.c cli/mandelbrot.c PROPERTIES COMPILE_OPTIONS -ffp-contract=off)

# Sanitizers run where they are built: without the levels that this machine lacks, and for threads with the widest, as no level
# shares work in a way of its own. The next one is for tests that are not about kernels (tests/sanitizers/kernels.c): without checks.
if(PARACORD_SANITIZE AND "v4" IN_LIST PARACORD_LEVELS)
  include(CheckCSourceRuns)
  foreach(level v4 v3)
    set(needs avx2 fma bmi2)
    if(level STREQUAL "v4")
      set(needs avx512f avx512bw avx512vl avx512dq avx512cd)
    endif()
    list(TRANSFORM needs REPLACE "(.+)" "__builtin_cpu_supports(\"\\1\")")
    list(JOIN needs " && " needs)
    check_c_source_runs("int main(void) { return !(${needs}); }" PARACORD_RUNS_${level})
    if(NOT PARACORD_RUNS_${level})
      list(REMOVE_ITEM PARACORD_LEVELS ${level})
    endif()
  endforeach()
  if(PARACORD_SANITIZE STREQUAL "thread")
    list(LENGTH PARACORD_LEVELS count)
    if(count GREATER 1)
      math(EXPR first "${count} - 2")
      list(SUBLIST PARACORD_LEVELS ${first} 2 PARACORD_LEVELS)
      list(GET PARACORD_LEVELS 0 PARACORD_UNCHECKED_LEVEL)
    endif()
  endif()
  foreach(level base v3 v4)
    if(NOT level IN_LIST PARACORD_LEVELS)
      list(APPEND PARACORD_LEVEL_DEFINITIONS PC__NO_LEVEL_${level})
    endif()
  endforeach()
endif()

# Below the widest level, tests call by name the kernels of these files and what those call (tests/cpu); others run nowhere with the
# address sanitizer. They are compiled without its checks there, and to end a test that comes by (tests/support/unchecked.c).
set(PARACORD_NARROW_CHECKED "^(activate|conv|depthwise_turned|each|gather|gemm|halves|micro|pairs|planar|pool|turn)")
function(paracord_unchecked) # sources
  list(GET PARACORD_LEVELS -1 widest)
  foreach(source ${ARGN})
    get_filename_component(name ${source} NAME)
    if(NOT name MATCHES "${PARACORD_NARROW_CHECKED}")
      foreach(option -O0 -fno-sanitize=all -finstrument-functions)
        set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS
          $<$<NOT:$<STREQUAL:$<TARGET_PROPERTY:NAME>,paracord_cpu_${widest}>>:${option}>)
      endforeach()
    endif()
  endforeach()
endfunction()

macro(paracord_levels owner)
  set(PARACORD_LEVEL_OBJECTS)
  foreach(level ${PARACORD_LEVELS})
    if(NOT "${ARGN}" STREQUAL "")
      add_library(paracord_cpu_${level} OBJECT ${ARGN})
      paracord_flags(paracord_cpu_${level})
      set(speed -O3)
      if(level STREQUAL "base" AND NOT PARACORD_LEVELS STREQUAL "base") # for processors of before 2013: small
        set(speed -O2)
      endif()
      if(PARACORD_SANITIZE) # checks in vectorised loops take minutes to compile
        set(speed -O1)
      elseif(PARACORD_DRAFT)
        set(speed -O0)
      endif()
      if(level STREQUAL "v4" AND PARACORD_SANITIZE MATCHES address AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
        # Stacks that the sanitizer keeps after return lie on 32 bytes, and vectors of 64 crash there (GCC's bug 110027).
        target_compile_options(paracord_cpu_${level} PRIVATE --param=asan-use-after-return=0)
      endif()
      if(level STREQUAL "${PARACORD_UNCHECKED_LEVEL}")
        target_compile_options(paracord_cpu_${level} PRIVATE -fno-sanitize=all)
      endif()
      # Nothing is thrown through kernels: the only functions of a user's that they call are an allocator's. Tables to unwind
      # them, a twentieth of the library, are for debuggers, which -g writes them for.
      target_compile_options(paracord_cpu_${level} PRIVATE -fno-asynchronous-unwind-tables -fno-unwind-tables)
      target_compile_definitions(paracord_cpu_${level} PRIVATE PC__LEVEL=${level} PC__LEVEL_${level})
      target_compile_options(paracord_cpu_${level} PRIVATE ${PARACORD_LEVEL_FLAGS_${level}} ${speed} -ffp-contract=fast
        -fno-signed-zeros)
      list(APPEND PARACORD_LEVEL_OBJECTS $<TARGET_OBJECTS:paracord_cpu_${level}>)
    endif()
  endforeach()
endmacro()
