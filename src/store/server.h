/* server.h: who serves the store: paracord launch, or rank 0. It lives in the loop of its owner's thread, which alone calls
 * these. Needs libuv. */
#ifndef PC__STORE_SERVER_H
#define PC__STORE_SERVER_H

#include "store/wire.h"

typedef struct pc__server pc__server;
struct uv_loop_s;

/* Texts are copied. Functions may be NULL. */
typedef struct pc__server_options {
    const char *host; /* the address to listen at: "127.0.0.1", "::" for all */
    int port;         /* 0: any that is free */
    const char *token, *version;
    int size, generation; /* of the world, as ranks must say it, too */
    double beat_limit;    /* seconds; 0: none */
    void *context;        /* of the functions, which are called in the loop */
    void (*lost)(void *context, int rank, bool silent, const char *why); /* silent: its heart stopped */
    void (*came)(void *context, int node);                               /* a launcher */
    void (*said)(void *context, int node, pc__body *body);
    void (*gone)(void *context, int node, const char *why);
} pc__server_options;

/* Listen. NULL with PC_ERR_BACKEND when the port is in use or the address is none of this machine's; PC_ERR_MEMORY;
 * the loop has to run once more then. */
PC__SHARED pc__server *pc__server_open(struct uv_loop_s *loop, const pc__server_options *options);
PC__SHARED int pc__server_port(const pc__server *server);

/* A new start of the job: what was set is forgotten, ranks of other starts are cut off and refused from now on. */
PC__SHARED pc_status pc__server_restart(pc__server *server, int size, int generation);

/* How many ranks have come and neither left nor are lost. */
int pc__server_present(const pc__server *server);

/* How many have not come yet; 0 when one is lost, since they may never do so then. */
int pc__server_missing(const pc__server *server);

/* Whether rank has come in this start, and its last beat. */
PC__SHARED bool pc__server_beat(const pc__server *server, int rank, pc__beat *beat);

/* The kind of error that rank has told in this start; PC_OK: none. */
PC__SHARED pc_status pc__server_told(const pc__server *server, int rank);

/* The program can do with a multiple of so many ranks alone, as one of this start has said; 0: none has. */
PC__SHARED int pc__server_multiple(const pc__server *server);

/* Frames of PC__WIRE_NODE to a launcher; `body` is taken. */
PC__SHARED void pc__server_tell(pc__server *server, int node, pc__text *body);

/* All ranks are to write down their last calls (dump.h). */
PC__SHARED void pc__server_dump(pc__server *server, const char *why);

/* Tell all ranks that this one is lost. For whoever knows sooner than a connection does. */
PC__SHARED void pc__server_lose(pc__server *server, int rank, bool silent, const char *why);

/* Close all; `closed` (may be NULL) is called in the loop when the server is gone. */
PC__SHARED void pc__server_close(pc__server *server, void (*closed)(void *context), void *context);

#endif
