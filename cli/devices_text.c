/* devices_text.c: a machine and its devices for people. */
#include <stdarg.h>
#include <string.h>

#include "devices.h"
#include "text.h"

/* A text that is put together from pieces. */
typedef struct pieces {
    char text[1024];
    size_t used;
} pieces;

static void add(pieces *p, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(p->text + p->used, sizeof p->text - p->used, format, arguments);
    va_end(arguments);
    p->used = n < 0 || p->used + (size_t)n >= sizeof p->text ? sizeof p->text - 1 : p->used + (size_t)n;
}

static const char *joint(const pieces *p)
{
    return p->used ? ", " : "";
}

static const char *text_or(const pc_fact *fact, const char *otherwise)
{
    return fact->known && fact->text ? fact->text : otherwise;
}

/* 150754820096 bytes as "143771 MiB" */
static double mebi(const pc_fact *fact)
{
    return fact->number / (1 << 20);
}

static void print_machine(const pc_machine *m)
{
    cli_devices_line("System", "%s, kernel %s%s%s", text_or(&m->system, "distribution unknown"),
                     text_or(&m->kernel, "unknown"),
                     m->container.known && strcmp(m->container.text, "none") ? ", container: " : "",
                     m->container.known && strcmp(m->container.text, "none") ? m->container.text : "");
    bool nvidia = m->driver.known || m->nvml.known;
    for (int i = 0; i < m->device_count; i++)
        nvidia |= m->devices[i].nvidia;
    if (m->driver.known)
        cli_devices_line("Driver", "NVIDIA %s%s%s%s, %s%s", m->driver.text, m->driver_kind.known ? " (" : "",
                         text_or(&m->driver_kind, ""), m->driver_kind.known ? " kernel modules)" : "",
                         m->cuda_driver.known ? "runs programs of CUDA up to " : "its newest CUDA is unknown",
                         text_or(&m->cuda_driver, ""));
    else if (nvidia)
        cli_devices_line("Driver", "no NVIDIA driver: %s; paracord doctor says what to do", m->driver.why);
    if (m->hung)
        cli_devices_line("", "the driver did not answer %s in time: what it would have told is unknown", m->hung);
    else if (m->driver.known && !m->nvml.known)
        cli_devices_line("", "its state is unknown: %s", m->nvml.why ? m->nvml.why : "NVML was not asked");
    if (m->cuda_init.known && strcmp(m->cuda_init.text, "works"))
        cli_devices_line("", "CUDA does not start: %s", m->cuda_init.text);
}

static void print_kernel(const pc_probe_device *d)
{
    pieces p = {0};
    add(&p, "%s", d->class_name.text);
    if (d->model.known && d->vendor.known && strncmp(d->model.text, "NVIDIA", 6))
        add(&p, " of %s", d->vendor.text);
    if (d->board_vendor.known && d->vendor.known && strcmp(d->board_vendor.text, d->vendor.text))
        add(&p, ", card by %s", d->board_vendor.text);
    if (d->module.known)
        add(&p, ", used by the module %s", d->module.text);
    else
        add(&p, ", no kernel module has it");
    if (d->modules.known && (!d->module.known || strcmp(d->module.text, d->modules.text)))
        add(&p, " (for it: %s)", d->modules.text);
    if (d->boot_display.known && d->boot_display.number != 0)
        add(&p, ", shows the console");
    if (d->asleep)
        add(&p, ", sleeps to save power (%s): --wake asks it all the same", text_or(&d->power_state, "suspended"));
    cli_devices_line("   Device", "%s", p.text);
    if (d->compute_capability.known)
        cli_devices_line("   Compute", "capability %s (%s)%s%s", d->compute_capability.text,
                         text_or(&d->architecture, "?"), d->uuid.known ? ", " : "", text_or(&d->uuid, ""));
}

static void print_load(const pc_probe_device *d)
{
    pieces p = {0};
    if (d->memory_total.known && d->memory_used.known)
        cli_devices_line("   Memory", "%.0f of %.0f MiB used", mebi(&d->memory_used), mebi(&d->memory_total));
    else if (d->memory_total.known)
        cli_devices_line("   Memory", "%.0f MiB", mebi(&d->memory_total));
    if (d->utilization_gpu.known)
        add(&p, "%.0f %%", d->utilization_gpu.number);
    if (d->temperature.known)
        add(&p, "%s%.0f C", joint(&p), d->temperature.number);
    if (d->fan.known)
        add(&p, "%sfan %.0f %%", joint(&p), d->fan.number);
    if (d->power.known)
        add(&p, "%s%.0f W", joint(&p), d->power.number);
    if (d->power.known && d->power_limit_enforced.known)
        add(&p, " of %.0f W", d->power_limit_enforced.number);
    if (p.used)
        cli_devices_line("   Load", "%s", p.text);
    if (!d->clock_sm.known)
        return;
    p.used = 0;
    add(&p, "%.0f MHz", d->clock_sm.number);
    if (d->clock_sm_max.known)
        add(&p, " (at most %.0f)", d->clock_sm_max.number);
    if (d->clock_memory.known)
        add(&p, ", memory %.0f MHz", d->clock_memory.number);
    if (d->clock_reasons.known && strcmp(d->clock_reasons.text, "nothing"))
        add(&p, ", held down by: %s", d->clock_reasons.text);
    cli_devices_line("   Clocks", "%s", p.text);
}

static void print_links(const pc_probe_device *d)
{
    pieces p = {0};
    if (d->pcie_width.known && d->pcie_generation.known)
        add(&p, "generation %.0f x%.0f", d->pcie_generation.number, d->pcie_width.number);
    if (d->pcie_width_max.known && d->pcie_generation_max.known)
        add(&p, "%sat most generation %.0f x%.0f", p.used ? ", " : "", d->pcie_generation_max.number,
            d->pcie_width_max.number);
    if (d->numa_node.known && !p.used)
        add(&p, "link unknown");
    if (d->numa_node.known)
        add(&p, "%sNUMA node %.0f", joint(&p), d->numa_node.number);
    if (p.used)
        cli_devices_line("   PCIe", "%s", p.text);
    if (d->nvlinks.known && d->nvlinks.number > 0)
        cli_devices_line("   NVLink", "%.0f of %.0f links up%s%s", d->nvlinks_active.number, d->nvlinks.number,
                         d->fabric_state.known ? ", fabric " : "", text_or(&d->fabric_state, ""));
    p = (pieces){0};
    if (d->ecc.known)
        add(&p, "ECC %s", d->ecc.number != 0 ? "on" : "off");
    if (d->ecc_uncorrected.known && d->ecc_corrected.known)
        add(&p,
            d->ecc_corrected.number + d->ecc_uncorrected.number > 0 ? " (%.0f errors corrected, %.0f not)"
                                                                    : " (no errors)",
            d->ecc_corrected.number, d->ecc_uncorrected.number);
    if (d->mig.known)
        add(&p, "%sMIG %s", joint(&p), d->mig.number != 0 ? "on" : "off");
    if (d->persistence.known)
        add(&p, "%spersistence %s", joint(&p), d->persistence.number != 0 ? "on" : "off");
    if (d->compute_mode.known && strcmp(d->compute_mode.text, "default"))
        add(&p, "%scompute mode %s", joint(&p), d->compute_mode.text);
    if (p.used)
        cli_devices_line("   State", "%s", p.text);
    for (int i = 0; i < d->mig_count; i++)
        cli_devices_line(i ? "" : "   MIG", d->migs[i].memory.known ? "%s, %.0f MiB" : "%s, memory unknown",
                         d->migs[i].uuid, mebi(&d->migs[i].memory));
}

static void print_users(const pc_probe_device *d)
{
    char memory[32];
    for (int i = 0; i < d->process_count; i++) {
        const pc_probe_process *p = &d->processes[i];
        snprintf(memory, sizeof memory, p->memory.known ? "%.0f MiB" : "memory unknown", mebi(&p->memory));
        cli_devices_line(i ? "" : "   Processes", "%lld %s, %s, %s", (long long)p->pid,
                         p->name ? p->name : "(not visible from here)", p->kind, memory);
    }
    int off = 0;
    for (int i = 0; i < d->connector_count; i++) {
        const pc_probe_connector *c = &d->connectors[i];
        if (strcmp(c->status, "connected") && !c->in_use) {
            off++;
            continue;
        }
        const char *mode = c->now ? c->now : c->mode;
        cli_devices_line("   Display", "%s %s%s%s%s", c->name, c->status,
                         !mode    ? ""
                         : c->now ? ", "
                                  : ", at most ",
                         mode ? mode : "", c->in_use ? ", in use" : "");
    }
    if (off)
        cli_devices_line("   Display", "%d connector%s with nothing connected", off, off > 1 ? "s" : "");
}

static void print_all(const char *title, const pc_fact_row *(*row)(int), const void *owner)
{
    char text[512];
    int width = cli_width(stdout);
    cli_set_style(stdout, CLI_BOLD);
    printf("%s", title);
    cli_set_style(stdout, CLI_PLAIN);
    putchar('\n');
    for (int i = 0; row(i); i++) {
        const pc_fact *fact = pc_fact_of(row(i), owner);
        printf("  %s", row(i)->label);
        int at = cli_pad(stdout, 2 + (int)strlen(row(i)->label), 38);
        pc_fact_text(row(i), fact, text, sizeof text);
        if (!fact->known && fact->why)
            snprintf(text, sizeof text, "unknown: %s", fact->why);
        for (char *c = text; *c; c++)
            *c = (unsigned char)*c < ' ' ? '?' : *c;
        cli_wrap(stdout, text, at, 40, width);
        putchar('\n');
    }
}

static void print_software(const pc_machine *m)
{
    putchar('\n');
    for (int i = 0; i < m->toolkit_count; i++) {
        const pc_probe_toolkit *t = &m->toolkits[i];
        cli_devices_line(i ? "" : "CUDA toolkit", "%s in %s, %s, %s", t->version, t->path,
                         t->on_path ? "on PATH" : "not on PATH",
                         t->on_library_path ? "its libraries are found" : "its libraries are not found");
    }
    if (!m->toolkit_count)
        cli_devices_line("CUDA toolkit", "none in /usr/local/cuda*, /opt/cuda* or $CUDA_HOME");
    for (int i = 0; i < m->library_count; i++)
        cli_devices_library(i ? "" : "Libraries", &m->libraries[i]);
}

void cli_devices_text(const pc_machine *m, bool all)
{
    char title[256];
    if (all)
        print_all("The machine", pc_machine_fact, m);
    else
        print_machine(m);
    for (int i = 0; i < m->device_count; i++) {
        const pc_probe_device *d = &m->devices[i];
        if (all) {
            snprintf(title, sizeof title, "\nDevice %d: %s", i, text_or(&d->model, text_or(&d->vendor, "unknown")));
            print_all(title, pc_device_fact, d);
        } else {
            cli_devices_heading(m, i);
            print_kernel(d);
            print_load(d);
            print_links(d);
        }
        print_users(d);
    }
    if (!m->device_count)
        cli_devices_line("Devices", "no graphics or accelerator device is visible%s",
                         m->container.known && strcmp(m->container.text, "none") ? " in this container" : "");
    print_software(m);
}
