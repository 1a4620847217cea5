/* pmix.c: programs of MPI as ranks: a server of PMIx, by which Open MPI's MPI_Init finds the others. libpmix is opened where
 * it is there, and never linked. Its calls come back in a thread of its own, which touches nothing of the launcher. */
#if PC_HAVE_UV
#include "launch/parts.h"

#if PC_HAVE_PMIX
#include <dlfcn.h>
#include <fcntl.h>
#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/select.h>
#include <unistd.h>

#define INFOS_MOST 24 /* of the job, beside one for each rank */
#define OF_A_RANK 8

#define FUNCTIONS(X)                                                                                                   \
    X(PMIx_server_init)                                                                                                \
    X(PMIx_server_finalize)                                                                                            \
    X(PMIx_server_register_nspace)                                                                                     \
    X(PMIx_server_deregister_nspace)                                                                                   \
    X(PMIx_server_register_client)                                                                                     \
    X(PMIx_server_setup_fork)                                                                                          \
    X(PMIx_generate_regex)                                                                                             \
    X(PMIx_generate_ppn)                                                                                               \
    X(PMIx_Value_destruct)                                                                                             \
    X(PMIx_Error_string)

typedef struct pmix {
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
    void *library;
    pc__folder folder;
    char server[PC__FOLDER_MAX], segments[PC__FOLDER_MAX]; /* folders in it */
    char space[PMIX_MAX_NSLEN + 1];                        /* the namespace of this start */
    char *peers, *nodes, *procs;                           /* the last two are libpmix's */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
} pmix;

static void finished(pmix_status_t status, void *context)
{
    pmix *p = context;
    (void)status;
    pthread_mutex_lock(&p->lock);
    p->done = true;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

/* Wait for a call that ends in `finished`, as what it was answered with says. */
static bool wait_for(pmix *p, pmix_status_t status)
{
    pthread_mutex_lock(&p->lock);
    while (status == PMIX_SUCCESS && !p->done)
        pthread_cond_wait(&p->changed, &p->lock);
    p->done = false;
    pthread_mutex_unlock(&p->lock);
    return status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t connected(const pmix_proc_t *process, void *object, pmix_info_t *info, size_t n,
                               pmix_op_cbfunc_t then, void *context)
{
    (void)process, (void)object, (void)info, (void)n, (void)then, (void)context;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t finalized(const pmix_proc_t *process, void *object, pmix_op_cbfunc_t then, void *context)
{
    (void)process, (void)object, (void)then, (void)context;
    return PMIX_OPERATION_SUCCEEDED;
}

/* The process ends itself now, with that status, and the launcher sees it. */
static pmix_status_t aborted(const pmix_proc_t *process, void *object, int status, const char *message,
                             pmix_proc_t *all, size_t n, pmix_op_cbfunc_t then, void *context)
{
    (void)process, (void)object, (void)status, (void)message, (void)all, (void)n;
    then(PMIX_SUCCESS, context);
    return PMIX_SUCCESS;
}

/* All ranks are on this host: what they have to tell each other is what the server has been given. */
static pmix_status_t fence(const pmix_proc_t *all, size_t count, const pmix_info_t *info, size_t infos, char *data,
                           size_t n, pmix_modex_cbfunc_t then, void *context)
{
    (void)all, (void)count, (void)info, (void)infos;
    then(PMIX_SUCCESS, data, n, context, NULL, NULL);
    return PMIX_SUCCESS;
}

static pmix_status_t ask_others(const pmix_proc_t *process, const pmix_info_t *info, size_t n, pmix_modex_cbfunc_t then,
                                void *context)
{
    (void)process, (void)info, (void)n, (void)then, (void)context;
    return PMIX_ERR_NOT_FOUND;
}

static pmix_server_module_t module = {.client_finalized = finalized,
                                      .abort = aborted,
                                      .fence_nb = fence,
                                      .direct_modex = ask_others,
                                      .client_connected2 = connected};

static pmix_info_t *put(pmix_info_t *info, const char *key, pmix_data_type_t type)
{
    *info = (pmix_info_t){.value.type = type};
    snprintf(info->key, sizeof info->key, "%s", key);
    return info;
}

static void put_u32(pmix_info_t *info, const char *key, uint32_t number)
{
    put(info, key, PMIX_UINT32)->value.data.uint32 = number;
}

static void put_u16(pmix_info_t *info, const char *key, uint16_t number)
{
    put(info, key, PMIX_UINT16)->value.data.uint16 = number;
}

static void put_rank(pmix_info_t *info, const char *key, pmix_rank_t rank)
{
    put(info, key, PMIX_PROC_RANK)->value.data.rank = rank;
}

static void put_text(pmix_info_t *info, const char *key, char *text)
{
    put(info, key, PMIX_STRING)->value.data.string = text;
}

static size_t put_job(pmix *p, pc__launch *l, pmix_info_t *at)
{
    const uint32_t n = (uint32_t)l->start.ranks;
    size_t i = 0;
    put_u32(&at[i++], PMIX_UNIV_SIZE, n);
    put_u32(&at[i++], PMIX_JOB_SIZE, n);
    put_u32(&at[i++], PMIX_LOCAL_SIZE, n);
    put_u32(&at[i++], PMIX_NODE_SIZE, n);
    put_u32(&at[i++], PMIX_MAX_PROCS, n);
    put_u32(&at[i++], PMIX_NUM_NODES, 1);
    put_u32(&at[i++], PMIX_JOB_NUM_APPS, 1);
    put_u32(&at[i++], PMIX_NODEID, 0);
    put_rank(&at[i++], PMIX_LOCALLDR, 0);
    put_text(&at[i++], PMIX_NODE_MAP, p->nodes);
    put_text(&at[i++], PMIX_PROC_MAP, p->procs);
    put_text(&at[i++], PMIX_LOCAL_PEERS, p->peers);
    put_text(&at[i++], PMIX_JOBID, p->space);
    put_text(&at[i++], PMIX_NSDIR, p->segments);
    put_text(&at[i++], PMIX_TMPDIR, p->segments);
    return i;
}

static size_t put_one(pc__launch *l, pmix_info_t *at, int rank)
{
    size_t i = 0;
    put_rank(&at[i++], PMIX_RANK, (pmix_rank_t)rank);
    put_rank(&at[i++], PMIX_GLOBAL_RANK, (pmix_rank_t)rank);
    put_rank(&at[i++], PMIX_APP_RANK, (pmix_rank_t)rank);
    put_u16(&at[i++], PMIX_LOCAL_RANK, (uint16_t)rank);
    put_u16(&at[i++], PMIX_NODE_RANK, (uint16_t)rank);
    put_u32(&at[i++], PMIX_NODEID, 0);
    put_u32(&at[i++], PMIX_APPNUM, 0);
    put_text(&at[i++], PMIX_HOSTNAME, l->host);
    return i;
}

/* Tell the server of the job and its ranks. It copies what it is given. */
static bool describe(pmix *p, pc__launch *l)
{
    const int n = l->start.ranks;
    pmix_info_t *job = pc__calloc((size_t)n + INFOS_MOST, sizeof *job);
    pmix_info_t *ranks = pc__calloc((size_t)n * OF_A_RANK, sizeof *ranks);
    pmix_data_array_t *arrays = pc__calloc((size_t)n, sizeof *arrays);
    bool fine = job && ranks && arrays;
    if (fine) {
        size_t count = put_job(p, l, job);
        for (int rank = 0; rank < n; rank++) {
            pmix_info_t *own = ranks + rank * OF_A_RANK;
            arrays[rank] = (pmix_data_array_t){.type = PMIX_INFO, .size = put_one(l, own, rank), .array = own};
            put(&job[count++], PMIX_PROC_DATA, PMIX_DATA_ARRAY)->value.data.darray = &arrays[rank];
        }
        fine = wait_for(p, p->PMIx_server_register_nspace(p->space, n, job, count, finished, p));
    }
    pc__free(job);
    pc__free(ranks);
    pc__free(arrays);
    return fine;
}

static pmix_proc_t process_of(const pmix *p, int rank)
{
    pmix_proc_t process = {.rank = (pmix_rank_t)rank};
    memcpy(process.nspace, p->space, sizeof process.nspace);
    return process;
}

static void release(pmix *p, char *text)
{
    pmix_value_t value = {.type = PMIX_STRING, .data.string = text};
    if (text)
        p->PMIx_Value_destruct(&value);
}

/* Ranks of this start, which may be fewer than of the one before. */
static bool list_peers(pmix *p, int ranks)
{
    pc__text peers = {0};
    for (int rank = 0; rank < ranks; rank++)
        pc__text_add(&peers, "%s%d", rank ? "," : "", rank);
    pc__free(p->peers);
    release(p, p->procs);
    p->procs = NULL;
    p->peers = peers.data;
    return !peers.failed && p->PMIx_generate_ppn(p->peers, &p->procs) == PMIX_SUCCESS;
}

bool pc__pmix_start(pc__launch *launch)
{
    pmix *p = launch->pmix;
    if (!p)
        return false;
    pc__pmix_stop(launch);
    snprintf(p->space, sizeof p->space, "%s.%d", launch->start.run, launch->start.generation);
    pc__folder_fresh(&p->folder, "segments", p->segments); /* ranks that were killed leave theirs behind */
    bool fine = list_peers(p, launch->start.ranks) && describe(p, launch);
    for (int rank = 0; rank < launch->start.ranks && fine; rank++) {
        const pmix_proc_t process = process_of(p, rank);
        fine = wait_for(p, p->PMIx_server_register_client(&process, getuid(), getgid(), NULL, finished, p));
    }
    return fine;
}

void pc__pmix_stop(pc__launch *launch)
{
    pmix *p = launch->pmix;
    if (!p || !p->space[0])
        return;
    p->PMIx_server_deregister_nspace(p->space, finished, p);
    (void)wait_for(p, PMIX_SUCCESS);
    p->space[0] = 0;
}

void pc__pmix_variables(pc__launch *launch, int rank, void (*add)(void *context, const char *variable), void *context)
{
    pmix *p = launch->pmix;
    char **variables = NULL;
    if (!p || !p->space[0])
        return;
    const pmix_proc_t process = process_of(p, rank);
    if (p->PMIx_server_setup_fork(&process, &variables) == PMIX_SUCCESS)
        for (char **at = variables; at && *at; at++)
            add(context, *at);
    PMIX_ARGV_FREE(variables);
    /* Open MPI 4 asks PMIx only where something it knows has started it; these name PMIx as what did. */
    if (!getenv("OMPI_MCA_schizo") && !getenv("OMPI_MCA_ess")) {
        add(context, "OMPI_MCA_schizo=^orte");
        add(context, "OMPI_MCA_ess=pmi");
    }
    static const char *const where[] = {"OMPI_MCA_btl_vader_backing_directory",
                                        "OMPI_MCA_btl_sm_backing_directory"}; /* 4, 5 */
    char text[PC__FOLDER_MAX + 64];
    for (int i = 0; i < PC__COUNT(where); i++)
        if (!getenv(where[i])) {
            snprintf(text, sizeof text, "%s=%s", where[i], p->segments);
            add(context, text);
        }
}

static bool open_library(pmix *p)
{
    p->library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!p->library)
        return false;
#define FIND(name) *(void **)&p->name = dlsym(p->library, #name);
    FUNCTIONS(FIND)
#undef FIND
#define THERE(name) &&p->name
    return true FUNCTIONS(THERE);
#undef THERE
}

static bool serve(pmix *p, pc__launch *l)
{
    pmix_info_t infos[4];
    if (!pc__folder_begin(&p->folder))
        return false;
    pc__folder_fresh(&p->folder, "server", p->server);
    put_text(&infos[0], PMIX_SERVER_TMPDIR, p->server);
    put_text(&infos[1], PMIX_SYSTEM_TMPDIR, p->server);
    put_text(&infos[2], PMIX_SERVER_NSPACE, l->start.run);
    put_rank(&infos[3], PMIX_SERVER_RANK, 0);
    const pmix_status_t status = p->PMIx_server_init(&module, infos, 4);
    if (status != PMIX_SUCCESS) {
        pc__launch_tell(l, "libpmix does not start (%s): each rank that calls MPI_Init will be alone",
                        p->PMIx_Error_string(status));
        pc__folder_end(&p->folder);
        return false;
    }
    return p->PMIx_generate_regex(l->host, &p->nodes) == PMIX_SUCCESS;
}

/* libpmix waits by select, which ends a process that has too many files open. */
static bool has_low_files(void)
{
    const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (file >= 0)
        close(file);
    return file >= 0 && file < FD_SETSIZE - 64;
}

/* libpmix 4.2 does not begin again where it has ended: the first job of a process has it. */
static bool is_first(void)
{
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    return !atomic_flag_test_and_set(&begun);
}

void pc__pmix_begin(pc__launch *launch)
{
    pmix *p = launch->options.nodes == 1 && has_low_files() && is_first() ? pc__calloc(1, sizeof *p) : NULL;
    if (!p)
        return;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    if (open_library(p) && serve(p, launch)) {
        launch->pmix = p;
        return;
    }
    if (p->library)
        dlclose(p->library);
    pc__free(p);
}

void pc__pmix_end(pc__launch *launch)
{
    pmix *p = launch->pmix;
    if (!p)
        return;
    pc__pmix_stop(launch);
    release(p, p->nodes);
    release(p, p->procs);
    p->PMIx_server_finalize();
    pc__folder_end(&p->folder);
    pc__free(p->peers);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    pc__free(p); /* the library stays: its threads may still be on their way out */
    launch->pmix = NULL;
}
#else
void pc__pmix_begin(pc__launch *launch)
{
    launch->pmix = NULL;
}

bool pc__pmix_start(pc__launch *launch)
{
    return launch->pmix;
}

void pc__pmix_variables(pc__launch *launch, int rank, void (*add)(void *context, const char *variable), void *context)
{
    (void)launch, (void)rank, (void)add, (void)context;
}

void pc__pmix_stop(pc__launch *launch)
{
    (void)launch;
}

void pc__pmix_end(pc__launch *launch)
{
    (void)launch;
}
#endif
#endif
