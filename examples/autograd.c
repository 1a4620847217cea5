/* autograd.c: gradients of an expression: f = sum(x^2 y + exp(y)). They add up until they are forgotten, stop where
 * they are told to, and mistakes with them come back as errors. */
#include <paracord.h>

int main(void)
{
    const float x_values[] = {1, 2, 3}, y_values[] = {0, 1, -1};
    PC_SCOPE {
        pc_tensor *x = pc_from_data(x_values, PC_SHAPE(3), PC_F32, PC_DEVICE_CPU);
        pc_tensor *y = pc_from_data(y_values, PC_SHAPE(3), PC_F32, PC_DEVICE_CPU);
        if (pc_require_grad(x, true) != PC_OK || pc_require_grad(y, true) != PC_OK)
            return pc_report(stderr);

        pc_tensor *f = pc_sum(pc_add(pc_mul(pc_mul(x, x), y), pc_exp(y)));
        if (pc_backward(f) != PC_OK)
            return pc_report(stderr);
        pc_print(pc_grad(x)); /* 2 x y */
        pc_print(pc_grad(y)); /* x^2 + exp(y) */

        if (pc_backward(pc_sum(x)) != PC_OK) /* adds 1 to each */
            return pc_report(stderr);
        pc_print(pc_grad(x));
        pc_zero_grad(x);

        pc_tensor *constant = pc_detach(y); /* y's values, but not a way for gradients */
        if (pc_backward(pc_sum(pc_mul(x, constant))) != PC_OK)
            return pc_report(stderr);
        pc_print(pc_grad(x)); /* y */

        PC_NO_GRAD {
            pc_tensor *free_of_cost = pc_mul(x, y); /* nothing is recorded */
            printf("requires a gradient: %s\n", pc_requires_grad(free_of_cost) ? "yes" : "no");
        }
        if (pc_backward(f) != PC_OK) { /* the record of f was used up */
            printf("as it should, this failed: %s\n", pc_error_last()->message);
            pc_error_clear();
        }
    }
    return pc_failed() ? pc_report(stderr) : 0;
}
