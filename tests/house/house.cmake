# Tests of the libraries as they are shipped: their symbols, sizes, headers, and the installed tree from outside.
find_program(PARACORD_CXX NAMES ${CMAKE_CXX_COMPILER} g++ c++ clang++)

function(house_test name)
  add_test(NAME house.${name} COMMAND sh ${ARGN})
  set_tests_properties(house.${name} PROPERTIES TIMEOUT 300 LABELS house SKIP_RETURN_CODE 77)
endfunction()

set(house ${CMAKE_CURRENT_SOURCE_DIR}/house)
set(level_files ${PARACORD_LEVEL_FILES})
list(TRANSFORM level_files REPLACE "(.+)" "$<TARGET_FILE:\\1>")
house_test(exports ${house}/exports $<TARGET_FILE:paracord> $<TARGET_FILE:paracord_tools> ${PROJECT_SOURCE_DIR}/include
  ${level_files})
house_test(size ${house}/size $<TARGET_FILE:paracord> 2600000)
if(PARACORD_LEVEL_FILES)
  house_test(size.v3 ${house}/size $<TARGET_FILE:paracord_cpu_file_v3> 1160000)
  house_test(size.v4 ${house}/size $<TARGET_FILE:paracord_cpu_file_v4> 1505000)
  house_test(levels ${house}/levels $<TARGET_FILE_DIR:paracord> ${CMAKE_INSTALL_FULL_LIBDIR}
    ${PROJECT_SOURCE_DIR}/include ${CMAKE_C_COMPILER} ${PARACORD_LEVELS})
endif()
house_test(size.tools ${house}/size $<TARGET_FILE:paracord_tools> 560000)
house_test(headers.c ${house}/headers ${PROJECT_SOURCE_DIR}/include ${CMAKE_C_COMPILER} -x c -std=c11 -pedantic)
house_test(headers.cxx ${house}/headers ${PROJECT_SOURCE_DIR}/include ${PARACORD_CXX} -x c++ -std=c++20)
foreach(compiler gcc clang)
  house_test(blocks.${compiler}.c ${house}/blocks ${PROJECT_SOURCE_DIR}/include $<TARGET_FILE:paracord>
    ${CMAKE_CURRENT_BINARY_DIR} ${compiler} -x c -std=c11)
endforeach()
foreach(compiler g++ clang++)
  house_test(blocks.${compiler}.cxx ${house}/blocks ${PROJECT_SOURCE_DIR}/include $<TARGET_FILE:paracord>
    ${CMAKE_CURRENT_BINARY_DIR} ${compiler} -x c++ -std=c++20)
endforeach()
house_test(pages ${house}/pages $<TARGET_FILE:paracord_cli> ${PROJECT_SOURCE_DIR})
house_test(lessons ${house}/lessons ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR})
house_test(cloud ${house}/shown ${PROJECT_SOURCE_DIR} $<TARGET_FILE:paracord_cli> docs/cloud.md)
house_test(readme ${house}/shown ${PROJECT_SOURCE_DIR} $<TARGET_FILE:paracord_cli> README.md)
house_test(setup ${house}/setup ${PROJECT_SOURCE_DIR} $<TARGET_FILE:paracord_cli>)
house_test(buying ${house}/buying ${PROJECT_SOURCE_DIR})
house_test(ops ${house}/ops ${PROJECT_SOURCE_DIR})
house_test(twins ${house}/twins ${PROJECT_SOURCE_DIR})
house_test(names ${house}/names ${PROJECT_SOURCE_DIR} $<TARGET_FILE:paracord_cli>)
house_test(code ${house}/code ${PROJECT_SOURCE_DIR} $<TARGET_FILE:paracord> $<TARGET_FILE:paracord_cli> ${CMAKE_C_COMPILER})
house_test(programs ${house}/programs ${PROJECT_SOURCE_DIR} $<TARGET_FILE:paracord_cli>)
house_test(installed ${CMAKE_CURRENT_SOURCE_DIR}/installed/check ${CMAKE_COMMAND} ${PROJECT_BINARY_DIR}
  ${CMAKE_INSTALL_LIBDIR} ${CMAKE_C_COMPILER} ${PARACORD_CXX})
