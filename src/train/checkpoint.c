/* checkpoint.c: a training's state into a file, and back. */
#include "train/checkpoint.h"

#include "dist/group.h"
#include "io/file.h"
#include "train/checkpoint_cut.h"
#include "train/checkpoint_measured.h"
#include "train/checkpoint_order.h"
#include "train/checkpoint_pieces.h"

/* The values go straight into it. */
static pc_status put_whole(pc__text *out, const pc_tensor *t)
{
    const size_t at = pc__checkpoint_put_room(out, t), bytes = (size_t)pc_tensor_count(t) * pc_dtype_size(t->dtype);
    return out->failed ? PC_ERR_MEMORY : pc_read(t, out->data + at, bytes);
}

/* Number i of them. What is cut is put together by all of its ranks. */
static pc_status put_tensor(const pc__fit *fit, int i, pc__text *out)
{
    const pc_tensor *own = pc__checkpoint_of_network(fit, i);
    const pc__cut *cut = pc__checkpoint_cut_of(fit, own);
    pc_tensor *t = pc__checkpoint_tensor_at(fit, i);
    pc_status status = PC_OK;
    if (!cut)
        return out ? put_whole(out, t) : PC_OK;
    PC_SCOPE {
        const pc_tensor *whole = pc__checkpoint_join(cut, t, pc_tensor_device(own));
        status = !whole ? pc_error_last()->status : out ? put_whole(out, whole) : PC_OK;
    }
    return status;
}

static pc__checkpoint_epoch packed(const pc_epoch_result *r)
{
    pc__checkpoint_epoch e = {.epoch = r->epoch,
                              .epochs = r->epochs,
                              .loss = r->loss,
                              .accuracy = r->accuracy,
                              .test_loss = r->test_loss,
                              .test_accuracy = r->test_accuracy,
                              .seconds = r->seconds,
                              .images_per_second = r->images_per_second,
                              .has_test = r->has_test,
                              .balanced = r->test_balanced_accuracy,
                              .never_named = r->never_named,
                              .uneven = r->uneven,
                              .metrics = r->metrics};
    memcpy(e.metric, r->metric, sizeof e.metric);
    return e;
}

static pc_epoch_result unpacked(const pc__checkpoint_epoch *e)
{
    pc_epoch_result r = {.epoch = (int)e->epoch,
                         .epochs = (int)e->epochs,
                         .loss = e->loss,
                         .accuracy = e->accuracy,
                         .test_loss = e->test_loss,
                         .test_accuracy = e->test_accuracy,
                         .seconds = e->seconds,
                         .images_per_second = e->images_per_second,
                         .has_test = e->has_test != 0,
                         .test_balanced_accuracy = e->balanced,
                         .uneven = e->uneven != 0,
                         .never_named = (int)e->never_named,
                         .metrics = (int)e->metrics};
    memcpy(r.metric, e->metric, sizeof r.metric);
    return r;
}

static pc__checkpoint_header describe(const pc__fit *fit, const char *settings)
{
    const pc__standing *at = &fit->at;
    pc_generator generator = pc_generator_get();
    pc__checkpoint_header h = {.finished = fit->finished,
                               .epoch = at->epoch,
                               .batch = at->batch,
                               .loss_sum = at->score.loss,
                               .correct = at->score.correct,
                               .seen = at->score.seen,
                               .ignored = at->score.ignored,
                               .seconds = at->seconds,
                               .last = packed(&fit->last),
                               .best = packed(&fit->best.result),
                               .seed = generator.seed,
                               .draws = generator.step,
                               .step = fit->optimizer->settings.step,
                               .lr = fit->optimizer->settings.lr,
                               .parameters = pc__fit_parameters(fit).count,
                               .tensors = pc__checkpoint_tensors(fit),
                               .kept = fit->best.result.epoch ? fit->best.count : 0,
                               .curve_width = fit->curve.width,
                               .curve_count = fit->curve.count};
    snprintf(h.settings, sizeof h.settings, "%s", settings);
    const size_t behind = strlen(h.settings) + 1;
    if (behind + strlen(fit->optimizer->name) < sizeof h.settings)
        strcpy(h.settings + behind, fit->optimizer->name);
    return h;
}

static void adopt(const pc__checkpoint_file *file, pc__fit *fit)
{
    const pc__checkpoint_header *h = &file->header;
    fit->at = (pc__standing){h->epoch, h->batch, {h->loss_sum, h->correct, h->seen, h->ignored}, h->seconds};
    fit->last = unpacked(&h->last);
    fit->best.result = unpacked(&h->best);
    pc__checkpoint_order_measured(file, fit, &fit->last);
    pc__checkpoint_order_measured(file, fit, &fit->best.result);
    fit->curve = file->curve;
    fit->drawn = fit->at.score;
    pc__optimizer_adopt(fit->optimizer, h->step);
    fit->optimizer->settings.lr = h->lr;
    if (fit->schedule.steps == 0) /* nothing but the program changes it */
        fit->optimizer->given_lr = h->lr;
    pc_generator_set((pc_generator){h->seed, h->draws});
}

/* What is shared out, or cut, is put by all ranks: in the one that writes, `out` is its file. */
static pc_status put_tensors(const pc__fit *fit, int count, pc__text *out)
{
    const int first = fit->zero ? pc__checkpoint_stepped(fit) : 0;
    pc_status status = fit->zero ? pc__checkpoint_put_pieces(fit, out) : PC_OK;
    for (int i = first; i < count && status == PC_OK; i++)
        status = put_tensor(fit, i, out);
    return status;
}

/* The header, and the names behind it that say what the network is or what is measured. */
static pc_status put_head(pc__text *out, const pc__fit *fit, pc__checkpoint_header *h)
{
    pc__text measured = {0};
    if (!fit->about)
        pc__checkpoint_put_measured(&measured, fit);
    h->about = fit->about ? (int64_t)strlen(fit->about) : (int64_t)measured.length;
    pc__checkpoint_put_head(out, h, fit->about ? fit->about : measured.data, &fit->curve);
    const bool failed = out->failed || measured.failed;
    pc__text_free(&measured);
    return failed ? PC_ERR_MEMORY : PC_OK;
}

/* Others wait for what is put together: they are told of what has failed here. */
static pc_status put(const pc__fit *fit, pc__checkpoint_header *h, pc__text *out)
{
    pc_status status = out ? put_head(out, fit, h) : PC_OK;
    status = status == PC_OK ? put_tensors(fit, (int)(h->tensors + h->kept), out) : status;
    if (status != PC_OK && fit->network)
        pc__group_fail(fit->network);
    return status;
}

static pc_status save(const char *path, pc__fit *fit, const char *settings)
{
    const bool writes = pc__fit_speaks(fit) && (!fit->network || fit->network->rank == 0);
    pc__checkpoint_header h = describe(fit, settings);
    pc__text out = {0};
    pc_status status = put(fit, &h, writes ? &out : NULL);
    if (status == PC_OK && writes) {
        pc__checkpoint_seal(&out);
        status = pc__file_write(path, out.data, out.length);
    }
    pc__text_free(&out);
    return pc__fit_parts_agree(fit, status);
}

pc_status pc__checkpoint_save(const char *path, pc__fit *fit, const char *settings)
{
    PC__TRY(pc__fit_settle(fit));
    PC__TRY(pc__optimizer_settle(fit->optimizer));
    return save(path, fit, settings);
}

static pc_status take(const char *path, const pc__checkpoint_file *file, pc__fit *fit, const char *settings)
{
    const pc__checkpoint_header *h = &file->header;
    size_t at = 0;
    PC__TRY(pc__checkpoint_check_settings(path, h->settings, settings, fit->about == NULL));
    PC__TRY(pc__checkpoint_check_fit(path, file, fit));
    PC__TRY(pc__checkpoint_check_measured(path, file, fit));
    const bool drops = h->kept && !fit->best.count; /* the best epoch's weights, which this run does not keep */
    const int first = fit->zero ? pc__checkpoint_stepped(fit) : 0, count = (int)(h->tensors + (drops ? 0 : h->kept));
    PC__TRY(pc__checkpoint_check_tensors(path, file, fit, count));
    PC__TRY(fit->zero ? pc__checkpoint_take_pieces(path, file, &at, fit) : PC_OK);
    for (int i = first; i < count; i++)
        PC__TRY(pc__checkpoint_take_part(path, file, &at, pc__checkpoint_cut_of(fit, pc__checkpoint_of_network(fit, i)),
                                         pc__checkpoint_tensor_at(fit, i), "a tensor"));
    adopt(file, fit);
    return PC_OK;
}

pc_status pc__checkpoint_load(const char *path, pc__fit *fit, const char *settings)
{
    pc__checkpoint_file file;
    pc_status status = pc__checkpoint_open(path, &file);
    if (status == PC_OK)
        status = take(path, &file, fit, settings);
    pc__checkpoint_close(&file);
    return pc__fit_parts_agree(fit, status);
}

pc_status pc__checkpoint_look(const char *path, bool *finished)
{
    pc__checkpoint_file file;
    PC__TRY(pc__checkpoint_open(path, &file));
    const bool described = file.header.about > 0 && !pc__checkpoint_has_measured(&file);
    *finished = file.header.finished;
    pc__checkpoint_close(&file);
    return described ? PC_OK : pc__fail(PC_ERR_FORMAT, "%s does not say what its network is", path);
}
