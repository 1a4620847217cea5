/* env.h: what a launcher says in the environment about who this process is. */
#ifndef PC__STORE_ENV_H
#define PC__STORE_ENV_H

#include "base/launcher.h"

#define PC__HOST_MAX 256
#define PC__TOKEN_MAX 128

typedef struct pc__world {
    int rank, size, local_rank, local_size;
    int node_rank; /* -1: nobody says */
    int generation;
    const char *launcher;    /* static storage */
    char host[PC__HOST_MAX]; /* where the store is */
    int port;
    bool has_store; /* false: a world of one that needs none */
    bool serves;    /* this process serves the store */
    bool one_host;  /* all ranks are on this host, so that loopback is enough */
    char token[PC__TOKEN_MAX + 1];
} pc__world;

/* Read them by `get`, which is getenv but in tests. PC_ERR_ARGUMENT names the variable, its value and the way out. */
pc_status pc__world_read(pc__getenv get, pc__world *world);

/* A whole number of a variable, least..most. PC_ERR_ARGUMENT when it is none. */
pc_status pc__env_number(const char *name, const char *text, int least, int most, int *number);

/* "host:port" or "[::1]:port" taken apart; `name` is what it is the value of. */
PC__SHARED pc_status pc__env_address(const char *name, const char *text, char host[PC__HOST_MAX], int *port);

/* The first host of a list such as "gpu[003-005,9],login"; false where there is none or it is too long. */
bool pc__slurm_first_host(const char *list, char host[PC__HOST_MAX]);

/* The seconds without a sign of life after which a rank is lost, of PARACORD_BEAT_LIMIT; 0: never. */
PC__SHARED pc_status pc__beat_limit(pc__getenv get, double *seconds);

#endif
