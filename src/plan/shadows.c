/* shadows.c: the pass that leaves out casts of parameters to 16 bits. An optimiser's step that is the only one to write a
 * parameter also writes it in 16 bits, its shadow (shadow.c), in the same kernel; what read the cast reads the shadow,
 * which the launch before has left, or has been cast in front of the launch.
 *
 * That is what was cast as long as the step stands behind all that reads it, on their stream, or in front of the cast. The
 * cast must be of the whole parameter, in the order of its memory, and nobody but the recording may see the result. A
 * function may write any parameter that the program has a pointer to: casts behind one stay. */
#include "plan/plan.h"

#include "ops/step.h"
#include "tensor/floats.h"

enum { NOBODY = -1, OTHERS = -2 };

typedef struct search {
    pc_graph *graph;
    pc__plan *plan;
    pc__plan_uses uses;
    int storages; /* there were: shadows come behind */
    int *step;    /* by storage: of a parameter the node of the step that alone writes it; or NOBODY, OTHERS */
    int *dtype;   /* by parameter: its shadow's, or NOBODY */
    int *of;      /* by storage: the parameter whose cast it is, or NOBODY */
    int *shadow;  /* by parameter: the number of its shadow, or NOBODY */
} search;

/* --- what steps write --- */

static bool is_step(const pc__plan_node *node)
{
    return !node->gone && node->kind == PC__NODE_CALL && pc__step_of(node->call) && !pc__has_halves(node->call);
}

static bool is_whole(const pc_tensor *t, pc_dtype dtype)
{
    return t->dtype == dtype && t->offset == 0 && t->storage->bytes > 0 &&
           (size_t)pc__count(t->ndim, t->shape) * pc_dtype_size(dtype) == t->storage->bytes;
}

static bool is_parameter(const pc_call *step, int k)
{
    return k < pc__step_of(step)->count && is_whole(step->in[k], PC_F32) && pc__is_contiguous(step->in[k]);
}

/* The step's output is its first parameter once more. */
static void find_steps(search *s)
{
    for (int i = 0; i < s->plan->count; i++) {
        const pc__plan_node *node = &s->plan->node[i];
        const pc_call *step = is_step(node) ? node->call : NULL;
        for (int k = 0; k < (node->gone ? 0 : step ? step->n_in : pc__node_uses(node)); k++) {
            int *by = &s->step[node->number[k]];
            if (pc__node_writes(node, k))
                *by = *by == NOBODY && step && is_parameter(step, k) ? i : OTHERS;
        }
    }
}

/* --- casts --- */

static bool is_in_time(const search *s, int node, int step)
{
    const int result = s->plan->node[node].number[1];
    for (int i = s->uses.first[result]; i < s->uses.first[result + 1]; i++) {
        const int reader = s->uses.reader[i];
        if (s->plan->node[reader].stream != s->plan->node[step].stream || (node < step && reader >= step))
            return false;
    }
    return true;
}

static bool can_go(const search *s, int index)
{
    const pc__plan_node *node = &s->plan->node[index];
    if (node->gone || node->kind != PC__NODE_CALL || node->call->op->index != PC__OP_cast)
        return false;
    const pc_tensor *in = node->call->in[0], *out = node->call->out[0];
    const int from = node->number[0], to = node->number[1];
    return s->step[from] >= 0 && pc__is_half((pc_dtype)out->dtype) && is_whole(in, PC_F32) &&
           is_whole(out, (pc_dtype)out->dtype) && pc__same_places(in, out) && !pc__storage_is_open(in->storage) &&
           s->plan->storage[from].place == PC__PLACE_BEFORE && s->plan->storage[to].place == PC__PLACE_TEMPORARY &&
           s->plan->storage[to].writes == 1 && is_in_time(s, index, s->step[from]);
}

static void find_casts(search *s)
{
    for (int i = 0; i < s->plan->count && s->plan->node[i].kind != PC__NODE_FUNCTION; i++) {
        if (!can_go(s, i))
            continue;
        const pc__plan_node *node = &s->plan->node[i];
        const int dtype = node->call->out[0]->dtype;
        if (s->dtype[node->number[0]] == NOBODY)
            s->dtype[node->number[0]] = dtype;
        if (s->dtype[node->number[0]] == dtype)
            s->of[node->number[1]] = node->number[0];
    }
}

/* --- the step --- */

/* Numbers behind a matrix's last row, up to whole eights of rows: products on matrix units want them (pitches.c). */
static int64_t room_behind(const search *s, const pc_tensor *t)
{
    enum { EIGHTS = 8 };
    const bool odd = s->graph->backend->type == PC_CUDA && t->ndim == 2 && t->shape[0] % EIGHTS != 0;
    return odd ? (EIGHTS - t->shape[0] % EIGHTS) * t->shape[1] : 0;
}

/* The shadow of that tensor's storage gets a number. False: it has none. */
static bool take(search *s, int parameter, const pc_tensor *t)
{
    pc__plan *plan = s->plan;
    pc__storage *of = plan->storage[parameter].storage;
    if (pc__grow((void **)&plan->shadow, &plan->shadow_room, plan->shadows, sizeof *plan->shadow) != PC_OK) {
        pc_error_clear();
        return false;
    }
    pc__shadow *shadow = pc__shadow_hold(of, (pc_dtype)s->dtype[parameter], room_behind(s, t), s->graph->stream);
    if (!shadow)
        return false;
    plan->shadow[plan->shadows++] = (pc__plan_shadow){.of = of, .shadow = shadow};
    plan->storage[plan->storages] =
        (pc__plan_storage){.storage = shadow->storage, .bytes = shadow->storage->bytes, .place = PC__PLACE_SHADOW};
    s->shadow[parameter] = plan->storages++;
    return true;
}

static void give_up(search *s, int shadows)
{
    pc__plan *plan = s->plan;
    for (; shadows > 0; shadows--) {
        pc__shadow_let_go(plan->shadow[--plan->shadows].of);
        plan->storages--;
    }
    for (int i = 0; i < s->storages; i++)
        if (s->shadow[i] >= plan->storages)
            s->shadow[i] = NOBODY;
}

/* The call with what it has and, behind its lists, the shadows. */
static bool write_shadows(const search *s, pc__plan_node *node)
{
    const pc_call *before = node->call;
    pc__step_attributes attributes = *pc__step_of(before);
    const int count = attributes.count, lists = pc__step_lists(before), n = before->n_in + count;
    pc_tensor *narrow = pc__alloc((size_t)count * sizeof *narrow),
              **in = pc__alloc((size_t)n * (sizeof(pc_tensor *) + sizeof(int)) + sizeof(int));
    bool done = narrow && in;
    int *number = (int *)(void *)(in + n);
    for (int i = 0; done && i < n; i++) {
        const int from = i < lists ? i : i < lists + count ? i - lists : i - count;
        in[i] = before->in[from];
        number[i] = node->number[from];
        const int shadow = i >= lists && i < lists + count ? s->shadow[number[i]] : NOBODY;
        if (shadow == NOBODY)
            continue;
        narrow[i - lists] = *in[i];
        narrow[i - lists].dtype = s->dtype[number[i]];
        narrow[i - lists].storage = s->plan->storage[shadow].storage;
        in[i] = &narrow[i - lists];
        number[i] = shadow;
    }
    if (done) {
        attributes.copies = true;
        pc_call call = *before;
        call.in = in;
        call.n_in = n;
        call.attributes = &attributes;
        number[n] = number[0];
        done = pc__node_become(node, &call, number, node->kernel);
    } else
        pc_error_clear();
    pc__free(narrow);
    pc__free(in);
    return done;
}

/* To one dtype, the first parameter's that it can be done for. */
static void cast_in_step(search *s, pc__plan_node *node)
{
    const int count = pc__step_of(node->call)->count;
    int shadows = 0, dtype = NOBODY;
    for (int k = 0; k < count; k++) {
        const int wanted = s->dtype[node->number[k]];
        if (wanted == NOBODY || (dtype != NOBODY && dtype != wanted) || !take(s, node->number[k], node->call->in[k]))
            continue;
        dtype = wanted;
        shadows++;
    }
    if (shadows && !write_shadows(s, node))
        give_up(s, shadows);
}

/* --- what read the casts --- */

static int shadow_of(const search *s, int number)
{
    return number < s->storages && s->of[number] != NOBODY ? s->shadow[s->of[number]] : NOBODY;
}

static void read_shadows(const search *s)
{
    for (int i = 0; i < s->plan->count; i++) {
        pc__plan_node *node = &s->plan->node[i];
        for (int k = 0; k < (node->gone ? 0 : pc__node_uses(node)); k++)
            if (shadow_of(s, node->number[k]) == NOBODY)
                continue;
            else if (pc__node_writes(node, k))
                node->gone = PC__PASS_SHADOWS;
            else
                pc__node_rename(s->plan, node, k, shadow_of(s, node->number[k]));
    }
}

static bool make_room(search *s)
{
    int wanted = 0;
    for (int i = 0; i < s->storages; i++)
        wanted += s->dtype[i] != NOBODY;
    if (!wanted)
        return false;
    pc__plan_storage *more = pc__realloc(s->plan->storage, ((size_t)s->storages + (size_t)wanted + 1) * sizeof *more);
    if (!more) {
        pc_error_clear();
        return false;
    }
    s->plan->storage = more;
    return true;
}

void pc__pass_shadows(pc_graph *graph)
{
    pc__plan *plan = graph->plan;
    const size_t storages = (size_t)plan->storages + 1;
    search s = {.graph = graph, .plan = plan, .storages = plan->storages};
    int *lists = pc__alloc(4 * storages * sizeof *lists);
    if (!lists || !pc__plan_uses_make(&s.uses, plan)) {
        pc__free(lists);
        pc_error_clear(); /* the plan is right without the pass */
        return;
    }
    for (size_t i = 0; i < 4 * storages; i++)
        lists[i] = NOBODY;
    s.step = lists;
    s.dtype = lists + storages;
    s.of = lists + 2 * storages;
    s.shadow = lists + 3 * storages;
    find_steps(&s);
    find_casts(&s);
    if (make_room(&s)) {
        for (int i = 0; i < plan->count; i++)
            if (is_step(&plan->node[i]))
                cast_in_step(&s, &plan->node[i]);
        read_shadows(&s);
    }
    pc__plan_uses_free(&s.uses);
    pc__free(lists);
}
