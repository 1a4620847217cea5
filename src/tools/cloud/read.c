/* read.c: from the text of a catalogue to rows. Each line is a kind and its fields, between bars; a row may name rows
 * above it. Everything is checked here, so that no other file needs to doubt. */
#include "cloud/cloud.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#define FIELDS 10

const char *const pc__cloud_vendors[] = {"nvidia", "amd", "aws", "intel", NULL};
const char *const pc__cloud_archs[] = {"x86_64", "arm64", NULL};
const char *const pc__cloud_uses[] = {"train", "infer", "graphics", NULL};
const char *const pc__cloud_sagemaker[] = {"training", "hosting", "notebook", NULL};

typedef struct reader {
    pc_cloud *cloud;
    int line;
    char *field[FIELDS]; /* behind the kind */
} reader;

static pc_status wrong(const reader *r, const char *format, ...) PC_PRINTF(2, 3);
static pc_status wrong(const reader *r, const char *format, ...)
{
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return pc__fail(PC_ERR_FORMAT, "the catalogue %s, line %d: %s", r->cloud->path, r->line, what);
}

bool pc__cloud_number(const char *text, double *number)
{
    double digits = 0, scale = 1;
    int count = 0;
    bool point = false;
    for (; *text; text++) {
        if (*text == '.' && !point && count) {
            point = true;
            continue;
        }
        if (*text < '0' || *text > '9' || ++count > 15)
            return false;
        digits = digits * 10 + (*text - '0');
        scale *= point ? 10 : 1;
    }
    *number = digits / scale; /* both are exact: the nearest double */
    return count > 0;
}

bool pc__cloud_is_date(const char *text)
{
    static const char form[] = "0000-00-00";
    for (int i = 0; i < 10; i++)
        if (form[i] == '-' ? text[i] != '-' : text[i] < '0' || text[i] > '9')
            return false;
    int month = atoi(text + 5), day = atoi(text + 8);
    return !text[10] && month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

bool pc_cloud_is_region(const char *name)
{
    PC__NEED_OR(false, name);
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return !name[n] && !strstr(name, "--") && n > 6 && n < 32 && name[n - 2] == '-' && name[n - 1] >= '1' &&
           name[n - 1] <= '9';
}

/* A vCPU-hour with its share of accelerators costs 4 to 75 cents: one that costs fractions of a cent or many dollars
 * is of a second, of a month, or in cents. */
#define LEAST_A_VCPU 0.005
#define MOST_A_VCPU 5.0

const char *pc__cloud_price_fault(double usd, const pc_cloud_instance *instance)
{
    if (isnan(usd))
        return NULL;
    if (usd == 0)
        return "is 0, which is no price; ? is unknown";
    bool other = usd < LEAST_A_VCPU * instance->vcpus || usd > MOST_A_VCPU * instance->vcpus;
    return other ? "is no price of an hour in US dollars" : NULL;
}

/* A number from least to most; `absent` for "-", where that is allowed (not NaN); NaN for "?". */
static pc_status number(const reader *r, int field, const char *what, double absent, double *value)
{
    const char *text = r->field[field];
    if (!strcmp(text, "?") || (!strcmp(text, "-") && !isnan(absent))) {
        *value = *text == '?' ? NAN : absent;
        return PC_OK;
    }
    if (!pc__cloud_number(text, value) || *value <= 0)
        return wrong(r, "%s is \"%.40s\"; it must be a number above 0%s, or ? for unknown", what, text,
                     isnan(absent) ? "" : ", - for none");
    return PC_OK;
}

static pc_status whole(const reader *r, int field, const char *what, int64_t most, int64_t *value)
{
    double number_read;
    if (!pc__cloud_number(r->field[field], &number_read) || number_read < 1 || number_read > (double)most ||
        strchr(r->field[field], '.'))
        return wrong(r, "%s is \"%.40s\"; it must be a whole number from 1 to %lld", what, r->field[field],
                     (long long)most);
    *value = (int64_t)number_read;
    return PC_OK;
}

/* Words of a list to bits; "-" is none. */
static pc_status words(const reader *r, int field, const char *what, const char *const *names, int *bits)
{
    *bits = 0;
    if (!strcmp(r->field[field], "-"))
        return PC_OK;
    for (const char *at = r->field[field]; *at;) {
        size_t n = strcspn(at, " ");
        int i = 0;
        while (names[i] && (strncmp(names[i], at, n) || names[i][n]))
            i++;
        if (!names[i])
            return wrong(r, "%s: there is no \"%.*s\"", what, (int)PC__MIN(n, 40), at);
        *bits |= 1 << i;
        at += n + strspn(at + n, " ");
    }
    return PC_OK;
}

/* A field that must be one of the words. */
static pc_status one_of(const reader *r, int field, const char *what, const char *const *names)
{
    int bits;
    PC__TRY(words(r, field, what, names, &bits));
    return bits && !strchr(r->field[field], ' ') ? PC_OK : wrong(r, "%s is \"%.40s\"", what, r->field[field]);
}

/* Where the name stands in an array of rows that begin with their names, or -1. */
static int place(const void *rows, int count, size_t size, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(*(char *const *)((const char *)rows + (size_t)i * size), name))
            return i;
    return -1;
}
#define PLACE(cloud, kind, kinds, name) place((cloud)->kinds, (cloud)->kind##_count, sizeof *(cloud)->kinds, (name))

static pc_status fresh(const reader *r, int found)
{
    return found < 0 ? PC_OK : wrong(r, "%.40s is there twice", r->field[0]);
}

static pc_status read_head(reader *r)
{
    int64_t format = 0;
    PC__TRY(whole(r, 0, "the format", 1 << 20, &format));
    if (format != PC__CLOUD_FORMAT)
        return wrong(r, "its format is %lld and this Paracord reads %d", (long long)format, PC__CLOUD_FORMAT);
    if (!pc__cloud_is_date(r->field[1]))
        return wrong(r, "\"%.40s\" is no date such as 2026-07-20", r->field[1]);
    r->cloud->date = r->field[1];
    return PC_OK;
}

static pc_status read_source(reader *r)
{
    pc_cloud *c = r->cloud;
    PC__TRY(fresh(r, PLACE(c, source, sources, r->field[0])));
    if (strcmp(r->field[1], "-") != 0 && !pc__cloud_is_date(r->field[1]))
        return wrong(r, "\"%.40s\" is no date such as 2026-07-20, nor -", r->field[1]);
    c->sources[c->source_count++] = (pc_cloud_source){r->field[0], r->field[1], r->field[2]};
    return PC_OK;
}

static pc_status find_source(const reader *r, int field, const pc_cloud_source **source)
{
    int i = PLACE(r->cloud, source, sources, r->field[field]);
    if (i < 0)
        return wrong(r, "there is no source %.40s above", r->field[field]);
    *source = &r->cloud->sources[i];
    return PC_OK;
}

static pc_status read_gpu(reader *r)
{
    pc_cloud *c = r->cloud;
    pc_cloud_gpu g = {r->field[0], r->field[1], 0, 0, 0, 0, 0, 0, NULL};
    double capability;
    PC__TRY(fresh(r, PLACE(c, gpu, gpus, g.name)));
    PC__TRY(one_of(r, 1, "the maker", pc__cloud_vendors));
    PC__TRY(number(r, 2, "the compute capability", 0, &capability));
    if (isnan(capability) || (capability > 0) != !strcmp(g.vendor, "nvidia"))
        return wrong(r, "NVIDIA's GPUs have a compute capability, and only they");
    g.capability = (int)lround(capability * 10);
    PC__TRY(number(r, 3, "the memory", NAN, &g.memory_gb));
    PC__TRY(number(r, 4, "the rate in float32", 0, &g.f32));
    PC__TRY(number(r, 5, "the rate in TF32", 0, &g.tf32));
    PC__TRY(number(r, 6, "the rate in half precision", 0, &g.half));
    PC__TRY(number(r, 7, "the bandwidth", NAN, &g.bandwidth));
    PC__TRY(find_source(r, 8, &g.source));
    if (isnan(g.memory_gb))
        return wrong(r, "the memory of %.40s must be known", g.name);
    c->gpus[c->gpu_count++] = g;
    return PC_OK;
}

static pc_status read_family(reader *r)
{
    pc_cloud *c = r->cloud;
    pc_cloud_family f = {.name = r->field[0], .arch = r->field[2], .about = r->field[6]};
    PC__TRY(fresh(r, PLACE(c, family, families, f.name)));
    int gpu = PLACE(c, gpu, gpus, r->field[1]);
    if (gpu < 0)
        return wrong(r, "there is no accelerator %.40s above", r->field[1]);
    f.gpu = &c->gpus[gpu];
    PC__TRY(one_of(r, 2, "the CPU", pc__cloud_archs));
    PC__TRY(words(r, 3, "the uses", pc__cloud_uses, &f.uses));
    f.link = strcmp(r->field[4], "-") != 0 ? r->field[4] : NULL;
    f.old = !strcmp(r->field[5], "old");
    f.blocks = !strcmp(r->field[5], "block");
    if (!f.old && !f.blocks && strcmp(r->field[5], "current") != 0)
        return wrong(r, "the generation is \"%.40s\"; it must be current, old or block", r->field[5]);
    f.trap = strcmp(r->field[7], "-") != 0 ? r->field[7] : NULL;
    f.trap_of_several = f.trap && strncmp(f.trap, PC__CLOUD_SEVERAL, strlen(PC__CLOUD_SEVERAL)) == 0;
    f.trap += f.trap_of_several ? strlen(PC__CLOUD_SEVERAL) : 0;
    c->families[c->family_count++] = f;
    return PC_OK;
}

/* "4", or "1/8" for an eighth of one. */
static pc_status read_share(const reader *r, pc_cloud_instance *instance)
{
    int64_t value;
    char *share = r->field[1];
    bool part = !strncmp(share, "1/", 2);
    reader rest = *r;
    rest.field[1] = share + (part ? 2 : 0);
    PC__TRY(whole(&rest, 1, "the number of accelerators", 1024, &value));
    instance->gpus = part ? 1 : (int)value;
    instance->parts = part ? (int)value : 1;
    return PC_OK;
}

static pc_status read_instance(reader *r)
{
    pc_cloud *c = r->cloud;
    pc_cloud_instance i = {.name = r->field[0]};
    PC__TRY(fresh(r, PLACE(c, instance, instances, i.name)));
    char *point = strchr(r->field[0], '.');
    if (!point)
        return wrong(r, "\"%.40s\" is no instance such as g5.xlarge", i.name);
    *point = 0;
    int family = PLACE(c, family, families, i.name);
    *point = '.';
    if (family < 0)
        return wrong(r, "there is no family of %.40s above", i.name);
    i.family = &c->families[family];
    PC__TRY(read_share(r, &i));
    PC__TRY(whole(r, 2, "the memory of an accelerator", 1 << 24, &i.memory_mib));
    int64_t vcpus;
    PC__TRY(whole(r, 3, "the number of vCPUs", 1 << 16, &vcpus));
    i.vcpus = (int)vcpus;
    PC__TRY(whole(r, 4, "the memory of the host", 1 << 30, &i.host_mib));
    PC__TRY(words(r, 5, "SageMaker", pc__cloud_sagemaker, &i.sagemaker));
    i.memory_gb = i.family->gpu->memory_gb / i.parts;
    double least = (double)i.memory_mib * 1048576e-9 / 1.1, most = (double)i.memory_mib * 1048576e-9 * 1.05;
    if (i.memory_gb < least || i.memory_gb > most)
        return wrong(r, "%.40s has %lld MiB of accelerator memory, and its accelerator %g GB", i.name,
                     (long long)i.memory_mib, i.memory_gb);
    c->instances[c->instance_count++] = i;
    return PC_OK;
}

static pc_status read_price(reader *r)
{
    pc_cloud *c = r->cloud;
    pc_cloud_price price = {.region = r->field[0], .date = r->field[3]};
    const pc_cloud_instance *instance = pc__cloud_instance(c, r->field[1], strlen(r->field[1]));
    if (!instance)
        return wrong(r, "there is no instance %.40s above", r->field[1]);
    if (!pc_cloud_is_region(price.region))
        return wrong(r, "\"%.40s\" is no region such as us-east-1", price.region);
    price.usd = NAN;
    if (strcmp(r->field[2], "?") != 0 && !pc__cloud_number(r->field[2], &price.usd))
        return wrong(r, "the price of %.40s is \"%.40s\"; it must be US dollars an hour, or ? for unknown", r->field[1],
                     r->field[2]);
    const char *fault = pc__cloud_price_fault(price.usd, instance);
    if (fault)
        return wrong(r, "the price of %.40s %s", r->field[1], fault);
    if (!pc__cloud_is_date(price.date))
        return wrong(r, "\"%.40s\" is no date such as 2026-07-20", price.date);
    PC__TRY(find_source(r, 4, &price.source));
    for (int i = 0; i < c->price_count; i++)
        if (c->prices[i].instance == instance && !strcmp(c->prices[i].price.region, price.region))
            return wrong(r, "%.40s has two prices in %.40s", instance->name, price.region);
    if (strcmp(price.date, c->date) > 0)
        return wrong(r, "the price of %.40s is of %s, later than the catalogue, which is of %s", instance->name,
                     price.date, c->date);
    return pc__cloud_add_price(c, instance, price);
}

static const struct kind {
    const char *name;
    int fields;
    pc_status (*read)(reader *r);
} kinds[] = {{"catalogue", 2, read_head}, {"source", 3, read_source},     {"gpu", 9, read_gpu},
             {"family", 8, read_family},  {"instance", 6, read_instance}, {"price", 5, read_price}};
enum { HEAD, SOURCE, GPU, FAMILY, INSTANCE, PRICE, KINDS };

static char *trimmed(char *text)
{
    text += strspn(text, " \t");
    size_t n = strlen(text);
    while (n && strchr(" \t\r", text[n - 1]))
        text[--n] = 0;
    return text;
}

/* Cut a line at its bars and give it to its kind. */
static pc_status read_line(reader *r, char *line)
{
    line = trimmed(line);
    if (!*line || *line == '#')
        return PC_OK;
    char *rest = strchr(line, '|');
    if (rest)
        *rest++ = 0;
    line = trimmed(line);
    int k = 0, count = 0;
    while (k < KINDS && strcmp(kinds[k].name, line) != 0)
        k++;
    if (k == KINDS)
        return wrong(r, "\"%.40s\" is no kind of row (catalogue, source, gpu, family, instance, price)", line);
    for (; rest && count < FIELDS; count++) {
        char *bar = strchr(rest, '|');
        if (bar)
            *bar = 0;
        r->field[count] = trimmed(rest);
        if (!*r->field[count])
            return wrong(r, "field %d of this %s is empty; ? is unknown, - is none", count + 1, line);
        rest = bar ? bar + 1 : NULL;
    }
    if (count != kinds[k].fields || rest)
        return wrong(r, "a %s has %d fields, this one has %s%d", line, kinds[k].fields, rest ? "more than " : "",
                     count);
    if ((k == HEAD) == (r->cloud->date != NULL))
        return wrong(r, "the file must have one row \"catalogue\", before all others");
    return kinds[k].read(r);
}

/* Room for as many rows as there are lines, so that rows can point to rows. */
static pc_status make_room(pc_cloud *c)
{
    size_t lines = 1;
    for (const char *at = c->text; (at = strchr(at, '\n')); at++)
        lines++;
    c->room = (int)PC__MIN(lines + 1, (size_t)INT_MAX);
    c->sources = pc__calloc(lines + 1, sizeof *c->sources);
    c->gpus = pc__calloc(lines, sizeof *c->gpus);
    c->families = pc__calloc(lines, sizeof *c->families);
    c->instances = pc__calloc(lines, sizeof *c->instances);
    return c->sources && c->gpus && c->families && c->instances ? PC_OK : PC_ERR_MEMORY;
}

pc_status pc__cloud_read(pc_cloud *cloud)
{
    reader r = {.cloud = cloud};
    PC__TRY(make_room(cloud));
    for (char *line = cloud->text; line; r.line++) {
        char *next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        r.line += !r.line;
        PC__TRY(read_line(&r, line));
        line = next;
    }
    if (!cloud->price_count)
        return pc__fail(PC_ERR_FORMAT, "the catalogue %s is empty: it has no prices", cloud->path);
    return PC_OK;
}
