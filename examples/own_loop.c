/* own_loop.c: a network of plain tensors and a training loop of one's own, without modules: two layers learn the
 * exclusive or. What a network is made of, and nothing else. */
#include <paracord.h>

static pc_tensor *weights(int64_t rows, int64_t columns)
{
    pc_tensor *w = pc_mul_scalar(pc_randn(PC_SHAPE(rows, columns), PC_F32, PC_DEVICE_CPU), 0.5);
    return pc_require_grad(w, true) == PC_OK ? w : NULL; /* its gradient is collected */
}

static pc_tensor *network(pc_tensor *x, pc_tensor *w1, pc_tensor *w2)
{
    return pc_matmul(pc_tanh(pc_matmul(x, w1)), w2);
}

/* w -= rate * gradient, outside of what is differentiated; then the gradient is forgotten. */
static pc_status descend(pc_tensor *w, double rate)
{
    pc_status status;
    PC_NO_GRAD {
        status = pc_saxpy(w, -rate, pc_grad(w));
    }
    pc_zero_grad(w);
    return status;
}

int main(void)
{
    const float inputs[] = {0, 0, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1}; /* the third column is a bias */
    const int64_t answers[] = {0, 1, 1, 0};
    pc_seed(1);
    PC_SCOPE {
        pc_tensor *x = pc_from_data(inputs, PC_SHAPE(4, 3), PC_F32, PC_DEVICE_CPU);
        pc_tensor *y = pc_from_data(answers, PC_SHAPE(4), PC_I64, PC_DEVICE_CPU);
        pc_tensor *w1 = weights(3, 8), *w2 = weights(8, 2);
        for (int step = 0; step <= 300; step++)
            PC_SCOPE { /* what a step makes is freed at its end */
                pc_tensor *loss = pc_cross_entropy(network(x, w1, w2), y);
                if (pc_backward(loss) != PC_OK || descend(w1, 0.5) != PC_OK || descend(w2, 0.5) != PC_OK)
                    return pc_report(stderr);
                if (step % 100 == 0)
                    printf("step %3d  loss %.4f\n", step, pc_item(loss));
            }
        pc_print(pc_argmax(network(x, w1, w2), 1, false));
    }
    return pc_failed() ? pc_report(stderr) : 0;
}
