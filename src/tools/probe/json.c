/* json.c: a machine as one JSON object. */
#include "probe/probe.h"

#include <errno.h>
#include <math.h>

static void add_string(pc__text *out, const char *text)
{
    if (text)
        pc__json_string(out, text);
    else
        pc__text_add(out, "null");
}

static void add_fact(pc__text *out, const pc_fact_row *row, const pc_fact *fact)
{
    if (!fact->known)
        pc__text_add(out, "null");
    else if (row && row->unit == PC_UNIT_TEXT)
        pc__json_string(out, fact->text);
    else if (row && row->unit == PC_UNIT_YES_NO)
        pc__text_add(out, "%s", fact->number != 0 ? "true" : "false");
    else if (fabs(fact->number) < 9e15 && fact->number == (double)(int64_t)fact->number)
        pc__text_add(out, "%lld", (long long)fact->number);
    else
        pc__json_number(out, fact->number);
}

/* Values by key, then the reasons of those that are null. */
static void add_facts(pc__text *out, const pc_fact_row *(*row)(int), const void *owner)
{
    char key[64];
    for (int i = 0; row(i); i++) {
        pc__text_add(out, "\"%s\": ", pc_fact_key(row(i), key, sizeof key));
        add_fact(out, row(i), pc_fact_of(row(i), owner));
        pc__text_add(out, ", ");
    }
    pc__text_add(out, "\"unknown\": {");
    const char *joint = "";
    for (int i = 0; row(i); i++) {
        const pc_fact *fact = pc_fact_of(row(i), owner);
        if (fact->known)
            continue;
        pc__text_add(out, "%s\"%s\": ", joint, pc_fact_key(row(i), key, sizeof key));
        pc__json_string(out, fact->why ? fact->why : "nobody asked");
        joint = ", ";
    }
    pc__text_add(out, "}");
}

static void add_processes(pc__text *out, const pc_probe_device *d)
{
    if (!d->processes_known.known) {
        pc__text_add(out, ", \"processes\": null");
        return;
    }
    pc__text_add(out, ", \"processes\": [");
    for (int i = 0; i < d->process_count; i++) {
        const pc_probe_process *p = &d->processes[i];
        pc__text_add(out, "%s{\"pid\": %lld, \"name\": ", i ? ", " : "", (long long)p->pid);
        add_string(out, p->name);
        pc__text_add(out, ", \"kind\": \"%s\", \"memory_bytes\": ", p->kind);
        add_fact(out, NULL, &p->memory);
        pc__text_add(out, "}");
    }
    pc__text_add(out, "]");
}

static void add_device(pc__text *out, const pc_probe_device *d)
{
    pc__text_add(out, "{");
    add_facts(out, pc_device_fact, d);
    add_processes(out, d);
    pc__text_add(out, ", \"connectors\": [");
    for (int i = 0; i < d->connector_count; i++) {
        const pc_probe_connector *c = &d->connectors[i];
        pc__text_add(out, "%s{\"name\": ", i ? ", " : "");
        add_string(out, c->name);
        pc__text_add(out, ", \"status\": ");
        add_string(out, c->status);
        pc__text_add(out, ", \"in_use\": %s, \"mode\": ", c->in_use ? "true" : "false");
        add_string(out, c->mode);
        pc__text_add(out, ", \"mode_now\": ");
        add_string(out, c->now);
        pc__text_add(out, "}");
    }
    pc__text_add(out, "], \"mig_devices\": [");
    for (int i = 0; i < d->mig_count; i++) {
        pc__text_add(out, "%s{\"uuid\": ", i ? ", " : "");
        add_string(out, d->migs[i].uuid);
        pc__text_add(out, ", \"memory_bytes\": ");
        add_fact(out, NULL, &d->migs[i].memory);
        pc__text_add(out, "}");
    }
    pc__text_add(out, "], \"nvlink\": [");
    for (int i = 0; i < d->link_count; i++) {
        pc__text_add(out, "%s{\"link\": %d, \"to\": ", i ? ", " : "", d->links[i].link);
        add_string(out, d->links[i].to);
        pc__text_add(out, ", \"kind\": \"%s\"}", d->links[i].to_kind);
    }
    pc__text_add(out, "]}");
}

static void add_software(pc__text *out, const pc_machine *machine)
{
    pc__text_add(out, ", \"toolkits\": [");
    for (int i = 0; i < machine->toolkit_count; i++) {
        const pc_probe_toolkit *t = &machine->toolkits[i];
        pc__text_add(out, "%s{\"version\": ", i ? ", " : "");
        add_string(out, t->version);
        pc__text_add(out, ", \"path\": ");
        add_string(out, t->path);
        pc__text_add(out, ", \"on_path\": %s, \"on_library_path\": %s}", t->on_path ? "true" : "false",
                     t->on_library_path ? "true" : "false");
    }
    pc__text_add(out, "], \"libraries\": [");
    for (int i = 0; i < machine->library_count; i++) {
        const pc_probe_library *l = &machine->libraries[i];
        pc__text_add(out, "%s{\"name\": \"%s\", \"purpose\": \"%s\", \"path\": ", i ? ", " : "", l->name, l->purpose);
        add_string(out, l->path);
        pc__text_add(out, ", \"version\": ");
        add_string(out, l->version);
        if (!l->path) {
            pc__text_add(out, ", \"why\": ");
            add_string(out, l->why);
        }
        pc__text_add(out, "}");
    }
    pc__text_add(out, "]");
}

pc_status pc_machine_json(const pc_machine *machine, FILE *out)
{
    PC__NEED(machine);
    PC__NEED(out);
    pc__text text = {0};
    pc__text_add(&text, "{");
    add_facts(&text, pc_machine_fact, machine);
    pc__text_add(&text, ", \"hung\": ");
    add_string(&text, machine->hung);
    add_software(&text, machine);
    pc__text_add(&text, ", \"devices\": [");
    for (int i = 0; i < machine->device_count; i++) {
        pc__text_add(&text, i ? ", " : "");
        add_device(&text, &machine->devices[i]);
    }
    pc__text_add(&text, "]}");
    pc_status status = text.failed ? PC_ERR_MEMORY : PC_OK;
    if (status == PC_OK && fwrite(text.data, 1, text.length, out) != text.length)
        status = pc__fail_file(errno, "cannot write the facts of this machine");
    pc__text_free(&text);
    return status;
}
