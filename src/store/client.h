/* client.h: this process's connection to the store, of which there is one: a thread that sends, listens and tells every
 * second that the rank is alive. Without libuv nothing here succeeds. */
#ifndef PC__STORE_CLIENT_H
#define PC__STORE_CLIENT_H

#include "store/env.h"
#include "store/wire.h"

/* Connect within `seconds`. `version` is this library's, but in tests. Errors as pc_dist_init has them. */
pc_status pc__client_open(const pc__world *world, const char *version, double seconds);

/* From now on `bad` is told, in the client's thread, of a lost rank, of a store that is gone, and when another rank asks for what
 * this one has noted. Before pc__client_open. */
void pc__client_tell(void (*bad)(const char *why));

/* Say goodbye, and end the thread. Does nothing where there is none. */
void pc__client_close(bool goodbye);

/* Send what this rank is doing now, and not only at the next second. */
void pc__beat_send(void);

/* A request, whose frame is begun by pc__call_begin with its kind and filled by pc__put_... */
typedef struct pc__call {
    struct pc__call *next;
    pc__text frame;
    size_t begin;
    uint32_t id;
    bool done;
    uint8_t *answer; /* behind the result */
    size_t n;
    pc__wire_result result;
} pc__call;
void pc__call_begin(pc__call *call, pc__wire_kind kind);

/* Send it and wait for its answer: PC_OK with `result` and *body; PC_ERR_STATE without a store, PC_ERR_LOST when that is
 * gone. A call that waits for others (seconds >= 0) is given up then, or when a rank is lost, and answered
 * by PC__WIRE_NOT_THERE; the store itself has a limit of its own, PC_ERR_TIMEOUT. Release with pc__call_end. */
pc_status pc__call_perform(pc__call *call, const char *what, double seconds, pc__body *body);
void pc__call_end(pc__call *call);
#define PC__CALL_NOW (-1.0) /* waits for nobody */

/* Rank 0's server where no launcher has one: a thread with a loop of its own. Stopping waits, if it is to be patient, until the
 * others have left or are lost; for those that have not come yet up to `seconds`. */
pc_status pc__service_start(const pc__world *world, const char *version, double beat_limit, double seconds);
void pc__service_stop(bool patient);

#endif
