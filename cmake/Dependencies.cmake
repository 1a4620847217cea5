# Libraries that switch parts of Paracord on. A missing one switches its part off; the
# configure summary names it. None is needed for the core. They are linked as imported targets or plain names, never
# as paths, so that the installed static library finds them again where it is used.

find_package(Threads REQUIRED)
find_package(PkgConfig)
set(PARACORD_LIBRARIES m Threads::Threads)
set(PARACORD_DEFINITIONS)
set(PARACORD_INCLUDES)
set(PARACORD_PARTS)   # NAME of each part that is on
set(PARACORD_MODULES) # its pkg-config module

# paracord_part(NAME pkg-config-module what-it-is-for): PARACORD_WITH_NAME, PC_HAVE_NAME
function(paracord_part name module purpose)
  option(PARACORD_WITH_${name} "${purpose}" ON)
  set(state "off (asked)")
  if(PARACORD_WITH_${name})
    if(PKG_CONFIG_FOUND)
      pkg_check_modules(PARACORD_${name} QUIET IMPORTED_TARGET ${module})
    endif()
    if(PARACORD_${name}_FOUND)
      set(state "${PARACORD_${name}_VERSION}")
      set(PARACORD_LIBRARIES ${PARACORD_LIBRARIES} PkgConfig::PARACORD_${name} PARENT_SCOPE)
      set(PARACORD_DEFINITIONS ${PARACORD_DEFINITIONS} PC_HAVE_${name}=1 PARENT_SCOPE)
      set(PARACORD_INCLUDES ${PARACORD_INCLUDES} ${PARACORD_${name}_INCLUDE_DIRS} PARENT_SCOPE)
      set(PARACORD_PARTS ${PARACORD_PARTS} ${name} PARENT_SCOPE)
      set(PARACORD_MODULES ${PARACORD_MODULES} ${module} PARENT_SCOPE)
    else()
      set(state "off (${module} not found)")
    endif()
  endif()
  message(STATUS "${purpose}: ${state}")
endfunction()

paracord_part(JPEG libjpeg "JPEG pictures (libjpeg-turbo)")
paracord_part(PNG libpng "PNG pictures (libpng)")
paracord_part(HDF5 hdf5 "Keras files (HDF5)")
paracord_part(CJSON libcjson "JSON in Keras files (cJSON)")

# libdw is opened when a report needs it, and never linked: only its header has to be there.
include(CheckIncludeFile)
set(PARACORD_DW_PURPOSE "Lines of call sites (libdw)")
option(PARACORD_WITH_DW "${PARACORD_DW_PURPOSE}" ON)
set(state "off (asked)")
if(PARACORD_WITH_DW)
  check_include_file(elfutils/libdwfl.h PARACORD_DW_FOUND)
  set(state "off (elfutils/libdwfl.h not found)")
  if(PARACORD_DW_FOUND)
    list(APPEND PARACORD_DEFINITIONS PC_HAVE_DW=1)
    if(PARACORD_SANITIZE) # they know little of the thread-local memory of what is opened later
      list(APPEND PARACORD_LIBRARIES -Wl,--no-as-needed,-ldw,--as-needed)
    endif()
    set(state "on")
  endif()
endif()
message(STATUS "${PARACORD_DW_PURPOSE}: ${state}")

# ncurses is opened when the live view needs it, and never linked: only its header has to be there.
set(PARACORD_NCURSES_PURPOSE "Live view of devices (ncurses)")
option(PARACORD_WITH_NCURSES "${PARACORD_NCURSES_PURPOSE}" ON)
set(state "off (asked)")
if(PARACORD_WITH_NCURSES)
  check_include_file(ncurses.h PARACORD_NCURSES_FOUND)
  set(state "off (ncurses.h not found)")
  if(PARACORD_NCURSES_FOUND)
    set_source_files_properties(cli/screen.c PROPERTIES COMPILE_DEFINITIONS PC_HAVE_NCURSES=1)
    set(state "on")
  endif()
endif()
message(STATUS "${PARACORD_NCURSES_PURPOSE}: ${state}")
