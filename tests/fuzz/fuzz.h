/* fuzz.h: what every fuzz target shares. Targets are built with clang by -DPARACORD_FUZZ=ON and run by hand; seeds are
 * the golden files. */
#ifndef PC_TEST_FUZZ_H
#define PC_TEST_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* The bytes as a file, for readers that want a path. One per process. */
static inline const char *pc__fuzz_file(const uint8_t *bytes, size_t n)
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/paracord-fuzz-%d", (int)getpid());
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, n, file) != n || fclose(file) != 0)
        abort();
    return path;
}

#endif
