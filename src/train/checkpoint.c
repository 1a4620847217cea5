/* checkpoint.c: the file: "PCCKPT03", the length of the rest and its checksum, then a header and the tensors in order,
 * each with its element count. Little-endian, as everything that Paracord runs on. A change of the header, or of what
 * its fields mean, takes a new number in the first word. */
#include "train/checkpoint.h"

#include "io/file.h"
#include "nn/scaler.h"

#include <limits.h>
#include <math.h>
#include <paracord/autograd.h>

static const char magic[8] = "PCCKPT03";

/* Eight bytes a field: no gaps, and the same for every compiler. */
typedef struct header {
    char settings[1024];
    int64_t epoch, batch;
    double loss_sum;
    int64_t correct, seen;
    double seconds;
    int64_t last_epoch, last_epochs;
    double loss, accuracy, test_loss, test_accuracy, last_seconds, images_per_second;
    int64_t has_test;
    uint64_t seed, draws; /* of the thread's generator */
    int64_t step;         /* of the optimiser */
    double lr;
    int64_t tensors;
} header;
_Static_assert(sizeof(header) == 1024 + 20 * 8, "a header has no gaps");

typedef struct front {
    char magic[8];
    uint64_t length, checksum;
} front;

/* FNV-1a over 8-byte words: against torn and rotten files, not against malice. */
static uint64_t checksum(const uint8_t *bytes, size_t n)
{
    uint64_t hash = 14695981039346656037ull, word;
    for (; n >= 8; n -= 8, bytes += 8) {
        memcpy(&word, bytes, 8);
        hash = (hash ^ word) * 1099511628211ull;
        hash ^= hash >> 29;
    }
    for (; n; n--)
        hash = (hash ^ *bytes++) * 1099511628211ull;
    return hash;
}

static int tensor_count(const pc__fit *fit)
{
    return fit->optimizer->count * (1 + fit->optimizer->slots) + (fit->scaler != NULL);
}

/* Parameters first, then the slots, then the loss scaler's numbers. */
static pc_tensor *tensor_at(const pc__fit *fit, int i)
{
    const pc_optimizer *o = fit->optimizer;
    if (i == o->count * (1 + o->slots))
        return fit->scaler->numbers;
    return i < o->count ? o->parameters[i] : o->state[i - o->count];
}

static pc_status put_tensor(pc__text *out, const pc_tensor *t)
{
    int64_t count = pc_tensor_count(t);
    size_t bytes = (size_t)count * pc_dtype_size(t->dtype);
    pc__text_append(out, (const char *)&count, sizeof count);
    size_t at = out->length;
    /* room first, then the values straight into it */
    static const char zeros[4096];
    for (size_t left = bytes; left && !out->failed;) {
        size_t n = PC__MIN(left, sizeof zeros);
        pc__text_append(out, zeros, n);
        left -= n;
    }
    return out->failed ? PC_ERR_MEMORY : pc_read(t, out->data + at, bytes);
}

static void describe(const pc__fit *fit, const char *settings, header *h)
{
    const pc__standing *at = &fit->at;
    const pc_epoch_result *last = &fit->last;
    pc_generator generator = pc_generator_get();
    *h = (header){.epoch = at->epoch,
                  .batch = at->batch,
                  .loss_sum = at->score.loss,
                  .correct = at->score.correct,
                  .seen = at->score.seen,
                  .seconds = at->seconds,
                  .last_epoch = last->epoch,
                  .last_epochs = last->epochs,
                  .loss = last->loss,
                  .accuracy = last->accuracy,
                  .test_loss = last->test_loss,
                  .test_accuracy = last->test_accuracy,
                  .last_seconds = last->seconds,
                  .images_per_second = last->images_per_second,
                  .has_test = last->has_test,
                  .seed = generator.seed,
                  .draws = generator.step,
                  .step = fit->optimizer->settings.step,
                  .lr = fit->optimizer->settings.lr,
                  .tensors = tensor_count(fit)};
    snprintf(h->settings, sizeof h->settings, "%s", settings);
}

/* A file that someone made may say anything: only what a training can be in is believed. */
static bool is_possible(const header *h)
{
    bool position = h->epoch >= 0 && h->epoch < INT_MAX && h->batch >= 0 && h->correct >= 0 && h->seen >= h->correct &&
                    h->seconds >= 0;
    bool last = h->last_epoch >= 0 && h->last_epoch <= h->epoch && h->last_epochs >= 0 && h->last_epochs <= INT_MAX &&
                (h->has_test == 0 || h->has_test == 1);
    return position && last && h->step >= 0 && isfinite(h->lr);
}

static void adopt(const header *h, pc__fit *fit)
{
    fit->at = (pc__standing){h->epoch, h->batch, {h->loss_sum, h->correct, h->seen}, h->seconds};
    fit->last = (pc_epoch_result){.epoch = (int)h->last_epoch,
                                  .epochs = (int)h->last_epochs,
                                  .loss = h->loss,
                                  .accuracy = h->accuracy,
                                  .test_loss = h->test_loss,
                                  .test_accuracy = h->test_accuracy,
                                  .seconds = h->last_seconds,
                                  .images_per_second = h->images_per_second,
                                  .has_test = h->has_test != 0};
    pc__optimizer_adopt(fit->optimizer, h->step);
    fit->optimizer->settings.lr = h->lr;
    pc_generator_set((pc_generator){h->seed, h->draws});
}

pc_status pc__checkpoint_save(const char *path, pc__fit *fit, const char *settings)
{
    header h;
    PC__TRY(pc__fit_settle(fit));
    PC__TRY(pc__optimizer_settle(fit->optimizer));
    describe(fit, settings, &h);
    front f = {{0}, 0, 0};
    memcpy(f.magic, magic, sizeof f.magic);
    pc__text out = {0};
    pc__text_append(&out, (const char *)&f, sizeof f);
    pc__text_append(&out, (const char *)&h, sizeof h);
    pc_status status = out.failed ? PC_ERR_MEMORY : PC_OK;
    for (int i = 0; i < h.tensors && status == PC_OK; i++)
        status = put_tensor(&out, tensor_at(fit, i));
    if (status == PC_OK) {
        f.length = out.length - sizeof f;
        f.checksum = checksum((const uint8_t *)out.data + sizeof f, f.length);
        memcpy(out.data, &f, sizeof f);
        status = pc__file_write(path, out.data, out.length);
    }
    pc__text_free(&out);
    return status;
}

static pc_status check_settings(const char *path, const char *was, const char *now)
{
    while (*was || *now) {
        int a = (int)strcspn(was, "\n"), b = (int)strcspn(now, "\n");
        if (a != b || memcmp(was, now, (size_t)a) != 0)
            return pc__fail(PC_ERR_STATE,
                            "%s was made with %.*s, and this run has %.*s; resume with the same settings or choose "
                            "another --out",
                            path, a, a ? was : "less", b, b ? now : "less");
        was += a + (was[a] == '\n');
        now += b + (now[b] == '\n');
    }
    return PC_OK;
}

static pc_status damaged(const char *path, const char *how)
{
    return pc__fail(PC_ERR_FORMAT, "%s is no checkpoint that can be resumed: %s; delete it to begin anew", path, how);
}

static pc_status take_tensors(const char *path, const pc__fit *fit, const uint8_t *bytes, size_t n)
{
    for (int i = 0; i < tensor_count(fit); i++) {
        pc_tensor *t = tensor_at(fit, i);
        int64_t count;
        size_t size = (size_t)pc_tensor_count(t) * pc_dtype_size(t->dtype);
        if (n < sizeof count + size)
            return damaged(path, "it ends too early");
        memcpy(&count, bytes, sizeof count);
        if (count != pc_tensor_count(t))
            return damaged(path, "its network has other shapes");
        pc_status status = PC_OK;
        PC_SCOPE {
            PC_NO_GRAD {
                pc_tensor *value = pc_from_data(bytes + sizeof count, pc_tensor_shape(t), t->dtype, PC_DEVICE_CPU);
                status = pc_copy(t, value);
            }
        }
        PC__TRY(status);
        bytes += sizeof count + size;
        n -= sizeof count + size;
    }
    return n ? damaged(path, "it has more tensors than the network") : PC_OK;
}

static pc_status take(const char *path, const uint8_t *bytes, size_t n, pc__fit *fit, const char *settings)
{
    front f;
    header h;
    if (n < sizeof f + sizeof h || memcmp(bytes, magic, sizeof magic) != 0)
        return damaged(path, "it does not begin like one");
    memcpy(&f, bytes, sizeof f);
    memcpy(&h, bytes + sizeof f, sizeof h);
    if (f.length != n - sizeof f)
        return damaged(path, "it is truncated");
    if (f.checksum != checksum(bytes + sizeof f, f.length))
        return damaged(path, "its checksum is wrong");
    h.settings[sizeof h.settings - 1] = 0;
    PC__TRY(check_settings(path, h.settings, settings));
    if (!is_possible(&h))
        return damaged(path, "no training can stand where it says");
    if (h.tensors != tensor_count(fit))
        return damaged(path, "its network has another number of layers");
    PC__TRY(take_tensors(path, fit, bytes + sizeof f + sizeof h, n - sizeof f - sizeof h));
    adopt(&h, fit);
    return PC_OK;
}

pc_status pc__checkpoint_load(const char *path, pc__fit *fit, const char *settings)
{
    uint8_t *bytes;
    size_t n;
    PC__TRY(pc__file_read(path, &bytes, &n));
    pc_status status = take(path, bytes, n, fit, settings);
    pc__free(bytes);
    return status;
}
