/* Logits whose rows are no whole eights of 16-bit numbers, from the layer that makes them to its gradients: a graph, in
 * which they lie in rows of a pitch, leaves what single calls leave, launch after launch. */
#include "device.h"
#include "plans.h"

#include "ops/step.h"

#include <math.h>
#include <paracord/amp.h>
#include <paracord/autograd.h>
#include <paracord/loss.h>
#include <paracord/ops.h>
#include <paracord/random.h>

enum { LAUNCHES = 3, IGNORED = 3 };

typedef struct head {
    int rows, width, classes;
    pc_dtype half;
    bool bias, ignores, seen; /* seen: somebody who knows no pitches reads the logits */
    pc_tensor *x, *w, *b, *labels, *loss, *dx, *most;
} head;

static pc_tensor *leaf(pc_shape shape)
{
    pc_tensor *t = pc_detach(pc_randn(shape, PC_F32, test_device()));
    assert_ok(pc_require_grad(t, true));
    return t;
}

static void make(head *h)
{
    int64_t labels[512];
    pc_seed(5);
    h->x = leaf(PC_SHAPE(h->rows, h->width));
    h->w = leaf(PC_SHAPE(h->classes, h->width));
    h->b = leaf(PC_SHAPE(h->classes));
    for (int i = 0; i < h->rows; i++)
        labels[i] = h->ignores && i % 3 == 1 ? IGNORED % h->classes : i * 37 % h->classes;
    h->labels = pc_from_data(labels, PC_SHAPE(h->rows), PC_I64, test_device());
    h->loss = pc_zeros(PC_SHAPE(), PC_F32, test_device());
    h->most = pc_zeros(PC_SHAPE(), PC_F32, test_device());
    h->dx = pc_zeros(PC_SHAPE(h->rows, h->width), PC_F32, test_device());
}

static pc_status learn(head *h)
{
    const pc__step_attributes sgd = {.count = 1, .lr = .5, .groups = 1, .group = {{1, 1, 0}}, .step = 1};
    const pc_fn_cross_entropy_options with = {.ignore = true, .ignore_index = IGNORED % h->classes};
    pc_status status = PC_ERR_STATE;
    PC_SCOPE {
        pc_tensor *loss = NULL, *y = NULL;
        PC_AUTOCAST(h->half) {
            y = pc_fn_linear(h->x, h->w, h->bias ? h->b : NULL, PC_ACTIVATION_NONE);
            loss = h->ignores ? pc_fn_cross_entropy(y, h->labels, with) : pc_cross_entropy(y, h->labels);
        }
        status = pc_backward(loss);
        if (status == PC_OK)
            status = pc_copy(h->loss, loss);
        if (status == PC_OK && h->seen)
            status = pc_copy(h->most, pc_cast(pc_max(pc_detach(y)), PC_F32));
        if (status == PC_OK)
            status = pc_copy(h->dx, pc_grad(h->x));
        if (status == PC_OK)
            status = pc__sgd_step((pc_tensor *[]){h->w, pc_grad(h->w)}, 2, &sgd);
    }
    pc_zero_grad(h->x);
    pc_zero_grad(h->w);
    pc_zero_grad(h->b);
    return status;
}

static void close_to(pc_tensor *a, pc_tensor *b, const head *h, const char *what)
{
    PC_SCOPE {
        pc_tensor *off = pc_max(pc_abs(pc_sub(a, b))), *size = pc_max(pc_abs(a));
        const double tolerance = h->half == PC_F16 ? 2e-3 : 1.6e-2;
        if (!(pc_item(off) <= tolerance * (pc_item(size) + 1e-6)))
            fail_msg("%d x %d by %d classes: %s is off by %g", h->rows, h->width, h->classes, what, pc_item(off));
    }
}

static void check(head h, bool apart)
{
    PC_SCOPE {
        head called = h, recorded = h;
        make(&called);
        make(&recorded);
        begin();
        assert_ok(learn(&recorded));
        pc_graph *graph = ended();
        char words[64], *text = text_of(graph);
        snprintf(words, sizeof words, "[%d, %d] in rows of %d", h.rows, h.classes, (h.classes + 7) / 8 * 8);
        if (!plain() && test_device().type == PC_CUDA && apart != (strstr(text, words) != NULL))
            fail_msg("%s \"%s\" in:\n%s", apart ? "no" : "there is", words, text);
        pc_text_free(text);
        for (int i = 0; i < LAUNCHES; i++) {
            assert_ok(learn(&called));
            assert_ok(pc_graph_launch(graph, NULL));
            close_to(called.loss, recorded.loss, &h, "the loss");
            close_to(called.most, recorded.most, &h, "the largest logit");
            close_to(called.dx, recorded.dx, &h, "the input's gradient");
            close_to(called.w, recorded.w, &h, "the weight");
        }
        pc_graph_free(graph);
    }
}

static void of_any_classes(void **state)
{
    static const int classes[] = {1, 7, 15, 17, 24, 65, 96, 131, 1003};
    (void)state;
    for (int i = 0; i < (int)(sizeof classes / sizeof *classes); i++)
        check((head){.rows = 71, .width = i % 2 ? 40 : 64, .classes = classes[i], .half = i % 2 ? PC_F16 : PC_BF16},
              classes[i] > 16 && classes[i] % 8);
    assert_no_leak();
}

/* A row, such as a small layer's kernel does, an odd width, whose weights have no room for whole eights, and layers whose
 * every size is odd. */
static void of_any_rows(void **state)
{
    (void)state;
    check((head){.rows = 1, .width = 40, .classes = 65, .half = PC_BF16}, false);
    check((head){.rows = 2, .width = 40, .classes = 65, .half = PC_BF16}, false);
    check((head){.rows = 64, .width = 520, .classes = 579, .half = PC_BF16}, true);
    check((head){.rows = 72, .width = 36, .classes = 65, .half = PC_BF16}, true);
    check((head){.rows = 131, .width = 21, .classes = 131, .half = PC_F16}, true);
    assert_no_leak();
}

static void with_options(void **state)
{
    (void)state;
    check((head){.rows = 99, .width = 48, .classes = 101, .half = PC_BF16, .bias = true}, true);
    check((head){.rows = 99, .width = 48, .classes = 101, .half = PC_BF16, .ignores = true}, true);
    check((head){.rows = 99, .width = 48, .classes = 101, .half = PC_F32}, false);
    assert_no_leak();
}

static void that_others_read(void **state)
{
    (void)state;
    check((head){.rows = 80, .width = 48, .classes = 101, .half = PC_BF16, .seen = true}, false);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_any_classes), cmocka_unit_test(of_any_rows),
                                       cmocka_unit_test(with_options), cmocka_unit_test(that_others_read)};
    return cmocka_run_group_tests_name("plan.pitches", tests, NULL, NULL);
}
