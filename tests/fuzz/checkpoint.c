/* Fuzz target: checkpoints of any bytes for a small network, and as a model to use: as they are, and behind a front
 * whose length and checksum are right, so that what comes after those is reached. */
#include "fuzz/fuzz.h"

#include "train/checkpoint_form.h"

#include <paracord/samples.h>
#include <paracord/train.h>
#include <string.h>

static void load(const char *path)
{
    pc_module *net = pc_linear(2, 1);
    pc_optimizer *adam = pc_adam(net);
    pc_loader *loader = NULL;
    PC_SCOPE {
        loader =
            pc_loader_from_tensors(pc_zeros(PC_SHAPE(4, 2), PC_F32, PC_DEVICE_CPU), NULL, .batch = 2, .prefetch = -1);
    }
    pc__fit fit = {.net = net, .optimizer = adam, .train = loader, .epochs = 1};
    if (loader)
        (void)!pc__checkpoint_load(path, &fit, "");
    pc_loader_free(loader);
    pc_optimizer_free(adam);
    pc_module_free(net);
    pc_classifier_free(pc_classifier_open(path, "cpu"));
    pc_error_clear();
}

/* Of the file that `bytes` are, if they are one, the part behind its front. */
static void load_sealed(const uint8_t *bytes, size_t n)
{
    static const pc__checkpoint_header none;
    static const pc__curve no_curve;
    enum { FRONT = 24 };
    pc__text file = {0};
    pc__checkpoint_put_head(&file, &none, "", &no_curve);
    const size_t skip = n >= FRONT && memcmp(bytes, file.data, 5) == 0 ? FRONT : 0;
    file.length = FRONT;
    pc__text_append(&file, (const char *)bytes + skip, n - skip);
    pc__checkpoint_seal(&file);
    if (!file.failed)
        load(pc__fuzz_file((const uint8_t *)file.data, file.length));
    pc__text_free(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    load(pc__fuzz_file(bytes, n));
    load_sealed(bytes, n);
    return 0;
}
