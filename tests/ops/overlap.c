/* Writing in place where memory is shared: views drawn at random against an oracle that knows where each element lies.
 * PARACORD_CASES=5000 draws so many, PARACORD_SEED=N begins there. */
#include "device.h"

#include "base/base.h"
#include "tensor/overlap.h"

#include <stdio.h>

#include <paracord/ops.h>
#include <paracord/random.h>

enum { SIDE = 6, BUFFER = SIDE * SIDE * 4, MOST = 4 * BUFFER };

static struct {
    uint64_t seed, drawn;
} now;

static int draw(int n)
{
    return (int)(pc_uniform(now.seed, 1, now.drawn++) * n);
}

/* --- views of one buffer, and where their elements lie --- */

static pc_tensor *sliced(pc_tensor *t)
{
    const int dim = draw(pc_tensor_ndim(t));
    const int64_t size = pc_tensor_size(t, dim), start = draw((int)size + 1);
    return pc_slice(t, dim, start, start + draw((int)size + 2), 1 + draw(3));
}

static pc_tensor *turned(pc_tensor *t)
{
    return pc_transpose(t, draw(pc_tensor_ndim(t)), draw(pc_tensor_ndim(t)));
}

/* One entry of a dimension, three times. */
static pc_tensor *repeated(pc_tensor *t)
{
    const int dim = draw(pc_tensor_ndim(t));
    pc_shape shape = pc_tensor_shape(t);
    if (shape.dim[dim] == 0)
        return t;
    const int64_t at = draw((int)shape.dim[dim]);
    shape.dim[dim] = 3;
    return pc_expand(pc_slice(t, dim, at, at + 1, 1), shape);
}

/* The view that `seed` stands for, of a buffer; the same seed of two buffers gives views of the same places. */
static pc_tensor *view(pc_tensor *buffer, uint64_t seed)
{
    const uint64_t before = now.seed, drawn = now.drawn;
    now.seed = seed;
    now.drawn = 0;
    pc_tensor *t = draw(2) ? pc_reshape(buffer, PC_SHAPE(SIDE, SIDE, 4)) : pc_reshape(buffer, PC_SHAPE(4 * SIDE, SIDE));
    for (int steps = draw(5); steps > 0; steps--)
        t = draw(3) ? sliced(t) : draw(6) ? turned(t) : repeated(t);
    now.seed = before;
    now.drawn = drawn;
    return t;
}

typedef struct places {
    int count;
    int64_t at[MOST]; /* in the buffer, of the elements in C order */
} places;

static void find_places(uint64_t seed, pc_shape shape, places *p)
{
    pc_tensor *t = pc_expand(view(pc_arange(0, BUFFER, 1, PC_I64, PC_DEVICE_CPU), seed), shape);
    assert_not_null_ok(t);
    p->count = (int)pc_tensor_count(t);
    assert_true(p->count <= MOST);
    assert_ok(pc_read(t, p->at, (size_t)p->count * sizeof p->at[0]));
}

static bool meet(const places *a, const places *b)
{
    bool seen[BUFFER] = {false}, found = false;
    for (int i = 0; i < a->count; i++)
        seen[a->at[i]] = true;
    for (int i = 0; i < b->count; i++)
        found |= seen[b->at[i]];
    return found;
}

static bool is_repeated(const places *p)
{
    bool seen[BUFFER] = {false};
    for (int i = 0; i < p->count; i++) {
        if (seen[p->at[i]])
            return true;
        seen[p->at[i]] = true;
    }
    return false;
}

/* --- a case: to = from, or to += 2 from --- */

typedef struct pair {
    uint64_t seed[2];
    pc_shape shape; /* of what is written; what is read broadcasts to it */
    places to, from;
    bool adds;
} pair;

static bool draw_pair(pair *p)
{
    bool fits = true;
    PC_SCOPE {
        pc_tensor *buffer = pc_empty(PC_SHAPE(BUFFER), PC_F32, PC_DEVICE_CPU);
        p->seed[0] = 1 + (uint64_t)draw(1 << 20);
        p->shape = pc_tensor_shape(view(buffer, p->seed[0]));
        p->adds = draw(3) == 0;
        for (int tries = 0;; tries++) { /* shapes that go together are rare */
            p->seed[1] = draw(8) ? 1 + (uint64_t)draw(1 << 20) : p->seed[0];
            pc_tensor *from = view(buffer, p->seed[1]);
            fits = from && pc_expand(from, p->shape) != NULL;
            pc_error_clear();
            if (fits || tries > 40)
                break;
        }
        if (fits) {
            find_places(p->seed[0], p->shape, &p->to);
            find_places(p->seed[1], p->shape, &p->from);
        }
    }
    return fits;
}

static pc_status write(const pair *p, pc_tensor *buffer)
{
    pc_tensor *to = view(buffer, p->seed[0]), *from = pc_expand(view(buffer, p->seed[1]), p->shape);
    return p->adds ? pc_saxpy(to, 2, from) : pc_copy(to, from);
}

static void oracle(const pair *p, const float *before, float *after)
{
    for (int i = 0; i < p->to.count; i++) {
        const int64_t to = p->to.at[i];
        after[to] = (p->adds ? before[to] : 0) + (p->adds ? 2 : 1) * before[p->from.at[i]];
    }
}

static void check_buffer(const pair *p, pc_tensor *buffer, const float *want)
{
    float got[BUFFER];
    assert_ok(pc_read(buffer, got, sizeof got));
    for (int i = 0; i < BUFFER; i++)
        if (got[i] != want[i])
            fail_msg("views %llu and %llu of seed %llu, %s: element %d is %g, want %g", (unsigned long long)p->seed[0],
                     (unsigned long long)p->seed[1], (unsigned long long)now.seed, p->adds ? "saxpy" : "copy", i,
                     (double)got[i], (double)want[i]);
}

static pc_tensor *numbers(float *values)
{
    for (int i = 0; i < BUFFER; i++)
        values[i] = (float)(1 + (i * 37) % 64);
    return pc_from_data(values, PC_SHAPE(BUFFER), PC_F32, test_device());
}

static void check_pair(const pair *p)
{
    float before[BUFFER], after[BUFFER];
    PC_SCOPE {
        pc_tensor *buffer = numbers(before);
        memcpy(after, before, sizeof after);
        if (is_repeated(&p->to)) {
            assert_fails(write(p, buffer), PC_ERR_ARGUMENT, "share memory");
        } else {
            oracle(p, before, after);
            assert_ok(write(p, buffer));
        }
        check_buffer(p, buffer, after);
    }
}

static int cases_of(int usual)
{
    const char *asked = getenv("PARACORD_CASES");
    return asked ? atoi(asked) : usual;
}

static uint64_t seed_of(int i)
{
    const char *first = getenv("PARACORD_SEED");
    return (first ? strtoull(first, NULL, 10) : 7000) + (uint64_t)i;
}

static void views_of_one_buffer(void **state)
{
    (void)state;
    int shared = 0, checked = 0;
    for (int i = 0; i < cases_of(1500); i++) {
        pair p = {0};
        now.seed = seed_of(i);
        now.drawn = 0;
        if (!draw_pair(&p))
            continue;
        check_pair(&p);
        shared += p.seed[0] != p.seed[1] && meet(&p.to, &p.from);
        checked++;
    }
    print_message("%d pairs of views, %d of them share memory\n", checked, shared);
    assert_true(shared > checked / 10);
    assert_no_leak();
}

/* The question itself: never "yes" for views that interleave. */
static void what_meets_is_known_exactly(void **state)
{
    (void)state;
    int interleaved = 0;
    for (int i = 0; i < cases_of(4000); i++)
        PC_SCOPE {
            places a, b;
            now.seed = seed_of(100000 + i);
            now.drawn = 0;
            const uint64_t seeds[2] = {1 + (uint64_t)draw(1 << 20), 1 + (uint64_t)draw(1 << 20)};
            pc_tensor *buffer = pc_empty(PC_SHAPE(BUFFER), PC_F32, PC_DEVICE_CPU);
            pc_tensor *x = view(buffer, seeds[0]), *y = view(buffer, seeds[1]);
            find_places(seeds[0], pc_tensor_shape(x), &a);
            find_places(seeds[1], pc_tensor_shape(y), &b);
            const bool want = meet(&a, &b), got = pc__overlap(x, y) != PC__APART;
            if (want != got || want != (pc__overlap(y, x) != PC__APART))
                fail_msg("views %llu and %llu: got %d, want %d", (unsigned long long)seeds[0],
                         (unsigned long long)seeds[1], got, want);
            assert_int_equal(pc__overlap(x, x), a.count ? PC__SAME_PLACES : PC__APART);
            interleaved += !want && a.count && b.count;
        }
    print_message("%d pairs without a common element\n", interleaved);
    assert_true(interleaved > 100);
    assert_no_leak();
}

/* --- the same in a recording, launched three times --- */

static pc_graph *recorded(const pair *p, pc_tensor *buffer)
{
    pc_stream *stream = pc_stream_current(test_device());
    assert_ok(pc_graph_begin(stream));
    pc_status status = PC_OK;
    PC_SCOPE {
        status = write(p, buffer);
    }
    pc_graph *graph = pc_graph_end(stream);
    assert_ok(status);
    assert_not_null_ok(graph);
    return graph;
}

static void recordings_read_first_too(void **state)
{
    (void)state;
    for (int i = 0; i < cases_of(100); i++) {
        pair p = {0};
        now.seed = seed_of(200000 + i);
        now.drawn = 0;
        if (!draw_pair(&p) || is_repeated(&p.to))
            continue;
        float before[BUFFER], after[BUFFER];
        PC_SCOPE {
            pc_tensor *buffer = numbers(before);
            pc_graph *graph = recorded(&p, buffer);
            memcpy(after, before, sizeof after);
            for (int launch = 0; launch < 3; launch++) {
                memcpy(before, after, sizeof after);
                oracle(&p, before, after);
                assert_ok(pc_graph_launch(graph, pc_stream_current(test_device())));
            }
            check_buffer(&p, buffer, after);
            pc_graph_free(graph);
        }
    }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_of_one_buffer),
        cmocka_unit_test(what_meets_is_known_exactly),
        cmocka_unit_test(recordings_read_first_too),
    };
    return cmocka_run_group_tests_name("ops.overlap", tests, NULL, NULL);
}
