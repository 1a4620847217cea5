/* state.c: a module's parameters and buffers as lists of names and tensors, and the module printed. */
#include "nn/module.h"

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
    return pc__module_visit((pc_module *)module, put, &l) == PC_OK ? l.count : -1;
}

int pc_module_state_list(const pc_module *module, pc_parameter *list, int room)
{
    PC__NEED_OR(0, module);
    if (room > 0)
        PC__NEED_OR(0, list);
    lister l = {list, room, 0};
    return pc__module_visit_state((pc_module *)module, put, &l) == PC_OK ? l.count : -1;
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
    if (pc__module_visit((pc_module *)module, find, &f) != PC_OK)
        return NULL;
    return f.found ? f.found : pc__null(PC_ERR_NOT_FOUND, "the module has no parameter named \"%.80s\"", name);
}

pc_tensor *pc_module_buffer(const pc_module *module, const char *name)
{
    PC__NEED_OR(NULL, module);
    PC__NEED_OR(NULL, name);
    finder f = {name, NULL, false};
    if (pc__module_visit_state((pc_module *)module, find, &f) != PC_OK)
        return NULL;
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
    (void)pc__module_each_state((pc_module *)module, count_buffer, &c);
    return c.count;
}

pc_tensor *pc__module_buffer_at(const pc_module *module, int i)
{
    counter c = {i, 0, NULL};
    (void)pc__module_each_state((pc_module *)module, count_buffer, &c);
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
    (void)pc__module_each((pc_module *)module, count_elements, &n);
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
    (void)pc__module_each(module, zero, NULL);
}

void pc_module_print(const pc_module *module)
{
    PC__NEED_OR(, module);
    char *text = pc_module_text(module);
    if (text)
        printf("%s\n", text);
    pc_text_free(text);
}
