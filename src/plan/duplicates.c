/* duplicates.c: the pass that computes once what is computed twice: calls of one op with the same attributes on the same
 * contents, on one stream. The later one's result must be a temporary, and neither result may be written again. Work that
 * is done again so as not to keep its results meanwhile is no duplicate. */
#include "plan/plan.h"

typedef struct seen {
    int node; /* + 1; 0: none */
    uint64_t hash;
} seen;

typedef struct search {
    pc__plan *plan;
    seen *table;
    size_t mask;
    int *written; /* by storage: how often up to here */
    int *at;      /* by node: how often its first inputs were written when it came, INPUTS each */
    int *instead; /* by storage: the one that holds the same, or itself */
} search;

enum { INPUTS = 4 };

static uint64_t mix(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) /* FNV-1a */
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    return hash;
}

static bool can_be_shared(const pc__plan *plan, const pc__plan_node *node)
{
    if (node->kind != PC__NODE_CALL || node->gone || node->call->n_in == 0 || node->call->n_in > INPUTS ||
        node->call->op->flags & (PC__IN_PLACE | PC__WRITES_IN | PC__WRITES_HALF | PC__SIDE_EFFECTS))
        return false;
    for (int i = 0; i < node->call->n_in; i++)
        if (pc__node_storage(node, i)->foreign) /* its memory can be another storage's, too */
            return false;
    for (int i = node->call->n_in; i < pc__node_uses(node); i++)
        if (plan->storage[node->number[i]].writes != 1 || !pc__node_renews(node, i))
            return false;
    return true;
}

static uint64_t hash_of(const search *s, const pc__plan_node *node)
{
    uint64_t hash = mix(0xcbf29ce484222325u, &node->call->op, sizeof node->call->op);
    hash = mix(hash, node->call->attributes, node->call->attribute_bytes);
    for (int i = 0; i < node->call->n_in; i++) {
        const int use[] = {node->number[i], s->written[node->number[i]]};
        hash = mix(hash, use, sizeof use);
    }
    return hash;
}

static bool is_same_tensor(const pc_tensor *a, const pc_tensor *b)
{
    return a->dtype == b->dtype && a->offset == b->offset && pc__same_places(a, b);
}

static bool is_same(const search *s, int earlier, const pc__plan_node *b)
{
    const pc__plan_node *a = &s->plan->node[earlier];
    if (a->stream != b->stream || a->again != b->again || a->kernel != b->kernel || a->call->op != b->call->op ||
        a->settings.precision != b->settings.precision || a->settings.choice != b->settings.choice ||
        a->call->n_in != b->call->n_in || a->call->attribute_bytes != b->call->attribute_bytes ||
        (a->call->attribute_bytes && memcmp(a->call->attributes, b->call->attributes, a->call->attribute_bytes) != 0))
        return false;
    for (int i = 0; i < a->call->n_in; i++)
        if (a->number[i] != b->number[i] || s->at[earlier * INPUTS + i] != s->written[b->number[i]])
            return false;
    for (int i = 0; i < pc__node_uses(a); i++)
        if (!is_same_tensor(pc__call_tensor(a->call, i), pc__call_tensor(b->call, i)))
            return false;
    return true;
}

/* Later nodes use the result that was there first. */
static void rename_uses(const search *s, pc__plan_node *node)
{
    for (int i = 0; i < pc__node_uses(node); i++) {
        const int number = s->instead[node->number[i]];
        if (number != node->number[i])
            pc__node_rename(s->plan, node, i, number);
    }
}

static bool is_temporary(const pc__plan *plan, const pc__plan_node *node)
{
    for (int i = node->call->n_in; i < pc__node_uses(node); i++)
        if (plan->storage[node->number[i]].place != PC__PLACE_TEMPORARY)
            return false;
    return true;
}

/* True when the node went. */
static bool look_up(search *s, int index)
{
    pc__plan_node *node = &s->plan->node[index];
    const uint64_t hash = hash_of(s, node);
    size_t at = hash & s->mask;
    for (; s->table[at].node; at = (at + 1) & s->mask) {
        const int earlier = s->table[at].node - 1;
        if (s->table[at].hash != hash || !is_same(s, earlier, node) || !is_temporary(s->plan, node))
            continue;
        for (int i = node->call->n_in; i < pc__node_uses(node); i++)
            s->instead[node->number[i]] = s->plan->node[earlier].number[i];
        node->gone = PC__PASS_DUPLICATES;
        return true;
    }
    s->table[at] = (seen){index + 1, hash};
    for (int i = 0; i < node->call->n_in; i++)
        s->at[index * INPUTS + i] = s->written[node->number[i]];
    return false;
}

static void walk(search *s)
{
    for (int i = 0; i < s->plan->count; i++) {
        pc__plan_node *node = &s->plan->node[i];
        rename_uses(s, node);
        for (int k = 0; node->kind == PC__NODE_FUNCTION && k < s->plan->storages; k++)
            s->written[k]++; /* it may have a pointer to anything */
        if (can_be_shared(s->plan, node) && look_up(s, i))
            continue;
        for (int k = 0; k < (node->gone ? 0 : pc__node_uses(node)); k++)
            s->written[node->number[k]] += pc__node_writes(node, k);
    }
}

void pc__pass_duplicates(pc__plan *plan)
{
    size_t room = 64;
    while (room < (size_t)plan->count * 2)
        room *= 2;
    search s = {.plan = plan,
                .table = pc__calloc(room, sizeof *s.table),
                .mask = room - 1,
                .written = pc__calloc((size_t)plan->storages + 1, sizeof *s.written),
                .at = pc__calloc((size_t)plan->count * INPUTS + 1, sizeof *s.at),
                .instead = pc__calloc((size_t)plan->storages + 1, sizeof *s.instead)};
    const bool fits = s.table && s.written && s.at && s.instead;
    for (int i = 0; fits && i < plan->storages; i++)
        s.instead[i] = i;
    if (fits)
        walk(&s);
    else
        pc_error_clear(); /* the plan is right without the pass */
    pc__free(s.table);
    pc__free(s.written);
    pc__free(s.at);
    pc__free(s.instead);
}
