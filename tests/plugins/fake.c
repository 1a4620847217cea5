/* A plug-in that does not compute: FAKE_PLUGIN says how it answers the library. */
#include "device/plugin.h"
#include "ops/names.h"

#include <stdlib.h>

static bool is(const char *kind)
{
    const char *asked = getenv("FAKE_PLUGIN");
    return asked && strcmp(asked, kind) == 0;
}

static int count(char *why, size_t n)
{
    if (is("two"))
        return 2;
    snprintf(why, n, "no GPU is visible (CUDA_VISIBLE_DEVICES=)");
    return 0;
}

static pc__backend backend = {
    .api_version = PC__BACKEND_API, .type = PC_CUDA, .name = "fake", .ops = pc__op_names, .count = count};

PC_API const pc__backend *pc__cuda_plugin(const pc__host_api *host, char *why, size_t n);
const pc__backend *pc__cuda_plugin(const pc__host_api *host, char *why, size_t n)
{
    if (is("refuses")) {
        snprintf(why, n, "it belongs to Paracord 0.0.7, this library is %s", host->version);
        return NULL;
    }
    if (is("silent"))
        return NULL;
    if (is("old"))
        backend.api_version = 1;
    if (is("ops"))
        backend.ops = "add sub ";
    if (is("other"))
        backend.type = PC_SIM;
    return &backend;
}
