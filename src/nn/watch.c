/* watch.c: noting what work depends on. Modules are held, not owned: what is left of one that was freed says so. */
#include "nn/watch.h"

#include "tensor/leaf_watch.h"

#include <paracord/amp.h>
#include <paracord/autograd.h>
#include <paracord/no_grad.h>

static _Thread_local pc__watch *watching;

static pc__settings settings_now(void)
{
    pc__settings now;
    memset(&now, 0, sizeof now); /* compared as bytes */
    now.autocast = pc_autocast_dtype();
    now.precision = pc_matmul_precision_get();
    now.choice = pc_choice_get();
    now.device = pc_device_current();
    now.grad = pc_grad_enabled();
    now.evaluating = pc__is_evaluating();
    return now;
}

static uint64_t mixed(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static uint64_t state_of(const pc_module *m)
{
    uint64_t hash = m->bytes;
    const unsigned char *data = (const unsigned char *)m->data;
    for (size_t i = 0; i < m->bytes; i += sizeof hash) {
        uint64_t word = 0;
        memcpy(&word, data + i, PC__MIN(sizeof word, m->bytes - i));
        hash = mixed(hash, word);
    }
    for (int i = 0; i < m->parameter_count; i++) {
        const pc_tensor *t = m->parameters[i].object;
        hash = mixed(hash, ((uintptr_t)t + pc_requires_grad(t)) ^ (uint64_t)t->averaged << 63);
        hash = t->watch ? mixed(hash, t->watch->set->whole) : hash; /* it lies elsewhere each time */
    }
    for (int i = 0; i < m->buffer_count; i++)
        hash = mixed(hash, (uintptr_t)m->buffers[i].object);
    return hash;
}

static uint64_t parameters_of(const pc_optimizer *o)
{
    uint64_t hash = 0;
    for (int i = 0; i < o->count; i++)
        hash = mixed(hash, pc_requires_grad(o->parameters[i]) | (uint64_t)o->parameters[i]->averaged << 1);
    return hash;
}

static pc__watched *find(const pc__watch *w, const pc_module *m)
{
    for (int i = 0; i < w->count; i++)
        if (w->list[i].module == m)
            return &w->list[i];
    return NULL;
}

static void note(pc__watch *w, const pc_module *module, bool set)
{
    pc_module *m = (pc_module *)(uintptr_t)module;
    if (find(w, m))
        return;
    if (pc__grow((void **)&w->list, &w->room, w->count, sizeof *w->list) != PC_OK) {
        w->failed = true;
        return;
    }
    pc__module_hold(m);
    w->list[w->count++] = (pc__watched){.module = m, .training = atomic_load(&m->training), .set = set};
}

static void note_all(pc__watch *w, const pc_module *module)
{
    note(w, module, false);
    for (int i = 0; i < module->child_count; i++)
        note_all(w, module->children[i].object);
}

void pc__watch_asked(const pc_module *module)
{
    if (watching && !find(watching, module))
        note_all(watching, module);
}

void pc__watch_told(const pc_module *module)
{
    if (watching)
        note(watching, module, true);
}

void pc__watch_clear(pc__watch *w)
{
    for (int i = 0; i < w->count; i++)
        pc__module_let_go(w->list[i].module);
    pc__free(w->list);
    *w = (pc__watch){0};
}

void pc__watch_begin(pc__watch *w, const pc_optimizer *o)
{
    pc__watch_clear(w);
    w->settings = settings_now();
    w->optimizer = o->settings;
    w->clip_norm = o->clip_norm;
    w->parameters = parameters_of(o);
    watching = w;
}

/* What forward passes keep in their modules is theirs: it is only a change when somebody else makes it. */
pc_status pc__watch_end(pc__watch *w)
{
    watching = NULL;
    for (int i = 0; i < w->count; i++) {
        w->list[i].version = w->list[i].module->version;
        w->list[i].state = state_of(w->list[i].module);
    }
    return w->failed ? PC_ERR_MEMORY : PC_OK;
}

/* The rate is read on the device. */
bool pc__watch_same_optimizer(const pc__watch *w, const pc_optimizer *o)
{
    const pc__step_attributes *a = &w->optimizer, *b = &o->settings;
    bool same = a->momentum == b->momentum && a->nesterov == b->nesterov && a->beta1 == b->beta1 &&
                a->beta2 == b->beta2 && a->epsilon == b->epsilon && a->groups == b->groups &&
                a->clip_value == b->clip_value && w->clip_norm == o->clip_norm;
    for (int i = 0; i < b->groups; i++)
        same = same && a->group[i].lr_scale == b->group[i].lr_scale &&
               a->group[i].weight_decay == b->group[i].weight_decay;
    return same;
}

bool pc__watch_holds(const pc__watch *w, const pc_optimizer *o)
{
    const pc__settings now = settings_now();
    if (memcmp(&now, &w->settings, sizeof now) != 0 || w->parameters != parameters_of(o))
        return false;
    for (int i = 0; i < w->count; i++) {
        const pc__watched *x = &w->list[i];
        if (x->version != x->module->version || (!x->set && x->training != atomic_load(&x->module->training)) ||
            x->state != state_of(x->module))
            return false;
    }
    return true;
}
