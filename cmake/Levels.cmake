# Where the SIMD levels go that paracord_levels() has compiled. The static library has them all inside. So has the
# shared one, but on x86-64, where v3 and v4 are more than half of it and a machine uses one: there these are
# libparacord-cpu-v3.so and libparacord-cpu-v4.so, which lie beside it and call its functions. Sanitizers have programs
# of one piece.
set(PARACORD_LEVEL_FILES) # their targets

macro(paracord_level_files)
  set(apart ${PARACORD_LEVELS})
  list(REMOVE_ITEM apart base)
  if(PARACORD_SANITIZE OR PARACORD_FUZZ)
    set(apart)
  endif()
  add_library(paracord_levels_inside OBJECT src/cpu/place/inside.c)
  paracord_target(paracord_levels_inside)
  set(inside $<TARGET_OBJECTS:paracord_levels_inside> ${PARACORD_LEVEL_OBJECTS})
  target_sources(paracord_static PRIVATE ${inside})
  if(apart)
    add_library(paracord_levels_beside OBJECT src/cpu/place/beside.c)
    paracord_target(paracord_levels_beside)
    paracord_level_build()
    set(inside $<TARGET_OBJECTS:paracord_levels_beside> $<TARGET_OBJECTS:paracord_level_build>
      $<TARGET_OBJECTS:paracord_cpu_base>)
  endif()
  target_sources(paracord PRIVATE ${inside})
  foreach(level ${apart})
    paracord_level_file(${level})
    list(APPEND PARACORD_LEVEL_FILES paracord_cpu_file_${level})
  endforeach()
endmacro()

# What a level and the library have in common: the headers of its floor and of those below, and its own sources.
function(paracord_level_build)
  file(GLOB common CONFIGURE_DEPENDS include/paracord/*.h src/base/*.h src/device/*.h src/tensor/*.h src/ops/*.h
    src/ops/*.def src/cpu/*.h src/cpu/place/*.h src/cpu/level/*)
  set(made ${PROJECT_BINARY_DIR}/level_build.c)
  add_custom_command(OUTPUT ${made} DEPENDS ${common} ${PROJECT_SOURCE_DIR}/cmake/build_hash.cmake VERBATIM
    COMMAND ${CMAKE_COMMAND} "-DIN=${common}" -DOUT=${made} -DNAME=pc__level_build
      -P ${PROJECT_SOURCE_DIR}/cmake/build_hash.cmake)
  add_library(paracord_level_build OBJECT ${made})
  paracord_target(paracord_level_build)
endfunction()

function(paracord_level_file level)
  set(target paracord_cpu_file_${level})
  set(map ${PROJECT_SOURCE_DIR}/cmake/level.map)
  add_library(${target} MODULE src/cpu/place/file.c $<TARGET_OBJECTS:paracord_level_build>
    $<TARGET_OBJECTS:paracord_cpu_${level}>)
  paracord_target(${target})
  target_compile_definitions(${target} PRIVATE PC__LEVEL=${level} PC__LEVEL_${level})
  target_link_libraries(${target} PRIVATE paracord m)
  target_link_options(${target} PRIVATE LINKER:--version-script=${map} LINKER:-z,defs)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME paracord-cpu-${level} PREFIX lib LINK_DEPENDS ${map}
    INSTALL_RPATH "$ORIGIN")
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()
