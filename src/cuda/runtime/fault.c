/* fault.c: what kernels found wrong while they ran, and which work a lost device stopped in. */
#include "cuda/runtime/state.h"
#include "device/failure.h"

pc_status pc__cuda_fault_say(pc__cuda_fault *fault, const char *name, pc__site site, int device)
{
    int kind = __atomic_load_n(&fault->kind, __ATOMIC_ACQUIRE);
    if (kind == PC__FAULT_NONE)
        return PC_OK;
    long long where = fault->where, value = fault->value, last = fault->limit - 1;
    __atomic_store_n(&fault->kind, PC__FAULT_NONE, __ATOMIC_RELEASE);
    char place[PC__SITE_TEXT];
    pc__site_text(site, place);
    bool label = kind == PC__FAULT_LABEL;
    return pc__fail(PC_ERR_RANGE, "%s, queued at %s, failed on cuda:%d: %s: %s %lld%s is %lld; it must be 0 to %lld",
                    name, place, device, name, label ? "the label of row" : "entry", where,
                    label ? "" : " of the index", value, last);
}

/* The stream's failure is the thread's last error, which is somebody else's business until it is told. */
void pc__cuda_stream_fails(pc__cuda_state *s, uint64_t ticket)
{
    pc_error error = pc__error_take();
    if (!s->failing || ticket < s->failed_ticket)
        pc__failure_begin(s->stream->id, ticket, &error);
    if (s->failing) {
        s->failed_ticket = PC__MIN(s->failed_ticket, ticket);
        return;
    }
    s->failing = true;
    s->failed_ticket = ticket;
    s->error = error;
    atomic_store_explicit(&s->stream->failed, true, memory_order_release);
}

void pc__cuda_stream_fail(pc_stream *stream, uint64_t ticket, const pc_error *error)
{
    pc__cuda_state *s = stream->implementation;
    pc_error before = pc__error_take();
    (void)pc__error_put(error);
    pthread_mutex_lock(&s->lock);
    pc__cuda_stream_fails(s, ticket);
    pthread_mutex_unlock(&s->lock);
    (void)pc__error_put(&before);
}

static void look_at_works(pc__cuda_state *s, uint64_t done)
{
    uint64_t first = done > PC__CUDA_WORKS ? done - PC__CUDA_WORKS : 0;
    for (uint64_t ticket = PC__MAX(s->checked, first) + 1; ticket <= done; ticket++) {
        const pc__cuda_origin *origin = &s->origin[ticket % PC__CUDA_WORKS];
        if (origin->ticket == ticket && pc__cuda_fault_say(&s->faults[ticket % PC__CUDA_WORKS], origin->name,
                                                           origin->site, s->stream->device.index) != PC_OK)
            pc__cuda_stream_fails(s, ticket);
    }
    s->checked = PC__MAX(s->checked, done);
}

/* A recording's launches share what they find wrong: it may be of any that was not looked at. Those that are done may
 * go now. */
static void look_at_launches(pc__cuda_state *s, uint64_t done)
{
    int left = 0;
    for (int i = 0; i < s->launches; i++) {
        pc__cuda_launch launch = s->launch[i];
        if (launch.first <= done && pc__cuda_graph_faults(launch.graph) != PC_OK)
            pc__cuda_stream_fails(s, launch.first);
        if (launch.ticket > done) {
            launch.first = PC__MAX(launch.first, done + 1);
            s->launch[left++] = launch;
        } else {
            pc__cuda_graph_drop(launch.graph);
        }
    }
    s->launches = left;
}

void pc__cuda_faults_look(pc__cuda_state *s, uint64_t done)
{
    if (s->checked >= done && !s->launches)
        return;
    pc_error before = pc__error_take();
    look_at_works(s, done);
    look_at_launches(s, done);
    (void)pc__error_put(&before);
}

/* The works between what is known to be done and the end of the queue: one of them did it, or one of another stream. */
pc_status pc__cuda_stream_lost(pc__cuda_state *s, cudaError_t status)
{
    int device = s->stream->device.index;
    (void)cudaGetLastError();
    if (!pc__cuda_is_loss(status))
        return pc__cuda_check(status, "waiting for the GPU");
    uint64_t done = atomic_load(&s->stream->done), queued = atomic_load(&s->stream->ticket), n = 0;
    const pc__cuda_origin *first = NULL, *last = NULL;
    for (uint64_t t = queued > done + PC__CUDA_WORKS ? queued - PC__CUDA_WORKS + 1 : done + 1; t <= queued; t++) {
        const pc__cuda_origin *origin = &s->origin[t % PC__CUDA_WORKS];
        if (origin->ticket != t)
            continue;
        first = first ? first : origin;
        last = origin;
        n++;
    }
    char a[PC__SITE_TEXT], b[PC__SITE_TEXT], where[320];
    if (n <= 1)
        snprintf(where, sizeof where, "in %.60s (%.160s)", first ? first->name : "work of another stream",
                 pc__site_text(first ? first->site : 0, a));
    else
        snprintf(where, sizeof where, "in one of the last %llu pieces of work, from %.40s (%.80s) to %.40s (%.80s)",
                 (unsigned long long)n, first->name, pc__site_text(first->site, a), last->name,
                 pc__site_text(last->site, b));
    return pc__cuda_lose(device, status, where);
}
