/* freeze.c: which parameters are trained. */
#include "nn/module.h"

#include <fnmatch.h>
#include <paracord/autograd.h>

typedef struct choice {
    const char *pattern;
    bool on;
    int found;
} choice;

static pc_status choose(void *context, const char *name, pc__named *parameter)
{
    choice *c = context;
    if (fnmatch(c->pattern, name, 0) != 0)
        return PC_OK;
    c->found++;
    if (!c->on)
        pc_zero_grad(parameter->object);
    return pc_require_grad(parameter->object, c->on);
}

static pc_status set(pc_module *module, const char *who, const char *pattern, bool on)
{
    choice c = {pattern, on, 0};
    if (pc_module_parameter_list(module, NULL, 0) < 0) /* all names can be looked at, or nothing changes */
        return pc_error_last()->status;
    PC__TRY(pc__module_visit(module, choose, &c));
    return c.found ? PC_OK
                   : pc__fail(PC_ERR_NOT_FOUND,
                              "%s: no parameter of the %s has a name like \"%.80s\"; pc_module_parameter_list has the "
                              "names",
                              who, module->type->name, pattern);
}

pc_status pc_module_freeze(pc_module *module, const char *pattern)
{
    PC__NEED(module);
    PC__NEED(pattern);
    return set(module, "pc_module_freeze", pattern, false);
}

pc_status pc_module_unfreeze(pc_module *module, const char *pattern)
{
    PC__NEED(module);
    PC__NEED(pattern);
    return set(module, "pc_module_unfreeze", pattern, true);
}
