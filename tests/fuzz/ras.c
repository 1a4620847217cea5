/* Fuzz target: answers of any bytes in the place of NCCL's. */
#include "fuzz/fuzz.h"

#include <paracord-tools/ras.h>

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    char *text = malloc(n + 1);
    if (!text)
        return 0;
    memcpy(text, bytes, n);
    text[n] = 0;
    pc_ras *ras = pc_ras_read(text), *half = NULL;
    text[n / 2] = 0;
    if (ras)
        half = pc_ras_read(text);
    if (half)
        (void)pc_ras_moved(half, ras);
    pc_ras_free(half);
    pc_ras_free(ras);
    free(text);
    return 0;
}
