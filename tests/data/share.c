/* Loaders that ranks share: the parts of a batch, one behind the other, are the batch of a loader alone, whatever kind of
 * loader it is and wherever its samples live. */
#include "pictures.h"

#include "data/gather.h"

#include <paracord.h>

enum { COUNT = 13, BATCH = 5, BATCHES = 3, EPOCHS = 3, WIDTH = 2, SIZE = 8, PIXELS = SIZE * SIZE * 3, RANKS = 7 };

static test_path root;

static int set_up(void **state)
{
    (void)state;
    root = new_root();
    put_classes(placed(root.s, "pictures/").s, (const char *[]){"ant", "bee", "cow"}, 3, 4);
    FILE *f = fopen(joined(root.s, "numbers.csv").s, "w");
    if (!f)
        return -1;
    fprintf(f, "a,b,y\n");
    for (int i = 0; i < COUNT; i++)
        fprintf(f, "%d,%d,%d\n", i, 2 * i, 3 * i);
    fclose(f);
    return pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 1)) != PC_OK;
}

static int tear_down(void **state)
{
    (void)state;
    remove_root(&root);
    return pc_sim_configure(PC_OPTIONS(pc_sim_options, .devices = 0)) != PC_OK;
}

typedef struct how {
    pc_device device;
    pc_residence resident;
    int prefetch;
    bool ordered;
} how;

static pc_loader *of_tensors(how h)
{
    float x[COUNT * WIDTH];
    int64_t y[COUNT];
    pc_loader *loader = NULL;
    for (int i = 0; i < COUNT * WIDTH; i++)
        x[i] = (float)i;
    for (int i = 0; i < COUNT; i++)
        y[i] = i % 3;
    PC_SCOPE {
        loader = pc_loader_from_tensors(pc_from_data(x, PC_SHAPE(COUNT, WIDTH), PC_F32, PC_DEVICE_CPU),
                                        pc_from_data(y, PC_SHAPE(COUNT), PC_I64, PC_DEVICE_CPU), .batch = BATCH,
                                        .shuffle = !h.ordered, .seed = 5, .device = h.device, .resident = h.resident,
                                        .prefetch = h.prefetch);
    }
    return loader;
}

static pc_status write_sample(void *context, int64_t sample, int64_t epoch, void *const *to)
{
    (void)context;
    ((float *)to[0])[0] = (float)sample;
    ((float *)to[0])[1] = (float)epoch;
    return PC_OK;
}

static pc_loader *of_function(how h)
{
    const pc_samples samples = {
        .count = COUNT, .fields = 1, .field = {{PC_F32, PC_SHAPE(WIDTH)}}, .sample = write_sample, .by_epoch = true};
    return pc_loader_from_samples(&samples, .batch = BATCH, .shuffle = !h.ordered, .seed = 6, .device = h.device,
                                  .resident = h.resident, .prefetch = h.prefetch);
}

static pc_loader *of_csv(how h)
{
    return pc_loader_from_csv(joined(root.s, "numbers.csv").s, PC_OPTIONS(pc_csv_options, .y = "y"), .batch = BATCH,
                              .shuffle = !h.ordered, .seed = 7, .device = h.device, .resident = h.resident,
                              .prefetch = h.prefetch);
}

static pc_loader *of_pictures(how h)
{
    return pc_loader(joined(root.s, "pictures").s, .size = SIZE, .batch = BATCH, .shuffle = !h.ordered, .seed = 8,
                     .flip = true, .augment = {.rotation = 20}, .device = h.device, .resident = h.resident,
                     .prefetch = h.prefetch);
}

/* What tensors of a batch hold, n rows, behind what there is. */
typedef struct contents {
    float x[BATCH * PIXELS];
    char y[BATCH * 8];
    int64_t sample[BATCH], n;
} contents;

static void add(contents *c, const pc_batch *b, int64_t n)
{
    const int64_t row = pc_tensor_count(b->x) / b->n;
    char y[BATCH * 8];
    float *x = malloc((size_t)(b->n * row) * sizeof *x);
    assert_non_null(x);
    PC_SCOPE {
        assert_ok(pc_read(pc_clone(pc_reshape(b->x, PC_SHAPE(b->n, row))), x, (size_t)(b->n * row) * sizeof *x));
    }
    memcpy(c->x + c->n * row, x, (size_t)(n * row) * sizeof *x);
    free(x);
    if (b->y) {
        const size_t each = pc_dtype_size(pc_tensor_dtype(b->y));
        assert_ok(pc_read(b->y, y, (size_t)b->n * each));
        memcpy(c->y + (size_t)c->n * each, y, (size_t)n * each);
    }
    memcpy(c->sample + c->n, b->sample, (size_t)n * sizeof *b->sample);
    c->n += n;
}

static contents whole[EPOCHS][BATCHES], parts[EPOCHS][BATCHES];

/* All batches from one on; where they are parts, what counts of them. */
static void walk(pc_loader *loader, int64_t from, contents (*to)[BATCHES], int rank, int size)
{
    pc_batch batch;
    assert_ok(pc_loader_seek(loader, from / BATCHES, from % BATCHES));
    for (int64_t i = from; i < (int64_t)EPOCHS * BATCHES; i++) {
        while (!pc_loader_next(loader, &batch))
            assert_false(pc_failed());
        const int64_t count = pc_loader_count(loader), all = i % BATCHES < BATCHES - 1 ? BATCH : count % BATCH;
        assert_int_equal(batch.epoch, i / BATCHES);
        assert_int_equal(batch.first, i % BATCHES * BATCH);
        assert_int_equal(batch.whole, all);
        assert_int_equal(batch.part, all / size + (rank < all % size));
        assert_int_equal(batch.n, batch.part ? batch.part : 1);
        assert_int_equal(pc_tensor_size(batch.x, 0), batch.n);
        if (!batch.part)
            assert_int_equal(batch.sample[0], whole[i / BATCHES][i % BATCHES].sample[0]);
        add(&to[i / BATCHES][i % BATCHES], &batch, batch.part);
    }
}

static void parts_are_the_whole(pc_loader *(*open)(how h), how h)
{
    pc_loader *loader = open(h);
    assert_not_null_ok(loader);
    assert_int_equal(pc_loader_batches(loader), BATCHES);
    memset(whole, 0, sizeof whole);
    walk(loader, 0, whole, 0, 1);
    for (int size = 1; size <= RANKS; size += size < 3 ? 1 : 2) {
        const int64_t from = size % 2 ? 0 : BATCHES + 1; /* within an epoch too */
        memset(parts, 0, sizeof parts);
        for (int rank = 0; rank < size; rank++) {
            assert_ok(pc_loader_share(loader, rank, size));
            walk(loader, from, parts, rank, size);
        }
        for (int64_t i = from; i < (int64_t)EPOCHS * BATCHES; i++)
            assert_memory_equal(&parts[i / BATCHES][i % BATCHES], &whole[i / BATCHES][i % BATCHES], sizeof **parts);
    }
    pc_loader_free(loader);
}

static void each_way(pc_loader *(*open)(how h))
{
    const pc_device sim = {PC_SIM, 0};
    parts_are_the_whole(open, (how){PC_DEVICE_CPU, PC_RESIDENCE_AUTO, 0, false});
    parts_are_the_whole(open, (how){PC_DEVICE_CPU, PC_RESIDENCE_AUTO, -1, true});
    parts_are_the_whole(open, (how){sim, PC_RESIDENCE_AUTO, 0, false});
    parts_are_the_whole(open, (how){sim, PC_RESIDENCE_AUTO, 0, true});
    parts_are_the_whole(open, (how){sim, PC_RESIDENCE_NO, 1, false});
    parts_are_the_whole(open, (how){sim, PC_RESIDENCE_NO, -1, false});
}

static void tensors(void **state)
{
    (void)state;
    each_way(of_tensors);
}

static void functions(void **state)
{
    (void)state;
    each_way(of_function);
}

static void files(void **state)
{
    (void)state;
    each_way(of_csv);
}

static void pictures(void **state)
{
    (void)state;
    each_way(of_pictures);
}

/* Pictures on the device: batches that launches of one recording make, each behind the one before. */
static void recorded(void **state)
{
    (void)state;
    const pc_device sim = {PC_SIM, 0};
    pc_loader *loader = of_pictures((how){sim, PC_RESIDENCE_AUTO, 0, false});
    assert_not_null_ok(loader);
    for (int rank = 0; rank < 7; rank += 3) {
        pc_batch batch;
        pc_tensor *x, *y, *want_x, *want_y;
        pc_graph *graph;
        assert_ok(pc_loader_share(loader, rank, 7));
        assert_ok(pc_loader_seek(loader, 1, 0));
        assert_true(pc__loader_pass(loader, &batch));
        assert_int_equal(batch.n, 1);
        assert_int_equal(batch.part, rank < BATCH);
        assert_ok(pc__loader_room(loader, batch.n, &x, &y));
        assert_ok(pc__loader_room(loader, batch.n, &want_x, &want_y));
        assert_ok(pc__loader_gather(loader, want_x, want_y));
        assert_ok(pc_graph_begin(pc_stream_current(sim)));
        assert_ok(pc__loader_gather_next(loader, x, y));
        graph = pc_graph_end(pc_stream_current(sim));
        assert_not_null_ok(graph);
        assert_true(pc__loader_has_next(loader));
        assert_ok(pc_graph_launch(graph, NULL));
        assert_true(pc__loader_pass(loader, &batch));
        assert_ok(pc__loader_gather(loader, want_x, want_y));
        PC_SCOPE {
            assert_true(pc_item(pc_sum(pc_ne(x, want_x))) == 0);
            assert_true(pc_item(pc_sum(pc_ne(y, want_y))) == 0);
        }
        pc_graph_free(graph);
        pc_tensor *const all[] = {x, y, want_x, want_y};
        for (int i = 0; i < 4; i++)
            pc_tensor_free(all[i]);
    }
    pc_loader_free(loader);
}

/* A network asked about a shared loader is asked about the rank's samples, each once. */
static void evaluating(void **state)
{
    (void)state;
    pc_loader *loader = of_csv((how){PC_DEVICE_CPU, PC_RESIDENCE_AUTO, 0, true});
    pc_module *net = pc_linear(WIDTH, 1);
    pc_score all, each;
    double loss = 0;
    int64_t count = 0;
    assert_ok(pc_evaluate(net, loader, &all));
    for (int rank = 0; rank < 4; rank++) {
        assert_ok(pc_loader_share(loader, rank, 4));
        assert_ok(pc_evaluate(net, loader, &each));
        loss += each.loss * (double)each.count;
        count += each.count;
    }
    assert_int_equal(count, all.count);
    assert_float_equal(loss / (double)count, all.loss, 1e-5 * all.loss);
    pc_module_free(net);
    pc_loader_free(loader);
}

static void wrong_ranks(void **state)
{
    (void)state;
    pc_loader *loader = of_csv((how){PC_DEVICE_CPU, PC_RESIDENCE_AUTO, 0, true});
    assert_fails(pc_loader_share(loader, 2, 2), PC_ERR_ARGUMENT, "rank 2 of 2 ranks");
    assert_fails(pc_loader_share(loader, -1, 2), PC_ERR_ARGUMENT, "rank -1 of 2 ranks");
    assert_fails(pc_loader_share(loader, 0, 0), PC_ERR_ARGUMENT, "rank 0 of 0 ranks");
    assert_fails(pc_loader_share(NULL, 0, 1), PC_ERR_ARGUMENT, "loader");
    pc_loader_free(loader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors),     cmocka_unit_test(functions), cmocka_unit_test(files),
        cmocka_unit_test(pictures),    cmocka_unit_test(recorded),  cmocka_unit_test(evaluating),
        cmocka_unit_test(wrong_ranks),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
