/* Words of the environment: a known one is found, none is none, and another one is told with those that there are. */
#include "support.h"

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const colours[] = {"red", "green", "blue"};

/* What a child with the variable set to `said` (NULL: not at all) finds; its standard error goes to `told`. */
static int found(const char *said, char *told, size_t n)
{
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        if (said)
            setenv("PARACORD_COLOUR", said, 1);
        const int which = pc__env_word("PARACORD_COLOUR", colours, PC__COUNT(colours));
        (void)pc__env_word("PARACORD_COLOUR", colours, PC__COUNT(colours)); /* is not told again */
        fflush(stderr);
        _exit(which + 1);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t more; length + 1 < n && (more = read(ends[0], told + length, n - 1 - length)) > 0;)
        length += (size_t)more;
    told[length] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status) - 1;
}

static void known_words(void **state)
{
    (void)state;
    char told[256];
    for (int i = 0; i < PC__COUNT(colours); i++) {
        assert_int_equal(found(colours[i], told, sizeof told), i);
        assert_string_equal(told, "");
    }
    assert_int_equal(found(NULL, told, sizeof told), -1);
    assert_string_equal(told, "");
    assert_int_equal(found("", told, sizeof told), -1);
    assert_string_equal(told, "");
}

static void unknown_words(void **state)
{
    (void)state;
    char told[256];
    assert_int_equal(found("gren", told, sizeof told), -1);
    assert_string_equal(told,
                        "paracord: PARACORD_COLOUR does not know \"gren\"; the valid words are red, green and blue\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_words),
        cmocka_unit_test(unknown_words),
    };
    return cmocka_run_group_tests_name("base.words_env", tests, NULL, NULL);
}
