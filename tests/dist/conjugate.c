/* Collectives with gradients: of small whole numbers, so that every dtype has the sums exactly. And files of networks that are cut up
 * among ranks, which have the whole ones. */
#include "dist/threads.h"

#include "dist/group.h"

#include <paracord/tensor_parallel.h>
#include <paracord/weights.h>
#include <unistd.h>

enum { ROOM = 1024 };

static const pc_dtype dtypes[] = {PC_F32, PC_F16, PC_BF16, PC_F64};

/* [2, 12, 3], a number of -3 to 3 each, others for each `which`. */
static pc_tensor *numbers(int which, pc_dtype dtype, pc_device device)
{
    float v[72];
    for (int i = 0; i < 72; i++)
        v[i] = (float)((i * 5 + which * 3 + i / 7) % 7 - 3);
    pc_tensor *t = pc_from_data(v, PC_SHAPE(2, 12, 3), PC_F32, device);
    return pc_cast(t, dtype);
}

static pc_tensor *leaf(pc_tensor *t)
{
    return t && pc_require_grad(t, true) == PC_OK ? t : NULL;
}

static bool equal(pc_tensor *a, pc_tensor *b)
{
    float x[ROOM], y[ROOM];
    const int64_t n = pc_tensor_count(a);
    if (!a || !b || n != pc_tensor_count(b) || n > ROOM || pc_tensor_ndim(a) != pc_tensor_ndim(b))
        return false;
    for (int i = 0; i < pc_tensor_ndim(a); i++)
        if (pc_tensor_size(a, i) != pc_tensor_size(b, i))
            return false;
    bool same = false;
    PC_NO_GRAD {
        same = pc_read(pc_cast(pc_contiguous(a), PC_F32), x, (size_t)n * sizeof *x) == PC_OK &&
               pc_read(pc_cast(pc_contiguous(b), PC_F32), y, (size_t)n * sizeof *y) == PC_OK;
    }
    for (int64_t i = 0; i < n && same; i++)
        same = x[i] == y[i];
    return same;
}

static void copied_and_reduced(rank_work *r)
{
    for (int k = 0; k < 4; k++)
        PC_SCOPE {
            pc_tensor *x = leaf(numbers(0, dtypes[k], r->device));
            pc_tensor *w = leaf(numbers(r->rank + 1, dtypes[k], r->device)), *c = numbers(9, dtypes[k], r->device);
            pc_tensor *y = pc_reduce_from_group(pc_mul(pc_copy_to_group(x, r->group), w), r->group);
            RANK_TRUE(y);
            pc_tensor *all = numbers(1, dtypes[k], r->device);
            for (int i = 1; i < r->size; i++)
                all = pc_add(all, numbers(i + 1, dtypes[k], r->device));
            RANK_TRUE(equal(y, pc_mul(x, all)));
            RANK_OK(pc_backward_with(y, c));
            RANK_TRUE(equal(pc_grad(x), pc_mul(c, all)));
            RANK_TRUE(equal(pc_grad(w), pc_mul(c, x)));
            RANK_TRUE(equal(c, numbers(9, dtypes[k], r->device))); /* what came in stays */
        }
}

/* Along each dimension, of tensors in C order and not. */
static void gathered(rank_work *r)
{
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 6; i++)
            PC_SCOPE {
                const int dim = i % 3 - (i == 4 ? 3 : 0);
                pc_tensor *parts[RANKS_MAX], *gradients[RANKS_MAX];
                for (int q = 0; q < r->size; q++) {
                    parts[q] = numbers(q, dtypes[k], r->device);
                    gradients[q] = numbers(q + 11, dtypes[k], r->device);
                }
                pc_tensor *x = leaf(numbers(r->rank, dtypes[k], r->device));
                const bool turned = i >= 3;
                pc_tensor *y = pc_gather_from_group(turned ? pc_transpose(x, 0, 2) : x, r->group, dim);
                pc_tensor *want = pc_cat(parts, r->size, turned ? (dim < 0 ? 1 : 2 - dim) : dim);
                RANK_TRUE(equal(y, turned ? pc_transpose(want, 0, 2) : want));
                pc_tensor *c = pc_cat(gradients, r->size, turned ? (dim < 0 ? 1 : 2 - dim) : dim);
                RANK_OK(pc_backward_with(y, turned ? pc_transpose(c, 0, 2) : c));
                RANK_TRUE(equal(pc_grad(x), gradients[r->rank]));
            }
}

static void split(rank_work *r)
{
    if (12 % r->size)
        return;
    for (int k = 0; k < 4; k++)
        PC_SCOPE {
            const int64_t part = 12 / r->size;
            pc_tensor *x = leaf(numbers(3, dtypes[k], r->device)), *c = numbers(4, dtypes[k], r->device);
            pc_tensor *y = pc_split_to_group(x, r->group, 1);
            RANK_TRUE(equal(y, pc_slice(numbers(3, dtypes[k], r->device), 1, r->rank * part, (r->rank + 1) * part, 1)));
            RANK_OK(pc_backward_with(y, pc_contiguous(pc_slice(c, 1, r->rank * part, (r->rank + 1) * part, 1))));
            RANK_TRUE(equal(pc_grad(x), c));
        }
}

/* Where ranks go on in their own way, a copy behind a gather adds their gradients up. */
static void gathered_for_each(rank_work *r)
{
    PC_SCOPE {
        pc_tensor *x = leaf(numbers(r->rank, PC_F32, r->device)), *want = NULL;
        pc_tensor *y = pc_copy_to_group(pc_gather_from_group(x, r->group, 0), r->group);
        pc_tensor *c[RANKS_MAX];
        for (int q = 0; q < r->size; q++)
            c[q] = numbers(q * 2 + r->rank, PC_F32, r->device);
        RANK_OK(pc_backward_with(y, pc_cat(c, r->size, 0)));
        want = numbers(r->rank * 2, PC_F32, r->device);
        for (int q = 1; q < r->size; q++)
            want = pc_add(want, numbers(r->rank * 2 + q, PC_F32, r->device));
        RANK_TRUE(equal(pc_grad(x), want));
    }
}

/* Without a record nothing has a gradient, and what came in is not changed. */
static void without_gradient(rank_work *r)
{
    PC_SCOPE {
        pc_tensor *x = leaf(numbers(1, PC_F32, r->device)), *y[4] = {NULL};
        PC_NO_GRAD {
            y[0] = pc_copy_to_group(x, r->group);
            y[1] = pc_reduce_from_group(x, r->group);
            y[2] = pc_gather_from_group(x, r->group, 1);
            y[3] = 12 % r->size ? y[0] : pc_split_to_group(x, r->group, 1);
        }
        for (int i = 0; i < 4; i++)
            RANK_TRUE(y[i] && (!pc_requires_grad(y[i]) || y[i] == x || r->size == 1));
        RANK_TRUE(equal(x, numbers(1, PC_F32, r->device)));
    }
}

static void refused(rank_work *r)
{
    PC_SCOPE {
        pc_tensor *x = numbers(1, PC_F32, r->device);
        if (r->size == 5) {
            RANK_TRUE(!pc_split_to_group(x, r->group, 1));
            RANK_TRUE(pc_error_last()->status == PC_ERR_SHAPE && strstr(pc_error_last()->message, "5 ranks"));
            pc_error_clear();
        }
        RANK_TRUE(!pc_gather_from_group(x, r->group, 3) && pc_failed());
        pc_error_clear();
        RANK_TRUE(!pc_split_to_group(x, r->group, -4) && pc_failed());
        pc_error_clear();
    }
}

/* --- files --- */

enum { ROWS = 10, WIDTH = 12, WIDE = 24, PARAMETERS = 7 };

/* Without a group the whole network. 10 rows are no multiple of 3 and 4 ranks. */
static pc_module *network(pc_group *group)
{
    if (!group)
        return pc_sequential(pc_embedding(ROWS, WIDTH), pc_linear(WIDTH, WIDE), pc_linear(WIDE, WIDTH),
                             pc_layer_norm(PC_SHAPE(WIDTH)));
    return pc_sequential(pc_parallel_embedding(ROWS, WIDTH, group), pc_column_linear(WIDTH, WIDE, group, .blocks = 2),
                         pc_row_linear(WIDE, WIDTH, group), pc_layer_norm(PC_SHAPE(WIDTH)));
}

/* Parameter k is [size, ...] of whole numbers from 100 k on. */
static pc_status number(pc_module *net)
{
    pc_parameter list[PARAMETERS];
    pc_module_parameter_list(net, list, PARAMETERS);
    pc_status status = PC_OK;
    PC_NO_GRAD
        PC_SCOPE {
            for (int k = 0; k < PARAMETERS && status == PC_OK; k++) {
                const pc_shape shape = pc_tensor_shape(list[k].tensor);
                pc_tensor *v = pc_arange(100 * k, 100 * k + (double)pc_tensor_count(list[k].tensor), 1, PC_F32,
                                         pc_tensor_device(list[k].tensor));
                status = pc_copy(list[k].tensor, pc_reshape(v, shape));
            }
        }
    return status;
}

static bool all_equal(pc_module *a, pc_module *b)
{
    pc_parameter x[PARAMETERS], y[PARAMETERS];
    pc_module_parameter_list(a, x, PARAMETERS);
    pc_module_parameter_list(b, y, PARAMETERS);
    bool same = true;
    PC_SCOPE {
        for (int k = 0; k < PARAMETERS; k++)
            same = same && equal(x[k].tensor, y[k].tensor);
    }
    return same;
}

static pc_status zero_all(pc_module *net)
{
    pc_parameter list[PARAMETERS];
    pc_module_parameter_list(net, list, PARAMETERS);
    pc_status status = PC_OK;
    PC_NO_GRAD {
        for (int k = 0; k < PARAMETERS && status == PC_OK; k++)
            status = pc_fill(list[k].tensor, 0);
    }
    return status;
}

/* All ranks' one file of the whole network, by the process of the first. */
static pc_status meet(rank_work *r, char path[64])
{
    int64_t mine = getpid(), all[RANKS_MAX];
    const pc_status status = pc__group_exchange(r->group, &mine, sizeof mine, all);
    snprintf(path, 64, "/tmp/paracord-cut-%lld.safetensors", (long long)all[0]);
    return status;
}

/* Once all have read it; a failure stays recorded. */
static void leave(rank_work *r, pc_module *const nets[4])
{
    char path[64];
    (void)!meet(r, path);
    if (r->rank == 0)
        (void)!unlink(path);
    for (int i = 0; i < 4; i++)
        pc_module_free(nets[i]);
}

static bool fails(pc_status status, pc_status expected, const char *words)
{
    const bool so = status == expected && strstr(pc_error_last()->message, words);
    pc_error_clear();
    return so;
}

static void files(rank_work *r)
{
    char path[64];
    pc_module *whole = network(NULL), *read = network(NULL), *want = network(r->group), *net = network(r->group);
    RANK_TRUE(whole && read && want && net);
    RANK_OK(pc_module_to(want, r->device, PC_F32));
    RANK_OK(pc_module_to(net, r->device, PC_F32));
    RANK_OK(number(whole));
    RANK_OK(pc_tensor_parallel_cut(want, whole));
    RANK_OK(meet(r, path));
    RANK_OK(pc_weights_save(want, path));
    RANK_OK(pc_weights_load(read, path, (pc_weights_options){0}));
    RANK_TRUE(all_equal(read, whole));
    RANK_OK(zero_all(net));
    RANK_OK(pc_weights_load(net, path, (pc_weights_options){0}));
    RANK_TRUE(all_equal(net, want));
    if (r->size > 1) {
        pc_parameter list[PARAMETERS];
        pc_module_parameter_list(whole, list, PARAMETERS);
        RANK_TRUE(fails(pc_module_load(net, list, PARAMETERS), PC_ERR_SHAPE, "pc_tensor_parallel_cut"));
        const pc_status status = pc_weights_save(net, "/no/such/folder");
        RANK_TRUE(fails(status, PC_ERR_FILE, r->rank ? "rank 0: " : "/no/such/folder"));
    }
    leave(r, (pc_module *[]){whole, read, want, net});
}

/* In all or in none, wherever one rank has no memory on its device, or a copy fails: nobody waits, and what comes next is right. */
static bool saves_after(rank_work *r, pc_module *net, const char *path, pc_sim_fault fault, int nth)
{
    const bool mine = r->rank == (fault == PC_SIM_FAIL_COPY ? 0 : r->size - 1);
    if (pc_memory_trim(r->device) != PC_OK || (mine && pc_sim_inject(r->device, fault, nth) != PC_OK))
        return false;
    int64_t status = pc_weights_save(net, path), all[RANKS_MAX];
    pc_error_clear();
    if ((mine && pc_sim_inject(r->device, PC_SIM_NO_FAULT, 1) != PC_OK) ||
        pc__group_exchange(r->group, &status, sizeof status, all) != PC_OK)
        return false;
    bool same = nth > 1 || status != PC_OK;
    for (int k = 1; k < r->size; k++)
        same = same && all[k] == all[0];
    return same && pc_weights_save(net, path) == PC_OK;
}

static void failures_in_one(rank_work *r)
{
    char path[64];
    pc_module *whole = network(NULL), *other = pc_sequential(pc_linear(WIDTH, WIDE)), *net = network(r->group);
    RANK_TRUE(whole && other && net);
    RANK_OK(pc_module_to(net, r->device, PC_F32));
    RANK_OK(number(whole));
    RANK_OK(pc_tensor_parallel_cut(net, whole));
    RANK_OK(pc_group_set_timeout(r->group, 5));
    RANK_OK(meet(r, path));
    for (int nth = 1; nth <= 8 && r->size > 1 && r->device.type == PC_SIM; nth++)
        for (int kind = 0; kind < 2; kind++) {
            pc_module *read = network(NULL);
            RANK_TRUE(saves_after(r, net, path, kind ? PC_SIM_FAIL_COPY : PC_SIM_FAIL_MEMORY, nth));
            RANK_OK(pc_weights_load(read, path, (pc_weights_options){0}));
            RANK_TRUE(all_equal(read, whole));
            RANK_OK(meet(r, path)); /* all have read it */
            pc_module_free(read);
        }
    if (r->size > 1)
        RANK_TRUE(fails(pc_tensor_parallel_join(net, r->rank ? NULL : other), PC_ERR_SHAPE,
                        r->rank ? "rank 0: " : "\"0.weight\" of the whole network"));
    RANK_OK(zero_all(whole));
    RANK_OK(pc_tensor_parallel_join(net, whole));
    RANK_OK(meet(r, path));
    if (r->rank == 0)
        (void)!unlink(path);
    pc_module_free(whole);
    pc_module_free(other);
    pc_module_free(net);
}

static pc_tensor *same_tensor(pc_module *module, pc_tensor *x)
{
    (void)module;
    return x;
}

/* A table that modules in front of it and behind it have, too. */
static pc_module *tied(pc_group *group)
{
    static const pc_module_class head = {.name = "Head", .forward = same_tensor};
    pc_module *table = group ? pc_parallel_embedding(ROWS, WIDTH, group) : pc_embedding(ROWS, WIDTH);
    pc_module *front = pc_module_new(&head, 0), *behind = pc_module_new(&head, 0);
    pc_tensor *weight = pc_module_parameter(table, "weight");
    if (pc_module_add_parameter(front, "weight", weight) != PC_OK ||
        pc_module_add_parameter(behind, "weight", weight) != PC_OK)
        return NULL;
    return pc_sequential(front, table, behind);
}

static void several_names(rank_work *r)
{
    char path[64];
    pc_module *whole = tied(NULL), *read = tied(NULL), *want = tied(r->group), *net = tied(r->group);
    RANK_TRUE(whole && read && want && net);
    pc_tensor *all = pc_module_parameter(whole, "0.weight"), *table = pc_module_parameter(want, "1.weight");
    PC_NO_GRAD
        PC_SCOPE {
            RANK_OK(pc_copy(
                all, pc_reshape(pc_arange(0, ROWS * WIDTH, 1, PC_F32, pc_tensor_device(all)), PC_SHAPE(ROWS, WIDTH))));
        }
    RANK_OK(pc_tensor_parallel_cut(want, whole));
    RANK_OK(meet(r, path));
    RANK_OK(pc_weights_save(want, path));
    RANK_OK(pc_weights_load(read, path, (pc_weights_options){0}));
    RANK_OK(pc_weights_load(net, path, (pc_weights_options){0}));
    PC_SCOPE {
        RANK_TRUE(equal(pc_module_parameter(read, "2.weight"), all));
        RANK_TRUE(equal(pc_module_parameter(net, "2.weight"), table));
        PC_NO_GRAD
            RANK_OK(pc_fill(pc_module_parameter(read, "0.weight"), 0));
        RANK_OK(pc_tensor_parallel_join(net, read));
        RANK_TRUE(equal(pc_module_parameter(read, "2.weight"), all));
    }
    leave(r, (pc_module *[]){whole, read, want, net});
}

/* A rank's own state, of which there may be as much as of the whole one. */
static void one_row(rank_work *r)
{
    pc_module *net = pc_parallel_embedding(1, WIDTH, r->group);
    pc_parameter own;
    RANK_TRUE(net);
    RANK_TRUE(pc_module_state_list(net, &own, 1) == 1);
    RANK_OK(pc_module_load(net, &own, 1));
    pc_module_free(net);
}

/* One of each rank: nobody writes those, and of parts in one an error says how to read them, which goes. */
static void file_of_each(rank_work *r)
{
    char path[64], own[80];
    pc_module *net = network(r->group);
    pc_parameter list[PARAMETERS], read[PARAMETERS];
    RANK_TRUE(net);
    RANK_TRUE(pc_module_state_list(net, list, PARAMETERS) == PARAMETERS);
    RANK_OK(meet(r, path));
    snprintf(own, sizeof own, "%s-%d", path, r->rank);
    if (r->size > 1) {
        RANK_TRUE(fails(pc_weights_save(net, own), PC_ERR_ARGUMENT, "let all ranks name that"));
        RANK_TRUE(access(own, F_OK) != 0);
    }
    RANK_OK(pc_weights_write(own, list, PARAMETERS, NULL));
    if (r->size > 1)
        RANK_TRUE(fails(pc_weights_load(net, own, (pc_weights_options){0}), PC_ERR_SHAPE, "pc_module_load"));
    pc_weights *file = pc_weights_open(own);
    RANK_TRUE(file);
    PC_SCOPE {
        memcpy(read, list, sizeof read);
        for (int k = 0; k < PARAMETERS; k++)
            read[k].tensor = pc_weights_read(file, list[k].name, r->device);
        RANK_OK(pc_module_load(net, read, PARAMETERS));
    }
    pc_weights_free(file);
    (void)!unlink(own);
    pc_module_free(net);
}

#define CASE(name)                                                                                                     \
    static void name##_cases(void **state)                                                                             \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        every_number_of_ranks(name, NULL);                                                                             \
    }
CASE(copied_and_reduced)
CASE(gathered)
CASE(split)
CASE(gathered_for_each)
CASE(without_gradient)
CASE(refused)
CASE(files)
CASE(several_names)
CASE(one_row)
CASE(file_of_each)
CASE(failures_in_one)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copied_and_reduced_cases),
        cmocka_unit_test(gathered_cases),
        cmocka_unit_test(split_cases),
        cmocka_unit_test(gathered_for_each_cases),
        cmocka_unit_test(without_gradient_cases),
        cmocka_unit_test(refused_cases),
        cmocka_unit_test(files_cases),
        cmocka_unit_test(several_names_cases),
        cmocka_unit_test(one_row_cases),
        cmocka_unit_test(file_of_each_cases),
        cmocka_unit_test(failures_in_one_cases),
    };
    return cmocka_run_group_tests(tests, ranks_begin, ranks_end);
}
