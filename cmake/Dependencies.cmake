# Libraries that switch parts of Paracord on. A missing one switches its part off; `paracord doctor` and the
# configure summary name it. None is needed for the core.

find_package(Threads REQUIRED)
find_package(PkgConfig)
set(PARACORD_LIBRARIES m Threads::Threads)
set(PARACORD_DEFINITIONS)
set(PARACORD_INCLUDES)

# paracord_part(NAME pkg-config-module what-it-is-for): PARACORD_WITH_NAME, PC_HAVE_NAME
function(paracord_part name module purpose)
  option(PARACORD_WITH_${name} "${purpose}" ON)
  set(state "off (asked)")
  if(PARACORD_WITH_${name})
    pkg_check_modules(PC_${name} QUIET IMPORTED_TARGET ${module})
    if(PC_${name}_FOUND)
      set(state "${PC_${name}_VERSION}")
      set(PARACORD_LIBRARIES ${PARACORD_LIBRARIES} ${PC_${name}_LINK_LIBRARIES} PARENT_SCOPE)
      set(PARACORD_DEFINITIONS ${PARACORD_DEFINITIONS} PC_HAVE_${name}=1 PARENT_SCOPE)
      set(PARACORD_INCLUDES ${PARACORD_INCLUDES} ${PC_${name}_INCLUDE_DIRS} PARENT_SCOPE)
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

if(PARACORD_OPENMP AND NOT PARACORD_SANITIZE MATCHES "thread")
  find_package(OpenMP COMPONENTS C)
  if(OpenMP_C_FOUND)
    list(APPEND PARACORD_LIBRARIES OpenMP::OpenMP_C)
    add_compile_options($<$<COMPILE_LANGUAGE:C>:${OpenMP_C_FLAGS}>)
  endif()
endif()
