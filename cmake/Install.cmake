# What `cmake --install` lays down: the command, the libraries both ways, headers, and how other builds find them
# (find_package, pkg-config). Component `tests` adds the tests and benchmarks; it is left out unless asked for.

include(CMakePackageConfigHelpers)
file(RELATIVE_PATH to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/paracord)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set_target_properties(paracord_tools PROPERTIES INSTALL_RPATH "$ORIGIN") # it stands beside libparacord
foreach(kind "" _static)
  install(TARGETS paracord${kind} paracord_tools${kind} EXPORT paracord${kind}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT paracord${kind} NAMESPACE paracord:: DESTINATION ${config_dir} FILE paracord${kind}.cmake)
endforeach()
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

configure_package_config_file(cmake/paracordConfig.cmake.in paracordConfig.cmake INSTALL_DESTINATION ${config_dir}
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(paracordConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/paracordConfig.cmake ${PROJECT_BINARY_DIR}/paracordConfigVersion.cmake
  DESTINATION ${config_dir})

# The pkg-config files find their tree from where they lie, so that it can be moved.
file(RELATIVE_PATH pc_prefix /${pkgconfig_dir} /)
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
set(pc_system m pthread ${CMAKE_DL_LIBS})
list(REMOVE_DUPLICATES pc_system)
list(TRANSFORM pc_system PREPEND "-l")
set(pc_private)
foreach(part ${PARACORD_PARTS})
  list(APPEND pc_private ${PARACORD_${part}_LDFLAGS})
endforeach()
foreach(list PARACORD_MODULES pc_system pc_private)
  list(JOIN ${list} " " ${list}_text)
endforeach()
foreach(file paracord paracord-static paracord-tools paracord-tools-static)
  configure_file(cmake/${file}.pc.in ${file}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${file}.pc DESTINATION ${pkgconfig_dir})
endforeach()

if(TARGET paracord_cli)
  set_target_properties(paracord_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${to_lib}")
  install(TARGETS paracord_cli)
  if(NOT CMAKE_CROSSCOMPILING AND NOT PARACORD_SANITIZE) # the command writes its own manual and completions
    set(share ${PROJECT_BINARY_DIR}/share)
    add_custom_command(OUTPUT ${share}/man/man1/paracord.1
      COMMAND ${PROJECT_SOURCE_DIR}/tools/manual $<TARGET_FILE:paracord_cli> ${share}
      DEPENDS paracord_cli ${PROJECT_SOURCE_DIR}/tools/manual VERBATIM)
    add_custom_target(paracord_manual ALL DEPENDS ${share}/man/man1/paracord.1)
    install(DIRECTORY ${share}/ DESTINATION ${CMAKE_INSTALL_DATADIR})
  endif()
endif()
