/* describe_text.c: the table of a forward pass as text. */
#include "nn/describe.h"

#include <paracord/autograd.h>

/* 12,345 */
static const char *whole(int64_t n, char text[32])
{
    char digits[32];
    const int length = snprintf(digits, sizeof digits, "%lld", (long long)n);
    int at = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = 0;
    return text;
}

/* 3.54 M; nothing for nothing. */
static const char *short_number(double n, double step, const char *const *units, char text[32])
{
    int unit = 0;
    for (; n >= step * 0.9995 && unit < 4; unit++)
        n /= step;
    const int digits = unit == 0 || n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2;
    text[0] = 0;
    if (n > 0)
        snprintf(text, 32, "%.*f%s%s", digits, n, units[unit][0] ? " " : "", units[unit]);
    return text;
}

static const char *flop_text(double n, char text[32])
{
    static const char *const units[] = {"", "k", "M", "G", "T"};
    return short_number(n, 1000, units, text);
}

static const char *bytes_text(double n, char text[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    return short_number(n, 1024, units, text);
}

typedef struct sums {
    int64_t parameters, frozen;
    double bytes, frozen_bytes, buffer_bytes;
} sums;

static double bytes_of(const pc_tensor *t)
{
    return (double)pc_tensor_count(t) * (double)pc_dtype_size((pc_dtype)t->dtype);
}

/* A tensor that has two names counts twice, as in pc_module_parameter_elements. */
static pc_status add_up(void *context, const char *name, pc__named *part)
{
    sums *s = context;
    const pc_tensor *t = part->object;
    (void)name;
    if (part->kept) {
        s->buffer_bytes += bytes_of(t);
        return PC_OK;
    }
    s->parameters += pc_tensor_count(t);
    s->bytes += bytes_of(t);
    if (!pc_requires_grad(t)) {
        s->frozen += pc_tensor_count(t);
        s->frozen_bytes += bytes_of(t);
    }
    return PC_OK;
}

static const char *name_of(const pc_module *module)
{
    for (int i = 0; module->parent && i < module->parent->child_count; i++)
        if (module->parent->children[i].object == module)
            return module->parent->children[i].name;
    return "";
}

static void tell_layer(const pc__describe_row *r, char *text, size_t n)
{
    const char *name = r->depth ? name_of(r->module) : "";
    snprintf(text, n, "%*s%s%s%.48s%s", 2 * PC__MIN(r->depth, 12), "", name, *name ? " " : "", r->module->type->name,
             r->again ? " (again)" : "");
}

static void tell_parameters(const pc__describe_row *r, char text[48])
{
    int64_t own = 0, frozen = 0;
    for (int i = 0; i < r->module->parameter_count; i++) {
        const pc_tensor *t = r->module->parameters[i].object;
        own += pc_tensor_count(t);
        frozen += pc_requires_grad(t) ? 0 : pc_tensor_count(t);
    }
    char number[32];
    text[0] = 0;
    if (own && !r->again)
        snprintf(text, 48, "%s%s", whole(own, number), frozen == own ? " frozen" : frozen ? " in part" : "");
}

typedef struct widths {
    int layer, output;
} widths;

/* Without the spaces that stand for what there is not. */
static void tell_line(const widths *w, const char *layer, const char *output, const char *parameters, const char *flop,
                      const char *memory, pc__text *text)
{
    char line[512];
    int length = snprintf(line, sizeof line, "%-*s  %-*s  %17s  %8s  %8s", w->layer, layer, w->output, output,
                          parameters, flop, memory);
    length = PC__MIN(length, (int)sizeof line - 1);
    while (length && line[length - 1] == ' ')
        length--;
    pc__text_add(text, "%.*s\n", length, line);
}

static void tell_rows(const pc__describe_table *t, pc__text *text)
{
    char layer[160], parameters[48], flop[32], bytes[32];
    widths w = {(int)strlen("layer"), (int)strlen("output")};
    for (int i = 0; i < t->count; i++) {
        tell_layer(&t->rows[i], layer, sizeof layer);
        w.layer = PC__MAX(w.layer, (int)strlen(layer));
        w.output = PC__MAX(w.output, (int)strlen(t->rows[i].shape.s));
    }
    tell_line(&w, "layer", "output", "parameters", "FLOP", "memory", text);
    for (int i = 0; i < t->count; i++) {
        const pc__describe_row *r = &t->rows[i];
        tell_layer(r, layer, sizeof layer);
        tell_parameters(r, parameters);
        tell_line(&w, layer, r->shape.s, parameters, flop_text(r->flop, flop), bytes_text(r->bytes, bytes), text);
    }
}

static void tell_sums(const pc__describe_table *t, const pc_module *module, pc__text *text)
{
    char a[32], b[32], c[32];
    sums s = {0};
    double flop = 0, made = 0;
    for (int i = 0; i < t->count; i++) {
        flop += t->rows[i].flop;
        made += t->rows[i].bytes;
    }
    (void)pc__module_each_state((pc_module *)(uintptr_t)module, add_up, &s);
    pc__text_add(text, "\nparameters: %s (%s)", whole(s.parameters, a), s.bytes > 0 ? bytes_text(s.bytes, b) : "0 B");
    if (s.frozen)
        pc__text_add(text, ", of which %s are frozen", whole(s.frozen, a));
    if (s.buffer_bytes > 0)
        pc__text_add(text, "; buffers: %s", bytes_text(s.buffer_bytes, b));
    pc__text_add(text, "\na forward pass: %s FLOP, makes %s", flop > 0 ? flop_text(flop, a) : "0",
                 made > 0 ? bytes_text(made, b) : "nothing");
    pc__text_add(text, "\na training step: about %s FLOP, keeps at most %s of that, and %s of gradients\n",
                 flop > 0 ? flop_text(3 * flop, a) : "0", made > 0 ? bytes_text(made, b) : "nothing",
                 s.bytes > s.frozen_bytes ? bytes_text(s.bytes - s.frozen_bytes, c) : "nothing");
}

void pc__describe_tell(const pc__describe_table *t, const pc_module *module, pc__text *text)
{
    tell_rows(t, text);
    tell_sums(t, module, text);
}
