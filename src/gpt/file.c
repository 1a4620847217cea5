/* file.c: GPTs as Hugging Face keeps them: config.json and model.safetensors, where matrices are [in, out]. */
#include "gpt/model.h"
#include "io/file.h"
#include "io/json_read.h"
#include "io/safetensors.h"

#include <paracord/no_grad.h>

#include <limits.h>
#include <math.h>
#include <unistd.h>

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), k = strlen(end);
    return n >= k && strcmp(name + n - k, end) == 0;
}

bool pc__gpt_is_turned(const char *name)
{
    return ends_with(name, ".c_attn.weight") || ends_with(name, ".c_proj.weight") || ends_with(name, ".c_fc.weight");
}

static pc_status path_of(const char *folder, const char *name, char path[PATH_MAX])
{
    return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX
               ? PC_OK
               : pc__fail(PC_ERR_FILE, "%.64s...: the name is too long", folder);
}

/* --- config.json --- */

typedef struct config {
    pc_gpt_options o;
    pc__gpt_ends ends;
    pc__text word;
    char type[32], activation[32];
    double eps;
    bool tied, scaled, by_layer, crossed;
} config;

static void take_word(pc__json *in, config *c, char *to, size_t room)
{
    if (pc__json_string_in(in, &c->word))
        snprintf(to, room, "%s", c->word.data);
}

static void take_int(pc__json *in, int *to)
{
    int64_t number;
    if (pc__json_whole(in, &number))
        *to = number > INT_MAX ? INT_MAX : (int)number;
}

/* A number or null; a list of several is passed over. */
static void take_token(pc__json *in, int64_t *to)
{
    double number;
    const bool none = pc__json_ahead(in, 'n');
    bool is_number = pc__json_ahead(in, '-');
    for (char digit = '0'; digit <= '9'; digit++)
        is_number |= pc__json_ahead(in, digit);
    *to = none ? PC__GPT_NO_TOKEN : PC__GPT_UNSAID;
    if (!is_number)
        pc__json_skip(in);
    else if (pc__json_number_in(in, &number) && number >= 0 && number <= INT_MAX)
        *to = (int64_t)number;
}

static void take_entry(pc__json *in, config *c)
{
    static const struct {
        const char *name;
        size_t at;
    } ints[] = {{"n_layer", offsetof(config, o.layers)},
                {"n_head", offsetof(config, o.heads)},
                {"n_embd", offsetof(config, o.width)},
                {"n_positions", offsetof(config, o.context)}},
      truths[] = {{"tie_word_embeddings", offsetof(config, tied)},
                  {"scale_attn_weights", offsetof(config, scaled)},
                  {"scale_attn_by_inverse_layer_idx", offsetof(config, by_layer)},
                  {"add_cross_attention", offsetof(config, crossed)}};
    const char *key = c->word.data;
    for (int i = 0; i < 4; i++) {
        if (strcmp(key, ints[i].name) == 0)
            return take_int(in, (int *)((char *)c + ints[i].at));
        if (strcmp(key, truths[i].name) == 0)
            return (void)pc__json_truth(in, (bool *)((char *)c + truths[i].at));
    }
    if (strcmp(key, "vocab_size") == 0)
        (void)pc__json_whole(in, &c->o.vocabulary);
    else if (strcmp(key, "bos_token_id") == 0)
        take_token(in, &c->ends.begin);
    else if (strcmp(key, "eos_token_id") == 0)
        take_token(in, &c->ends.end);
    else if (strcmp(key, "layer_norm_epsilon") == 0)
        (void)pc__json_number_in(in, &c->eps);
    else if (strcmp(key, "resid_pdrop") == 0)
        (void)pc__json_number_in(in, &c->o.dropout);
    else if (strcmp(key, "model_type") == 0)
        take_word(in, c, c->type, sizeof c->type);
    else if (strcmp(key, "activation_function") == 0)
        take_word(in, c, c->activation, sizeof c->activation);
    else
        pc__json_skip(in);
}

static pc_status check_config(const char *path, const config *c)
{
    if (strcmp(c->type, "gpt2") != 0)
        return pc__fail(PC_ERR_UNSUPPORTED, "%s: the model is a \"%s\"; GPT-2's, \"gpt2\", are read here", path,
                        c->type);
    if (strcmp(c->activation, "gelu_new") != 0 && strcmp(c->activation, "gelu_pytorch_tanh") != 0)
        return pc__fail(PC_ERR_UNSUPPORTED, "%s: the activation is \"%s\"; GPT-2's is \"gelu_new\"", path,
                        c->activation);
    if (!c->tied || !c->scaled || c->by_layer || c->crossed || fabs(c->eps / PC__GPT_EPS - 1) > 1e-6)
        return pc__fail(
            PC_ERR_UNSUPPORTED,
            "%s: layers unlike GPT-2's: it has tied embeddings, attention scaled by the heads' size alone and "
            "norms with an epsilon of %g",
            path, PC__GPT_EPS);
    return PC_OK;
}

static pc_status read_config(const char *path, pc_gpt_options *options, pc__gpt_ends *ends)
{
    uint8_t *file;
    size_t n;
    PC__TRY(pc__file_read(path, &file, &n));
    config c = {.o = {.layers = 12, .heads = 12, .width = 768, .context = 1024, .vocabulary = 50257},
                .ends = {PC__GPT_UNSAID, PC__GPT_UNSAID},
                .type = "gpt2",
                .activation = "gelu_new",
                .eps = PC__GPT_EPS,
                .tied = true,
                .scaled = true};
    pc__json in = pc__json_of(file, n);
    for (pc__json_open(&in, '{'); pc__json_next(&in, '}');)
        if (pc__json_key(&in, &c.word))
            take_entry(&in, &c);
    const pc_status status =
        pc__json_ended(&in) ? check_config(path, &c) : pc__fail(PC_ERR_FORMAT, "%s cannot be understood", path);
    pc__text_free(&c.word);
    pc__free(file);
    *options = c.o;
    *ends = c.ends;
    return status;
}

static void add_token(pc__text *out, const char *name, int64_t token)
{
    if (token == PC__GPT_NO_TOKEN)
        pc__text_add(out, "  \"%s\": null,\n", name);
    else if (token >= 0)
        pc__text_add(out, "  \"%s\": %lld,\n", name, (long long)token);
}

static pc_status write_config(const char *path, const pc_gpt_options *o, const pc__gpt_ends *ends)
{
    pc__text out = {0};
    pc__text_add(
        &out,
        "{\n  \"architectures\": [\"GPT2LMHeadModel\"],\n  \"model_type\": \"gpt2\",\n  \"activation_function\": "
        "\"gelu_new\",\n  \"n_layer\": %d,\n  \"n_head\": %d,\n  \"n_embd\": %d,\n  \"n_positions\": %d,\n  "
        "\"n_ctx\": %d,\n  \"vocab_size\": %lld,\n  \"layer_norm_epsilon\": 1e-05,\n",
        o->layers, o->heads, o->width, o->context, o->context, (long long)o->vocabulary);
    static const char *const drops[] = {"attn_pdrop", "embd_pdrop", "resid_pdrop"};
    for (int i = 0; i < 3; i++) {
        pc__text_add(&out, "  \"%s\": ", drops[i]);
        pc__json_number(&out, o->dropout);
        pc__text_add(&out, ",\n");
    }
    add_token(&out, "bos_token_id", ends->begin);
    add_token(&out, "eos_token_id", ends->end);
    pc__text_add(&out, "  \"tie_word_embeddings\": true\n}\n");
    const pc_status status = out.failed ? PC_ERR_MEMORY : pc__file_write(path, out.data, out.length);
    pc__text_free(&out);
    return status;
}

/* --- model.safetensors --- */

/* The entry of a parameter, with and without "transformer." in front. */
static pc_status find(const pc_weights *file, const char *name, pc_weights_entry *entry)
{
    const char *bare = name + strlen("transformer.");
    return pc_weights_find(file, pc__weights_find(file, name) ? name : bare, entry);
}

static pc_status check(void *context, const char *name, pc__named *part)
{
    const pc_weights *file = context;
    const pc_tensor *own = part->object;
    pc_weights_entry entry;
    PC__TRY(find(file, name, &entry));
    const bool turned = pc__gpt_is_turned(name);
    bool same = entry.shape.ndim == own->ndim && entry.readable;
    for (int i = 0; same && i < own->ndim; i++)
        same = entry.shape.dim[i] == own->shape[turned ? own->ndim - 1 - i : i];
    return same ? PC_OK
                : pc__fail(PC_ERR_SHAPE, "%s: the tensor \"%.80s\" is %s %s, and config.json asks for %s%s", file->path,
                           entry.name, entry.type, pc__shape_format(entry.shape.ndim, entry.shape.dim).s,
                           PC__SHAPE_OF(own), turned ? " turned" : "");
}

static pc_status read_one(void *context, const char *name, pc__named *part)
{
    const pc_weights *file = context;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_weights_entry entry;
        status = find(file, name, &entry);
        pc_tensor *t = status == PC_OK ? pc_weights_read(file, entry.name, PC_DEVICE_CPU) : NULL;
        if (t && pc__gpt_is_turned(name))
            t = pc_transpose(t, 0, 1);
        status = t ? pc_copy(part->object, t) : pc_error_last()->status;
    }
    return status;
}

/* What the file has for its last layer must be what the first one has. */
static pc_status check_tied(const pc_weights *file, pc_module *gpt)
{
    if (!pc__weights_find(file, "lm_head.weight"))
        return PC_OK;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *head = pc_weights_read(file, "lm_head.weight", PC_DEVICE_CPU);
        pc_tensor *table = pc__module_own(pc__gpt_part(gpt, PC__GPT_TOKENS), "weight");
        status = !head ? pc_error_last()->status : PC_OK;
        if (status == PC_OK && (!pc__same_shape(head, table) || pc_item(pc_any(pc_ne(head, table))) != 0))
            status = pc__fail(PC_ERR_UNSUPPORTED,
                              "%s: lm_head.weight has other numbers than wte.weight; GPT-2's are the same", file->path);
    }
    return status;
}

/* A layer of the file that the configuration leaves out would be missed by the answers alone. */
static pc_status check_layers(const pc_weights *file, int layers)
{
    char name[80];
    pc_weights_entry entry;
    snprintf(name, sizeof name, "transformer.h.%d.ln_1.weight", layers);
    const pc_status more = find(file, name, &entry);
    if (more != PC_ERR_NOT_FOUND)
        return more == PC_OK ? pc__fail(PC_ERR_FORMAT, "%s has a tensor \"%.80s\", and config.json has %d layers",
                                        file->path, entry.name, layers)
                             : more;
    pc_error_clear();
    return PC_OK;
}

static pc_status read_weights(const char *path, pc_module *gpt, int layers)
{
    pc_weights *file = pc_weights_open(path);
    if (!file)
        return pc_error_last()->status;
    pc_status status = check_layers(file, layers);
    status = status == PC_OK ? pc__module_visit(gpt, check, file) : status;
    PC_NO_GRAD {
        status = status == PC_OK ? pc__module_visit(gpt, read_one, file) : status;
        status = status == PC_OK ? check_tied(file, gpt) : status;
    }
    pc_weights_free(file);
    return status;
}

static pc_status path_of_weights(const char *folder, char path[PATH_MAX])
{
    static const char *const names[] = {PC__GPT_WEIGHTS};
    for (int i = 0; i < PC__COUNT(names); i++) {
        PC__TRY(path_of(folder, names[i], path));
        if (access(path, F_OK) == 0)
            return PC_OK;
    }
    return path_of(folder, names[0], path); /* which is missed then */
}

pc_module *pc_gpt_open(const char *folder, pc_device device)
{
    PC__NEED_OR(NULL, folder);
    char path[PATH_MAX];
    pc_gpt_options options;
    pc__gpt_ends ends;
    if (pc__device_check(device, "pc_gpt_open") != PC_OK || pc__gpt_folder_check(folder) != PC_OK ||
        path_of(folder, "config.json", path) != PC_OK || read_config(path, &options, &ends) != PC_OK ||
        path_of_weights(folder, path) != PC_OK || pc__gpt_check(&options) != PC_OK)
        return NULL;
    pc_module *gpt = pc__gpt_make(&options, false);
    if (gpt)
        *pc__gpt_ends_of(gpt) = ends;
    if (gpt && read_weights(path, gpt, options.layers) == PC_OK && pc_module_to(gpt, device, PC_F32) == PC_OK)
        return gpt;
    pc_module_free(gpt);
    return NULL;
}

/* The state under Hugging Face's names and turned as there: views, which the writer reads in order. */
static pc_status write_weights(const char *path, const pc_module *gpt)
{
    const int count = pc_module_parameter_list(gpt, NULL, 0);
    pc_parameter *list = count < 0 ? NULL : pc__alloc((size_t)count * sizeof *list);
    if (!list)
        return pc_error_last()->status;
    pc_module_parameter_list(gpt, list, count);
    static const pc_weights_note_pair notes[] = {{"format", "pt"}, {NULL, NULL}};
    pc_status status = PC_OK;
    PC_NO_GRAD
        PC_SCOPE {
            for (int i = 0; i < count && status == PC_OK; i++)
                if (pc__gpt_is_turned(list[i].name)) {
                    list[i].tensor = pc_transpose(list[i].tensor, 0, 1);
                    status = list[i].tensor ? PC_OK : pc_error_last()->status;
                }
            if (status == PC_OK)
                status = pc_weights_write(path, list, count, notes);
        }
    pc__free(list);
    return status;
}

static pc_status save(const pc_module *gpt, const pc_gpt_options *o, const char *folder)
{
    char path[PATH_MAX];
    PC__TRY(pc__folder_make(folder));
    PC__TRY(path_of(folder, "config.json", path));
    PC__TRY(write_config(path, o, pc__gpt_ends_of(gpt)));
    PC__TRY(path_of(folder, "model.safetensors", path));
    return write_weights(path, gpt);
}

pc_status pc_gpt_save(const pc_module *gpt, const char *folder)
{
    PC__NEED(gpt);
    PC__NEED(folder);
    const pc_gpt_options *o = pc__gpt_of(gpt, "pc_gpt_save");
    if (!o)
        return PC_ERR_ARGUMENT;
    if (!pc__gpt_is_cut(o))
        return save(gpt, o, folder);
    pc_module *whole;
    PC__TRY(pc__gpt_join(gpt, &whole));
    const pc_status status = whole ? save(whole, o, folder) : PC_OK;
    pc_module_free(whole);
    return pc__gpt_share_status(o, status);
}
