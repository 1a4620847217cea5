/* env_slurm.c: the lists that Slurm writes into variables. */
#include "store/env.h"

bool pc__slurm_first_host(const char *list, char host[PC__HOST_MAX])
{
    char name[PC__HOST_MAX];
    size_t n = 0;
    for (const char *c = list; *c && *c != ',' && n + 1 < sizeof name; c++) {
        if (*c != '[') {
            name[n++] = *c;
            continue;
        }
        const char *close = strchr(c, ']'), *number = c + 1;
        const size_t digits = strspn(number, "0123456789");
        if (!close || !digits || n + digits + 1 >= sizeof name)
            return false;
        memcpy(name + n, number, digits); /* of "003-005,9" the first, with its zeros */
        n += digits;
        c = close;
    }
    name[n] = 0;
    memcpy(host, name, n + 1);
    return n > 0 && strlen(host) + 1 < PC__HOST_MAX;
}
