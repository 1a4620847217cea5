/* Fuzz target: .npy files of any bytes. */
#include "fuzz/fuzz.h"

#include "io/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    pc__npy array;
    if (pc__npy_parse("fuzz", bytes, n, &array) == PC_OK)
        pc__npy_free(&array);
    pc_error_clear();
    return 0;
}
