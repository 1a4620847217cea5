/* doctor_processes.c: who holds a GPU's memory without using it: orphans, zombies, and those that cannot be ended. */
#include "probe/doctor.h"

#include <stdlib.h>
#include <time.h>

static bool more_than(const pc_fact *fact, double least)
{
    return fact->known && fact->number > least;
}

/* A process of the user's that computes, whose parent is gone, and that is no service. What only draws is mostly a
 * program of the desktop, whose parents leave it as soon as it is started. */
static bool orphaned(pc__exam *e, const pc_probe_process *process)
{
    char path[64], text[4096], *line;
    const int64_t pid = process->pid;
    int parent = -1;
    if (!process->kind || !strcmp(process->kind, "graphics")) /* "compute and graphics": both */
        return false;
    snprintf(path, sizeof path, "proc/%lld/status", (long long)pid);
    if (pc__root_read(e->m->root, path, text, sizeof text) < 0 || !(line = strstr(text, "PPid:")) ||
        sscanf(line, "PPid: %d", &parent) != 1 || parent != 1)
        return false;
    snprintf(path, sizeof path, "proc/%lld/cgroup", (long long)pid);
    if (pc__root_read(e->m->root, path, text, sizeof text) < 0)
        return false;
    return strstr(text, "session-") || (strstr(text, "user.slice") && !strstr(text, ".service\n"));
}

/* Who reads a disk is in state D too, for a moment. */
static void wait_for_disk(pc__exam *e, const char *path)
{
    char text[4096];
    bool waits = e->machine->live;
    pc__root_keep_quiet(e->m->root, true);
    for (int i = 0; i < 6 && waits; i++) {
        waits = pc__root_read(e->m->root, path, text, sizeof text) >= 0 && strstr(text, "State:\tD");
        if (waits)
            nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    pc__root_keep_quiet(e->m->root, false);
}

/* "S", "Z" or "D" of a process (proc/PID/status); 0 when there is no such process, '?' when nobody's can be seen. */
static char state_of(pc__exam *e, int64_t pid, int *parent)
{
    char path[64], text[4096], *line;
    snprintf(path, sizeof path, "proc/%lld/status", (long long)pid);
    *parent = 0;
    wait_for_disk(e, path);
    if (pc__root_read(e->m->root, path, text, sizeof text) < 0)
        return pc__root_read(e->m->root, "proc/1/status", text, sizeof text) < 0 ? '?' : 0;
    if ((line = strstr(text, "PPid:")))
        sscanf(line, "PPid: %d", parent);
    line = strstr(text, "State:");
    return line ? line[strlen("State:") + strspn(line + strlen("State:"), " \t")] : '?';
}

/* A zombie, or none at all. */
static bool has_ended(char state)
{
    return state == 'Z' || state == 0;
}

enum { DOUBTS_MOST = 256 };

/* What may be nothing but a program that ends while the doctor looks: processes that the driver lists and that have
 * ended, GPUs (by bits) with memory without a process. Beside them the GPUs that computed at first: later it may be
 * nothing but the doctor's own copies. */
typedef struct doubts {
    int64_t pids[DOUBTS_MOST], hidden, busy;
    int count;
} doubts;

static bool doubted(const doubts *all, int64_t pid)
{
    int i = 0;
    while (i < all->count && all->pids[i] != pid)
        i++;
    return i < all->count;
}

static void say_memory(pc__exam *e, pc_finding *f, const pc_probe_process *process, const char *words)
{
    const char *name = process->name ? process->name : "its name is unknown";
    if (process->memory.known)
        pc__how(e, f, "Process %lld (%s) %s; the driver counts %.0f MiB for it.", (long long)process->pid, name, words,
                process->memory.number / (1 << 20));
    else
        pc__how(e, f, "Process %lld (%s) %s.", (long long)process->pid, name, words);
}

/* One that has ended, or cannot be ended, still holds memory. False when it is alive and well. */
static bool say_undead(pc__exam *e, const pc_probe_device *d, const pc_probe_process *process, const doubts *before)
{
    int parent;
    char state = state_of(e, process->pid, &parent);
    if (state != 'D' && !has_ended(state))
        return false;
    if (state != 'D' && e->machine->live != doubted(before, process->pid))
        return true; /* it ended while the doctor was looking */
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, d);
    if (state == 'Z') {
        pc__what(e, f, "A process that has ended (a zombie) still holds memory of the GPU.");
        say_memory(e, f, process, "is in state Z (zombie)");
        pc__how(e, f, "Its parent is process %d, which has not asked how it ended; threads of it may still run.",
                parent);
        pc__fix(e, f, "ps -o pid,ppid,stat,wchan:24,cmd -p %lld,%d", (long long)process->pid, parent);
        if (parent > 1)
            pc__fix(e, f, "kill %d # the parent, if it is not wanted; kill -9 does nothing to a zombie", parent);
        pc__fix(e, f, "sudo reboot # if it stays");
    } else if (state == 'D') {
        pc__what(e, f, "A process that holds memory of the GPU waits in the kernel and cannot be ended.");
        say_memory(e, f, process, "is in state D (uninterruptible)");
        pc__nvrm_quote(e, f, d);
        pc__fix(e, f, "sudo cat /proc/%lld/stack # where: in nvidia's module, the GPU or its driver hangs",
                (long long)process->pid);
        pc__fix(e, f, "sudo reboot # kill -9 does not reach it");
    } else {
        pc__what(e, f, "Memory of the GPU is held for a process that does not exist any more.");
        say_memory(e, f, process, "is not in /proc");
        pc__fix(e, f, "sudo fuser -v /dev/nvidia* # children of it that still have the device open: end those");
        pc__fix(e, f, "sudo nvidia-smi --gpu-reset -i %s # if nobody has", pc__index_of(e, d));
    }
    return true;
}

/* One that was left to run on computes, one that was forgotten does not. */
static void say_orphan(pc__exam *e, const pc_probe_device *d, const pc_probe_process *process, bool busy)
{
    pc_finding *f = pc__found(e, busy ? PC_SEVERITY_ADVICE : PC_SEVERITY_WRONG, d);
    pc__what(e, f, "A process whose parent is gone still holds memory of the GPU: %s.",
             process->name ? process->name : "its name is unknown");
    if (process->memory.known)
        pc__how(e, f, "Process %lld has %.0f MiB.", (long long)process->pid, process->memory.number / (1 << 20));
    pc__how(e, f, "The parent of %lld is process 1, and it belongs to a session, not to a service.",
            (long long)process->pid);
    pc__fix(e, f, "ps -o pid,etime,cmd -p %lld # is it wanted?", (long long)process->pid);
    pc__fix(e, f, "kill %lld", (long long)process->pid);
}

/* Memory without a process that the driver lists: mostly workers of a run that was killed have the file open. On a GPU
 * that computes it may be another user's or container's, whom a reset would end. */
static void say_hidden(pc__exam *e, const pc_probe_device *d, bool busy)
{
    pc_finding *f = pc__found(e, busy ? PC_SEVERITY_ADVICE : PC_SEVERITY_WRONG, d);
    char *holders = pc__holders(e), *rest;
    pc__what(e, f, "Memory of the GPU is held, and no process is listed for it.");
    pc__how(e, f, "%.0f MiB are used, and the driver lists no process.", d->memory_used.number / (1 << 20));
    if (busy)
        pc__how(e, f, "The GPU computes: somebody uses it whom the driver does not show here.");
    for (char *line = holders ? strtok_r(holders, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
        char *name = strchr(line, ' ');
        pc__how(e, f, "Process %.*s (%s) has a GPU open.", (int)strcspn(line, " "), line, name ? name + 1 : "?");
        pc__fix(e, f, "kill %.*s # if it is not wanted: %s", (int)strcspn(line, " "), line, name ? name + 1 : "?");
    }
    pc__fix(e, f, "sudo fuser -v /dev/nvidia* # who has the device open, other users' processes too");
    if (!busy)
        pc__fix(e, f, "sudo nvidia-smi --gpu-reset -i %s # if nobody has", pc__index_of(e, d));
    pc__free(holders);
}

/* Whether the CPU may reach its memory as its own: over NVLink, which the driver does not list where it is NVLink-C2C. */
static bool may_be_shared(const pc_probe_device *d)
{
    static const char *const models[] = {"GH200", "GB200", "GB300"};
    bool may = !d->model.known;
    for (int i = 0; i < PC__COUNT(models) && !may; i++)
        may = strstr(d->model.text, models[i]) != NULL;
    for (int i = 0; i < d->link_count && !may; i++)
        may = d->links[i].to_kind && !strcmp(d->links[i].to_kind, "cpu");
    return may;
}

/* The GPU's memory is the system's too (Grace Hopper): nodes with memory and without CPUs. Of another GPU these are
 * somebody else's memory (CXL, HBM beside a CPU). */
static bool memory_is_shared(pc__exam *e, const pc_probe_device *d)
{
    char memory[1024], cpus[1024];
    unsigned char with_memory[PC__LIST_BYTES], with_cpus[PC__LIST_BYTES];
    if (!may_be_shared(d) || !pc__root_line(e->m->root, "sys/devices/system/node/has_memory", memory, sizeof memory) ||
        !pc__root_line(e->m->root, "sys/devices/system/node/has_cpu", cpus, sizeof cpus) ||
        !pc__read_list(memory, with_memory) || !pc__read_list(cpus, with_cpus))
        return false;
    for (int i = 0; i < PC__LIST_BYTES; i++)
        if (with_memory[i] & ~with_cpus[i])
            return true;
    return false;
}

/* What is used without a process is somebody's; but not of a slice of a GPU, whose driver keeps some for itself. */
static bool may_be_hidden(pc__exam *e, const pc_probe_device *d)
{
    bool slice = !d->temperature.known && !d->power.known;
    return d->processes_known.known && !d->process_count && more_than(&d->memory_used, 1.5e9) &&
           !more_than(&d->mig, 0) && !slice && !memory_is_shared(e, d);
}

static int64_t bit_of(const pc__exam *e, const pc_probe_device *d)
{
    return (int64_t)1 << PC__MIN(d - e->machine->devices, 62);
}

static void find_doubts(pc__exam *e, doubts *all)
{
    int i = 0, parent;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));) {
        all->hidden |= may_be_hidden(e, d) ? bit_of(e, d) : 0;
        all->busy |= more_than(&d->utilization_gpu, 5) ? bit_of(e, d) : 0;
        for (int p = 0; p < d->process_count && all->count < DOUBTS_MOST; p++)
            if (has_ended(state_of(e, d->processes[p].pid, &parent)))
                all->pids[all->count++] = d->processes[p].pid;
    }
}

static bool is_listed(const pc__exam *e, int64_t pid)
{
    int i = 0;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));)
        for (int p = 0; p < d->process_count; p++)
            if (d->processes[p].pid == pid)
                return true;
    return false;
}

/* Processes that are not listed any more ("4711") and GPUs whose memory is not held any more ("gpu 0000:81:00.0"), for
 * whoever examines a recording of the first list. */
static void note_ended(pc__exam *e, const doubts *all)
{
    pc__text text = {0};
    int next = 0;
    for (int i = 0; i < all->count; i++)
        if (!is_listed(e, all->pids[i]))
            pc__text_add(&text, "%lld\n", (long long)all->pids[i]);
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &next));)
        if ((all->hidden & bit_of(e, d)) && !may_be_hidden(e, d))
            pc__text_add(&text, "gpu %s\n", d->address.text);
    if (text.length && !text.failed)
        pc__root_note(e->m->root, "answers/ended", text.data);
    pc__text_free(&text);
}

static void read_ended(pc__exam *e, doubts *all)
{
    char *text = pc__root_text(e->m->root, "answers/ended", 65536, false), address[32];
    for (const char *line = text; line; line = pc__behind(line, '\n')) {
        const pc_probe_device *d = sscanf(line, "gpu %31s", address) == 1 ? pc__device_at(e->m, address) : NULL;
        char *end;
        const long long pid = strtoll(line, &end, 10);
        if (d)
            all->hidden &= ~bit_of(e, d);
        else if (end != line && all->count < DOUBTS_MOST)
            all->pids[all->count++] = pid;
    }
    pc__free(text);
}

/* The driver was asked some time ago. Where something is in doubt it is asked again: only what is so before and after
 * counts. Of a recording: the processes and the memory that were there at first alone. */
static void ask_again(pc__exam *e, doubts *all)
{
    find_doubts(e, all);
    if (!e->machine->live) {
        all->count = 0;
        read_ended(e, all);
    } else if (all->count || all->hidden) {
        (void)!pc_machine_sample(&e->m->public);
        note_ended(e, all);
    }
}

void pc__check_orphans(pc__exam *e)
{
    int i = 0;
    doubts before = {0};
    if (e->m->numbers_elsewhere)
        return;
    ask_again(e, &before);
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));) {
        const bool busy = (before.busy & bit_of(e, d)) != 0;
        for (int p = 0; p < d->process_count; p++)
            if (!say_undead(e, d, &d->processes[p], &before) && orphaned(e, &d->processes[p]))
                say_orphan(e, d, &d->processes[p], busy);
        if ((before.hidden & bit_of(e, d)) && may_be_hidden(e, d))
            say_hidden(e, d, busy);
    }
}
