/* keras_h5_apart.c: an HDF5 file is read by a child in jail. libhdf5 trusts what it reads: a damaged file makes it run
 * in circles, take all memory or write where it should not. There it can do that. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "base/site.h"
#include "io/keras_h5_ask.h"

#include <errno.h>

#define NAME_MOST 4096
#define WHAT_MOST 2048
#define BYTES_A_SECOND 20000000 /* more than this and a file gets more time */

/* As it is sent: texts behind it, of these sizes with their zeros; 0: NULL. */
typedef struct sent_question {
    pc__h5_question question;
    uint32_t name_bytes, what_bytes;
} sent_question;

/* ---- the child */

static void *take_room(void *context, uint64_t bytes)
{
    const pc__jail_cell *cell = context;
    if (bytes <= cell->room_bytes)
        return cell->room;
    return pc__null(PC_ERR_FORMAT, "what it holds takes more than the %zu MB of memory that it gets",
                    cell->room_bytes >> 20);
}

static bool listen(const pc__jail_cell *cell, pc__h5_question *question, char name[NAME_MOST], char what[WHAT_MOST])
{
    sent_question sent;
    if (!pc__cell_listen(cell, &sent, sizeof sent) || !pc__cell_listen(cell, name, sent.name_bytes) ||
        !pc__cell_listen(cell, what, sent.what_bytes))
        return false;
    *question = sent.question;
    question->name = sent.name_bytes ? name : NULL;
    question->what = sent.what_bytes ? what : NULL;
    return true;
}

static void serve(const pc__jail_cell *cell, void *context)
{
    pc__h5_file *file = context;
    pc__h5_question question;
    pc__h5_answer answer;
    static char name[NAME_MOST], what[WHAT_MOST];
    const pc__h5_room room = {take_room, (void *)cell};
    file->source.fd = cell->file;
    pc_error_clear();
    while (listen(cell, &question, name, what)) {
        pc__h5_answer_here(file->path, &file->source, &question, &room, &answer);
        pc__cell_answer(cell, &answer, sizeof answer);
    }
}

/* ---- the program */

/* Fewer bytes than all that it may hold are enough for every file that is not packed. */
static bool start(pc__jail *jail, pc__jail_plan *plan, uint64_t size)
{
    const size_t least = PC__MIN(plan->room, (size_t)size * 2 + ((size_t)1 << 20));
    for (;; plan->room = PC__MAX(plan->room / 2, least)) {
        if (pc__jail_start(jail, plan))
            return true;
        if (errno != ENOMEM || plan->room == least)
            return false;
    }
}

bool pc__h5_start(pc__jail *jail, pc__jail_plan *plan, const char *path, uint64_t size, const char *verb)
{
    static const char *const ways[] = {"off", "on"};
    if (pc__env_word("PARACORD_JAIL", ways, PC__COUNT(ways)) == 0)
        return false;
    /* Under the lock nobody of this library is inside HDF5, whose state the child goes on with; and it is silent. */
    pc__h5_quiet quiet = pc__h5_enter();
    const bool started = start(jail, plan, size);
    const int problem = errno;
    pc__h5_leave(quiet);
    char words[128];
    if (!started)
        pc__log(PC_LOG_WARNING, "%s is %s in this process, since none can be made to do it: %s", path, verb,
                strerror_r(problem, words, sizeof words));
    else if (!(jail->lost & PC__JAIL_SECCOMP) || !(jail->lost & PC__JAIL_LIMITS))
        pc__log(PC_LOG_INFO, "%s is %s in a process of its own, but without %s, which this system does not allow", path,
                verb, jail->lost & PC__JAIL_LIMITS ? "seccomp" : "limits");
    return started;
}

pc__jail_plan pc__h5_plan(const pc__h5_source *source)
{
    return (pc__jail_plan){.file = source->fd,
                           .room = (size_t)source->limit,
                           .memory = source->limit > INT64_MAX / 2 ? INT64_MAX : 2 * source->limit,
                           .seconds =
                               pc__h5_limit.seconds + (int)PC__MIN(source->size / BYTES_A_SECOND, (uint64_t)1 << 20)};
}

bool pc__h5_start_apart(pc__h5_file *file)
{
    pc__jail_plan plan = pc__h5_plan(&file->source);
    plan.serve = serve, plan.context = file;
    return pc__h5_start(&file->jail, &plan, file->path, file->source.size, "read");
}

void pc__h5_make_safe(pc_error *error)
{
    error->message[sizeof error->message - 1] = error->cause[sizeof error->cause - 1] = 0;
    error->file = __FILE__;
    error->line = __LINE__;
    error->site = pc__site_here(); /* numbers of call sites are the process's own */
    if ((unsigned)error->status >= PC_STATUS_COUNT)
        error->status = PC_ERR_FORMAT;
}

pc_status pc__h5_ask_apart(pc__h5_file *file, const pc__h5_question *question, pc__h5_answer *answer)
{
    char bytes[sizeof(sent_question) + NAME_MOST + WHAT_MOST], why[PC__JAIL_WORDS];
    const char *name = question->name, *what = question->what;
    sent_question sent = {.question = *question,
                          .name_bytes = name ? (uint32_t)PC__MIN(strlen(name) + 1, NAME_MOST + 1) : 0,
                          .what_bytes = what ? (uint32_t)PC__MIN(strlen(what) + 1, WHAT_MOST + 1) : 0};
    if (sent.name_bytes > NAME_MOST || sent.what_bytes > WHAT_MOST)
        return pc__fail(PC_ERR_FORMAT, "%s: a name in it has more than %d bytes: %.40s...", file->path, NAME_MOST - 1,
                        name);
    memcpy(bytes, &sent, sizeof sent);
    memcpy(bytes + sizeof sent, name ? name : "", sent.name_bytes);
    memcpy(bytes + sizeof sent + sent.name_bytes, what ? what : "", sent.what_bytes);
    if (!pc__jail_ask(&file->jail, bytes, sizeof sent + sent.name_bytes + sent.what_bytes, answer, sizeof *answer, why))
        return pc__fail_cause(PC_ERR_FORMAT, why, "cannot read %s: it is damaged, or made to harm who reads it",
                              file->path);
    pc__h5_make_safe(&answer->error);
    if (answer->error.status == PC_ERR_MEMORY)
        return pc__fail(PC_ERR_FORMAT,
                        "cannot read %s: that takes more than %lld MB of memory, which is the limit for a file of its "
                        "size: it is damaged, or made to harm who reads it",
                        file->path, (long long)(file->jail.memory >> 20));
    return PC_OK;
}

pc_status pc__h5_take_apart(const pc__h5_file *file, uint64_t n, void **bytes)
{
    *bytes = pc__alloc((size_t)n);
    if (!*bytes)
        return PC_ERR_MEMORY;
    if (pc__jail_take(&file->jail, *bytes, (size_t)n))
        return PC_OK;
    pc__free(*bytes);
    *bytes = NULL;
    return pc__fail(PC_ERR_FORMAT, "cannot read %s: its reader promises more than it has", file->path);
}

#endif
