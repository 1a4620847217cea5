/* Finding and opening the CUDA plug-in, and the words when there is none that fits. A process asks once, so each case
 * is a child. */
#include "support.h"

#include <paracord/device.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct answer {
    int count;
    char why[512], list[256], name[PC_DEVICE_NAME_MAX];
} answer;

static answer ask_now(void)
{
    answer a = {0};
    pc_device device;
    a.count = pc_device_count(PC_CUDA, a.why, sizeof a.why);
    pc_device_list(a.list, sizeof a.list);
    if (pc_device_parse("auto", &device) == PC_OK)
        pc_device_name(device, a.name);
    return a;
}

/* In a child: PARACORD_PLUGIN_PATH (NULL: not set) and how the fake one answers. */
static answer ask(const char *path, const char *kind)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (path)
            setenv("PARACORD_PLUGIN_PATH", path, 1);
        else
            unsetenv("PARACORD_PLUGIN_PATH");
        setenv("FAKE_PLUGIN", kind, 1);
        answer a = ask_now();
        _exit(write(ends[1], &a, sizeof a) == sizeof a ? 0 : 1);
    }
    close(ends[1]);
    answer a = {.count = -1};
    assert_int_equal(read(ends[0], &a, sizeof a), sizeof a);
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return a;
}

static void none(answer a, const char *words)
{
    assert_int_equal(a.count, 0);
    if (!strstr(a.why, words))
        fail_msg("want \"%s\", got \"%s\"", words, a.why);
    assert_null(strstr(a.list, "cuda"));
    assert_string_equal(a.name, "cpu");
}

#define FAKE PC_TEST_PLUGINS "/libparacord-cuda.so"

static void one_that_fits_gives_devices(void **state)
{
    (void)state;
    const char *const paths[] = {FAKE, PC_TEST_PLUGINS};
    for (int i = 0; i < 2; i++) {
        answer a = ask(paths[i], "two");
        assert_int_equal(a.count, 2);
        assert_string_equal(a.why, "");
        assert_non_null(strstr(a.list, "cuda:0, cuda:1"));
        assert_string_equal(a.name, "cuda:0");
    }
}

static void one_that_does_not_says_why(void **state)
{
    (void)state;
    none(ask(FAKE, "old"), "libparacord-cuda.so: it was built for interface 1, this library has ");
    none(ask(FAKE, "ops"), "it was built with other ops than this library");
    none(ask(FAKE, "refuses"), "it belongs to Paracord 0.0.7, this library is " PC_VERSION);
    none(ask(FAKE, "other"), "another kind of device");
    none(ask(FAKE, "silent"), "no reason");
    none(ask(FAKE, "zero"), "no GPU is visible (CUDA_VISIBLE_DEVICES=)");
}

static void what_is_no_plugin_is_named(void **state)
{
    (void)state;
    none(ask(PC_TEST_PLUGINS "/libstranger.so", ""), "libstranger.so is no plug-in of Paracord");
    none(ask("/nowhere", ""), "PARACORD_PLUGIN_PATH=/nowhere: there is no such file or folder");
    none(ask("/proc/self", ""), "PARACORD_PLUGIN_PATH=/proc/self: there is no libparacord-cuda.so");
    none(ask("/proc/self/status", ""), "/proc/self/status cannot be opened: ");
}

/* What a broken installation or a full disk leaves: a file that is empty, cut off in its head, or no file at all. */
static void what_is_broken_is_named(void **state)
{
    (void)state;
    char folder[] = "/tmp/paracord-plugin-XXXXXX", path[64], head[64] = "\177ELF\2\1\1";
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/libparacord-cuda.so", folder);
    for (size_t n = 0; n <= sizeof head; n += sizeof head / 2) {
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(head, 1, n, file), n);
        assert_int_equal(fclose(file), 0);
        none(ask(folder, ""), "libparacord-cuda.so cannot be opened: ");
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0777), 0);
    none(ask(folder, ""), "libparacord-cuda.so cannot be opened: ");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink("/nowhere/it", path), 0); /* a link to a folder that was moved */
    none(ask(folder, ""), "there is no libparacord-cuda.so");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* Whatever this build and machine have, there are devices or a reason. */
static void without_a_path_it_searches(void **state)
{
    (void)state;
    answer a = ask(NULL, "");
    print_message("cuda: %d, %s\n", a.count, a.why);
    assert_true(a.count > 0 || strlen(a.why) > 10);
    assert_non_null(strstr(a.list, "cpu"));
#ifdef PC_TEST_CUDA /* it was built beside the library */
    assert_null(strstr(a.why, "this build has none"));
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_fits_gives_devices), cmocka_unit_test(one_that_does_not_says_why),
        cmocka_unit_test(what_is_no_plugin_is_named),  cmocka_unit_test(what_is_broken_is_named),
        cmocka_unit_test(without_a_path_it_searches),
    };
    return cmocka_run_group_tests_name("device.plugin", tests, NULL, NULL);
}
