/* answers.c: from the lines that the child writes (ask.h) to facts. */
#include "probe/probe.h"

#include "base/number.h"
#include "probe/ask.h"

#include <math.h>
#include <stdlib.h>

typedef struct reader {
    pc__machine *m;
    pc_probe_device *device; /* whose facts follow; NULL: the machine's */
    bool any;                /* a line came */
    bool cuda;               /* an index in CUDA order came */
    char hung[128];          /* by a recording */
} reader;

static const pc_fact_row *row_named(const pc_fact_row *(*row)(int), const char *name)
{
    for (int i = 0; row(i); i++)
        if (!strcmp(row(i)->name, name))
            return row(i);
    return NULL;
}

static void read_fact(reader *r, const char *name, bool known, const char *value)
{
    pc_fact *fact = NULL;
    const pc_fact_row *row = row_named(r->device ? pc_device_fact : pc_machine_fact, name);
    if (row)
        fact = (pc_fact *)((char *)(r->device ? (void *)r->device : (void *)&r->m->public) + row->offset);
    else if (r->device && !strcmp(name, "processes"))
        fact = &r->device->processes_known;
    if (!fact)
        return;
    char *end;
    double number = pc__number_of(value, &end);
    if (!known && fact->known && !(row && row->changes))
        return; /* another source knew: /sys says more than an old driver */
    if (!known)
        pc__fact_unknown(r->m, fact, "%s", value);
    else if (!row || row->unit == PC_UNIT_TEXT)
        pc__fact_text(r->m, fact, value);
    else if (end != value && !*end && isfinite(number) && (number >= 0 || row->unit == PC_UNIT_CELSIUS))
        pc__fact_number(fact, number);
    else
        pc__fact_unknown(r->m, fact, "the driver says \"%s\"", value);
}

/* "4711 compute 1048576" */
static void read_process(reader *r, const char *words)
{
    long long pid;
    char kind[16], memory[32], path[64], name[256];
    if (!r->device || sscanf(words, "%lld %15s %31s", &pid, kind, memory) != 3)
        return;
    pc_probe_device *d = r->device;
    for (int i = 0; i < d->process_count; i++)
        if (d->processes[i].pid == pid) { /* one that computes and draws */
            d->processes[i].kind = pc__keep(r->m, "compute and graphics");
            return;
        }
    int capacity = d->process_count;
    pc_probe_process *p = pc__more(r->m, &d->processes, &d->process_count, &capacity, sizeof *p);
    if (!p)
        return;
    p->pid = pid;
    p->kind = pc__keep(r->m, kind);
    if (memory[0] == '?')
        pc__fact_unknown(r->m, &p->memory, "the driver does not tell");
    else
        pc__fact_number(&p->memory, pc__number_of(memory, NULL));
    /* the driver counts processes as the host does: in a container the number may be another one's */
    snprintf(path, sizeof path, "proc/%lld/comm", pid);
    if (!r->m->numbers_elsewhere && pc__root_line(r->m->root, path, name, sizeof name))
        p->name = pc__keep(r->m, name);
}

static void read_link(reader *r, const char *words)
{
    int number;
    char kind[16], address[48];
    if (!r->device || sscanf(words, "%d %15s %47s", &number, kind, address) != 3)
        return;
    pc_probe_device *d = r->device;
    int capacity = d->link_count;
    pc_probe_link *link = pc__more(r->m, &d->links, &d->link_count, &capacity, sizeof *link);
    if (link)
        *link = (pc_probe_link){number, address[0] == '?' ? NULL : pc__keep(r->m, address), pc__keep(r->m, kind)};
}

static void read_mig(reader *r, const char *words)
{
    char uuid[96], memory[32];
    if (!r->device || sscanf(words, "%95s %31s", uuid, memory) != 2)
        return;
    pc_probe_device *d = r->device;
    int capacity = d->mig_count;
    pc_probe_mig *mig = pc__more(r->m, &d->migs, &d->mig_count, &capacity, sizeof *mig);
    if (!mig)
        return;
    mig->uuid = pc__keep(r->m, uuid);
    if (memory[0] == '?')
        pc__fact_unknown(r->m, &mig->memory, "the driver does not tell");
    else
        pc__fact_number(&mig->memory, pc__number_of(memory, NULL));
}

/* Where the driver's libraries speak of an integrated GPU, they say so. */
static pc_probe_device *device_at(pc__machine *m, const char *address)
{
    pc_probe_device *d = pc__device_at(m, address);
    for (int i = 0; !d && !strcmp(address, PC__ADDRESS_INTEGRATED) && i < m->public.device_count; i++)
        d = m->public.devices[i].integrated ? &m->public.devices[i] : NULL;
    return d;
}

/* A GPU of the driver's that /sys does not show, as in WSL. */
static pc_probe_device *add_device(pc__machine *m, const char *address)
{
    pc_probe_device *d =
        pc__more(m, &m->public.devices, &m->public.device_count, &m->device_capacity, sizeof *m->public.devices);
    if (!d)
        return NULL;
    unsigned p[4];
    d->nvidia = true;
    if (sscanf(address, "%x:%x:%x.%x", &p[0], &p[1], &p[2], &p[3]) == 4) /* as /sys would write it */
        pc__fact_text(m, &d->address, pc__keepf(m, "%04x:%02x:%02x.%x", p[0], p[1], p[2], p[3]));
    else
        pc__fact_text(m, &d->address, address);
    if (pc__root_exists(m->root, "dev/dxg"))
        pc__fact_text(m, &d->module, "dxgkrnl");
    pc__fact_text(m, &d->vendor, "NVIDIA Corporation");
    pc__fact_text(m, &d->class_name, "GPU");
    return d;
}

static void begin_device(reader *r, const char *address)
{
    r->device = device_at(r->m, address);
    if (!r->device)
        r->device = add_device(r->m, address);
    if (!r->device)
        return;
    r->device->nvml = true;
}

static void read_line(void *context, char *line)
{
    reader *r = context;
    char *words = line + strcspn(line, " ");
    r->any = true;
    if (!*words)
        return;
    *words++ = 0;
    int index;
    char address[48];
    if ((words[0] == '=' || words[0] == '!') && words[1] == ' ') {
        if (!strncmp(line, "cuda_", 5))
            r->device = NULL; /* CUDA speaks after all devices of NVML */
        read_fact(r, line, words[0] == '=', words + 2);
    } else if (!strcmp(line, "gpu")) {
        begin_device(r, words);
    } else if (!strcmp(line, "process")) {
        read_process(r, words);
    } else if (!strcmp(line, "link")) {
        read_link(r, words);
    } else if (!strcmp(line, "mig")) {
        read_mig(r, words);
    } else if (!strcmp(line, "forbidden") ||
               (!strcmp(line, "lost") && strstr(words, "Insufficient Permissions"))) { /* as older recordings say it */
        r->m->forbidden = pc__keepf(r->m, "GPU %s", words);
    } else if (!strcmp(line, "lost")) {
        r->m->public.lost = pc__keepf(r->m, "GPU %s", words);
    } else if (!strcmp(line, "hang")) {
        snprintf(r->hung, sizeof r->hung, "%.127s", words);
    } else if (!strcmp(line, "cuda") && sscanf(words, "%d %47s", &index, address) == 2) {
        pc_probe_device *d = device_at(r->m, address);
        r->cuda = true;
        if (d)
            pc__fact_number(&d->index_cuda, index);
    }
}

/* What answers/nvml.changes says replaces what answers/nvml said: a recording that is like another needs few lines. */
static void read_recorded(pc__machine *m, reader *r)
{
    static const char *const paths[] = {"answers/nvml", "answers/nvml.changes"};
    for (int i = 0; i < PC__COUNT(paths); i++) {
        char *rest, *text = pc__root_text(m->root, paths[i], 1 << 20, false);
        for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
            read_line(r, line);
        pc__free(text);
        r->device = NULL;
    }
    if (r->hung[0])
        m->public.hung = pc__keep(m, r->hung);
}

/* What the child writes, also for a recording. */
typedef struct tee {
    reader *reader;
    pc__text kept;
} tee;

static void read_and_keep(void *context, char *line)
{
    tee *t = context;
    pc__text_add(&t->kept, "%s\n", line);
    read_line(t->reader, line);
}

/* All GPUs of NVIDIA's sleep, and asking would wake them. */
static bool all_asleep(const pc__machine *m)
{
    bool any = false;
    for (int i = 0; i < m->public.device_count; i++) {
        any |= m->public.devices[i].nvidia;
        if (m->public.devices[i].nvidia && !m->public.devices[i].asleep)
            return false;
    }
    return any && !m->options.nvml;
}

/* Whoever looks at a machine without a trace of an NVIDIA driver need not wait for a child. */
static bool worth_asking(pc__machine *m)
{
    for (int i = 0; i < m->public.device_count; i++)
        if (m->public.devices[i].nvidia)
            return true;
    return m->options.nvml || pc__root_exists(m->root, "proc/driver/nvidia") ||
           pc__root_exists(m->root, "dev/nvidiactl") || pc__root_exists(m->root, "dev/dxg");
}

static bool ask(pc__machine *m, reader *r, bool again)
{
    char hung[128];
    tee t = {.reader = r};
    if (!m->asker)
        m->asker = pc__asker_start(&m->options);
    if (!m->asker)
        return false;
    bool done = pc__asker_ask(m->asker, again, read_and_keep, &t, hung);
    if (!done) {
        m->public.hung = pc__keep(m, hung[0] ? hung : "the driver's library");
        pc__text_add(&t.kept, "hang %s\n", m->public.hung);
    }
    if (!done || !again) { /* only who takes samples keeps the child */
        pc__asker_end(m->asker);
        m->asker = NULL;
    }
    if (t.kept.data && !again)
        pc__root_note(m->root, "answers/nvml", t.kept.data);
    pc__text_free(&t.kept);
    return done;
}

/* Why facts that only the driver knows are unknown. */
static void explain(pc__machine *m, const reader *r, const char *why_none)
{
    pc_machine *machine = &m->public;
    const char *cut = machine->hung ? pc__keepf(m, "the driver did not answer %s in time", machine->hung) : NULL;
    const char *nvml = machine->nvml.known ? "the driver did not say" : machine->nvml.why;
    nvml = cut ? cut : nvml ? nvml : why_none;
    for (int i = 0; i < machine->device_count; i++) {
        pc_probe_device *d = &machine->devices[i];
        const char *why = d->nvidia ? nvml : "its driver does not tell, or is not asked";
        if (d->nvidia && !d->index_cuda.known && r->cuda)
            pc__fact_unknown(m, &d->index_cuda, "CUDA does not see it in this environment (CUDA_VISIBLE_DEVICES)");
        else if (d->nvidia && !d->index_cuda.known && machine->cuda_init.known)
            pc__fact_unknown(m, &d->index_cuda, "CUDA does not start: %s", machine->cuda_init.text);
        if (d->minor.known) /* NVIDIA's own file, beside those of /dev/dri */
            pc__fact_text(m, &d->device_files,
                          pc__keepf(m, "/dev/nvidia%.0f%s%s", d->minor.number, d->device_files.known ? " " : "",
                                    d->device_files.known ? d->device_files.text : ""));
        else if (!d->device_files.known)
            pc__fact_unknown(m, &d->device_files, "it has none in /dev/dri, and no driver says another");
        pc__facts_default(m, pc_device_fact, d, why);
        if (!d->processes_known.known && !d->processes_known.why)
            d->processes_known.why = why;
    }
    pc__facts_default(m, pc_machine_fact, machine, cut ? cut : why_none);
}

void pc__probe_answers(pc__machine *m)
{
    static const char asleep[] = "the GPU sleeps to save power, and asking would wake it (--wake)";
    const char *why = "there is no NVIDIA device and no NVIDIA driver";
    reader r = {.m = m};
    if (m->options.without_driver)
        why = "the driver was not asked";
    else if (!pc__root_live(m->root)) {
        why = all_asleep(m) ? asleep : "the recording has no answer of it (answers/nvml)";
        read_recorded(m, &r);
    } else if (all_asleep(m)) {
        why = asleep;
    } else if (worth_asking(m)) {
        why = "the driver did not say";
        ask(m, &r, false);
    }
    explain(m, &r, why);
}

/* Facts that change are unknown until the driver says them again. */
static void forget(pc__machine *m, pc_probe_device *d)
{
    for (int i = 0; pc_device_fact(i); i++)
        if (pc_device_fact(i)->changes)
            pc__fact_unknown(m, (pc_fact *)((char *)d + pc_device_fact(i)->offset), "the driver did not say");
    d->process_count = 0;
    pc__fact_unknown(m, &d->processes_known, "the driver did not say");
}

pc_status pc_machine_sample(pc_machine *machine)
{
    PC__NEED(machine);
    pc__machine *m = (pc__machine *)machine;
    reader r = {.m = m};
    int64_t total, free_bytes;
    if (pc__root_space(m->root, "dev/shm", &total, &free_bytes))
        pc__fact_number(&machine->shared_memory_free, (double)free_bytes);
    pc__probe_amd(m);
    pc__sample_tegra(m);
    for (int i = 0; i < machine->device_count; i++) /* it may have been woken, or gone to sleep */
        machine->devices[i].asleep = machine->devices[i].asleep && pc__asleep(m, &machine->devices[i]);
    if (!pc__root_live(m->root) || m->options.without_driver || all_asleep(m) || !worth_asking(m))
        return PC_OK;
    for (int i = 0; i < machine->device_count; i++)
        if (machine->devices[i].nvml)
            forget(m, &machine->devices[i]);
    machine->hung = NULL;
    if (!ask(m, &r, true) && machine->hung)
        for (int i = 0; i < machine->device_count; i++)
            if (machine->devices[i].nvml) {
                const char *why = pc__keepf(m, "the driver did not answer %s in time", machine->hung);
                for (int j = 0; pc_device_fact(j); j++) {
                    pc_fact *fact = (pc_fact *)((char *)&machine->devices[i] + pc_device_fact(j)->offset);
                    if (!fact->known && pc_device_fact(j)->changes)
                        fact->why = why;
                }
            }
    return m->failed ? pc__fail(PC_ERR_MEMORY, "no memory for the facts of this machine") : PC_OK;
}
