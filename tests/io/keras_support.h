/* keras_support.h: a folder of its own and the golden files, for the tests of Keras files. */
#ifndef PC_TEST_KERAS_SUPPORT_H
#define PC_TEST_KERAS_SUPPORT_H

#include "support.h"

#include "io/file.h"
#include "io/keras.h"

#include <hdf5.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/paracord-keras-XXXXXX";

static const char *in_folder(const char *name)
{
    static _Thread_local char paths[4][256];
    static _Thread_local int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static const char *golden(const char *name)
{
    static _Thread_local char path[512];
    snprintf(path, sizeof path, "%s/%s", PC_TEST_GOLDEN, name);
    return path;
}

static int make_folder(void **state)
{
    (void)state;
    H5dont_atexit(); /* after damaged files it has something to say about its own losses */
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const files[] = {"a.h5", "b.h5",     "many.h5",    "full.h5", "old.h5",
                                        "x.h5", "wrong.h5", "damaged.h5", "cut.h5",  "rationed.h5"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        unlink(in_folder(files[i]));
    return rmdir(folder);
}

#endif
