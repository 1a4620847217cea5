/* Fuzz target: Keras files of any bytes, read and made into a network. */
#include "fuzz/fuzz.h"

#include <paracord/keras.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    pc_module_free(pc_keras_load(pc__fuzz_file(bytes, n), NULL));
    pc_error_clear();
    return 0;
}
