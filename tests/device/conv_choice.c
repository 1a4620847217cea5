/* Who does a convolution: the rule, the names of shapes, the file of what was measured, and the thread's setting. */
#include "support.h"

#include "cuda/conv_choice.h"
#include "failing.h"

#include <fcntl.h>
#include <paracord/device.h>
#include <paracord/tensor.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64], path[PATH_MAX];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/paracord-conv-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/convolutions", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static pc__conv_shape plain(int direction, pc_dtype dtype, bool tf32, int n, int side, int c, int o, int kernel)
{
    pc__conv_shape s;
    memset(&s, 0, sizeof s);
    s.n = n, s.h = s.w = s.oh = s.ow = side, s.c = c, s.o = o, s.kh = s.kw = kernel, s.sh = s.sw = 1;
    s.ph = s.pw = kernel / 2, s.direction = direction, s.dtype = dtype, s.tf32 = tf32;
    return s;
}

static void write_file(const char *bytes, size_t n)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

/* --- the rule --- */

static bool rule(int direction, pc_dtype dtype, bool tf32, int n, int side, int c, int o, int kernel)
{
    const pc__conv_shape s = plain(direction, dtype, tf32, n, side, c, o, kernel);
    return pc__conv_rule(&s);
}

static void the_rule_follows_what_was_measured(void **state)
{
    (void)state;
    for (int direction = 0; direction < PC__CONV_DIRECTIONS; direction++) {
        for (pc_dtype dtype = PC_F16; dtype <= PC_BF16; dtype++) {
            assert_true(rule(direction, dtype, false, 32, 56, 128, 128, 3));
            assert_true(rule(direction, dtype, false, 32, 56, 64, 256, 1));
            assert_false(rule(direction, dtype, false, 1, 4, 128, 128, 3)); /* little work */
            assert_false(rule(direction, dtype, false, 512, 62, 3, 32, 3)); /* first layers */
            assert_false(rule(direction, dtype, false, 512, 31, 32, 64, 3));
            assert_false(rule(direction, dtype, false, 512, 31, 68, 64, 3)); /* not in eights */
        }
        assert_true(rule(direction, PC_F32, true, 32, 56, 128, 128, 3));
        assert_false(rule(direction, PC_F32, false, 32, 56, 128, 128, 3));
        assert_false(rule(direction, PC_F64, false, 32, 56, 128, 128, 3));
    }
}

/* Every member makes another name, so that no measurement is taken for another's. */
static void names_tell_shapes_apart(void **state)
{
    (void)state;
    static char texts[32][PC__CONV_TEXT];
    int count = 0;
    const pc__conv_shape s = plain(PC__CONV_INPUT, PC_F32, false, 32, 56, 128, 64, 3);
    pc__conv_text(texts[count++], "NVIDIA H200", 132, 91900, &s);
    assert_string_equal(texts[0], "NVIDIA H200/132 cudnn 91900 input float32 x 32 128 56 56 w 64 3 3 stride 1 1 "
                                  "padding 1 1");
    pc__conv_text(texts[count++], "NVIDIA H100", 132, 91900, &s);
    pc__conv_text(texts[count++], "NVIDIA H200", 131, 91900, &s);
    pc__conv_text(texts[count++], "NVIDIA H200", 132, 91901, &s);
    pc__conv_shape other = s;
    other.n = 33;
    pc__conv_text(texts[count++], "NVIDIA H200", 132, 91900, &other);
    int32_t pc__conv_shape_members[] = {
        offsetof(pc__conv_shape, h),   offsetof(pc__conv_shape, w),    offsetof(pc__conv_shape, c),
        offsetof(pc__conv_shape, o),   offsetof(pc__conv_shape, kh),   offsetof(pc__conv_shape, kw),
        offsetof(pc__conv_shape, sh),  offsetof(pc__conv_shape, sw),   offsetof(pc__conv_shape, ph),
        offsetof(pc__conv_shape, pw),  offsetof(pc__conv_shape, tf32), offsetof(pc__conv_shape, relu),
        offsetof(pc__conv_shape, bias)};
    for (size_t i = 0; i < sizeof pc__conv_shape_members / sizeof *pc__conv_shape_members; i++) {
        other = s;
        ++*(int32_t *)(void *)((char *)&other + pc__conv_shape_members[i]);
        pc__conv_text(texts[count++], "NVIDIA H200", 132, 91900, &other);
    }
    for (int direction = PC__CONV_FORWARD; direction <= PC__CONV_WEIGHTS; direction += 2) {
        other = s, other.direction = direction;
        pc__conv_text(texts[count++], "NVIDIA H200", 132, 91900, &other);
    }
    for (pc_dtype dtype = PC_F16; dtype <= PC_BF16; dtype++) {
        other = s, other.dtype = dtype;
        pc__conv_text(texts[count++], "NVIDIA H200", 132, 91900, &other);
    }
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(texts[i], texts[k]);
}

/* The longest name fits, and no name makes two lines of one. */
static void any_name_is_one_row(void **state)
{
    (void)state;
    char gpu[256], text[PC__CONV_TEXT];
    memset(gpu, 'G', sizeof gpu - 1);
    gpu[sizeof gpu - 1] = 0;
    memcpy(gpu, "a\nb=\t", 5);
    pc__conv_shape s;
    memset(&s, 0x7f, sizeof s);
    s.direction = PC__CONV_WEIGHTS, s.dtype = PC_BF16, s.bias = s.relu = s.tf32 = 1;
    pc__conv_text(text, gpu, INT_MAX, SIZE_MAX, &s);
    assert_true(strlen(text) < PC__CONV_TEXT - 1);
    assert_non_null(strstr(text, " bias relu"));
    assert_null(strpbrk(text, "\n=\t"));
    pc__conv_note(path, text, 4);
    assert_int_equal(pc__conv_recall(path, text), 4);
}

/* --- the file --- */

static void what_is_noted_is_recalled(void **state)
{
    (void)state;
    assert_int_equal(pc__conv_recall(path, "a"), -1); /* no file */
    pc__conv_note(path, "a", 0);
    pc__conv_note(path, "b", PC__CONV_WAYS);
    pc__conv_note(path, "a b", 2);
    assert_int_equal(pc__conv_recall(path, "a"), 0);
    assert_int_equal(pc__conv_recall(path, "b"), PC__CONV_WAYS);
    assert_int_equal(pc__conv_recall(path, "a b"), 2);
    assert_int_equal(pc__conv_recall(path, "a "), -1);
    assert_int_equal(pc__conv_recall(path, ""), -1);
    pc__conv_note(path, "a", 3); /* the first stays */
    assert_int_equal(pc__conv_recall(path, "a"), 0);
}

static void folders_are_made(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/x/y/convolutions", folder);
    pc__conv_note(path, "a", 1);
    assert_int_equal(pc__conv_recall(path, "a"), 1);
}

static void broken_rows_are_measured_anew(void **state)
{
    (void)state;
    char good[256];
    pc__conv_note(path, "shape", 3);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    const size_t n = fread(good, 1, sizeof good, file);
    fclose(file);
    assert_true(n > 10);
    for (size_t i = 0; i < n; i++) /* every byte changed, every end */
        for (int bit = 0; bit < 8; bit++) {
            char bad[256];
            memcpy(bad, good, n);
            bad[i] = (char)(bad[i] ^ 1 << bit);
            write_file(bad, n);
            assert_int_equal(pc__conv_recall(path, "shape"), -1);
            write_file(good, i);
            assert_int_equal(pc__conv_recall(path, "shape"), -1);
        }
    write_file(good, n - 2);
    pc__conv_note(path, "shape", 2); /* behind a row that is cut off */
    assert_int_equal(pc__conv_recall(path, "shape"), 2);
    char later[256];
    memcpy(later, good, n);
    later[0] = '2'; /* another version's */
    write_file(later, n);
    assert_int_equal(pc__conv_recall(path, "shape"), -1);
    pc__conv_note(path, "shape", 1);
    assert_int_equal(pc__conv_recall(path, "shape"), 1);
}

static void noise_is_passed_over(void **state)
{
    (void)state;
    static char noise[100000];
    unsigned seed = 1;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)((seed = seed * 1664525u + 1013904223u) >> 24);
    write_file(noise, sizeof noise);
    assert_int_equal(pc__conv_recall(path, "shape"), -1);
    pc__conv_note(path, "shape", 1);
    assert_int_equal(pc__conv_recall(path, "shape"), 1);
}

/* A file that has grown beyond all sense is neither read to its end nor made longer. */
static void there_is_an_end_to_the_file(void **state)
{
    (void)state;
    struct stat before, after;
    write_file("", 0);
    assert_int_equal(truncate(path, 2 << 20), 0);
    assert_int_equal(stat(path, &before), 0);
    pc__conv_note(path, "shape", 1);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_size, after.st_size);
    assert_int_equal(pc__conv_recall(path, "shape"), -1);
}

static void what_cannot_be_opened_is_no_error(void **state)
{
    (void)state;
    assert_int_equal(mkdir(path, 0700), 0); /* a folder */
    pc__conv_note(path, "shape", 1);
    assert_int_equal(pc__conv_recall(path, "shape"), -1);
    rmdir(path);
    assert_int_equal(mkfifo(path, 0600), 0); /* a pipe, on which nobody waits */
    pc__conv_note(path, "shape", 1);
    assert_int_equal(pc__conv_recall(path, "shape"), -1);
    unlink(path);
    write_file("", 0);
    char below[PATH_MAX + 16];
    snprintf(below, sizeof below, "%s/convolutions", path); /* a file where a folder is to be */
    pc__conv_note(below, "shape", 1);
    assert_int_equal(pc__conv_recall(below, "shape"), -1);
    assert_false(pc_failed());
}

/* The disk full: played by a limit. A row that did not fit is none, and what was there stays. */
static void no_room_left(void **state)
{
    (void)state;
    int status;
    pc__conv_note(path, "first", 1);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        const struct rlimit limit = {(rlim_t)info.st_size + 5, (rlim_t)info.st_size + 5};
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(2);
        pc__conv_note(path, "second", 2);
        _exit(pc__conv_recall(path, "first") == 1 && pc__conv_recall(path, "second") == -1 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    pc__conv_note(path, "second", 3);
    assert_int_equal(pc__conv_recall(path, "first"), 1);
    assert_int_equal(pc__conv_recall(path, "second"), 3);
}

/* Rows of several processes at once: all there, none torn. */
static void writers_at_once(void **state)
{
    (void)state;
    enum { WRITERS = 6, ROWS = 60 };
    char text[64];
    pid_t children[WRITERS];
    for (int w = 0; w < WRITERS; w++) {
        children[w] = fork();
        assert_true(children[w] >= 0);
        if (children[w] == 0) {
            for (int i = 0; i < ROWS; i++) {
                snprintf(text, sizeof text, "writer %d row %d", w, i);
                pc__conv_note(path, text, i % (PC__CONV_WAYS + 1));
                pc__conv_note(path, "everybody's", w % 2); /* whose is first, everybody has from then on */
            }
            _exit(0);
        }
    }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        assert_int_equal(waitpid(children[w], &status, 0), children[w]);
        assert_int_equal(status, 0);
    }
    const int shared = pc__conv_recall(path, "everybody's");
    assert_true(shared == 0 || shared == 1);
    for (int w = 0; w < WRITERS; w++)
        for (int i = 0; i < ROWS; i++) {
            snprintf(text, sizeof text, "writer %d row %d", w, i);
            assert_int_equal(pc__conv_recall(path, text), i % (PC__CONV_WAYS + 1));
        }
    assert_int_equal(pc__conv_recall(path, "everybody's"), shared);
}

/* Nothing of the library's memory is needed: a failing allocator changes nothing. */
static void without_memory(void **state)
{
    (void)state;
    assert_ok(pc_set_allocator(&failing));
    countdown = 0, and_later = true;
    pc__conv_note(path, "shape", 5);
    const int way = pc__conv_recall(path, "shape");
    countdown = -1, and_later = false;
    assert_ok(pc_set_allocator(NULL));
    assert_int_equal(way, 5);
    assert_false(pc_failed());
}

static void where_the_file_is(void **state)
{
    (void)state;
    char at[PATH_MAX];
    setenv("HOME", "/home/somebody", 1);
    setenv("XDG_CACHE_HOME", "/caches", 1);
    assert_true(pc__conv_file(at));
    assert_string_equal(at, "/caches/paracord/convolutions");
    setenv("XDG_CACHE_HOME", "relative", 1);
    assert_true(pc__conv_file(at));
    assert_string_equal(at, "/home/somebody/.cache/paracord/convolutions");
    unsetenv("XDG_CACHE_HOME");
    assert_true(pc__conv_file(at));
    assert_string_equal(at, "/home/somebody/.cache/paracord/convolutions");
    unsetenv("HOME");
    assert_false(pc__conv_file(at));
    char *endless = malloc(PATH_MAX + 10);
    assert_non_null(endless);
    memset(endless, 'x', PATH_MAX + 9);
    endless[0] = '/', endless[PATH_MAX + 9] = 0;
    setenv("HOME", endless, 1);
    assert_false(pc__conv_file(at));
    free(endless);
}

/* --- the setting --- */

static void *in_a_thread(void *context)
{
    (void)context;
    return (void *)(uintptr_t)(pc_conv_choice() == PC_CONV_OWN && pc_conv_choice_set(PC_CONV_CUDNN) == PC_CONV_OWN);
}

static void threads_choose_for_themselves(void **state)
{
    (void)state;
    pthread_t thread;
    void *fine = NULL;
    assert_int_equal(pc_conv_choice(), PC_CONV_OWN);
    assert_int_equal(pc_conv_choice_set(PC_CONV_MEASURED), PC_CONV_OWN);
    assert_int_equal(pc_conv_choice_set(PC_CONV_RULE), PC_CONV_MEASURED);
    assert_int_equal(pthread_create(&thread, NULL, in_a_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, &fine), 0);
    assert_non_null(fine);
    assert_int_equal(pc_conv_choice_set((pc_conv_choice_kind)77), PC_CONV_RULE); /* no such choice: our own */
    assert_int_equal(pc_conv_choice_set((pc_conv_choice_kind)-1), PC_CONV_OWN);
    assert_int_equal(pc_conv_choice(), PC_CONV_OWN);
}

/* The environment is asked once, so each case is this program again. */
static int said_to_a_child(const char *said)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("PARACORD_CONV", said, 1);
        execl("/proc/self/exe", "test.device.conv_choice", "ask", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void the_environment_is_where_threads_start(void **state)
{
    (void)state;
    assert_int_equal(said_to_a_child("own"), PC_CONV_OWN);
    assert_int_equal(said_to_a_child("rule"), PC_CONV_RULE);
    assert_int_equal(said_to_a_child("measured"), PC_CONV_MEASURED);
    assert_int_equal(said_to_a_child("cudnn"), PC_CONV_CUDNN);
    assert_int_equal(said_to_a_child(""), PC_CONV_OWN);
    assert_int_equal(said_to_a_child("faster"), PC_CONV_OWN);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "ask"))
        return (int)pc_conv_choice();
    unsetenv("PARACORD_CONV");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rule_follows_what_was_measured),
        cmocka_unit_test(names_tell_shapes_apart),
        IN_FOLDER(any_name_is_one_row),
        IN_FOLDER(what_is_noted_is_recalled),
        IN_FOLDER(folders_are_made),
        IN_FOLDER(broken_rows_are_measured_anew),
        IN_FOLDER(noise_is_passed_over),
        IN_FOLDER(there_is_an_end_to_the_file),
        IN_FOLDER(what_cannot_be_opened_is_no_error),
        IN_FOLDER(no_room_left),
        IN_FOLDER(writers_at_once),
        IN_FOLDER(without_memory),
        cmocka_unit_test(where_the_file_is),
        cmocka_unit_test(threads_choose_for_themselves),
        cmocka_unit_test(the_environment_is_where_threads_start),
    };
    return cmocka_run_group_tests_name("device.conv_choice", tests, NULL, NULL);
}
