/* The file of measured convolutions: what is noted is recalled, whatever happened to the file. */
#include "support.h"

#include "cuda/conv/choice.h"
#include "failing.h"

#include <signal.h>
#include <stdio.h>
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
    snprintf(path, sizeof path, "%s/choices", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void write_file(const char *bytes, size_t n)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

static void what_is_noted_is_recalled(void **state)
{
    (void)state;
    assert_int_equal(pc__choices_recall(path, "a"), -1); /* no file */
    pc__choices_note(path, "a", 0);
    pc__choices_note(path, "b", PC__CHOICE_MOST);
    pc__choices_note(path, "a b", 2);
    assert_int_equal(pc__choices_recall(path, "a"), 0);
    assert_int_equal(pc__choices_recall(path, "b"), PC__CHOICE_MOST);
    assert_int_equal(pc__choices_recall(path, "a b"), 2);
    assert_int_equal(pc__choices_recall(path, "a "), -1);
    assert_int_equal(pc__choices_recall(path, ""), -1);
    char longest[PC__CHOICE_TEXT];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    pc__choices_note(path, longest, 4);
    assert_int_equal(pc__choices_recall(path, longest), 4);
    pc__choices_note(path, "a", 3); /* the first stays */
    assert_int_equal(pc__choices_recall(path, "a"), 0);
}

static void folders_are_made(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/x/y/choices", folder);
    pc__choices_note(path, "a", 1);
    assert_int_equal(pc__choices_recall(path, "a"), 1);
}

static void broken_rows_are_measured_anew(void **state)
{
    (void)state;
    char good[256];
    pc__choices_note(path, "shape", 3);
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
            assert_int_equal(pc__choices_recall(path, "shape"), -1);
            write_file(good, i);
            assert_int_equal(pc__choices_recall(path, "shape"), -1);
        }
    write_file(good, n - 2);
    pc__choices_note(path, "shape", 2); /* behind a row that is cut off */
    assert_int_equal(pc__choices_recall(path, "shape"), 2);
    char later[256];
    memcpy(later, good, n);
    later[0]++; /* another version's */
    write_file(later, n);
    assert_int_equal(pc__choices_recall(path, "shape"), -1);
    pc__choices_note(path, "shape", 1);
    assert_int_equal(pc__choices_recall(path, "shape"), 1);
}

static void noise_is_passed_over(void **state)
{
    (void)state;
    static char noise[100000];
    unsigned seed = 1;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)((seed = seed * 1664525u + 1013904223u) >> 24);
    write_file(noise, sizeof noise);
    assert_int_equal(pc__choices_recall(path, "shape"), -1);
    pc__choices_note(path, "shape", 1);
    assert_int_equal(pc__choices_recall(path, "shape"), 1);
}

/* A file that has grown beyond all sense is neither read to its end nor made longer. */
static void there_is_an_end_to_the_file(void **state)
{
    (void)state;
    struct stat before, after;
    write_file("", 0);
    assert_int_equal(truncate(path, 2 << 20), 0);
    assert_int_equal(stat(path, &before), 0);
    pc__choices_note(path, "shape", 1);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_size, after.st_size);
    assert_int_equal(pc__choices_recall(path, "shape"), -1);
}

static void what_cannot_be_opened_is_no_error(void **state)
{
    (void)state;
    assert_int_equal(mkdir(path, 0700), 0); /* a folder */
    pc__choices_note(path, "shape", 1);
    assert_int_equal(pc__choices_recall(path, "shape"), -1);
    rmdir(path);
    assert_int_equal(mkfifo(path, 0600), 0); /* a pipe, on which nobody waits */
    pc__choices_note(path, "shape", 1);
    assert_int_equal(pc__choices_recall(path, "shape"), -1);
    unlink(path);
    write_file("", 0);
    char below[PATH_MAX + 16];
    snprintf(below, sizeof below, "%s/choices", path); /* a file where a folder is to be */
    pc__choices_note(below, "shape", 1);
    assert_int_equal(pc__choices_recall(below, "shape"), -1);
    assert_false(pc_failed());
}

/* The disk full: played by a limit. A row that did not fit is none, and what was there stays. */
static void no_room_left(void **state)
{
    (void)state;
    int status;
    pc__choices_note(path, "first", 1);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        const struct rlimit limit = {(rlim_t)info.st_size + 5, (rlim_t)info.st_size + 5};
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(2);
        pc__choices_note(path, "second", 2);
        _exit(pc__choices_recall(path, "first") == 1 && pc__choices_recall(path, "second") == -1 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    pc__choices_note(path, "second", 3);
    assert_int_equal(pc__choices_recall(path, "first"), 1);
    assert_int_equal(pc__choices_recall(path, "second"), 3);
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
                pc__choices_note(path, text, i % (PC__CHOICE_MOST + 1));
                pc__choices_note(path, "everybody's", w % 2); /* whose is first, everybody has from then on */
            }
            _exit(0);
        }
    }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        assert_int_equal(waitpid(children[w], &status, 0), children[w]);
        assert_int_equal(status, 0);
    }
    const int shared = pc__choices_recall(path, "everybody's");
    assert_true(shared == 0 || shared == 1);
    for (int w = 0; w < WRITERS; w++)
        for (int i = 0; i < ROWS; i++) {
            snprintf(text, sizeof text, "writer %d row %d", w, i);
            assert_int_equal(pc__choices_recall(path, text), i % (PC__CHOICE_MOST + 1));
        }
    assert_int_equal(pc__choices_recall(path, "everybody's"), shared);
}

/* Nothing of the library's memory is needed: a failing allocator changes nothing. */
static void without_memory(void **state)
{
    (void)state;
    assert_ok(pc_allocator_set(&failing));
    and_later = true;
    countdown = 0;
    pc__choices_note(path, "shape", 5);
    const int way = pc__choices_recall(path, "shape");
    countdown = -1;
    and_later = false;
    assert_ok(pc_allocator_set(NULL));
    assert_int_equal(way, 5);
    assert_false(pc_failed());
}

static void where_the_file_is(void **state)
{
    (void)state;
    char at[PATH_MAX];
    setenv("HOME", "/home/somebody", 1);
    setenv("XDG_CACHE_HOME", "/caches", 1);
    assert_true(pc__choices_file(at));
    assert_string_equal(at, "/caches/paracord/choices");
    setenv("XDG_CACHE_HOME", "relative", 1);
    assert_true(pc__choices_file(at));
    assert_string_equal(at, "/home/somebody/.cache/paracord/choices");
    unsetenv("XDG_CACHE_HOME");
    assert_true(pc__choices_file(at));
    assert_string_equal(at, "/home/somebody/.cache/paracord/choices");
    unsetenv("HOME");
    assert_false(pc__choices_file(at));
    char *endless = malloc(PATH_MAX + 10);
    assert_non_null(endless);
    memset(endless, 'x', PATH_MAX + 9);
    endless[0] = '/', endless[PATH_MAX + 9] = 0;
    setenv("HOME", endless, 1);
    assert_false(pc__choices_file(at));
    free(endless);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    };
    return cmocka_run_group_tests_name("device.conv_file", tests, NULL, NULL);
}
