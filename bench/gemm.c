/* gemm: the linear layers of the two networks, forward (bias, ReLU) and backward (ReLU, bias, weight, input), batch
 * 32, and square products. Usage: gemm [seconds per measurement] [level] [threads] */
#include "kernels.h"

typedef struct layer {
    const kernels *k;
    int64_t batch, in, out;
    pc__activation activation;
    float *x, *weight, *bias, *y, *dy, *masked, *dx, *dweight, *dbias;
} layer;

static void product(const layer *l, pc__gemm g)
{
    if (l->k->gemm(&g) != PC_OK)
        exit(1);
}

static void forward(void *context)
{
    layer *l = context;
    product(l, (pc__gemm){l->batch, l->out, l->in, l->x, l->in, 1, l->weight, 1, l->in, l->y, l->out, 1, l->bias, false,
                          l->activation});
}

static void backward(void *context)
{
    layer *l = context;
    memset(l->dbias, 0, (size_t)l->out * sizeof(float));
    for (int64_t i = 0; i < l->batch; i++)
        for (int64_t j = 0; j < l->out; j++) {
            const int64_t at = i * l->out + j;
            l->masked[at] = l->activation == PC__ACT_RELU && l->y[at] <= 0 ? 0 : l->dy[at];
            l->dbias[j] += l->masked[at];
        }
    product(l, (pc__gemm){.m = l->out,
                          .n = l->in,
                          .k = l->batch,
                          .a = l->masked,
                          .a_rs = 1,
                          .a_cs = l->out,
                          .b = l->x,
                          .b_rs = l->in,
                          .b_cs = 1,
                          .c = l->dweight,
                          .c_rs = l->in,
                          .c_cs = 1});
    product(l, (pc__gemm){.m = l->batch,
                          .n = l->in,
                          .k = l->out,
                          .a = l->masked,
                          .a_rs = l->out,
                          .a_cs = 1,
                          .b = l->weight,
                          .b_rs = l->in,
                          .b_cs = 1,
                          .c = l->dx,
                          .c_rs = l->in,
                          .c_cs = 1});
}

static void run(const kernels *k, const char *name, int64_t in, int64_t out, pc__activation activation, double seconds)
{
    const int64_t batch = 32;
    layer l = {k,
               batch,
               in,
               out,
               activation,
               noise(batch * in),
               noise(out * in),
               noise(out),
               noise(batch * out),
               noise(batch * out),
               noise(batch * out),
               noise(batch * in),
               noise(out * in),
               noise(out)};
    char line[64];
    snprintf(line, sizeof(line), "%s.forward", name);
    measure(line, seconds, forward, &l);
    snprintf(line, sizeof(line), "%s.backward", name);
    measure(line, seconds, backward, &l);
    free(l.x), free(l.weight), free(l.bias), free(l.y), free(l.dy), free(l.masked), free(l.dx), free(l.dweight);
    free(l.dbias);
}

static void square(void *context)
{
    layer *l = context;
    const int64_t n = l->in;
    product(l, (pc__gemm){.m = n,
                          .n = n,
                          .k = n,
                          .a = l->x,
                          .a_rs = n,
                          .a_cs = 1,
                          .b = l->weight,
                          .b_rs = n,
                          .b_cs = 1,
                          .c = l->y,
                          .c_rs = n,
                          .c_cs = 1});
}

static void square_turned(void *context)
{
    layer *l = context;
    const int64_t n = l->in;
    product(l, (pc__gemm){.m = n,
                          .n = n,
                          .k = n,
                          .a = l->x,
                          .a_rs = n,
                          .a_cs = 1,
                          .b = l->weight,
                          .b_rs = 1,
                          .b_cs = n,
                          .c = l->y,
                          .c_rs = n,
                          .c_cs = 1});
}

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? atof(argv[1]) : 0.5;
    const kernels *k = kernels_for(argc > 2 ? argv[2] : NULL);
    pc_threads_set(argc > 3 ? atoi(argv[3]) : 0);
    run(k, "article.linear1", 3200, 128, PC__ACT_RELU, seconds);
    run(k, "article.linear2", 128, 1, PC__ACT_NONE, seconds);
    run(k, "two-conv.linear1", 12544, 128, PC__ACT_RELU, seconds);
    for (int64_t n = 128; n <= 1024; n *= 2) {
        layer l = {.k = k, .in = n, .x = noise(n * n), .weight = noise(n * n), .y = noise(n * n)};
        char line[64];
        snprintf(line, sizeof(line), "square.%d", (int)n);
        measure(line, seconds, square, &l);
        snprintf(line, sizeof(line), "square.%d.turned", (int)n);
        measure(line, seconds, square_turned, &l);
        free(l.x), free(l.weight), free(l.y);
    }
    return 0;
}
