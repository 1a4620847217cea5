/* mandelbrot: the picture of 1024 x 1536 points, x -2..1, y -1..1, on the CPU with all its cores.
 * Usage: mandelbrot [iterations] [file for the counts, int32] */
#include "kernels.h"

#include <paracord.h>

static pc_mandelbrot_options spec;

static void picture(void *context)
{
    if (pc_mandelbrot(context, spec) != PC_OK)
        exit(pc_report(stderr));
}

int main(int argc, char **argv)
{
    const int iterations[] = {argc > 1 ? atoi(argv[1]) : 20, 1000};
    pc_tensor *counts = pc_empty(PC_SHAPE(1024, 1536), PC_I32, PC_DEVICE_CPU);
    if (!counts)
        return pc_report(stderr);
    for (int i = 0; i < (argc > 1 ? 1 : 2); i++) {
        char name[64];
        snprintf(name, sizeof name, "mandelbrot.%d", iterations[i]);
        spec.iterations = iterations[i];
        measure(name, 0.5, picture, counts);
    }
    FILE *file = argc > 2 ? fopen(argv[2], "wb") : NULL;
    if (argc > 2 && (!file || fwrite(pc_data(counts), 4, 1024 * 1536, file) != 1024 * 1536 || fclose(file))) {
        perror(argv[2]);
        return 1;
    }
    pc_tensor_free(counts);
    return 0;
}
