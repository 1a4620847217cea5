/* Fuzz target: catalogues and price lists of any bytes. */
#include "fuzz/fuzz.h"

#include <paracord-tools/cloud.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    pc_cloud_free(pc_cloud_open(pc__fuzz_file(bytes, n)));
    pc_cloud *cloud = pc_cloud_open_builtin();
    pc_cloud_update_report report;
    if (cloud)
        (void)!pc_cloud_update(cloud, (const char *)bytes, n, "fuzz", NULL, &report);
    pc_error_clear();
    pc_cloud_free(cloud);
    return 0;
}
