/* paracord bench collective: sums and orders of what arrives, by every op, and the same between processes. */
#include "shell.h"

static char output[OUTPUT_MAX];

static void prints(const char *line, int status, const char *words)
{
    const int got = shell(output, line);
    if (got != status || !strstr(output, words))
        fail_msg("%s: status %d, not %d, or no \"%s\" in:\n%s", line, got, status, words, output);
}

static void every_op_is_right(void **state)
{
    (void)state;
    static const char *const ops[] = {"all-reduce", "all-gather", "reduce-scatter", "broadcast", "all-to-all"};
    NEED_BINARY();
    setenv("PARACORD_SIM", "3", 1);
    for (int i = 0; i < 5; i++) {
        char line[256], words[64];
        snprintf(line, sizeof line,
                 "$P bench collective --op %s --devices sim:0,sim:1,sim:2 --least 4K --most 64K 2>&1", ops[i]);
        snprintf(words, sizeof words, "%s of float32 between 3 ranks", ops[i]);
        prints(line, 0, words);
        assert_non_null(strstr(output, "65,536"));
    }
    prints("$P bench collective --devices cpu,cpu --most 4K --json 2>&1", 0,
           "\"graph_us\": null, \"bus_bytes_per_second\"");
    assert_non_null(strstr(output, "\"wrong\": 0"));
}

static void devices_that_cannot_be(void **state)
{
    (void)state;
    NEED_BINARY();
    setenv("PARACORD_SIM", "2", 1);
    prints("$P bench collective --device cpu 2>&1", 1, "one rank has nobody to talk to");
    prints("$P bench collective --devices sim:0,sim:0 2>&1", 2, "--devices: sim:0 is there twice");
    prints("$P bench collective --devices sim:0,sim:7 2>&1", 2, "there is no device sim:7");
    prints("$P bench collective --devices , 2>&1", 2, "--devices:");
    prints("$P bench collective --op sum --devices cpu,cpu 2>&1", 2, "all-reduce");
}

static void sizes_that_cannot_be(void **state)
{
    (void)state;
    NEED_BINARY();
    prints("$P bench collective --devices cpu,cpu --least auto 2>&1", 2, "--least auto: must be bytes, 4K to 1T");
    prints("$P bench collective --devices cpu,cpu --least 0 --most 4 2>&1", 2, "--least 0: must be bytes, 4K to 1T");
    prints("$P bench collective --devices cpu,cpu --least 1G --most 4K 2>&1", 2,
           "--least is 1073741824 bytes, more than --most, 4096; ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_op_is_right), cmocka_unit_test(devices_that_cannot_be),
                                       cmocka_unit_test(sizes_that_cannot_be)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
