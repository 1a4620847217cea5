/* save.c: a catalogue as text again, with the prices it has now. */
#include "cloud/cloud.h"
#include "io/file.h"

#include <libgen.h>
#include <limits.h>
#include <math.h>

/* What is unknown is "?", what is not there "-". */
static const char *value(double number, double absent, char text[32])
{
    if (isnan(number))
        return "?";
    if (number == absent)
        return "-";
    for (int digits = 1; digits <= 15; digits++) { /* prices have up to 10: the shortest that read back the same */
        double read;
        snprintf(text, 32, "%.*f", digits - 1, number);
        for (char *c = text; *c; c++)
            *c = *c == ',' ? '.' : *c;
        if (pc__cloud_number(text, &read) && read == number)
            break;
    }
    return text;
}

static void list(pc__text *out, int bits, const char *const *names)
{
    bool any = false;
    for (int i = 0; names[i]; i++)
        if (bits & 1 << i) {
            pc__text_add(out, "%s%s", any ? " " : "", names[i]);
            any = true;
        }
    pc__text_add(out, "%s", any ? "" : "-");
}

static void add_gpus(pc__text *out, const pc_cloud *c)
{
    char a[32], b[32], d[32], e[32], f[32], g[32];
    for (int i = 0; i < c->gpu_count; i++) {
        const pc_cloud_gpu *p = &c->gpus[i];
        pc__text_add(out, "gpu | %s | %s | %s | %s | %s | %s | %s | %s | %s\n", p->name, p->vendor,
                     value(p->capability / 10.0, 0, a), value(p->memory_gb, -1, b), value(p->f32, 0, d),
                     value(p->tf32, 0, e), value(p->half, 0, f), value(p->bandwidth, -1, g), p->source->name);
    }
}

static void add_machines(pc__text *out, const pc_cloud *c)
{
    for (int i = 0; i < c->family_count; i++) {
        const pc_cloud_family *f = &c->families[i];
        pc__text_add(out, "family | %s | %s | %s | ", f->name, f->gpu->name, f->arch);
        list(out, f->uses, pc__cloud_uses);
        pc__text_add(out, " | %s | %s | %s | %s%s\n", f->link ? f->link : "-",
                     f->old      ? "old"
                     : f->blocks ? "block"
                                 : "current",
                     f->about, f->trap_of_several ? PC__CLOUD_SEVERAL : "", f->trap ? f->trap : "-");
    }
    for (int i = 0; i < c->instance_count; i++) {
        const pc_cloud_instance *m = &c->instances[i];
        pc__text_add(out, "instance | %s | %s%d | %lld | %d | %lld | ", m->name, m->parts > 1 ? "1/" : "",
                     m->parts > 1 ? m->parts : m->gpus, (long long)m->memory_mib, m->vcpus, (long long)m->host_mib);
        list(out, m->sagemaker, pc__cloud_sagemaker);
        pc__text_add(out, "\n");
    }
}

static void add_all(pc__text *out, const pc_cloud *c)
{
    char usd[32];
    pc__text_add(out, "# What paracord cloud knows, as paracord cloud update wrote it. ? is unknown, - is none.\n");
    pc__text_add(out, "catalogue | %d | %s\n", PC__CLOUD_FORMAT, c->date);
    for (int i = 0; i < c->source_count; i++)
        pc__text_add(out, "source | %s | %s | %s\n", c->sources[i].name, c->sources[i].date, c->sources[i].text);
    add_gpus(out, c);
    add_machines(out, c);
    for (int i = 0; i < c->price_count; i++) {
        const pc_cloud_price *p = &c->prices[i].price;
        pc__text_add(out, "price | %s | %s | %s | %s | %s\n", p->region, c->prices[i].instance->name,
                     value(p->usd, -1, usd), p->date, p->source->name);
    }
}

static pc_status write_text(const char *path, const pc__text *text)
{
    char folder[PATH_MAX];
    if (snprintf(folder, sizeof folder, "%s", path) >= (int)sizeof folder)
        return pc__fail(PC_ERR_FILE, "cannot write %.64s...: the name is too long", path);
    PC__TRY(pc__folder_make(dirname(folder)));
    return pc__file_write(path, text->data, text->length);
}

pc_status pc_cloud_save(const pc_cloud *cloud, const char *path)
{
    PC__NEED(cloud);
    char *own = path ? NULL : pc_cloud_user_path();
    if (!path && !own)
        return pc_error_last()->status;
    pc__text text = {0};
    add_all(&text, cloud);
    pc_status status = text.failed ? PC_ERR_MEMORY : write_text(path ? path : own, &text);
    pc__text_free(&text);
    pc__free(own);
    return status;
}
