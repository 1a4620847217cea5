/* two_inputs.c: a network of two inputs, who and what, learns how somebody will like something: each of both becomes a row of
 * a table, and a few layers look at the two rows. peers/two_inputs.py is the same in PyTorch. */
#include <paracord.h>

enum { USERS = 60, ITEMS = 40, TASTES = 4, BATCH = 256, STEPS = 300 };

static pc_status forward(pc_module *net, pc_tensor *const *in, int in_count, pc_tensor **out, int out_count)
{
    (void)in_count, (void)out_count;
    pc_tensor *rows[] = {pc_forward_child(net, "users", in[0]), pc_forward_child(net, "items", in[1])};
    pc_tensor *product = pc_sum_dims(pc_mul(rows[0], rows[1]), PC_SHAPE(1), false);
    out[0] = pc_add(product, pc_squeeze(pc_forward_child(net, "layers", pc_cat(rows, 2, 1)), 1));
    return out[0] ? PC_OK : pc_error_last()->status;
}

static pc_module *network(void)
{
    static const pc_module_class type = {.name = "Network", .forward_many = forward, .inputs = 2, .outputs = 1};
    return pc_module_of(
        &type, {"users", pc_embedding(USERS, 8)}, {"items", pc_embedding(ITEMS, 8)},
        {"layers", pc_sequential(pc_linear(16, 16), pc_activation(PC_ACTIVATION_RELU), pc_linear(16, 1))});
}

/* What there is to know: who likes what, by tastes that the network is not told. */
typedef struct world {
    pc_tensor *users, *items; /* [USERS, TASTES], [ITEMS, TASTES] */
} world;

static pc_tensor *choose(int count, pc_device device)
{
    return pc_cast(pc_mul_scalar(pc_rand(PC_SHAPE(BATCH), PC_F32, device), count), PC_I64);
}

static pc_tensor *ratings(const world *w, pc_tensor *users, pc_tensor *items)
{
    pc_tensor *u = pc_index_select(w->users, 0, users), *i = pc_index_select(w->items, 0, items);
    return pc_tanh(pc_sum_dims(pc_mul(u, i), PC_SHAPE(1), false));
}

static pc_tensor *error_of(pc_module *net, const world *w, pc_device device)
{
    pc_tensor *users = choose(USERS, device), *items = choose(ITEMS, device);
    return pc_mse(pc_forward2(net, users, items), ratings(w, users, items));
}

int main(void)
{
    pc_seed(1);
    pc_device on = pc_device_pick("auto");
    pc_module *net = network();
    pc_optimizer *adam = pc_module_to(net, on, PC_F32) == PC_OK ? pc_adam(net, .lr = 0.02) : NULL;
    PC_SCOPE {
        world w = {pc_randn(PC_SHAPE(USERS, TASTES), PC_F32, on), pc_randn(PC_SHAPE(ITEMS, TASTES), PC_F32, on)};
        for (int step = 1; step <= STEPS; step++)
            PC_SCOPE {
                pc_tensor *loss = error_of(net, &w, on);
                if (pc_backward(loss) != PC_OK || pc_optimizer_step(adam) != PC_OK)
                    return pc_report(stderr);
                if (step % 100 == 0)
                    printf("step %3d  loss %.3f\n", step, pc_item(loss));
            }
        printf("mean square error: %.3f\n", pc_item(error_of(net, &w, on)));
    }
    pc_optimizer_free(adam);
    pc_module_free(net);
    return pc_failed() ? pc_report(stderr) : 0;
}
