/* views_and_printing.c: one piece of memory seen in several ways, each printed as PyTorch prints it. A view costs no
 * copy, and what is written through it shows in all of them. */
#include <paracord.h>

static void show(const char *what, pc_tensor *t)
{
    printf("\n%s\n", what);
    pc_print(t);
}

int main(void)
{
    PC_SCOPE {
        pc_tensor *a = pc_arange(0, 12, 1, PC_I64, PC_DEVICE_CPU);
        pc_tensor *table = pc_reshape(a, PC_SHAPE(3, -1)); /* -1: whatever is left, 4 */
        show("12 numbers as a table", table);
        show("turned", pc_transpose(table, 0, 1));
        printf("strides %d, %d\n", (int)pc_tensor_stride(table, 0), (int)pc_tensor_stride(table, 1));

        pc_tensor *column = pc_slice(table, 1, -1, PC_END_OF_DIM, 1); /* table[:, -1:] */
        show("its last column", column);
        if (pc_fill(column, 100) != PC_OK)
            return pc_report(stderr);
        show("100 written into the column", table);

        show("every other number", pc_slice(a, 0, 0, PC_END_OF_DIM, 2));
        show("one row repeated, without a copy", pc_expand(pc_slice(table, 0, 0, 1, 1), PC_SHAPE(2, 4)));
        show("a copy in the turned order", pc_contiguous(pc_permute(table, PC_SHAPE(1, 0))));

        show("floats", pc_div_scalar(table, 8));
        show("comparisons", pc_gt(table, pc_scalar(5, PC_I64, PC_DEVICE_CPU)));
        show("many numbers", pc_rand(PC_SHAPE(1000, 1000), PC_F32, PC_DEVICE_CPU));
        show("one", pc_sum(a));
        show("none", pc_zeros(PC_SHAPE(0, 3), PC_F32, PC_DEVICE_CPU));
    }
    return pc_failed() ? pc_report(stderr) : 0;
}
