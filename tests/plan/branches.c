/* Work beside a recording's own is begun in front of its smallest product, wherever it was queued, unless what is in
 * between needs what it does, or is needed by it; and the results are those of the order of the program. */
#include "device.h"
#include "plans.h"

#include <paracord/ops.h>
#include <paracord/stream.h>

enum { N = 16 };

typedef enum between {
    APART,      /* it shares nothing with the products */
    BOTH_READ,  /* they read what it reads */
    NEEDS,      /* it reads what the smallest product makes */
    OVERWRITES, /* it writes what the first product reads */
    FUNCTION,   /* the program looks at something */
    WAITED_FOR, /* work behind it needs its result */
    NO_PRODUCT,
    CASES
} between;

typedef struct program {
    between what;
    pc_stream *main, *side;
    pc_event *fork;
    pc_tensor *x, *z, *large, *small, *sums, *beside, *late;
    int calls;
} program;

static pc_tensor *numbers(int64_t rows, int64_t columns, double begin)
{
    float values[N * N];
    for (int i = 0; i < rows * columns; i++)
        values[i] = (float)(begin + (i * 37 % 101) / 101.0);
    pc_tensor *t = pc_tensor_retain(pc_from_data(values, PC_SHAPE(rows, columns), PC_F32, test_device()));
    assert_not_null_ok(t);
    return t;
}

static void make(program *p, between what, pc_stream *main, pc_stream *side)
{
    PC_SCOPE {
        *p = (program){.what = what,
                       .main = main,
                       .side = side,
                       .fork = pc_event_new(test_device()),
                       .x = numbers(N, N, -.5),
                       .z = numbers(N, N, .25),
                       .large = numbers(N, N, -.25),
                       .small = numbers(2, N, -.75),
                       .sums = numbers(N, 2, 0),
                       .beside = numbers(N, N, 0),
                       .late = numbers(N, N, 0)};
    }
}

static void drop(program *p)
{
    pc_tensor *all[] = {p->x, p->z, p->large, p->small, p->sums, p->beside, p->late};
    for (int i = 0; i < 7; i++)
        pc_tensor_free(all[i]);
    pc_event_free(p->fork);
}

static void same(const pc_tensor *want, const pc_tensor *got, between what)
{
    float a[N * N], b[N * N];
    const size_t bytes = (size_t)pc_tensor_count(want) * sizeof *a;
    assert_ok(pc_read(want, a, bytes));
    assert_ok(pc_read(got, b, bytes));
    if (memcmp(a, b, bytes) != 0)
        fail_msg("case %d: other results", (int)what);
}

static void look(void *context)
{
    ++*(int *)context;
}

static void queue_beside(program *p, pc_tensor *y)
{
    assert_ok(pc_event_record(p->fork, p->main));
    assert_ok(pc_event_wait(p->fork, p->side));
    PC_WITH_STREAM(p->side) {
        pc_tensor *from = p->what == BOTH_READ ? p->x : p->what == NEEDS ? y : p->z;
        assert_ok(pc_copy(p->what == NEEDS ? p->sums : p->what == OVERWRITES ? p->x : p->beside, pc_softmax(from, 1)));
    }
    if (p->what == WAITED_FOR)
        assert_ok(pc_copy(p->late, p->beside));
}

static void queue(program *p)
{
    PC_WITH_STREAM(p->main) {
        PC_SCOPE {
            pc_tensor *y = NULL;
            if (p->what != NO_PRODUCT) {
                y = pc_fn_linear(p->x, p->large, NULL, PC_ACTIVATION_NONE);
                y = pc_fn_linear(pc_tanh(y), p->small, NULL, PC_ACTIVATION_NONE);
                if (p->what != NEEDS)
                    assert_ok(pc_copy(p->sums, y));
            }
            if (p->what == FUNCTION)
                assert_ok(pc_stream_call(p->main, look, &p->calls));
            queue_beside(p, y);
        }
    }
}

static void holds(const pc_graph *graph, between what)
{
    char *text = text_of(graph);
    const char *beside = strstr(text, "softmax"), *smallest = strstr(text, "linear");
    smallest = smallest ? strstr(smallest + 1, "linear") : NULL;
    const bool early = strstr(text, "begun early");
    if (early != (what == APART || what == BOTH_READ) || (early && beside > smallest))
        fail_msg("case %d:\n%s", (int)what, text);
    pc_text_free(text);
}

static void one_case(between what, pc_stream *main, pc_stream *side)
{
    program call_by_call, recorded;
    make(&call_by_call, what, main, side);
    make(&recorded, what, main, side);
    assert_ok(pc_graph_begin(main));
    queue(&recorded);
    pc_graph *graph = pc_graph_end(main);
    assert_not_null_ok(graph);
    if (!plain())
        holds(graph, what);
    for (int i = 0; i < 2; i++) {
        queue(&call_by_call);
        assert_ok(pc_graph_launch(graph, main));
    }
    same(call_by_call.sums, recorded.sums, what);
    same(call_by_call.x, recorded.x, what);
    same(call_by_call.beside, recorded.beside, what);
    same(call_by_call.late, recorded.late, what);
    assert_int_equal(recorded.calls, call_by_call.calls);
    pc_graph_free(graph);
    drop(&call_by_call);
    drop(&recorded);
}

static void begun_where_there_is_room(void **state)
{
    (void)state;
    if (test_device().type == PC_CPU) /* whose streams are one */
        skip();
    pc_stream *main = pc_stream(test_device()), *side = pc_stream(test_device());
    assert_not_null_ok(main);
    assert_not_null_ok(side);
    for (between what = APART; what < CASES; what++)
        one_case(what, main, side);
    pc_stream_free(side);
    pc_stream_free(main);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(begun_where_there_is_room)};
    return cmocka_run_group_tests_name("plan.branches", tests, NULL, NULL);
}
