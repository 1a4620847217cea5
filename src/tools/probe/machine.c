/* machine.c: look at a machine, part by part. */
#include "probe/probe.h"

#include <paracord-tools/doctor.h>

pc_machine *pc_machine_new(pc_machine_options options)
{
    pc__machine *m = pc__calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->options = options;
    m->root = pc__root_open(m->options.root, m->options.recording);
    if (!m->root) {
        pc__free(m);
        return NULL;
    }
    m->public.live = pc__root_live(m->root);
    pc__probe_system(m);
    pc__probe_pci(m);
    pc__probe_tegra(m);
    pc__probe_names(m);
    pc__probe_modules(m);
    pc__probe_amd(m);
    pc__probe_displays(m);
    pc__probe_driver(m);
    pc__probe_libraries(m);
    pc__probe_toolkits(m);
    pc__probe_answers(m);
    if (!m->failed && !pc__root_starved(m->root))
        return &m->public;
    pc_machine_free(&m->public);
    return pc__null(PC_ERR_MEMORY, "no memory for the facts of this machine");
}

void pc_machine_free(pc_machine *machine)
{
    pc__machine *m = (pc__machine *)machine;
    if (!m)
        return;
    pc__asker_end(m->asker);
    for (int i = 0; i < machine->device_count; i++) {
        pc__free(machine->devices[i].processes);
        pc__free(machine->devices[i].connectors);
        pc__free(machine->devices[i].migs);
        pc__free(machine->devices[i].links);
    }
    pc__free(machine->devices);
    pc__free(machine->toolkits);
    pc__free(machine->libraries);
    for (int i = 0; i < m->string_room; i++)
        pc__free(m->strings[i]);
    pc__free(m->strings);
    pc__root_close(m->root);
    pc__free(m);
}

/* The doctor reads what the probe does not: with its checks the recording can be examined too. */
pc_status pc_machine_record(pc_machine *machine, const char *path)
{
    PC__NEED(machine);
    PC__NEED(path);
    pc__machine *m = (pc__machine *)machine;
    pc_diagnosis *d = m->options.recording ? pc_diagnosis_new(machine, (pc_diagnosis_options){0}) : NULL;
    if (m->options.recording && !d)
        return pc_error_last()->status;
    pc_diagnosis_free(d);
    (void)pc_machine_ways(machine); /* reads what paracord topo asks for */
    return pc__root_write(m->root, path);
}
