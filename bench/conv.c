/* conv: the convolution blocks of the two networks, forward and backward, batch 32 at 64x64.
 * Usage: conv [seconds per measurement] [level] [threads] [piece] */
#include "kernels.h"

typedef struct block {
    const kernels *k;
    pc__conv s;
    float *x, *weight, *bias, *y, *dy, *dx, *dweight, *dbias;
    uint8_t *argmax;
} block;

static const char *piece = ""; /* measure only names with this in them */

static void forward(void *context)
{
    block *b = context;
    if (b->k->conv2d(&b->s, b->x, b->weight, b->bias, b->y, b->argmax) != PC_OK)
        exit(1);
}

static void backward(void *context)
{
    block *b = context;
    if (b->k->conv2d_backward(&b->s, b->x, b->weight, b->y, b->argmax, b->dy, b->dx, b->dweight, b->dbias) != PC_OK)
        exit(1);
}

static void run(const kernels *k, const char *name, pc__conv s, bool first, double seconds)
{
    const int64_t y = s.n * pc__conv_yh(&s) * pc__conv_yw(&s) * s.o, x = s.n * s.h * s.w * s.c;
    const int64_t weight = s.o * s.c * s.kh * s.kw;
    block b = {k,
               s,
               noise(x),
               noise(weight),
               noise(s.o),
               noise(y),
               noise(y),
               first ? NULL : noise(x),
               noise(weight),
               noise(s.o),
               malloc((size_t)y)};
    char line[64];
    snprintf(line, sizeof(line), "%s.forward", name);
    if (strstr(line, piece))
        measure(line, seconds, forward, &b);
    else
        forward(&b);
    snprintf(line, sizeof(line), "%s.backward", name);
    if (strstr(line, piece))
        measure(line, seconds, backward, &b);
    free(b.x), free(b.weight), free(b.bias), free(b.y), free(b.dy), free(b.dx), free(b.dweight), free(b.dbias);
    free(b.argmax);
}

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? atof(argv[1]) : 0.5;
    const kernels *k = kernels_for(argc > 2 ? argv[2] : NULL);
    pc_threads_set(argc > 3 ? atoi(argv[3]) : 0);
    piece = argc > 4 ? argv[4] : "";
    run(k, "article.conv", (pc__conv){32, 64, 64, 3, 32, 3, 3, 3, 3, 0, 0, PC__ACT_RELU, .pool = 2}, true, seconds);
    run(k, "two-conv.conv1", (pc__conv){32, 64, 64, 3, 32, 3, 3, 1, 1, 0, 0, PC__ACT_RELU, .pool = 2}, true, seconds);
    run(k, "two-conv.conv2", (pc__conv){32, 31, 31, 32, 64, 3, 3, 1, 1, 0, 0, PC__ACT_RELU, .pool = 2}, false, seconds);
    run(k, "plain.conv", (pc__conv){32, 31, 31, 32, 64, 3, 3, 1, 1, 0, 0, PC__ACT_NONE, .pool = 1}, false, seconds);
    return 0;
}
