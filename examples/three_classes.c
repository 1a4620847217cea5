/* three_classes.c: a training loop of your own, without pictures: points around three centres, told apart by a small
 * network with cross-entropy and Adam, and measured on points that it has not seen. */
#include <paracord.h>

enum { POINTS = 300, CLASSES = 3 };

/* Points [POINTS, 2] and their labels [POINTS]. */
static pc_tensor *draw(pc_tensor **labels)
{
    static const float centres[CLASSES][2] = {{-2, 0}, {2, 0}, {0, 3}};
    int64_t label[POINTS];
    for (int i = 0; i < POINTS; i++)
        label[i] = i % CLASSES;
    *labels = pc_from_data(label, PC_SHAPE(POINTS), PC_I64, PC_DEVICE_CPU);
    pc_tensor *centre = pc_from_data(centres, PC_SHAPE(CLASSES, 2), PC_F32, PC_DEVICE_CPU);
    return pc_add(pc_index_select(centre, 0, *labels), pc_randn(PC_SHAPE(POINTS, 2), PC_F32, PC_DEVICE_CPU));
}

static double accuracy(pc_module *net, pc_tensor *x, pc_tensor *labels)
{
    double share = 0;
    PC_NO_GRAD {
        PC_SCOPE {
            pc_tensor *right = pc_eq(pc_argmax(pc_forward(net, x), 1, false), labels);
            share = pc_item(pc_mean(pc_cast(right, PC_F32)));
        }
    }
    return share;
}

int main(void)
{
    pc_seed(1); /* the same numbers on every run, machine and device */
    pc_module *net = pc_sequential(pc_linear(2, 16, .activation = PC_ACTIVATION_TANH), pc_linear(16, CLASSES));
    pc_optimizer *adam = pc_adam(net, .lr = 0.05);
    pc_module_print(net);

    PC_SCOPE {
        pc_tensor *labels, *test_labels, *x = draw(&labels), *test = draw(&test_labels);
        for (int step = 1; step <= 100; step++)
            PC_SCOPE {
                pc_tensor *loss = pc_cross_entropy(pc_forward(net, x), labels);
                if (pc_backward(loss) != PC_OK || pc_optimizer_step(adam) != PC_OK)
                    return pc_report(stderr);
                if (step % 25 == 0)
                    printf("step %3d  loss %.4f\n", step, pc_item(loss));
            }
        printf("right on new points: %.1f%%\n", 100 * accuracy(net, test, test_labels));
    }
    pc_optimizer_free(adam);
    pc_module_free(net);
    return pc_failed() ? pc_report(stderr) : 0;
}
