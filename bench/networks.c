/* networks: a network for pictures with weights from a file, asked and trained for a step, so that bench/peers/networks.py can
 * compare it with torchvision's.
 * Usage: networks NAME WEIGHTS BATCH OUT [device, cpu unless given]: safetensors files; BATCH has x, in whose dtype it
 * is computed, and labels. OUT gets what the network gives of x: "evaluated", then "trained" in training mode without dropout; its "loss", and under "after." what
 * one step of SGD (rate 0.01, momentum 0.9, decay 0.0001) leaves of the weights.
 */
#include <paracord.h>
#include <stdlib.h>
#include <string.h>

static void check(bool fine)
{
    if (!fine || pc_failed())
        exit(pc_report(stderr) ? 1 : 1);
}

typedef struct batch {
    pc_tensor *x, *labels;
} batch;

static batch read_batch(const char *path, pc_device device)
{
    pc_weights *file = pc_weights_open(path);
    check(file != NULL);
    batch b = {pc_weights_read(file, "x", device), pc_weights_read(file, "labels", device)};
    pc_weights_free(file);
    check(b.x && b.labels);
    return b;
}

/* As many classes as the file's last layer has. */
static int classes_in(const char *path, const char *name)
{
    char key[64];
    pc_weights_entry entry;
    pc_weights *file = pc_weights_open(path);
    snprintf(key, sizeof key, "%s.bias", pc_picture_network_head(name));
    check(file && pc_weights_find(file, key, &entry) == PC_OK);
    pc_weights_free(file);
    return (int)entry.shape.dim[0];
}

static pc_parameter named(const char *name, pc_tensor *t)
{
    pc_parameter p = {.tensor = t};
    snprintf(p.name, sizeof p.name, "%s", name);
    return p;
}

static void write_all(const char *path, pc_module *net, pc_tensor *evaluated, pc_tensor *trained, pc_tensor *loss)
{
    const int count = pc_module_state_list(net, NULL, 0);
    pc_parameter *list = calloc((size_t)count + 3, sizeof *list);
    check(list != NULL);
    (void)pc_module_state_list(net, list, count);
    for (int i = 0; i < count; i++) {
        memmove(list[i].name + 6, list[i].name, sizeof list->name - 7);
        memcpy(list[i].name, "after.", 6);
    }
    list[count] = named("evaluated", evaluated);
    list[count + 1] = named("trained", trained);
    list[count + 2] = named("loss", loss);
    check(pc_weights_write(path, list, count + 3, NULL) == PC_OK);
    free(list);
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return fprintf(stderr, "usage: networks NAME WEIGHTS BATCH OUT [DEVICE]\n"), 2;
    pc_device device = pc_device_pick(argc > 5 ? argv[5] : "cpu");
    PC_SCOPE {
        batch b = read_batch(argv[3], device);
        pc_module *net = pc_picture_network(
            argv[1], classes_in(argv[2], argv[1]), .dropout = -1, .channels = (int)pc_tensor_size(b.x, 1),
            .height = (int)pc_tensor_size(b.x, 2), .width = (int)pc_tensor_size(b.x, 3));
        check(net && pc_weights_load(net, argv[2], (pc_weights_options){0}) == PC_OK &&
              pc_module_to(net, device, pc_tensor_dtype(b.x)) == PC_OK);
        pc_module_set_training(net, false);
        pc_tensor *evaluated = pc_detach(pc_forward(net, b.x));
        pc_module_set_training(net, true);
        pc_optimizer *sgd = pc_sgd(net, .lr = 0.01, .momentum = 0.9, .weight_decay = 1e-4);
        pc_tensor *trained = pc_forward(net, b.x), *loss = pc_cross_entropy(trained, b.labels);
        check(loss && pc_backward(loss) == PC_OK && pc_optimizer_step(sgd) == PC_OK);
        write_all(argv[4], net, evaluated, trained, loss);
        pc_optimizer_free(sgd);
        pc_module_free(net);
    }
    return 0;
}
