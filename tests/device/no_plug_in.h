/* no_plug_in.h: the main of a test that this build has nothing for: it is without the plug-in, or what that needs. */
#include "support.h"

static void nothing_to_test(void **state)
{
    (void)state;
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_to_test)};
    return cmocka_run_group_tests_name("device", tests, NULL, NULL);
}
