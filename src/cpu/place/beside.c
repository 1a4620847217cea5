/* beside.c: the narrowest level is linked in, the others are files beside the library. */
#include "cpu/place/place.h"

#include <dlfcn.h>

PC__OF_BASE(PC__LEVEL_TABLES)

static const pc__level narrowest[] = {PC__OF_BASE(PC__LEVEL_OF)};

static const char way_out[] = ": install libparacord.so and its libparacord-cpu-*.so from one build";

/* NULL: it fits. */
static const char *misfit(const pc__level *level, const char *name)
{
    if (strcmp(level->build, pc__level_build) != 0)
        return "it was built from other sources than this library";
    if (strcmp(level->name, name) != 0)
        return "it has another level than its name says";
    if (level->parallel != pc__parallel)
        return "it works for another copy of the library, which this process has too";
    return NULL;
}

const pc__level *pc__level_find(int i, const char *name, char why[PC__PLUGIN_WHY])
{
    char file[32];
    pc__plugin_file found;
    const char *wrong = NULL;
    if (i == 0)
        return narrowest;
    snprintf(file, sizeof file, "libparacord-cpu-%s.so", name);
    const pc__level *level = pc__plugin_find(file, PC__LEVEL_ENTRY, false, &found, why) ? found.entry : NULL;
    if (level && !(wrong = misfit(level, name)))
        return level;
    if (level) {
        snprintf(why, PC__PLUGIN_WHY, "%.160s: %s", found.path, wrong);
        dlclose(found.library);
    }
    if (found.path[0]) /* it is there, and of no use */
        memcpy(why + PC__MIN(strlen(why), PC__PLUGIN_WHY - sizeof way_out), way_out, sizeof way_out);
    return NULL;
}
