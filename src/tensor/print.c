/* print.c: tensors as text, by the rules of PyTorch's torch/_tensor_str.py: four digits, lines of 80 columns, three
 * items at each edge of a tensor of more than 1000 elements. */
#include "tensor/half.h"
#include "tensor/node.h"
#include "tensor/read.h"
#include "tensor/tensor.h"

#include <math.h>

#define LINE_WIDTH 80
#define EDGE 3
#define THRESHOLD 1000

typedef enum style { INTEGERS, WHOLE, FIXED, SCIENTIFIC } style;

typedef struct printer {
    const pc_tensor *t;
    const char *values; /* on the host, in C order */
    bool summarize;
    style style;
    int width;
    pc__text text;
} printer;

static double value_at(const printer *p, int64_t i, int64_t *integer)
{
    *integer = 0;
    switch ((pc_dtype)p->t->dtype) {
    case PC_BOOL:
        return (double)(*integer = ((const bool *)p->values)[i]);
    case PC_U8:
        return (double)(*integer = ((const uint8_t *)p->values)[i]);
    case PC_I32:
        return (double)(*integer = ((const int32_t *)(const void *)p->values)[i]);
    case PC_I64:
        return (double)(*integer = ((const int64_t *)(const void *)p->values)[i]);
    case PC_F16:
        return (double)pc__f16_float(((const pc_f16 *)(const void *)p->values)[i]);
    case PC_BF16:
        return (double)pc__bf16_float(((const pc_bf16 *)(const void *)p->values)[i]);
    case PC_F32:
        return (double)((const float *)(const void *)p->values)[i];
    default:
        return ((const double *)(const void *)p->values)[i];
    }
}

/* A point, whatever the program's locale has between whole numbers and fractions. */
static int with_point(char *number)
{
    char *at = number + strspn(number, "-0123456789");
    const size_t n = strcspn(at, "0123456789");
    if (n) {
        *at = '.';
        memmove(at + 1, at + n, strlen(at + n) + 1);
    }
    return (int)strlen(number);
}

/* Element i in the printer's style, not padded. */
static int format(const printer *p, int64_t i, char *out, size_t n)
{
    int64_t integer;
    double v = value_at(p, i, &integer);
    if (p->t->dtype == PC_BOOL)
        return snprintf(out, n, "%s", integer ? "True" : "False");
    if (p->style == INTEGERS)
        return snprintf(out, n, "%lld", (long long)integer);
    if (isnan(v))
        return snprintf(out, n, "nan");
    if (isinf(v))
        return snprintf(out, n, v < 0 ? "-inf" : "inf");
    if (p->style == WHOLE)
        return snprintf(out, n, "%.0f.", v);
    snprintf(out, n, p->style == FIXED ? "%.4f" : "%.4e", v);
    return with_point(out);
}

/* Visit the elements that will be shown: all, or three at each edge of every dimension. */
static void visit(printer *p, int dim, int64_t base, void (*see)(printer *, int64_t, void *), void *context)
{
    if (dim == p->t->ndim) {
        see(p, base, context);
        return;
    }
    int64_t n = p->t->shape[dim], below = pc__count(p->t->ndim - dim - 1, p->t->shape + dim + 1);
    for (int64_t i = 0; i < n; i++) {
        if (p->summarize && n > 2 * EDGE && i == EDGE)
            i = n - EDGE;
        visit(p, dim + 1, base + i * below, see, context);
    }
}

typedef struct range {
    double smallest, largest;
    bool any, whole;
} range;

static void see_range(printer *p, int64_t i, void *context)
{
    range *r = context;
    int64_t integer;
    double v = fabs(value_at(p, i, &integer));
    if (v == 0 || !isfinite(v))
        return;
    r->smallest = r->any ? fmin(r->smallest, v) : v;
    r->largest = r->any ? fmax(r->largest, v) : v;
    r->whole &= v == ceil(v);
    r->any = true;
}

static void see_width(printer *p, int64_t i, void *context)
{
    (void)context;
    char piece[400];
    int64_t integer;
    double v = value_at(p, i, &integer);
    if (p->style != INTEGERS && (v == 0 || !isfinite(v)))
        return;
    int n = format(p, i, piece, sizeof piece);
    p->width = PC__MAX(p->width, n);
}

static void choose_style(printer *p)
{
    range r = {.whole = true};
    p->width = 1;
    if (!pc__is_float(p->t->dtype)) {
        p->style = INTEGERS;
    } else {
        visit(p, 0, 0, see_range, &r);
        bool wide = r.any && (r.largest / r.smallest > 1000 || r.largest > 1e8);
        if (r.whole)
            p->style = wide ? SCIENTIFIC : WHOLE;
        else
            p->style = wide || r.smallest < 1e-4 ? SCIENTIFIC : FIXED;
    }
    visit(p, 0, 0, see_width, NULL);
}

static void put_vector(printer *p, int indent, int64_t base)
{
    int64_t n = p->t->shape[p->t->ndim - 1];
    int per_line = PC__MAX(1, (LINE_WIDTH - indent) / (p->width + 2)), on_line = 0;
    pc__text_add(&p->text, "[");
    for (int64_t i = 0; i < n; i++, on_line++) {
        char piece[400];
        if (on_line == per_line) {
            pc__text_add(&p->text, ",\n%*s", indent + 1, "");
            on_line = 0;
        } else if (i) {
            pc__text_add(&p->text, ", ");
        }
        if (p->summarize && n > 2 * EDGE && i == EDGE) {
            pc__text_add(&p->text, " ...");
            i = n - EDGE - 1;
            continue;
        }
        format(p, base + i, piece, sizeof piece);
        pc__text_add(&p->text, "%*s", p->width, piece);
    }
    pc__text_add(&p->text, "]");
}

static void put(printer *p, int dim, int indent, int64_t base)
{
    int below_dims = p->t->ndim - dim - 1;
    if (below_dims < 0) {
        char piece[400];
        format(p, base, piece, sizeof piece);
        pc__text_add(&p->text, "%*s", p->width, piece);
        return;
    }
    if (below_dims == 0) {
        put_vector(p, indent, base);
        return;
    }
    int64_t n = p->t->shape[dim], below = pc__count(below_dims, p->t->shape + dim + 1);
    static const char newlines[] = "\n\n\n\n\n\n\n\n";
    pc__text_add(&p->text, "[");
    for (int64_t i = 0; i < n; i++) {
        if (i)
            pc__text_add(&p->text, ",%.*s%*s", below_dims, newlines, indent + 1, "");
        if (p->summarize && n > 2 * EDGE && i == EDGE) {
            pc__text_add(&p->text, "...");
            i = n - EDGE - 1;
            continue;
        }
        put(p, dim + 1, indent + 1, base + i * below);
    }
    pc__text_add(&p->text, "]");
}

static void put_suffix(printer *p, const char *suffix, size_t *line)
{
    if (*line + strlen(suffix) + 2 > LINE_WIDTH) {
        pc__text_add(&p->text, ",\n%*s%s", 7, "", suffix);
        *line = 7 + strlen(suffix);
    } else {
        pc__text_add(&p->text, ", %s", suffix);
        *line += strlen(suffix) + 2;
    }
}

static void put_suffixes(printer *p)
{
    const pc_tensor *t = p->t;
    bool empty = pc_tensor_count(t) == 0;
    const char *newline = p->text.data ? strrchr(p->text.data, '\n') : NULL;
    size_t line = newline ? strlen(newline) - 1 : p->text.length;
    char suffix[200], name[PC_DEVICE_NAME_MAX];
    if (t->storage->device.type != PC_CPU) {
        snprintf(suffix, sizeof suffix, "device='%s'", pc_device_name(t->storage->device, name));
        put_suffix(p, suffix, &line);
    }
    if (empty && t->ndim != 1) {
        pc__shape_text shape = pc__shape_format(t->ndim, t->shape);
        snprintf(suffix, sizeof suffix, "size=(%.*s)", (int)strlen(shape.s) - 2, shape.s + 1);
        put_suffix(p, suffix, &line);
    }
    if (t->dtype != PC_F32 && (empty || (t->dtype != PC_I64 && t->dtype != PC_BOOL))) {
        snprintf(suffix, sizeof suffix, "dtype=%s", pc_dtype_name(t->dtype));
        put_suffix(p, suffix, &line);
    }
    if (t->node) {
        snprintf(suffix, sizeof suffix, "grad_fn=<%s>", pc__node_name(t->node));
        put_suffix(p, suffix, &line);
    } else if (t->requires_grad) {
        put_suffix(p, "requires_grad=True", &line);
    }
}

static char *text_of(const pc_tensor *t, const char *who)
{
    int64_t n = pc_tensor_count(t);
    size_t bytes = (size_t)n * pc_dtype_size(t->dtype);
    char *values = pc__alloc(bytes);
    printer p = {.t = t, .values = values, .summarize = n > THRESHOLD};
    if (!values || pc__read(t, values, bytes, who) != PC_OK) {
        pc__free(values);
        return NULL;
    }
    pc__text_add(&p.text, "tensor(");
    if (n) {
        choose_style(&p);
        put(&p, 0, 7, 0);
    } else {
        pc__text_add(&p.text, "[]");
    }
    put_suffixes(&p);
    pc__text_add(&p.text, ")");
    pc__free(values);
    if (p.text.failed)
        pc__text_free(&p.text);
    return p.text.data;
}

char *pc_tensor_text(const pc_tensor *t)
{
    PC__NEED_OR(NULL, t);
    return text_of(t, "pc_tensor_text");
}

static void print(const pc_tensor *t, FILE *out, const char *who)
{
    char *text = text_of(t, who);
    if (text)
        fprintf(out, "%s\n", text);
    pc__free(text);
}

void pc_print_to(const pc_tensor *t, FILE *out)
{
    PC__NEED_OR(, t);
    PC__NEED_OR(, out);
    print(t, out, "pc_print_to");
}

void pc_print(const pc_tensor *t)
{
    PC__NEED_OR(, t);
    print(t, stdout, "pc_print");
}
