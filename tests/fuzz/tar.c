/* Fuzz target: tar shards of any bytes: their members, and all of their samples. */
#include "fuzz/fuzz.h"

#include <paracord/samples.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const char *path = pc__fuzz_file(bytes, n);
    for (int y = 0; y < 2; y++) {
        const pc_tar_options options = {.x = y ? NULL : "npy;png", .y = y ? NULL : ""};
        pc_loader *loader = pc_loader_from_tar(path, options, .prefetch = -1, .batch = 2);
        pc_batch batch;
        while (loader && pc_loader_next(loader, &batch)) {
        }
        pc_loader_free(loader);
        pc_error_clear();
    }
    return 0;
}
