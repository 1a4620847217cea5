/* connect.h: from an address to a connection that the store's server has welcomed. */
#ifndef PC__STORE_CONNECT_H
#define PC__STORE_CONNECT_H

#include "store/wire.h"

#include <stdatomic.h>

typedef struct pc__address {
    const char *host;
    int port;
    const char *what; /* "pc_dist_init": who asks, in front of errors */
} pc__address;

/* Try for so many seconds, since the server may begin later than its ranks; `given_up` (may be NULL) ends that early. The
 * socket, without blocking, or -1 with an error: PC_ERR_TIMEOUT (nobody there, or no answer), PC_ERR_STATE (refused, or something else
 * listens there), PC_ERR_ARGUMENT (no such host). What came behind the welcome stays in `in`. */
PC__SHARED int pc__wire_connect(pc__address address, const pc__hello *hello, double seconds,
                                const atomic_bool *given_up, pc__stream_in *in);

/* Seconds of a clock that only goes forward. */
double pc__dist_now(void);

#endif
