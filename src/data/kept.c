/* kept.c: samples that stay on the device. */
#include "data/kept.h"

#include "device/failure.h"
#include "device/order.h"
#include "tensor/read.h"

#include <paracord/memory.h>
#include <paracord/ops.h>
#include <paracord/threads.h>

enum { SHARE = 2, CHUNK = 4 << 20 }; /* SHARE: of the device's free memory samples take one part in so many */

struct pc__kept {
    pc_tensor *rows[PC_FIELDS_MAX], *order;
    int64_t epoch; /* whose order is there; -1: none's */
    bool there;    /* the rows are known to have arrived */
};

static bool is_refused(const char *things, pc_residence wanted, char *why, size_t n)
{
    static const char *const words[] = {"no", "0", "yes", "1"};
    const int said = pc__env_word("PARACORD_RESIDENT", words, PC__COUNT(words));
    if (wanted == PC_RESIDENCE_NO)
        snprintf(why, n, "%s stay in host memory: asked for by .resident", things);
    else if (said == 0 || said == 1)
        snprintf(why, n, "%s stay in host memory: PARACORD_RESIDENT=%s", things, words[said]);
    else
        return false;
    return true;
}

/* They do not fit, too, where the device does not say what it has. */
pc_status pc__residence(pc_device device, const char *things, int64_t size, pc_residence wanted, char *why, size_t n,
                        bool *fits)
{
    char name[PC_DEVICE_NAME_MAX];
    pc_memory_stats stats;
    const double bytes = (double)size;
    *fits = false;
    if (is_refused(things, wanted, why, n))
        return PC_OK;
    PC__TRY(pc_memory_query(device, &stats));
    *fits = bytes <= (double)stats.free / SHARE;
    (void)pc_device_name(device, name);
    if (*fits)
        snprintf(why, n, "%s live on %s: %.1f MB of the %.1f MB that are free there", things, name, bytes * 1e-6,
                 (double)stats.free * 1e-6);
    else
        snprintf(why, n, "%s stay in host memory: they take %.1f MB, more than half of the %.1f MB that %s has free",
                 things, bytes * 1e-6, (double)stats.free * 1e-6, name);
    return PC_OK;
}

static int64_t row_bytes(const pc__source *s)
{
    size_t bytes = sizeof(int64_t); /* its place in the order */
    for (int k = 0; k < s->parts; k++)
        bytes += pc__field_bytes(&s->part[k]);
    return (int64_t)bytes;
}

static pc_status make_room(pc__kept *kept, const pc__source *s)
{
    pc__meta meta;
    pc__meta_contiguous(&meta, PC_I64, 1, &s->count);
    kept->order = pc__tensor_unscoped(&meta, s->device);
    for (int k = 0; kept->order && k < s->parts; k++) {
        pc__rows_meta(&meta, &s->part[k], s->count);
        kept->rows[k] = pc__tensor_unscoped(&meta, s->device);
        if (!kept->rows[k])
            return PC_ERR_MEMORY;
    }
    return kept->order ? PC_OK : PC_ERR_MEMORY;
}

void pc__kept_free(pc__kept *kept)
{
    if (!kept)
        return;
    for (int k = 0; k < PC_FIELDS_MAX; k++)
        pc_tensor_free(kept->rows[k]);
    pc_tensor_free(kept->order);
    pc__free(kept);
}

/* Samples that pass through host memory at once. */
typedef struct chunk {
    pc__made made;
    void *parts[PC_FIELDS_MAX];
    int64_t room;
} chunk;

static pc_status open_chunk(chunk *c, const pc__source *s)
{
    c->room = PC__MIN(s->count, PC__MAX(1, CHUNK / row_bytes(s)));
    c->made.samples = pc__alloc((size_t)c->room * sizeof(int64_t));
    for (int k = 0; c->made.samples && k < s->parts; k++) {
        c->parts[k] = pc__alloc((size_t)c->room * pc__field_bytes(&s->part[k]));
        if (!c->parts[k])
            return PC_ERR_MEMORY;
    }
    return c->made.samples ? PC_OK : PC_ERR_MEMORY;
}

static void close_chunk(chunk *c)
{
    for (int k = 0; k < PC_FIELDS_MAX; k++)
        pc__free(c->parts[k]);
    pc__free(c->made.samples);
}

static pc_status send_chunk(pc__kept *kept, const pc__source *s, chunk *c)
{
    PC__TRY(s->kind->fill(s, pc_threads_get(), &c->made, c->parts));
    pc_status status = PC_OK;
    PC_SCOPE {
        for (int k = 0; k < s->parts && status == PC_OK; k++) {
            pc_tensor *part = pc_slice(kept->rows[k], 0, c->made.first, c->made.first + c->made.n, 1);
            status = part ? pc__tensor_write(part, c->parts[k], "the loader") : pc_error_last()->status;
        }
    }
    return status;
}

static pc_status send(pc__kept *kept, const pc__source *s)
{
    chunk c = {0};
    pc_status status = open_chunk(&c, s);
    for (; status == PC_OK && c.made.first < s->count; c.made.first += c.made.n) {
        c.made.n = PC__MIN(c.room, s->count - c.made.first);
        for (int64_t i = 0; i < c.made.n; i++)
            c.made.samples[i] = c.made.first + i;
        status = send_chunk(kept, s, &c);
    }
    close_chunk(&c);
    return status;
}

static pc_status make(const pc__source *s, pc__kept **kept)
{
    *kept = pc__calloc(1, sizeof **kept);
    if (!*kept)
        return PC_ERR_MEMORY;
    (*kept)->epoch = -1;
    PC__TRY(make_room(*kept, s));
    return send(*kept, s);
}

pc_status pc__kept_new(const pc__source *s, pc_residence wanted, char *why, size_t n, pc__kept **kept)
{
    bool fits = false;
    *kept = NULL;
    PC__TRY(pc__residence(s->device, "samples", s->count * row_bytes(s), wanted, why, n, &fits));
    if (!fits || make(s, kept) == PC_OK)
        return PC_OK;
    const pc_error error = pc__error_take();
    pc__kept_free(*kept);
    *kept = NULL;
    if (error.status != PC_ERR_MEMORY)
        return pc__error_put(&error);
    snprintf(why, n, "samples stay in host memory: %s", error.message);
    return PC_OK;
}

static pc_status wait_for(pc_tensor *t)
{
    PC__TRY(pc__settle(t->storage, false, "the loader", true));
    return pc__storage_sound(t->storage, "the loader");
}

/* A failure on the way must not pass for samples: after one they are sent again. */
static pc_status arrive(pc__kept *kept, const pc__source *s)
{
    for (int k = 0; k < s->parts; k++)
        if (wait_for(kept->rows[k]) != PC_OK) {
            const pc_error error = pc__error_take();
            if (send(kept, s) != PC_OK)
                pc_error_clear();
            return pc__error_put(&error);
        }
    kept->there = true;
    return PC_OK;
}

static pc_status prepare(pc__kept *kept, const pc__source *s)
{
    if (kept->epoch != s->order_epoch) {
        kept->epoch = -1;
        PC__TRY(pc__tensor_write(kept->order, s->order, "the loader"));
        PC__TRY(wait_for(kept->order));
        kept->epoch = s->order_epoch;
    }
    return kept->there ? PC_OK : arrive(kept, s);
}

static pc_tensor *take(pc_tensor *rows, pc_tensor *order, int64_t first, int64_t n)
{
    pc_tensor *batch = NULL;
    PC_SCOPE {
        batch = pc_tensor_retain(pc_index_select(rows, 0, pc_slice(order, 0, first, first + n, 1)));
    }
    return batch;
}

pc_status pc__kept_make(pc__kept *kept, const pc__source *s, pc__made *made)
{
    PC__TRY(prepare(kept, s));
    for (int k = 0; k < s->parts; k++) {
        made->tensor[k] = take(kept->rows[k], kept->order, made->first, made->n);
        if (!made->tensor[k])
            return pc_error_last()->status;
    }
    return PC_OK;
}
