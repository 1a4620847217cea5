/* plugin_file.h: finding and opening libraries that belong to this one and are opened when they are needed. They lie beside
 * it, or where PARACORD_PLUGIN_PATH says: a folder, or the file of one of them, which names the folder of the others. */
#ifndef PC__PLUGIN_FILE_H
#define PC__PLUGIN_FILE_H

#include "base/base.h"

#include <limits.h>

enum { PC__PLUGIN_WHY = 512 };

typedef struct pc__plugin_file {
    char path[PATH_MAX]; /* empty: there is none; else it is there, whether it can be used or not */
    void *library;       /* for dlclose, where it does not fit after all */
    void *entry;
} pc__plugin_file;

/* Open library `file` ("libparacord-cuda.so") and find what it exports as `entry`. only_asked: PARACORD_PLUGIN_PATH,
 * where it is set, leaves nothing to search for, so that it can switch the library off. False, with the reason in why,
 * where there is none that can be opened. */
bool pc__plugin_find(const char *file, const char *entry, bool only_asked, pc__plugin_file *found,
                     char why[PC__PLUGIN_WHY]);

#endif
