/* Losses of many classes with their gradients: a graph, in which they are one call, leaves what single calls leave, bit for bit. */
#include "device.h"
#include "plans.h"

#include <paracord/amp.h>
#include <paracord/autograd.h>
#include <paracord/loss.h>
#include <paracord/ops.h>
#include <paracord/random.h>

enum { ROWS = 70, LAUNCHES = 2, IGNORED = 5 };

typedef struct head {
    int rows, classes;
    pc_dtype half;
    bool ignores, sums;
    enum { NOBODY, LOGITS, LOSS } read; /* the logits behind the loss, or the loss in front of its gradient */
    pc_tensor *x, *w, *labels, *loss, *dx, *more;
} head;

static pc_tensor *leaf(pc_shape shape)
{
    pc_tensor *t = pc_detach(pc_randn(shape, PC_F32, test_device()));
    assert_ok(pc_require_grad(t, true));
    return t;
}

static void make(head *h)
{
    int64_t labels[ROWS];
    pc_seed(9);
    h->x = leaf(PC_SHAPE(h->rows, 16));
    h->w = leaf(PC_SHAPE(h->classes, 16));
    for (int i = 0; i < h->rows; i++)
        labels[i] = h->ignores && i % 3 == 1 ? IGNORED : (int64_t)i * 7919 % h->classes;
    h->labels = pc_from_data(labels, PC_SHAPE(h->rows), PC_I64, test_device());
    h->loss = pc_zeros(PC_SHAPE(), PC_F32, test_device());
    h->more = pc_zeros(PC_SHAPE(), PC_F32, test_device());
    h->dx = pc_zeros(PC_SHAPE(h->rows, 16), PC_F32, test_device());
}

static void learn(head *h)
{
    const pc_fn_cross_entropy_options with = {
        .ignore = h->ignores, .ignore_index = IGNORED, .reduction = h->sums ? PC_REDUCTION_SUM : PC_REDUCTION_MEAN};
    PC_SCOPE {
        pc_tensor *loss = NULL, *y = NULL;
        PC_AUTOCAST(h->half) {
            y = pc_fn_linear(h->x, h->w, NULL, PC_ACTIVATION_NONE);
            loss = pc_fn_cross_entropy(y, h->labels, with);
        }
        if (h->read == LOSS)
            assert_ok(pc_copy(h->more, pc_max(loss)));
        assert_ok(pc_backward(loss));
        if (h->read == LOGITS)
            assert_ok(pc_copy(h->more, pc_cast(pc_max(pc_detach(y)), PC_F32)));
        assert_ok(pc_copy(h->loss, loss));
        assert_ok(pc_copy(h->dx, pc_grad(h->x)));
    }
    pc_zero_grad(h->x);
    pc_zero_grad(h->w);
}

/* Logits off whole eights are multiplied by others in a graph (plan/pitches.c). */
static void same(pc_tensor *a, pc_tensor *b, const head *h, const char *what)
{
    PC_SCOPE {
        const double off = pc_item(pc_max(pc_abs(pc_sub(a, b)))), size = pc_item(pc_max(pc_abs(a)));
        if (!(off <= (h->classes % 8 ? 1.6e-2 * size : 0)))
            fail_msg("%d x %d: %s is off by %g of %g", h->rows, h->classes, what, off, size);
    }
}

enum { APART, TOGETHER, IN_PLACE };

/* Whether the last loss's second result is its first input. */
static bool is_in_place(const char *text)
{
    const char *last = NULL;
    int logits = -1, dx = -2;
    for (const char *next = strstr(text, "cross_entropy t"); next; next = strstr(next + 1, "cross_entropy t"))
        last = next;
    return last && sscanf(last, "cross_entropy t%d %*s %*s -> %*s t%d", &logits, &dx) == 2 && logits == dx;
}

static void check(head h, int how)
{
    PC_SCOPE {
        head called = h, recorded = h;
        make(&called);
        make(&recorded);
        begin();
        learn(&recorded);
        pc_graph *graph = ended();
        char *text = text_of(graph);
        if (!plain() && test_device().type == PC_CUDA && (how != APART) != (strstr(text, "taken out: losses") != NULL))
            fail_msg("%d x %d: %s in:\n%s", h.rows, h.classes, how != APART ? "two calls" : "one call", text);
        if (!plain() && test_device().type == PC_CUDA && how == IN_PLACE && !is_in_place(text))
            fail_msg("%d x %d: the gradient has memory of its own in:\n%s", h.rows, h.classes, text);
        pc_text_free(text);
        for (int i = 0; i < (h.classes > 65536 ? 1 : LAUNCHES); i++) { /* an emulated device is slow */
            learn(&called);
            assert_ok(pc_graph_launch(graph, NULL));
            same(called.loss, recorded.loss, &h, "the loss");
            same(called.more, recorded.more, &h, "what was read");
            same(called.dx, recorded.dx, &h, "the input's gradient");
        }
        pc_graph_free(graph);
    }
}

/* In whole eights and not, of more bytes than shared memory has, and too few of them. */
static void of_any_classes(void **state)
{
    (void)state;
    check((head){.rows = 70, .classes = 2056, .half = PC_BF16}, TOGETHER);
    check((head){.rows = 64, .classes = 2051, .half = PC_F16}, TOGETHER);
    check((head){.rows = 70, .classes = 16392, .half = PC_BF16}, IN_PLACE);
    check((head){.rows = 70, .classes = 120001, .half = PC_BF16}, IN_PLACE);
    check((head){.rows = 70, .classes = 2048, .half = PC_BF16}, APART);
    check((head){.rows = 63, .classes = 2056, .half = PC_BF16}, APART);
    check((head){.rows = 70, .classes = 2056, .half = PC_F32}, APART);
    assert_no_leak();
}

static void with_options(void **state)
{
    (void)state;
    check((head){.rows = 70, .classes = 2072, .half = PC_BF16, .ignores = true}, TOGETHER);
    check((head){.rows = 70, .classes = 2057, .half = PC_BF16, .ignores = true}, TOGETHER);
    check((head){.rows = 70, .classes = 2057, .half = PC_F16, .sums = true}, TOGETHER);
    check((head){.rows = 70, .classes = 2064, .half = PC_BF16, .ignores = true, .sums = true}, TOGETHER);
    assert_no_leak();
}

static void that_others_read(void **state)
{
    (void)state;
    check((head){.rows = 70, .classes = 2057, .half = PC_BF16, .read = LOGITS}, TOGETHER);
    check((head){.rows = 70, .classes = 2064, .half = PC_BF16, .read = LOSS}, APART);
    assert_no_leak();
}

/* The launch fails as the call would. */
static void wrong_label(void **state)
{
    (void)state;
    head h = {.rows = 70, .classes = 2057, .half = PC_BF16};
    PC_SCOPE {
        make(&h);
        begin();
        learn(&h);
        pc_graph *graph = ended();
        assert_ok(pc_graph_launch(graph, NULL));
        assert_true(pc_item(h.loss) > 0);
        assert_ok(pc_fill(pc_slice(h.labels, 0, 3, 4, 1), 2057));
        assert_fails(pc_graph_launch(graph, NULL) != PC_OK ||
                         pc_stream_synchronize(pc_stream_current(test_device())) != PC_OK,
                     PC_ERR_RANGE, "2057");
        pc_graph_free(graph);
    }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_any_classes), cmocka_unit_test(with_options),
                                       cmocka_unit_test(that_others_read), cmocka_unit_test(wrong_label)};
    return cmocka_run_group_tests_name("plan.losses", tests, NULL, NULL);
}
