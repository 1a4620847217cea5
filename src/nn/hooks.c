/* hooks.c: functions of the program around a module's forward pass. */
#include "nn/module.h"

int pc_module_add_hook(pc_module *module, pc_before_fn before, pc_after_fn after, void *context)
{
    PC__NEED_OR(0, module);
    if (!before && !after) {
        (void)pc__fail(PC_ERR_ARGUMENT,
                       "pc_module_add_hook: before and after are NULL; a hook is one of them at least");
        return 0;
    }
    if (pc__grow((void **)&module->hooks, &module->hook_room, module->hook_count, sizeof *module->hooks) != PC_OK)
        return 0;
    module->hooks[module->hook_count++] = (pc__hook){++module->last_hook, before, after, context};
    module->version++;
    return module->last_hook;
}

pc_status pc_module_remove_hook(pc_module *module, int hook)
{
    PC__NEED(module);
    for (int i = 0; i < module->hook_count; i++)
        if (module->hooks[i].number == hook) {
            memmove(module->hooks + i, module->hooks + i + 1,
                    (size_t)(--module->hook_count - i) * sizeof *module->hooks);
            module->version++;
            return PC_OK;
        }
    return pc__fail(PC_ERR_NOT_FOUND, "pc_module_remove_hook: the %s module has no hook %d", module->type->name, hook);
}

static pc_status check(const pc_module *module, pc_tensor *const *tensors, int count)
{
    for (int i = 0; i < count; i++)
        if (!tensors[i])
            return pc_failed() ? pc_error_last()->status
                               : pc__fail(PC_ERR_ARGUMENT, "forward: a hook of %s left tensor %d of %d NULL",
                                          module->type->name, i, count);
    return PC_OK;
}

/* A hook may remove itself: the list is looked at anew each time. */
pc_status pc__hooks_before(pc_module *module, pc_tensor **in, int in_count)
{
    for (int i = 0, number = 0; i < module->hook_count;
         i += i < module->hook_count && module->hooks[i].number == number) {
        const pc__hook hook = module->hooks[i];
        number = hook.number;
        if (hook.before) {
            PC__TRY(hook.before(hook.context, module, in, in_count));
            PC__TRY(check(module, in, in_count));
        }
    }
    return PC_OK;
}

pc_status pc__hooks_after(pc_module *module, pc_tensor *const *in, int in_count, pc_tensor **out, int out_count)
{
    for (int i = 0, number = 0; i < module->hook_count;
         i += i < module->hook_count && module->hooks[i].number == number) {
        const pc__hook hook = module->hooks[i];
        number = hook.number;
        if (hook.after) {
            PC__TRY(hook.after(hook.context, module, in, in_count, out, out_count));
            PC__TRY(check(module, out, out_count));
        }
    }
    return PC_OK;
}
