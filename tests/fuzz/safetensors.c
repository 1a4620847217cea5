/* Fuzz target: safetensors files of any bytes: opened, and all that is readable in them read. */
#include "fuzz/fuzz.h"

#include <paracord/weights.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    pc_weights *weights = pc_weights_open(pc__fuzz_file(bytes, n));
    for (int i = 0; weights && i < pc_weights_count(weights); i++) {
        pc_weights_entry entry;
        if (pc_weights_query(weights, i, &entry) != PC_OK)
            abort();
        pc_tensor_free(pc_weights_read(weights, entry.name, PC_DEVICE_CPU));
        pc_error_clear();
    }
    (void)(weights && pc_weights_note(weights, "format"));
    pc_weights_free(weights);
    pc_error_clear();
    return 0;
}
