/* server_parts.h: what the files of the server share. */
#ifndef PC__STORE_SERVER_PARTS_H
#define PC__STORE_SERVER_PARTS_H

#include "store/env.h"
#include "store/server.h"
#include "store/table.h"

#include <uv.h>

/* A connection. Its waits go with it. */
typedef struct pc__peer {
    uv_tcp_t tcp;
    pc__server *server;
    struct pc__peer *next;
    pc__stream_in in;
    uint64_t since, heard; /* ms of the loop */
    pc__wire_role role;
    int rank;
    bool welcome, magic_sent, closing;
    char host[64];
    int process;
} pc__peer;

/* A request that is answered later: when all of its names are there. They are found in order, so that a new name concerns a
 * wait only when it is the one that it has come to. */
typedef struct pc__wait {
    struct pc__wait *next;
    pc__peer *peer;
    uint32_t request;
    bool wants_value;
    char **keys;
    int count, found;
} pc__wait;

typedef struct pc__rank {
    pc__peer *peer;
    pc__beat beat;
    pc_status told; /* the kind of its error; PC_OK: none, or none that it knows */
    bool came, left, lost;
} pc__rank;

struct pc__server {
    uv_loop_t *loop;
    uv_tcp_t listener;
    uv_timer_t timer;
    pc__server_options options; /* its texts are in the arrays below */
    char token[PC__TOKEN_MAX + 1], version[64];
    int port, handles;
    uint64_t last_tick, job;
    pc__table table;
    pc__peer *peers;
    pc__wait *waits;
    pc__rank *ranks;
    int first_lost; /* -1: none */
    char first_why[PC__WHY_MAX];
    bool closing;
    void (*closed)(void *context);
    void *closed_context;
};

/* server_peer.c. Send takes the frame. A cut peer is gone from the lists at once, and freed when its handle is closed. */
void pc__peer_accept(pc__server *server);
void pc__peer_send(pc__peer *peer, pc__text *frame);
void pc__peer_cut(pc__peer *peer);

/* server_hello.c. False: refused, or nonsense; the peer is to be cut when the answer is out. */
bool pc__peer_hello(pc__peer *peer, pc__body *body);

/* server_requests.c. False: nonsense. */
bool pc__peer_request(pc__peer *peer, pc__frame *frame);

/* server_waits.c */
bool pc__wait_add(pc__peer *peer, uint32_t request, bool wants_value, char **keys, int count); /* takes the keys */
void pc__wait_set(pc__server *server, const char *key);
void pc__wait_cancel(pc__peer *peer, uint32_t request);
void pc__wait_drop(pc__server *server, const pc__peer *peer); /* NULL: all */

/* server_ranks.c */
void pc__ranks_gone(pc__peer *peer); /* its connection is */
void pc__ranks_tick(pc__server *server);
void pc__ranks_tell(pc__peer *peer); /* who is lost, to one that comes later */
void pc__ranks_beats(pc__peer *peer, uint32_t request);
void pc__ranks_dump(pc__server *server, const pc__peer *but, const char *why); /* all are to write down their calls */

#endif
