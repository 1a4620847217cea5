/* forward.c: the way into a module's forward pass. Under autocast the outermost one casts the parameters of all layers
 * below in one kernel, and its input with them: cast by cast they are most of the launches of a small network's step.
 */
#include "nn/copies.h"
#include "nn/layers.h"
#include "ops/autocast.h"
#include "ops/table.h"

typedef struct gathered {
    pc_device device;
    pc_tensor **list;
    int count, room;
} gathered;

/* Of the layers that cast their parameters; modules of other classes may use theirs as they are. */
static pc_status gather_own(gathered *g, const pc_module *module)
{
    static const char *const names[] = {"weight", "bias"};
    if (!pc__layer(module, &pc__linear_class) && !pc__layer(module, &pc__conv2d_class))
        return PC_OK;
    for (int i = 0; i < 2; i++) {
        pc_tensor *t = pc__module_own(module, names[i]);
        if (!t || !pc__autocast_lacks(t) || !pc_device_equal(pc_tensor_device(t), g->device))
            continue;
        pc_tensor *copy = NULL;
        PC__TRY(pc__copy_of(t, pc_autocast_dtype(), &copy));
        if (copy) {
            PC__TRY(pc__autocast_known(t, copy));
            continue;
        }
        PC__TRY(pc__grow((void **)&g->list, &g->room, g->count, sizeof *g->list));
        g->list[g->count++] = t;
    }
    return PC_OK;
}

static pc_status gather(gathered *g, const pc_module *module)
{
    PC__TRY(gather_own(g, module));
    for (int i = 0; i < module->child_count; i++)
        PC__TRY(gather(g, module->children[i].object));
    return PC_OK;
}

/* True where the first thing that is done with x is that a layer casts it. */
static bool is_cast_first(const pc_module *module, const pc_tensor *x)
{
    while (module->type == &pc__sequential_class)
        module = module->children[0].object;
    const pc__conv2d_layer *conv = pc__layer(module, &pc__conv2d_class);
    if (!pc__autocast_casts(x))
        return false;
    return conv ? !conv->extra[0] && !conv->extra[1] && x->ndim == 4 && pc__is_nhwc(x)
                : pc__layer(module, &pc__linear_class) && pc__is_contiguous(x);
}

static pc_status cast_all(const pc_module *module, pc_tensor *x)
{
    gathered g = {.device = pc_tensor_device(x)};
    pc_status status = gather(&g, module);
    pc_tensor *along = is_cast_first(module, x) ? x : NULL;
    if (status == PC_OK && g.count + (along != NULL) > 1)
        status = pc__autocast_ahead(g.list, g.count, along);
    pc__free(g.list);
    return status;
}

/* A forward pass around this one has cast for it. */
static _Thread_local bool is_inner;

pc_tensor *pc_forward(pc_module *module, pc_tensor *x)
{
    PC__NEED_OR(NULL, module);
    PC__NEED_OR(NULL, x);
    pc__watch_asked(module);
    if (!pc__autocasting() || is_inner)
        return module->type->forward(module, x);
    if (cast_all(module, x) != PC_OK)
        return NULL;
    is_inner = true;
    pc_tensor *y = module->type->forward(module, x);
    is_inner = false;
    pc__autocast_forget_input();
    return y;
}
