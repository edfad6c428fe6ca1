# Writes to FILE a test for each suite of PROGRAM, PREFIX before its name: programs that start slowly start once a suite.
# A suite of which something was skipped, and nothing failed, counts as skipped.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE list RESULT_VARIABLE status TIMEOUT 60)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} --gtest_list_tests failed: ${status}")
endif()
string(REGEX MATCHALL "\n[A-Za-z0-9_/]+\\." suites "\n${list}")
set(tests "")
foreach(suite IN LISTS suites)
  string(REGEX REPLACE "^\n(.*)\\.$" "\\1" suite "${suite}")
  set(name "[==[${PREFIX}${suite}]==]")
  string(APPEND tests "add_test(${name} [==[${PROGRAM}]==] [==[--gtest_filter=${suite}.*]==])\n"
    "set_tests_properties(${name} PROPERTIES TIMEOUT 600 ENVIRONMENT OMP_WAIT_POLICY=passive\n"
    "  SKIP_REGULAR_EXPRESSION \"SKIPPED . [^\\n]+\\n$\")\n")
endforeach()
file(WRITE ${FILE} "${tests}")
