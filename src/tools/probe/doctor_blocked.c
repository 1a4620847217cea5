/* doctor_blocked.c: does the configuration forbid the driver's kernel module? */
#include "probe/doctor.h"

enum { LINE_MAX = 400 };

/* Out of the driver's own modules, "nvidia" is what the others need. */
static bool is_nvidia(const char *word)
{
    size_t n = strcspn(word, " \t\n");
    return (n == 6 && !strncmp(word, "nvidia", n)) || (n == 14 && !strncmp(word, "nvidia-current", n)) ||
           (n == 14 && !strncmp(word, "nvidia_current", n));
}

/* "blacklist nvidia", "alias nvidia off", "install nvidia /bin/false" */
static bool forbids(const char *line)
{
    line += strspn(line, " \t");
    if (!strncmp(line, "blacklist ", 10))
        return is_nvidia(line + 10 + strspn(line + 10, " \t"));
    bool alias = !strncmp(line, "alias ", 6), install = !strncmp(line, "install ", 8);
    const char *module = line + (alias ? 6 : install ? 8 : 0), *end = module + strcspn(module, " \t\n");
    end += strspn(end, " \t");
    return (alias && is_nvidia(module) && !strncmp(end, "off", 3)) ||
           (install && is_nvidia(module) && (strstr(end, "/false") || strstr(end, "/true")));
}

typedef struct search {
    pc__exam *e;
    const char *folder;
    char file[256], line[LINE_MAX]; /* the first that forbids */
    const char *rule;               /* of udev, that takes the device off the bus */
} search;

static void look_conf(void *context, const char *name)
{
    search *s = context;
    char path[256];
    size_t n = strlen(name);
    if (n < 5 || strcmp(name + n - 5, ".conf"))
        return;
    snprintf(path, sizeof path, "%s/%.150s", s->folder, name);
    char *text = pc__root_whole(s->e->m->root, path, 65536, false), *rest;
    pc__text kept = {0};
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
        if (!forbids(line))
            continue;
        pc__text_add(&kept, "%s\n", line);
        if (!s->file[0]) {
            snprintf(s->file, sizeof s->file, "%s", path);
            snprintf(s->line, sizeof s->line, "%s", line);
        }
    }
    s->e->m->failed |= kept.failed;
    if (kept.data)
        pc__root_note(s->e->m->root, path, kept.data);
    pc__text_free(&kept);
    pc__free(text);
}

/* On the kernel's command line: modprobe.blacklist=nouveau,nvidia */
static void look_command_line(search *s)
{
    static const char *const keys[] = {"modprobe.blacklist=", "module_blacklist=", "rd.driver.blacklist="};
    char line[4096];
    if (s->file[0] || !pc__root_line(s->e->m->root, "proc/cmdline", line, sizeof line))
        return;
    for (int i = 0; i < PC__COUNT(keys); i++)
        for (char *at = line; (at = strstr(at, keys[i]));) {
            char *word = at + strlen(keys[i]), *end = word + strcspn(word, " ");
            for (at = end; word < end; word += strcspn(word, ", ") + 1)
                if (!strncmp(word, "nvidia", 6) && strchr(", ", word[6])) {
                    snprintf(s->file, sizeof s->file, "proc/cmdline");
                    snprintf(s->line, sizeof s->line, "%snvidia", keys[i]);
                }
        }
}

static bool driver_installed(pc__exam *e)
{
    int versions = 0, i = 0;
    const pc_probe_device *d = pc__next_gpu(e, &i);
    pc__root_list(e->m->root, "var/lib/dkms/nvidia", "", pc__count_name, &versions);
    return e->machine->driver_library.known || versions ||
           (d && d->modules.known && pc__has_word(d->modules.text, "nvidia"));
}

/* Programs that switch a laptop between its GPUs wrote it, and rules of udev with it. */
static const char *fix_by_switcher(const search *s)
{
    if (strstr(s->file, "supergfxd"))
        return "supergfxctl -m Hybrid";
    return strstr(s->file, "blacklist-nvidia.conf") && s->rule ? "sudo envycontrol -s hybrid # it wrote both files"
                                                               : NULL;
}

static void fix_blocked(pc__exam *e, pc_finding *f, const search *s)
{
    const char *command = fix_by_switcher(s);
    if (command) {
        pc__fix(e, f, "%s", command);
        if (s->rule)
            pc__fix(e, f, "# if it is not installed any more: sudo rm /%s /%s", s->file, s->rule);
        pc__fix(e, f, "sudo reboot");
        return;
    }
    bool prime = pc__root_exists(e->m->root, "usr/bin/prime-select");
    if (!strcmp(s->file, "proc/cmdline")) {
        pc__fix(e, f, "# take \"%s\" out of GRUB_CMDLINE_LINUX in /etc/default/grub, then:", s->line);
        pc__fix(e, f, "sudo update-grub # Fedora: sudo grubby --update-kernel=ALL --remove-args=%s", s->line);
        pc__fix(e, f, "sudo reboot");
        return;
    }
    if (prime)
        pc__fix(e, f, "sudo prime-select on-demand # or: sudo prime-select nvidia");
    else
        pc__fix(e, f, "sudo rm /%s # or take those lines out of it", s->file);
    pc__fix(e, f, "%s", pc__initramfs(e));
    pc__fix(e, f, "sudo reboot");
}

static const char *find_rule(pc__exam *e)
{
    static const char *const rules[] = {"etc/udev/rules.d/50-remove-nvidia.rules",
                                        "lib/udev/rules.d/50-remove-nvidia.rules"};
    for (int i = 0; i < PC__COUNT(rules); i++)
        if (pc__root_exists(e->m->root, rules[i]))
            return rules[i];
    return NULL;
}

/* Without a device too: what forbids the module for an integrated GPU's sake may take the device off the bus. */
void pc__check_blocked(pc__exam *e)
{
    static const char *const folders[] = {"etc/modprobe.d", "run/modprobe.d", "usr/local/lib/modprobe.d",
                                          "usr/lib/modprobe.d", "lib/modprobe.d"};
    search s = {.e = e};
    if (e->container || e->machine->driver.known || pc__root_exists(e->m->root, "dev/dxg"))
        return;
    for (int i = 0; i < PC__COUNT(folders); i++) {
        s.folder = folders[i];
        pc__root_list(e->m->root, folders[i], "", look_conf, &s);
    }
    look_command_line(&s);
    if (!s.file[0] || !driver_installed(e))
        return;
    s.rule = find_rule(e);
    int i = 0;
    const pc_probe_device *d = pc__next_gpu(e, &i);
    pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, d);
    pc__what(e, f, "The NVIDIA driver is installed, and the configuration forbids its kernel module.");
    pc__how(e, f, "/%s has \"%s\".", s.file, s.line);
    if (s.rule)
        pc__how(e, f, "/%s takes the device off the PCI bus.", s.rule);
    else if (!d)
        pc__how(e, f, "No NVIDIA device is on the PCI bus: a rule of udev beside it may have taken it off.");
    else
        pc__how(e, f, "The module is not loaded, and %s has none.", d->address.text);
    fix_blocked(e, f, &s);
}
