/* keras_snake.c: class names as Keras turns them into names of layers and of groups in a file. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

#include <ctype.h>

/* What Keras's to_snake_case does by two regular expressions: '_' in front of a capital that small letters follow,
 * except at the start; then '_' between a small letter and a capital: "MaxPooling2D" becomes "max_pooling2d", "PReLU"
 * "p_re_lu", "Conv2D" "conv2d". */
void pc__keras_snake(const char *class_name, char out[PC__KERAS_NAME_MAX])
{
    size_t n = 0;
    char before = 0; /* as it stood, with the first expression's '_' */
    for (const char *c = class_name; *c && n + 3 < PC__KERAS_NAME_MAX; c++) {
        if (!isalnum((unsigned char)*c) && *c != '_')
            continue;
        bool capital = isupper((unsigned char)*c);
        if (capital && before && before != '_' && (islower((unsigned char)c[1]) || islower((unsigned char)before)))
            out[n++] = '_';
        out[n++] = (char)tolower((unsigned char)*c);
        before = *c;
    }
    out[n] = 0;
}

#endif
