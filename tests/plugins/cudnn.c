/* A cuDNN that is not the right one: FAKE_CUDNN is the version that it says, and there is no other function. */
#include <paracord/api.h>
#include <stdlib.h>

PC_API size_t cudnnGetVersion(void);
size_t cudnnGetVersion(void)
{
    const char *version = getenv("FAKE_CUDNN");
    return version ? strtoul(version, NULL, 10) : 0;
}
