/* comma.h: a locale whose numbers have a comma, made of the system's. */
#ifndef PC_TEST_COMMA_H
#define PC_TEST_COMMA_H

#include "io/file.h"

#include <locale.h>
#include <stdlib.h>
#include <unistd.h>

/* In `folder`, where `place` then is; false where there is none to make it of. */
static inline bool comma_locale(const char *folder, char *place, size_t n)
{
    uint8_t *bytes = NULL;
    size_t length;
    char file[128];
    if (pc__file_read("/usr/lib/locale/C.utf8/LC_NUMERIC", &bytes, &length) != PC_OK) {
        pc_error_clear();
        return false;
    }
    snprintf(place, n, "%s/comma", folder);
    snprintf(file, sizeof file, "%s/LC_NUMERIC", place);
    for (size_t i = 32; i < length; i++) /* behind the table of offsets */
        if (bytes[i] == '.')
            bytes[i] = ',';
    bool made = pc__folder_make(place) == PC_OK && pc__file_write(file, bytes, length) == PC_OK;
    pc__free(bytes);
    setenv("LOCPATH", folder, 1);
    return made && setlocale(LC_NUMERIC, "comma") != NULL;
}

static inline void comma_locale_end(const char *place)
{
    char file[128];
    snprintf(file, sizeof file, "%s/LC_NUMERIC", place);
    setlocale(LC_NUMERIC, "C");
    unsetenv("LOCPATH");
    unlink(file);
    rmdir(place);
}

#endif
