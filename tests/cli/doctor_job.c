/* paracord doctor job from outside: jobs that run, hang, and are not there. */
#include <strings.h>

#include "../ras/server.h"
#include "shell.h"

static char output[OUTPUT_MAX];

static void assert_job(server_kind kind, const char *const *answers, const char *options, int status, const char *words)
{
    server s;
    char line[256];
    server_start(&s, kind, answers);
    snprintf(line, sizeof line, "\"$P\" doctor job %s %s 2>&1", s.address, options);
    const int got = shell(output, line);
    server_end(&s);
    if (got != status || !strstr(output, words))
        fail_msg("%s: exit status %d, want %d; want \"%s\" in\n%s", line, got, status, words, output);
}

static void jobs_that_run(void **state)
{
    (void)state;
    NEED_BINARY();
    const char *const fine[] = {ras_fine, NULL}, *const moving[] = {RAS_BEHIND("6649", "6650"),
                                                                    RAS_BEHIND("6650", "6651"), NULL};
    assert_job(SPEAKS, fine, "", 0, "All ranks answer, and are as far as each other.");
    assert_non_null(
        strstr(output, "4 nodes, 32 processes, 32 GPUs (NCCL 2.28.7)\n  8 communicators of 4 ranks: RUNNING, OK"));
    assert_job(SPEAKS, moving, "--again 0.05", 0, "the job runs");
}

static void jobs_that_hang(void **state)
{
    (void)state;
    NEED_BINARY();
    const char *const stuck[] = {RAS_BEHIND("6649", "6650"), NULL}, *const missing[] = {ras_missing, NULL};
    assert_job(SPEAKS, stuck, "--again 0.05", 1, "The counts stood still");
    assert_non_null(strstr(output,
                           "  rank 7          behind   6649 of 6650 calls of AllReduce, GPU 7, process 483079 on "
                           "172.16.64.210, #0-0 (27a079b828ff1a75)\n"));
    assert_non_null(strstr(output, "ssh 172.16.64.210 sudo gdb -p 483077"));
    assert_job(SPEAKS, stuck, "--again 0 --json", 1, "\"moved\": null");
    assert_job(SPEAKS, missing, "", 1, "  process 3487984 missing  GPU 5 on 172.16.64.213\n");
    assert_job(SPEAKS, missing, "--json", 1, "{\"state\": \"missing\", \"rank\": 21, \"process\": null, ");
    assert_job(SPEAKS, missing, "--text", 1, "Encountered 2 communication timeouts");
    assert_job(HALF_THEN_SILENT, missing, "--timeout 1", 1, "The answer broke off before its end");
}

static void no_job(void **state)
{
    (void)state;
    NEED_BINARY();
    const char *const fine[] = {ras_fine, NULL};
    assert_job(GARBAGE, fine, "", 1, "is no job of NCCL's");
    assert_job(GARBAGE_LATER, fine, "", 1, "is not understood");
    assert_int_equal(shell(output, "\"$P\" doctor job 127.0.0.1:1 2>&1"), 1);
    assert_non_null(strstr(output, "nobody listens on 127.0.0.1:1"));
    assert_ptr_equal(strchr(output, '\n') + 1, output + strlen(output)); /* one line */
    assert_int_equal(shell(output, "\"$P\" doctor job a b 2>&1"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_that_run),
        cmocka_unit_test(jobs_that_hang),
        cmocka_unit_test(no_job),
    };
    return cmocka_run_group_tests_name("cli.doctor_job", tests, NULL, NULL);
}
