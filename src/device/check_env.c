/* check_env.c: PARACORD_CHECK=streams. The user asked from outside the program for lines on stderr and for an exit
 * code; this file alone prints and ends the process. The switch lives here so that a static link takes the file along.
 */
#include "device/check_uses.h"

#include <stdlib.h>
#include <unistd.h>

enum { EXIT_CODE = 66 };

atomic_bool pc__check_on;
static pid_t process; /* a fork of it goes its own way */

static void print(const char *line)
{
    fprintf(stderr, "paracord: %s\n", line);
}

static void at_exit(void)
{
    if (getpid() != process)
        return;
    char text[PC__CHECK_SUMMARY];
    uint64_t found = pc__check_summary(text);
    print(text);
    if (!found)
        return;
    fflush(NULL);
    _exit(EXIT_CODE);
}

/* Is "streams" among the words? One line names those that mean nothing. */
static bool wanted(const char *words)
{
    static const char between[] = ", ";
    bool streams = false;
    char unknown[128] = "";
    size_t n = 0;
    for (words += strspn(words, between); *words; words += strspn(words, between)) {
        size_t length = strcspn(words, between);
        if (length == strlen("streams") && memcmp(words, "streams", length) == 0)
            streams = true;
        else if (n < sizeof unknown - 1)
            n += (size_t)snprintf(unknown + n, sizeof unknown - n, " \"%.*s\"", (int)length, words);
        words += length;
    }
    if (*unknown)
        fprintf(stderr, "paracord: PARACORD_CHECK does not know%s; the valid word is \"streams\"\n", unknown);
    return streams;
}

__attribute__((constructor)) static void start(void)
{
    const char *words = getenv("PARACORD_CHECK");
    if (!words || !wanted(words))
        return;
    process = getpid();
    pc__check_print = print;
    pc_check_streams(true);
    if (atexit(at_exit) != 0)
        print("PARACORD_CHECK=streams: there is no room for an exit handler: no summary, and the exit code stays");
}
