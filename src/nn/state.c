/* state.c: a module's parameters and buffers as lists of names and tensors, and the module as text. */
#include "nn/module.h"

#include "tensor/overlap.h"

#include <paracord/autograd.h>

typedef struct lister {
    pc_parameter *list;
    int room, count;
} lister;

static pc_status put(void *context, const char *name, pc__named *parameter)
{
    lister *l = context;
    if (l->count < l->room) {
        snprintf(l->list[l->count].name, sizeof l->list[l->count].name, "%s", name);
        l->list[l->count].tensor = parameter->object;
    }
    l->count++;
    return PC_OK;
}

int pc_module_parameter_list(const pc_module *module, pc_parameter *list, int room)
{
    PC__NEED_OR(0, module);
    if (room > 0)
        PC__NEED_OR(0, list);
    lister l = {list, room, 0};
    (void)pc__module_visit((pc_module *)module, put, &l);
    return l.count;
}

int pc_module_state_list(const pc_module *module, pc_parameter *list, int room)
{
    PC__NEED_OR(0, module);
    if (room > 0)
        PC__NEED_OR(0, list);
    lister l = {list, room, 0};
    (void)pc__module_visit_state((pc_module *)module, put, &l);
    return l.count;
}

typedef struct finder {
    const char *name;
    pc_tensor *found;
    bool trained; /* a parameter, no buffer */
} finder;

static pc_status find(void *context, const char *name, pc__named *parameter)
{
    finder *f = context;
    if (strcmp(f->name, name) == 0 && parameter->kept != f->trained)
        f->found = parameter->object;
    return PC_OK;
}

pc_tensor *pc_module_parameter(const pc_module *module, const char *name)
{
    PC__NEED_OR(NULL, module);
    PC__NEED_OR(NULL, name);
    finder f = {name, NULL, true};
    (void)pc__module_visit((pc_module *)module, find, &f);
    return f.found ? f.found : pc__null(PC_ERR_NOT_FOUND, "the module has no parameter named \"%.80s\"", name);
}

pc_tensor *pc_module_buffer(const pc_module *module, const char *name)
{
    PC__NEED_OR(NULL, module);
    PC__NEED_OR(NULL, name);
    finder f = {name, NULL, false};
    (void)pc__module_visit_state((pc_module *)module, find, &f);
    return f.found ? f.found : pc__null(PC_ERR_NOT_FOUND, "the module has no buffer named \"%.80s\"", name);
}

typedef struct counter {
    int wanted, count; /* wanted below 0: none */
    pc_tensor *found;
} counter;

static pc_status count_buffer(void *context, const char *name, pc__named *part)
{
    counter *c = context;
    (void)name;
    if (part->kept && c->count++ == c->wanted)
        c->found = part->object;
    return PC_OK;
}

int pc__module_buffer_count(const pc_module *module)
{
    counter c = {-1, 0, NULL};
    (void)pc__module_visit_state((pc_module *)module, count_buffer, &c);
    return c.count;
}

pc_tensor *pc__module_buffer_at(const pc_module *module, int i)
{
    counter c = {i, 0, NULL};
    (void)pc__module_visit_state((pc_module *)module, count_buffer, &c);
    return c.found;
}

static pc_status count_elements(void *context, const char *name, pc__named *parameter)
{
    (void)name;
    *(int64_t *)context += pc_tensor_count(parameter->object);
    return PC_OK;
}

int64_t pc_module_parameter_elements(const pc_module *module)
{
    PC__NEED_OR(0, module);
    int64_t n = 0;
    (void)pc__module_visit((pc_module *)module, count_elements, &n);
    return n;
}

static pc_status zero(void *context, const char *name, pc__named *parameter)
{
    (void)context, (void)name;
    pc_zero_grad(parameter->object);
    return PC_OK;
}

void pc_module_zero_grad(pc_module *module)
{
    PC__NEED_OR(, module);
    (void)pc__module_visit(module, zero, NULL);
}

typedef struct loader {
    const pc_parameter *state;
    pc_tensor **given; /* of the state; copies where a parameter that is written before shares memory */
    bool *taken;       /* of the state: a parameter has that name */
    int count, used;
} loader;

static int place_of(const loader *l, const char *name)
{
    for (int i = 0; i < l->count; i++)
        if (strcmp(l->state[i].name, name) == 0)
            return i;
    return -1;
}

static pc_status check(void *context, const char *name, pc__named *parameter)
{
    loader *l = context;
    const int i = place_of(l, name);
    const pc_tensor *own = parameter->object;
    if (i < 0 || !l->given[i])
        return pc__fail(PC_ERR_NOT_FOUND, "pc_module_load: the state has no \"%s\"", name);
    if (l->taken[i])
        return pc__fail(PC_ERR_ARGUMENT,
                        "pc_module_load: two parameters are called \"%s\": names are cut after %zu bytes; nest fewer "
                        "modules or give them shorter names",
                        name, sizeof l->state->name - 1);
    l->taken[i] = true;
    if (!pc__same_shape(own, l->given[i]))
        return pc__fail(PC_ERR_SHAPE, "pc_module_load: \"%s\" has shape %s in the state and %s in the module", name,
                        PC__SHAPE_OF(l->given[i]), PC__SHAPE_OF(own));
    l->used++;
    return PC_OK;
}

/* What shares memory with a parameter of another name is kept as it is now. */
static pc_status keep_apart(void *context, const char *name, pc__named *parameter)
{
    loader *l = context;
    for (int i = 0; i < l->count; i++)
        if (strcmp(l->state[i].name, name) != 0 && pc__overlap(parameter->object, l->given[i]) != PC__APART) {
            l->given[i] = pc_clone(l->given[i]);
            if (!l->given[i])
                return pc_error_last()->status;
        }
    return PC_OK;
}

static pc_status load(void *context, const char *name, pc__named *parameter)
{
    const loader *l = context;
    return pc_copy(parameter->object, l->given[place_of(l, name)]);
}

static pc_status load_all(pc_module *module, loader *l)
{
    pc_status status = pc__module_visit_state(module, check, l);
    if (status == PC_OK && l->used != l->count)
        status =
            pc__fail(PC_ERR_NOT_FOUND, "pc_module_load: the state has %d entries, the module %d parameters and buffers",
                     l->count, l->used);
    PC_NO_GRAD
        PC_SCOPE {
            status = status == PC_OK ? pc__module_visit_state(module, keep_apart, l) : status;
            status = status == PC_OK ? pc__module_visit_state(module, load, l) : status;
        }
    return status;
}

pc_status pc_module_load(pc_module *module, const pc_parameter *state, int count)
{
    PC__NEED(module);
    if (count)
        PC__NEED(state);
    const size_t n = (size_t)PC__MAX(count, 1);
    loader l = {.state = state,
                .given = pc__calloc(n, sizeof *l.given),
                .taken = pc__calloc(n, sizeof *l.taken),
                .count = count};
    for (int i = 0; l.given && i < count; i++)
        l.given[i] = state[i].tensor;
    pc_status status = l.given && l.taken ? load_all(module, &l) : PC_ERR_MEMORY;
    pc__free(l.given);
    pc__free(l.taken);
    return status;
}

static void describe(const pc_module *module, int indent, pc__text *text)
{
    char inside[256] = "";
    if (module->type->describe)
        module->type->describe(module, inside, sizeof inside);
    pc__text_add(text, "%s(%s", module->type->name, inside);
    for (int i = 0; i < module->child_count; i++) {
        pc__text_add(text, "\n%*s(%s): ", indent + 2, "", module->children[i].name);
        describe(module->children[i].object, indent + 2, text);
    }
    if (module->child_count)
        pc__text_add(text, "\n%*s", indent, "");
    pc__text_add(text, ")");
}

char *pc_module_text(const pc_module *module)
{
    PC__NEED_OR(NULL, module);
    pc__text text = {0};
    describe(module, 0, &text);
    if (text.failed)
        pc__text_free(&text);
    return text.data;
}

void pc_module_print(const pc_module *module)
{
    PC__NEED_OR(, module);
    char *text = pc_module_text(module);
    if (text)
        printf("%s\n", text);
    pc_text_free(text);
}
