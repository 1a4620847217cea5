/* The part of libcuda.so.1 that the CUDA runtime calls before anything else, of drivers that do not work: FAKE_DRIVER
 * is "the CUDA version that it supports, what cuInit returns", such as "12020 0". */
#include <paracord/api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ask(int which)
{
    int numbers[2] = {0, 0};
    const char *text = getenv("FAKE_DRIVER");
    if (text)
        (void)!sscanf(text, "%d %d", &numbers[0], &numbers[1]);
    return numbers[which];
}

PC_API int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    (void)flags;
    return ask(1);
}

PC_API int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version)
{
    *version = ask(0);
    return 0;
}

static int not_supported(void)
{
    return 801;
}

/* All others are there, and refuse. */
PC_API int cuGetProcAddress_v2(const char *name, void (**function)(void), int version, unsigned long flags,
                               void *found);
int cuGetProcAddress_v2(const char *name, void (**function)(void), int version, unsigned long flags, void *found)
{
    static const struct {
        const char *name;
        void (*function)(void);
    } there[] = {{"cuInit", (void (*)(void))cuInit},
                 {"cuDriverGetVersion", (void (*)(void))cuDriverGetVersion},
                 {"cuGetProcAddress", (void (*)(void))cuGetProcAddress_v2}};
    (void)version, (void)flags, (void)found;
    *function = (void (*)(void))not_supported;
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        if (!strcmp(name, there[i].name))
            *function = there[i].function;
    return 0;
}

PC_API int cuGetExportTable(const void **table, const void *id);
int cuGetExportTable(const void **table, const void *id)
{
    (void)table, (void)id;
    return 801;
}
