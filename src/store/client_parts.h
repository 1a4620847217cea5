/* client_parts.h: what the client's files share. */
#ifndef PC__STORE_CLIENT_PARTS_H
#define PC__STORE_CLIENT_PARTS_H

#include "store/client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

typedef enum pc__client_state {
    PC__CLIENT_NONE,
    PC__CLIENT_CONNECTING,
    PC__CLIENT_READY,
    PC__CLIENT_GONE
} pc__client_state;

/* All of it is under the lock but the loop, its handles and what has come in, which are the thread's. */
typedef struct pc__client {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pc__client_state state;
    bool ending;
    atomic_bool given_up; /* the connecting thread is to end, and nobody waits for it */
    pc_error error;       /* of connecting */
    pc__call *unsent, *sent;
    uint32_t last_id;
    pc__text more; /* frames that nobody waits for */
    pc__beat beat;
    atomic_bool any_lost;
    int lost_rank;
    char lost_why[PC__WHY_MAX];
    void (*bad)(const char *why); /* pc__client_tell's */

    pthread_t thread;
    pc__world world;
    char version[64];
    double seconds, period, limit; /* of connecting; of beats; of silence, 0: none */
    uint64_t heard, beat_at;       /* ms of the loop */
    uv_loop_t loop;
    uv_async_t wake;
    uv_timer_t timer;
    uv_tcp_t tcp;
    bool has_tcp;
    pc__stream_in in;
} pc__client;

extern pc__client pc__the_client;

/* client_loop.c: what the thread does, from connecting to its end. */
void *pc__client_thread(void *client);

/* With the lock: only the first counts. */
void pc__client_lost(pc__client *client, int rank, const char *why);

#endif
