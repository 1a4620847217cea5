/* system.c: kernel, distribution, container, Secure Boot, shared memory. */
#include "probe/probe.h"

bool pc__os_release(pc__machine *m, const char *name, char *value, size_t n)
{
    char *text = pc__root_text(m->root, "etc/os-release", 65536, false);
    bool found = false;
    for (char *line = text; line && *line && !found; line = pc__behind(line, '\n')) {
        size_t length = strlen(name);
        if (strncmp(line, name, length) || line[length] != '=')
            continue;
        char *begin = line + length + 1;
        begin += *begin == '"' || *begin == '\'';
        snprintf(value, n, "%.*s", (int)PC__MIN(strcspn(begin, "\"'\n"), n - 1), begin);
        found = value[0] != 0;
    }
    pc__free(text);
    return found;
}

static bool says_microsoft(const char *text)
{
    return strstr(text, "microsoft") || strstr(text, "Microsoft") || strstr(text, "WSL");
}

/* Kernels that users compile keep the word in one of the two, if not in both. */
bool pc__kernel_of_microsoft(pc__machine *m)
{
    char release[256];
    if (pc__root_line(m->root, "proc/sys/kernel/osrelease", release, sizeof release) && says_microsoft(release))
        return true;
    char *version = pc__root_whole(m->root, "proc/version", 4096, false);
    bool found = version && says_microsoft(version);
    if (found) /* its other words name who compiled it, which a recording need not tell */
        pc__root_note(m->root, "proc/version", "microsoft");
    pc__free(version);
    return found;
}

/* "container=lxc" among the variables of the first process, which its user and root may see. Of the others a recording
 * tells nothing. */
static bool read_first_variable(pc__machine *m, char *kind, size_t n)
{
    static const char path[] = "proc/1/environ", key[] = "container=";
    char text[16384];
    pc__root_keep_quiet(m->root, true);
    const ssize_t length = pc__root_read(m->root, path, text, sizeof text);
    pc__root_keep_quiet(m->root, false);
    for (const char *at = text; length > 0 && at < text + length; at += strlen(at) + 1)
        if (!strncmp(at, key, sizeof key - 1)) {
            snprintf(kind, n, "%.*s", (int)strcspn(at + sizeof key - 1, "\n"), at + sizeof key - 1);
            pc__root_note(m->root, path, at);
            return kind[0] != 0;
        }
    return false;
}

/* Whether processes have other numbers here than for the kernel, whose own space of them always has this name
 * (PROC_PID_INIT_INO): in containers, but in sandboxes (unshare --pid, bwrap) too, which have all else of the machine.
 * Those of WSL have them always. In a folder proc/self is the reader's, or nobody's. */
static bool numbers_processes_anew(pc__machine *m)
{
    char space[64];
    return !pc__root_is_folder(m->root) && pc__root_link(m->root, "proc/self/ns/pid", space, sizeof space) &&
           strcmp(space, "pid:[4026531836]") != 0 && !pc__root_exists(m->root, "dev/dxg") &&
           !pc__kernel_of_microsoft(m);
}

/* Docker and Podman leave a file; the rest name themselves to the first process, if at all (containerd does not). So
 * does WSL with systemd, which is a machine of its own. */
static void read_container(pc__machine *m)
{
    pc_fact *fact = &m->public.container;
    char line[128];
    if (pc__root_exists(m->root, ".dockerenv"))
        pc__fact_text(m, fact, "docker");
    else if (pc__root_exists(m->root, "run/.containerenv"))
        pc__fact_text(m, fact, "podman");
    else if (pc__root_exists(m->root, "singularity") || pc__root_exists(m->root, ".singularity.d"))
        pc__fact_text(m, fact, "apptainer");
    else if (pc__root_env(m->root, "KUBERNETES_SERVICE_HOST"))
        pc__fact_text(m, fact, "kubernetes");
    else if (pc__root_line(m->root, "run/systemd/container", line, sizeof line) && strcmp(line, "wsl") != 0)
        pc__fact_text(m, fact, line);
    else if (read_first_variable(m, line, sizeof line) && strcmp(line, "wsl") != 0)
        pc__fact_text(m, fact, line);
    else
        pc__fact_text(m, fact, "none");
}

/* Four bytes of attributes, then 1 or 0. */
static void read_secure_boot(pc__machine *m)
{
    static const char name[] = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
    pc_fact *fact = &m->public.secure_boot;
    char bytes[16];
    ssize_t n = pc__root_read(m->root, name, bytes, sizeof bytes);
    if (n >= 5)
        pc__fact_number(fact, bytes[4] == 1);
    else if (!pc__root_exists(m->root, "sys/firmware/efi"))
        pc__fact_unknown(m, fact, "the machine was not started by EFI firmware, or hides it");
    else
        pc__fact_unknown(m, fact, "cannot read /%s", name);
}

static void read_space(pc__machine *m)
{
    int64_t total, free_bytes;
    if (pc__root_space(m->root, "dev/shm", &total, &free_bytes)) {
        pc__fact_number(&m->public.shared_memory, (double)total);
        pc__fact_number(&m->public.shared_memory_free, (double)free_bytes);
    }
}

void pc__probe_system(pc__machine *m)
{
    char line[256];
    if (pc__root_line(m->root, "proc/sys/kernel/osrelease", line, sizeof line))
        pc__fact_text(m, &m->public.kernel, line);
    else
        pc__fact_unknown(m, &m->public.kernel, "cannot read /proc/sys/kernel/osrelease");
    if (pc__os_release(m, "PRETTY_NAME", line, sizeof line))
        pc__fact_text(m, &m->public.system, line);
    if (pc__os_release(m, "ID", line, sizeof line))
        pc__fact_text(m, &m->public.system_id, line);
    read_container(m);
    m->numbers_elsewhere = strcmp(m->public.container.text, "none") != 0 || numbers_processes_anew(m);
    read_secure_boot(m);
    read_space(m);
}
