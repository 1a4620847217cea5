/* The static library, which is linked to this test, has all levels inside: it takes none from a file, though there may
 * be some beside the program and where PARACORD_PLUGIN_PATH says. */
#include "cpu/levels.h"

#include <paracord/device.h>

static const char *widest(void)
{
    const char *level = NULL;
    for (int i = 0; i < PC__COUNT(all_kernels); i++)
        level = level_runs(all_kernels[i].level) ? all_kernels[i].level : level;
    return level ? level : all_kernels[0].level; /* sanitizers leave narrower ones out */
}

static void all_levels_are_inside(void **state)
{
    (void)state;
    char why[64] = "unset", folder[4096], line[4096];
    snprintf(folder, sizeof folder, "%s", PC_TEST_COMMAND);
    *(strrchr(folder, '/') + 1) = 0; /* with the files of the shared library */
    setenv("PARACORD_PLUGIN_PATH", folder, 1);
    unsetenv("PARACORD_SIMD");
    assert_string_equal(pc_cpu_level(), widest());
    assert_string_equal(pc_cpu_level_why(why, sizeof why), "");
    assert_ptr_equal(pc_cpu_level_why(why, 0), why);
    assert_fails(pc_cpu_level_why(NULL, 0), PC_ERR_ARGUMENT, "why is NULL");
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        assert_null(strstr(line, "libparacord"));
    assert_int_equal(fclose(maps), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_levels_are_inside)};
    return cmocka_run_group_tests_name("cpu.level", tests, NULL, NULL);
}
