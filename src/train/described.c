/* described.c: networks of a JSON text. It is read once, from front to back: each layer knows what comes to it, and is made, or
 * counted, when its object ends. */
#include "train/described_layers.h"

#include "io/file.h"
#include "nn/layers.h"

enum { MOST = 32767, DEPTH_MAX = 32, LAYERS_MAX = 4096, TEXT_MAX = 1 << 20 };

typedef struct list {
    pc_named_module *children;
    char (*names)[PC__DESCRIBED_NAME];
    int count, room, name_room;
} list;

static const struct {
    const char *key;
    int bit;
} keys[] = {{"out", PC__OUT},         {"kernel", PC__KERNEL},        {"stride", PC__STRIDE},
            {"padding", PC__PADDING}, {"groups", PC__GROUPS},        {"dilation", PC__DILATION},
            {"bias", PC__BIAS},       {"activation", PC__ACTIVATES}, {"p", PC__P},
            {"body", PC__BODY},       {"shortcut", PC__SHORTCUT}};

static const pc_module_class sequence_class = {.name = "Sequential", .forward = pc__run_in_order};

/* --- errors --- */

static int line_of(const pc__describing *r)
{
    int line = 1;
    for (const char *c = r->begin; c < r->in.at; c++)
        line += *c == '\n';
    return line;
}

static pc_status no_json(const pc__describing *r)
{
    return pc__fail(PC_ERR_FORMAT, PC__DESCRIBED "this is not the JSON that is expected here", line_of(r));
}

static void list_kinds(char *text, size_t n)
{
    text[0] = 0;
    for (const pc__described_kind *k = pc__described_kinds; k->name; k++)
        snprintf(text + strlen(text), n - strlen(text), "%s%s", *text ? ", " : "", k->name);
}

/* --- keys --- */

static pc_status take_word(pc__describing *r)
{
    return pc__json_string_in(&r->in, &r->text) ? PC_OK : no_json(r);
}

static pc_status take_number(pc__describing *r, const char *key, int64_t least, int64_t *number)
{
    if (!pc__json_whole(&r->in, number))
        return no_json(r);
    return *number >= least && *number <= MOST
               ? PC_OK
               : pc__fail(PC_ERR_FORMAT, PC__DESCRIBED "\"%s\" is %lld; it must be %lld to %d", line_of(r), key,
                          (long long)*number, (long long)least, MOST);
}

static pc_status take_kind(pc__describing *r, pc__described_layer *l)
{
    char all[256];
    PC__TRY(take_word(r));
    for (l->kind = pc__described_kinds; l->kind->name; l->kind++)
        if (strcmp(r->text.data, l->kind->name) == 0)
            return PC_OK;
    list_kinds(all, sizeof all);
    return pc__fail(PC_ERR_FORMAT, PC__DESCRIBED "there is no layer \"%.40s\"; there are %s", line_of(r), r->text.data,
                    all);
}

static pc_status take_activation(pc__describing *r, pc__described_layer *l)
{
    PC__TRY(take_word(r));
    for (const pc__described_kind *k = pc__described_kinds; k->name; k++)
        if (k->activation && strcmp(r->text.data, k->name) == 0) {
            l->activation = k->activation;
            return PC_OK;
        }
    return pc__fail(PC_ERR_FORMAT,
                    PC__DESCRIBED "there is no activation \"%.40s\"; there are "
                                  "relu, sigmoid, tanh, gelu, silu",
                    line_of(r), r->text.data);
}

static pc_status take_out(pc__describing *r, pc__described_layer *l)
{
    if (!pc__json_ahead(&r->in, '"'))
        return take_number(r, "out", 1, &l->out);
    PC__TRY(take_word(r));
    l->out = r->outputs;
    return strcmp(r->text.data, "classes") == 0
               ? PC_OK
               : pc__fail(PC_ERR_FORMAT, PC__DESCRIBED "\"out\" is a number, or \"classes\"", line_of(r));
}

static pc_status take_padding(pc__describing *r, pc__described_layer *l)
{
    if (!pc__json_ahead(&r->in, '"'))
        return take_number(r, "padding", 0, &l->padding);
    PC__TRY(take_word(r));
    l->same = true;
    return strcmp(r->text.data, "same") == 0
               ? PC_OK
               : pc__fail(PC_ERR_FORMAT, PC__DESCRIBED "\"padding\" is a number, or \"same\"", line_of(r));
}

static pc_status take_list(pc__describing *r, pc__place *at, pc_module **module);

static pc_status take_value(pc__describing *r, pc__described_layer *l, int bit, pc__place at)
{
    switch (bit) {
    case PC__OUT:
        return take_out(r, l);
    case PC__KERNEL:
        return take_number(r, "kernel", 1, &l->kernel);
    case PC__STRIDE:
        return take_number(r, "stride", 1, &l->stride);
    case PC__PADDING:
        return take_padding(r, l);
    case PC__GROUPS:
        return take_number(r, "groups", 1, &l->groups);
    case PC__DILATION:
        return take_number(r, "dilation", 1, &l->dilation);
    case PC__BIAS:
        return pc__json_truth(&r->in, &l->bias) ? PC_OK : no_json(r);
    case PC__ACTIVATES:
        return take_activation(r, l);
    case PC__P:
        return pc__json_number_in(&r->in, &l->p) ? PC_OK : no_json(r);
    case PC__BODY:
        l->after_body = at;
        return take_list(r, &l->after_body, &l->body);
    default:
        l->after_shortcut = at;
        return take_list(r, &l->after_shortcut, &l->shortcut);
    }
}

static pc_status take_key(pc__describing *r, pc__described_layer *l, pc__place at)
{
    char key[PC__DESCRIBED_NAME];
    if (!pc__json_key(&r->in, &r->text))
        return no_json(r);
    snprintf(key, sizeof key, "%s", r->text.data);
    if (strcmp(key, "layer") == 0)
        return take_kind(r, l);
    if (strcmp(key, "name") == 0) {
        PC__TRY(take_word(r));
        snprintf(l->name, sizeof l->name, "%s", r->text.data);
        return PC_OK;
    }
    for (int i = 0; i < PC__COUNT(keys); i++)
        if (strcmp(key, keys[i].key) == 0) {
            if (l->given & keys[i].bit)
                return pc__fail(PC_ERR_FORMAT, PC__DESCRIBED "\"%s\" is there twice", line_of(r), key);
            l->given |= keys[i].bit;
            return take_value(r, l, keys[i].bit, at);
        }
    return pc__fail(PC_ERR_FORMAT, PC__DESCRIBED "there is no key \"%.40s\"", line_of(r), key);
}

/* A layer has the keys that it needs, and no others. */
static pc_status check_keys(const pc__described_layer *l)
{
    if (!l->kind)
        return pc__fail(PC_ERR_FORMAT, PC__DESCRIBED "an object without \"layer\"", l->line);
    const int wrong = l->given & ~l->kind->may, missing = l->kind->must & ~l->given;
    for (int i = 0; i < PC__COUNT(keys); i++)
        if ((wrong | missing) & keys[i].bit)
            return pc__fail(PC_ERR_FORMAT, PC__DESCRIBED "a layer \"%s\" %s \"%s\"", l->line, l->kind->name,
                            wrong & keys[i].bit ? "has no" : "needs", keys[i].key);
    return PC_OK;
}

/* --- lists --- */

static pc_status take_layer(pc__describing *r, pc__place *at, list *to)
{
    pc__described_layer l = {.stride = 1, .groups = 1, .dilation = 1, .bias = true};
    pc_module *module = NULL;
    pc_status status = PC_OK;
    pc__json_open(&r->in, '{');
    l.line = line_of(r);
    while (status == PC_OK && pc__json_next(&r->in, '}'))
        status = take_key(r, &l, *at);
    if (status == PC_OK)
        status = r->in.bad ? no_json(r) : check_keys(&l);
    if (status == PC_OK)
        status = l.kind->make(r, &l, at, &module);
    if (status == PC_OK && r->makes && !module)
        status = pc_error_last()->status;
    pc_module_free(l.body);
    pc_module_free(l.shortcut);
    if (status == PC_OK && to->count >= LAYERS_MAX)
        status = pc__fail(PC_ERR_FORMAT, PC__DESCRIBED "more than %d layers in a list", l.line, LAYERS_MAX);
    if (status == PC_OK)
        status = pc__grow((void **)&to->children, &to->room, to->count, sizeof *to->children);
    if (status == PC_OK)
        status = pc__grow((void **)&to->names, &to->name_room, to->count, sizeof *to->names);
    if (status != PC_OK) {
        pc_module_free(module);
        return status;
    }
    snprintf(to->names[to->count], sizeof *to->names, "%s", l.name);
    if (!l.name[0])
        snprintf(to->names[to->count], sizeof *to->names, "%d", to->count);
    to->children[to->count++].module = module;
    return PC_OK;
}

static pc_status take_layers(pc__describing *r, pc__place *at, list *to)
{
    pc__json_open(&r->in, '[');
    while (pc__json_next(&r->in, ']'))
        PC__TRY(take_layer(r, at, to));
    if (r->in.bad)
        return no_json(r);
    return to->count ? PC_OK : pc__fail(PC_ERR_FORMAT, PC__DESCRIBED "a list without layers", line_of(r));
}

static pc_status take_list(pc__describing *r, pc__place *at, pc_module **module)
{
    list to = {.count = 0};
    if (r->depth >= DEPTH_MAX)
        return pc__fail(PC_ERR_FORMAT, PC__DESCRIBED "more than %d lists inside each other", line_of(r), DEPTH_MAX);
    r->depth++;
    pc_status status = take_layers(r, at, &to);
    r->depth--;
    for (int i = 0; i < to.count; i++)
        to.children[i].name = to.names[i];
    if (status == PC_OK && r->makes) {
        *module = pc_module_of_new(&sequence_class, to.children, to.count);
        status = *module ? PC_OK : pc_error_last()->status;
    } else {
        for (int i = 0; i < to.count; i++)
            pc_module_free(to.children[i].module);
    }
    pc__free(to.children);
    pc__free(to.names);
    return status;
}

/* {"network": [...]} */
static pc_status take_all(pc__describing *r, pc__place at, pc_module **module)
{
    bool found = false;
    for (pc__json_open(&r->in, '{'); pc__json_next(&r->in, '}'); found = true) {
        if (!pc__json_key(&r->in, &r->text))
            return no_json(r);
        if (found || strcmp(r->text.data, "network") != 0)
            return pc__fail(PC_ERR_FORMAT,
                            PC__DESCRIBED "there is no key \"%.40s\"; it is "
                                          "{\"network\": [...]}",
                            line_of(r), r->text.data);
        PC__TRY(take_list(r, &at, module));
    }
    if (!pc__json_ended(&r->in) || !found)
        return no_json(r);
    if (!r->makes || (at.flat && at.channels == r->outputs)) /* who counts may not know the classes */
        return PC_OK;
    return pc__fail(PC_ERR_SHAPE,
                    "the description of the network ends in %.0f numbers for each picture, and there must be %d "
                    "for the classes: end it with {\"layer\": \"linear\", \"out\": \"classes\"}",
                    pc__place_numbers(&at), r->outputs);
}

static pc_status run(pc__describing *r, const char *text, pc__frame p, pc_module **module)
{
    r->in = pc__json_of(text, strlen(text));
    r->begin = text;
    const pc_status status = take_all(r, (pc__place){p.channels, p.height, p.width, false}, module);
    const bool failed = r->text.failed;
    pc__text_free(&r->text);
    if (status == PC_OK && !failed)
        return PC_OK;
    pc_module_free(*module);
    *module = NULL;
    return failed ? PC_ERR_MEMORY : status;
}

pc_module *pc__described_new(const char *text, pc__frame pictures, int outputs, pc_init_kind init)
{
    pc_module *module = NULL;
    pc__describing r = {.makes = true, .init = init, .outputs = outputs};
    return run(&r, text, pictures, &module) == PC_OK ? module : NULL;
}

pc_status pc__described_measure(const char *text, pc__frame pictures, int outputs, pc__arch_size *size)
{
    pc_module *none = NULL;
    pc__describing r = {.makes = false, .outputs = outputs};
    PC__TRY(run(&r, text, pictures, &none));
    *size = (pc__arch_size){r.parameters, r.activations + r.largest};
    return PC_OK;
}

bool pc__is_description(const char *arch)
{
    return arch[0] == '{';
}

pc_status pc__description_read(const char *path, char **text)
{
    uint8_t *bytes;
    size_t n, from = 0;
    PC__TRY(pc__file_read(path, &bytes, &n));
    while (from < n && (bytes[from] == ' ' || bytes[from] == '\n' || bytes[from] == '\r' || bytes[from] == '\t'))
        from++;
    const bool fine = from < n && bytes[from] == '{' && n <= TEXT_MAX && !memchr(bytes, 0, n);
    *text = fine ? pc__alloc(n - from + 1) : NULL;
    if (*text) {
        memcpy(*text, bytes + from, n - from);
        (*text)[n - from] = 0;
    }
    pc__free(bytes);
    return *text  ? PC_OK
           : fine ? PC_ERR_MEMORY
                  : pc__fail(PC_ERR_FORMAT, "%s describes no network: it is not a JSON object, {\"network\": [...]}",
                             path);
}
