/* fuzz.h: what every fuzz target shares. ./dev fuzz builds them with clang's libFuzzer and sanitizers and runs them;
 * seeds are the golden files and corpus/NAME, where findings stay too: the normal tests run each target on those
 * (replay.c). */
#ifndef PC_TEST_FUZZ_H
#define PC_TEST_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* A path of this process in memory, where there is such a file system: writes are flushed. */
static inline const char *pc__fuzz_path(const char *suffix)
{
    static char path[64];
    snprintf(path, sizeof path, "%s/paracord-fuzz-%d.%s", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
             (int)getpid(), suffix);
    return path;
}

static inline void pc__fuzz_remove(void)
{
    static const char *const suffixes[] = {"in", "html", "svg"};
    for (int i = 0; i < 3; i++)
        unlink(pc__fuzz_path(suffixes[i]));
}

/* The bytes as a file, for readers that want a path. One per process. */
static inline const char *pc__fuzz_file(const uint8_t *bytes, size_t n)
{
    static char path[64];
    if (!path[0])
        atexit(pc__fuzz_remove);
    snprintf(path, sizeof path, "%s", pc__fuzz_path("in"));
    FILE *file = fopen(path, "wb");
    if (!file || (n && fwrite(bytes, 1, n, file) != n) || fclose(file) != 0)
        abort();
    return path;
}

#endif
