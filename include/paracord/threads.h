/* threads.h: how many cores kernels and decoders may use. Results do not depend on it. */
#ifndef PARACORD_THREADS_H
#define PARACORD_THREADS_H

#include <paracord/api.h>

PC_BEGIN

/* Set the limit for the whole process; 0 means one thread per core that the process may use (the default), by its
 * affinity mask and, in a container, the quota of its control group, of which each of a host's ranks (as its
 * launcher says) has a part of its own. */
PC_API void pc_threads_set(int n);

/* The limit in force, at least 1. */
PC_API int pc_threads_get(void);

PC_END
#endif
