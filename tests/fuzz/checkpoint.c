/* Fuzz target: checkpoints of any bytes for a small network. */
#include "fuzz/fuzz.h"

#include "train/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    pc_module *net = pc_linear(2, 1);
    pc_optimizer *adam = pc_adam(net);
    pc__fit fit = {.net = net, .optimizer = adam, .epochs = 1};
    (void)!pc__checkpoint_load(pc__fuzz_file(bytes, n), &fit, "");
    pc_error_clear();
    pc_optimizer_free(adam);
    pc_module_free(net);
    return 0;
}
