/* GPTs that are cut up among ranks against the whole one, which each rank trains beside its part. */
#include "dist/apart.h"
#include "dist/threads.h"

#include "parallel/cut.h"
#include "gpt/model.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BATCH = 2, LENGTH = 7, VOCABULARY = 23, STEPS = 3, PARAMETERS = 40 };

static pc_gpt_options sizes(pc_group *group, double dropout)
{
    return (pc_gpt_options){.layers = 2,
                            .heads = 12,
                            .width = 48,
                            .context = 8,
                            .vocabulary = VOCABULARY,
                            .dropout = dropout,
                            .group = group};
}

typedef struct twin {
    pc_module *gpt;
    pc_optimizer *optimizer;
    pc_tensor *x, *y, *loss;
} twin;

static pc_status learn(void *user)
{
    const twin *t = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *loss = pc_gpt_parallel_loss(t->gpt, pc_forward(t->gpt, t->x), t->y);
        status = pc_backward(loss);
        if (status == PC_OK)
            PC_NO_GRAD {
                status = pc_copy(t->loss, loss);
            }
        if (status == PC_OK && t->optimizer)
            status = pc_optimizer_step(t->optimizer);
    }
    return status;
}

static pc_status begin(twin *t, pc_gpt_options o, pc_device device)
{
    int64_t x[BATCH * LENGTH], y[BATCH * LENGTH];
    for (int i = 0; i < BATCH * LENGTH; i++) {
        x[i] = (i * 5 + 2) % VOCABULARY;
        y[i] = (i * 7 + 4) % VOCABULARY;
    }
    pc_seed(11);
    *t = (twin){.gpt = pc_gpt_new(o)};
    t->x = pc_from_data(x, PC_SHAPE(BATCH, LENGTH), PC_I64, device);
    t->y = pc_from_data(y, PC_SHAPE(BATCH, LENGTH), PC_I64, device);
    t->loss = pc_zeros(PC_SHAPE_SCALAR, PC_F32, device);
    return t->gpt && t->x && t->y && t->loss ? pc_module_to(t->gpt, device, PC_F32) : pc_error_last()->status;
}

static void end(twin *t)
{
    pc_optimizer_free(t->optimizer);
    pc_module_free(t->gpt);
    pc_tensor_free(t->x);
    pc_tensor_free(t->y);
    pc_tensor_free(t->loss);
}

typedef struct comparison {
    pc_module *whole;
    bool gradients;
    double off;
} comparison;

static pc_status compare(void *context, const char *name, pc__named *part)
{
    comparison *c = context;
    pc_tensor *want = pc_module_parameter(c->whole, name), *own = part->object;
    PC_SCOPE {
        PC_NO_GRAD {
            if (c->gradients)
                want = pc_grad(want), own = pc_grad(own);
            own = own && part->cut ? pc_contiguous(pc__cut_join(part->cut, own)) : own;
            c->off = fmax(c->off, apart(want, own));
        }
    }
    return PC_OK;
}

static double all_apart(pc_module *whole, pc_module *cut, bool gradients)
{
    comparison c = {.whole = whole, .gradients = gradients};
    return pc__module_visit(cut, compare, &c) == PC_OK ? c.off : INFINITY;
}

static void one_pass(rank_work *r)
{
    twin whole, cut;
    RANK_OK(begin(&whole, sizes(NULL, 0), r->device));
    RANK_OK(begin(&cut, sizes(r->group, 0), r->device));
    RANK_TRUE(all_apart(whole.gpt, cut.gpt, false) == 0); /* the same draws */
    RANK_TRUE(pc_gpt_flops(whole.gpt, 8) == pc_gpt_flops(cut.gpt, 8));
    PC_SCOPE {
        PC_NO_GRAD {
            pc_tensor *want = pc_forward(whole.gpt, whole.x), *own = pc_forward(cut.gpt, cut.x);
            pc_tensor *all = pc_gather_from_group(own, r->group, 2);
            RANK_TRUE(apart(want, pc_contiguous(pc_slice(all, 2, 0, VOCABULARY, 1))) < 1e-6);
        }
    }
    RANK_OK(learn(&whole));
    RANK_OK(learn(&cut));
    RANK_TRUE(apart(whole.loss, cut.loss) < 1e-6);
    RANK_TRUE(all_apart(whole.gpt, cut.gpt, true) < 2e-6);
    end(&whole);
    end(&cut);
}

static void training(rank_work *r)
{
    const bool recorded = *(const bool *)r->context;
    twin both[2];
    for (int k = 0; k < 2; k++) {
        twin *t = &both[k];
        RANK_OK(begin(t, sizes(k ? r->group : NULL, 0), r->device));
        t->optimizer = pc_sgd(t->gpt, .lr = 0.5, .momentum = 0.9);
        RANK_TRUE(t->optimizer);
        RANK_OK(k ? pc_tensor_parallel_clip(t->gpt, t->optimizer, 0.2)
                  : pc_optimizer_set_clip(t->optimizer, PC_CLIP_NORM, 0.2));
        pc_step *step = recorded ? pc_step_new(learn, t, t->optimizer) : NULL;
        for (int i = 0; i < STEPS; i++)
            RANK_OK(step ? pc_step_run(step) : learn(t));
        RANK_TRUE(!step || !pc_step_why(step));
        pc_step_free(step);
    }
    RANK_TRUE(apart(both[0].loss, both[1].loss) < 1e-5);
    RANK_TRUE(all_apart(both[0].gpt, both[1].gpt, false) < 1e-5);
    end(&both[0]);
    end(&both[1]);
}

/* What is whole stays the same in all ranks, to the bit, though heads drop other weights. */
static void with_dropout(rank_work *r)
{
    const bool recorded = *(const bool *)r->context;
    twin cut;
    float before = 0, loss;
    RANK_OK(begin(&cut, sizes(r->group, 0.2), r->device));
    cut.optimizer = pc_sgd(cut.gpt, .lr = 0.5);
    pc_step *step = recorded ? pc_step_new(learn, &cut, cut.optimizer) : NULL;
    for (int i = 0; i < STEPS; i++) {
        RANK_OK(step ? pc_step_run(step) : learn(&cut));
        RANK_OK(pc_read(cut.loss, &loss, sizeof loss));
        RANK_TRUE(isfinite(loss) && loss != before);
        before = loss;
    }
    RANK_TRUE(!step || !pc_step_why(step));
    pc_step_free(step);
    static const char *const names[] = {"transformer.wpe.weight", "transformer.h.0.attn.c_proj.bias",
                                        "transformer.h.1.ln_2.weight"};
    for (int i = 0; i < 3; i++)
        PC_SCOPE {
            PC_NO_GRAD {
                pc_tensor *t = pc_module_parameter(cut.gpt, names[i]), *first = pc_clone(t);
                RANK_OK(pc_group_broadcast(r->group, first, 0));
                RANK_TRUE(apart(first, t) == 0);
            }
        }
    end(&cut);
}

/* A whole network is cut, saved by its ranks, and opened as it was. */
static void files(rank_work *r)
{
    const char *folder = r->context;
    pc_gpt_options o = sizes(NULL, 0);
    pc_seed(5);
    pc_module *whole = pc_gpt_new(o);
    RANK_TRUE(whole && pc_module_to(whole, r->device, PC_F32) == PC_OK);
    pc_module *cut = pc_gpt_cut(whole, r->group);
    RANK_TRUE(cut && all_apart(whole, cut, false) == 0);
    RANK_OK(pc_gpt_save(cut, folder));
    pc_module *opened = pc_gpt_open(folder, r->device);
    RANK_TRUE(opened && all_apart(opened, cut, false) == 0);
    RANK_OK(pc_group_barrier(r->group));
    if (r->size > 1) {
        RANK_TRUE(!pc_gpt_cut(cut, r->group) && pc_error_last()->status == PC_ERR_UNSUPPORTED);
        pc_error_clear();
        RANK_TRUE(pc_gpt_save(cut, "/dev/null/gpt") != PC_OK && pc_failed()); /* every rank hears of it */
        pc_error_clear();
    }
    pc_module_free(opened);
    pc_module_free(cut);
    pc_module_free(whole);
}

/* The heads are to be shared equally, and what is for whole networks says so. */
static void refused(rank_work *r)
{
    RANK_TRUE(!pc_gpt_new(sizes(r->group, 0)) && pc_error_last()->status == PC_ERR_ARGUMENT);
    RANK_TRUE(strstr(pc_error_last()->message, "5 ranks cannot share 12 heads"));
    pc_error_clear();
    pc_module *gpt = pc_gpt_new(
        (pc_gpt_options){.layers = 1, .heads = 5, .width = 20, .context = 8, .vocabulary = 256, .group = r->group});
    pc_tokenizer *letters = pc_tokenizer_new_letters("abc", 3);
    RANK_TRUE(gpt && letters);
    RANK_TRUE(!pc_gpt_write(gpt, letters, "a", (pc_gpt_write_options){.tokens = 1}));
    RANK_TRUE(pc_error_last()->status == PC_ERR_UNSUPPORTED && strstr(pc_error_last()->message, "pc_gpt_save"));
    pc_error_clear();
    pc_tokenizer_free(letters);
    pc_module_free(gpt);
}

static void passes(void **state)
{
    (void)state;
    every_number_of_ranks(one_pass, NULL);
}

static void steps(void **state)
{
    (void)state;
    for (int recorded = 0; recorded < 2; recorded++)
        every_number_of_ranks(training, &(bool){recorded});
}

static void dropouts(void **state)
{
    (void)state;
    for (int recorded = 0; recorded < 2; recorded++)
        every_number_of_ranks(with_dropout, &(bool){recorded});
}

static void saved(void **state)
{
    (void)state;
    char folder[] = "/tmp/paracord-gpt-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    every_number_of_ranks(files, folder);
    static const char *const names[] = {"config.json", "model.safetensors"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(folder), 0);
}

static void errors(void **state)
{
    (void)state;
    if (ranks_most() >= 5)
        ranks_work(5, refused, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes), cmocka_unit_test(steps),  cmocka_unit_test(dropouts),
        cmocka_unit_test(saved),  cmocka_unit_test(errors),
    };
    return cmocka_run_group_tests(tests, ranks_begin, ranks_end);
}
