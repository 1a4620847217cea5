/* A library that is no plug-in. */
#include <paracord/api.h>

PC_API int stranger(void);
int stranger(void)
{
    return 1;
}
