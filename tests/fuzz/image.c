/* Fuzz target: pictures of any bytes, in every mode of decoding. */
#include "fuzz/fuzz.h"

#include <paracord/image.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const pc_image_options modes[] = {{.strict = true},
                                             {.channels = 3, .width = 64, .height = 64},
                                             {.channels = 1, .width = 20, .height = 9, .resize = PC_RESIZE_AREA}};
    for (int i = 0; i < 3; i++) {
        pc_image image;
        if (pc_image_decode(bytes, n, "fuzz", modes[i], &image) == PC_OK)
            pc_image_free(&image);
        pc_error_clear();
    }
    return 0;
}
