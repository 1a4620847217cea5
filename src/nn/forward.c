/* forward.c: the way into a module's forward pass. */
#include "nn/module.h"

pc_tensor *pc_forward(pc_module *module, pc_tensor *x)
{
    PC__NEED_OR(NULL, module);
    PC__NEED_OR(NULL, x);
    pc__watch_asked(module);
    return module->type->forward(module, x);
}
