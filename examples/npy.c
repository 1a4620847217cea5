/* npy.c: arrays to and from NumPy's .npy files, and to and from memory of your own. The file is
 * numpy.load("squares.npy") in Python. */
#include <paracord.h>

int main(void)
{
    double squares[2][5];
    for (int i = 0; i < 10; i++)
        squares[i / 5][i % 5] = i * i;

    PC_SCOPE {
        pc_tensor *mine = pc_from_memory(squares, PC_SHAPE(2, 5), PC_F64, NULL, NULL); /* no copy */
        if (pc_npy_save(mine, "squares.npy") != PC_OK)
            return pc_report(stderr);

        pc_tensor *read = pc_npy_load("squares.npy", PC_DEVICE_CPU);
        pc_print(read);
        pc_print(pc_sqrt(read));

        float roots[10]; /* and out again */
        if (pc_read(pc_cast(pc_sqrt(read), PC_F32), roots, sizeof roots) != PC_OK)
            return pc_report(stderr);
        printf("the last root is %g\n", (double)roots[9]);
    }
    return pc_failed() ? pc_report(stderr) : 0;
}
