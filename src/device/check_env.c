/* check_env.c: PARACORD_CHECK, words of what is to be checked. streams: the user asked from outside the program for lines on
 * stderr and for an exit code; this file alone prints and ends the process. collectives: ranks compare their calls.
 * The switches live here so that a static link takes the file along. */
#include "device/check_uses.h"

#include <stdlib.h>
#include <unistd.h>

enum { EXIT_CODE = 66 };

atomic_bool pc__check_on;
bool pc__check_collectives;
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

typedef struct wish {
    const char *word;
    bool asked;
} wish;

/* Which words are among them? One line names those that mean nothing. */
static void read_words(const char *words, wish *wishes, int count)
{
    static const char between[] = ", ";
    char unknown[128] = "";
    size_t n = 0;
    for (words += strspn(words, between); *words; words += strspn(words, between)) {
        const size_t length = strcspn(words, between);
        bool known = false;
        for (int i = 0; i < count; i++)
            if (length == strlen(wishes[i].word) && memcmp(words, wishes[i].word, length) == 0)
                known = wishes[i].asked = true;
        if (!known && n < sizeof unknown - 1)
            n += (size_t)snprintf(unknown + n, sizeof unknown - n, " \"%.*s\"", (int)length, words);
        words += length;
    }
    if (*unknown)
        fprintf(stderr,
                "paracord: PARACORD_CHECK does not know%s; the valid words are \"streams\" and \"collectives\"\n",
                unknown);
}

__attribute__((constructor)) static void start(void)
{
    const char *words = getenv("PARACORD_CHECK");
    enum { STREAMS, COLLECTIVES };
    wish wishes[] = {[STREAMS] = {"streams", false}, [COLLECTIVES] = {"collectives", false}};
    if (!words)
        return;
    read_words(words, wishes, PC__COUNT(wishes));
    pc__check_collectives = wishes[COLLECTIVES].asked;
    if (!wishes[STREAMS].asked)
        return;
    process = getpid();
    pc__check_print = print;
    pc_check_streams(true);
    if (atexit(at_exit) != 0)
        print("PARACORD_CHECK=streams: there is no room for an exit handler: no summary, and the exit code stays");
}
