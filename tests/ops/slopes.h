/* slopes.h: a convolution and its gradients, to be compared bit by bit. */
#ifndef PC_TEST_SLOPES_H
#define PC_TEST_SLOPES_H

#include "support.h"

#include <paracord.h>

typedef struct slopes {
    pc_tensor *y, *dx, *dw;
} slopes;

static slopes slopes_of(pc_tensor *x, pc_tensor *w, pc_tensor *dy, pc_fn_conv2d_options o)
{
    pc_tensor *from = pc_detach(x), *leaf = pc_detach(w);
    assert_ok(pc_require_grad(from, true));
    assert_ok(pc_require_grad(leaf, true));
    pc_tensor *y = pc_fn_conv2d(from, leaf, NULL, o);
    assert_ok(pc_backward_with(y, dy));
    return (slopes){pc_detach(y), pc_grad(from), pc_grad(leaf)};
}

static bool all_equal(pc_tensor *a, pc_tensor *b)
{
    return pc_item(pc_all(pc_eq(a, b))) != 0;
}

#endif
