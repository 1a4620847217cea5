/* library.c: opening libraries for pictures. */
#include "io/library.h"

#include <dlfcn.h>

#define ROOM_MAX ((int64_t)1 << 30)

pc_status pc__library_open(const char *picture, const char *what, const char *package, const char *const *files,
                           const pc__symbol *symbols, int count)
{
    void *library = NULL;
    for (int i = 0; files[i] && !library; i++)
        library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return pc__fail(PC_ERR_UNSUPPORTED, "%s is %s, which needs %s: install it (Debian: %s), or convert it", picture,
                        what, files[0], package);
    for (int i = 0; i < count; i++)
        if (!(*symbols[i].place = dlsym(library, symbols[i].name)))
            return pc__fail(PC_ERR_UNSUPPORTED, "%s is %s, and the %s here is too old: it has no %s", picture, what,
                            files[0], symbols[i].name);
    return PC_OK;
}

pc_status pc__library_missing(const char *picture, const char *what, const char *package)
{
    return pc__fail(PC_ERR_UNSUPPORTED, "%s is %s, and this build is without it: install %s (Debian) and build again",
                    picture, what, package);
}

pc_status pc__library_room(const pc__picture *picture, const char *what, int64_t width, int64_t height, int bytes_each)
{
    const int64_t bytes = width * height * bytes_each;
    if (bytes <= ROOM_MAX)
        return PC_OK;
    return pc__fail(
        PC_ERR_FORMAT,
        "%s is %s of %lld x %lld pixels, which takes %.1f GB of memory; %.1f GB are the most: make it smaller",
        picture->name, what, (long long)width, (long long)height, (double)bytes * 1e-9, (double)ROOM_MAX * 1e-9);
}
