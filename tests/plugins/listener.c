/* What a tool of NVIDIA's does: a library that NVTX loads and tells of ranges. Writes "push NAME" and "pop" as lines
 * into the file that NVTX_LISTENER names. */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *out;
static struct {
    char name[64];
} domains[8];
static int domain_count;

static nvtxDomainHandle_t domain_create(const char *name)
{
    int i = domain_count < 7 ? domain_count++ : 7;
    snprintf(domains[i].name, sizeof domains[i].name, "%s", name);
    return (nvtxDomainHandle_t)&domains[i];
}

static int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes)
{
    fprintf(out, "%s push %s\n", (const char *)domain, attributes->message.ascii);
    fflush(out);
    return 0;
}

static int pop(nvtxDomainHandle_t domain)
{
    fprintf(out, "%s pop\n", (const char *)domain);
    fflush(out);
    return 0;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
    const char *path = getenv("NVTX_LISTENER");
    NvtxFunctionTable table;
    unsigned int n = 0;
    if (!path || !(out = fopen(path, "we")) || !callbacks ||
        !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &n) || n <= NVTX_CBID_CORE2_DomainCreateA)
        return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)domain_create;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
    return 1;
}
