/* Fuzz target: Keras files of any bytes, read and made into a network: in this process, where libhdf5's own faults are
 * seen too. The library reads them in a child without rights. */
#include "fuzz/fuzz.h"

#include <paracord/keras.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    setenv("PARACORD_JAIL", "off", 1);
    pc_module_free(pc_keras_load(pc__fuzz_file(bytes, n), NULL));
    pc_error_clear();
    return 0;
}
