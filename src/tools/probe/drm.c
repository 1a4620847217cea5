/* drm.c: display connectors and their modes, from /sys/class/drm. */
#include "probe/probe.h"

#include <stdlib.h>

/* The device of a card: the link card0/device ends in its PCI address. */
static pc_probe_device *owner_of(pc__machine *m, const char *card)
{
    char path[256], target[512];
    snprintf(path, sizeof path, "sys/class/drm/%s/device", card);
    if (!pc__root_link(m->root, path, target, sizeof target))
        return NULL;
    char *name = strrchr(target, '/');
    return pc__device_at(m, name ? name + 1 : target);
}

/* The largest of the lines "1920x1080"; the kernel puts the one that the display prefers first. */
static const char *largest_mode(pc__machine *m, const char *connector)
{
    char path[256], text[4096], mode[32];
    long best = 0, width, height;
    const char *found = NULL;
    snprintf(path, sizeof path, "sys/class/drm/%s/modes", connector);
    if (pc__root_read(m->root, path, text, sizeof text) < 0)
        return NULL;
    for (char *line = text; line && *line; line = pc__behind(line, '\n'))
        if (sscanf(line, "%ldx%ld", &width, &height) == 2 && width > 0 && height > 0 && width < 100000 &&
            height < 100000 && width * height > best) {
            best = width * height;
            snprintf(mode, sizeof mode, "%ldx%ld", width, height);
            found = mode;
        }
    return found ? pc__keep(m, mode) : NULL;
}

/* "	mode: "2560x1600": 60 268500 2560 ..." behind "crtc[61]: pipe A" of debugfs, which root alone may read. */
static const char *mode_of(pc__machine *m, const char *state, const char *crtc)
{
    char line[96], size[32];
    int hertz;
    snprintf(line, sizeof line, "]: %.64s\n", crtc);
    const char *at = strstr(state, line), *next = at ? strstr(at, "\ncrtc[") : NULL;
    at = at ? strstr(at, "mode: \"") : NULL;
    if (!at || (next && at > next))
        return NULL;
    at += strlen("mode: \"");
    size_t n = strcspn(at, "\"\n");
    if (n == 0 || n >= sizeof size || at[n] != '"' || (hertz = atoi(at + n + 1 + (at[n + 1] == ':'))) <= 0)
        return NULL;
    return pc__keepf(m, "%.*s at %d Hz", (int)n, at, hertz);
}

/* "connector[77]: eDP-1" is followed by "	crtc=pipe A" in the file of its card. */
static const char *mode_now(pc__machine *m, const char *card, const char *connector)
{
    char path[128], line[128], crtc[65] = "";
    snprintf(path, sizeof path, "sys/kernel/debug/dri/%.32s/state", card + strlen("card"));
    char *state = pc__root_text(m->root, path, 1 << 20, false);
    snprintf(line, sizeof line, "]: %.64s\n\tcrtc=", connector);
    const char *at = state ? strstr(state, line) : NULL, *found = NULL;
    if (at) {
        at += strlen(line);
        snprintf(crtc, sizeof crtc, "%.*s", (int)PC__MIN(strcspn(at, "\n"), sizeof crtc - 1), at);
        found = strcmp(crtc, "(null)") ? mode_of(m, state, crtc) : NULL;
    }
    pc__free(state);
    return found;
}

/* card0 and renderD128 are files of /dev/dri. */
static void add_file(pc__machine *m, const char *name)
{
    pc_probe_device *d = owner_of(m, name);
    if (d)
        pc__fact_text(m, &d->device_files,
                      pc__keepf(m, "%s%s/dev/dri/%s", d->device_files.known ? d->device_files.text : "",
                                d->device_files.known ? " " : "", name));
}

/* card0-HDMI-A-1 */
static void look(void *context, const char *name)
{
    pc__machine *m = context;
    char card[64], path[256], line[64];
    const char *dash = strchr(name, '-');
    if (!dash)
        add_file(m, name);
    if (!dash || dash - name >= (int)sizeof card || strlen(name) > 128)
        return;
    snprintf(card, sizeof card, "%.*s", (int)(dash - name), name);
    pc_probe_device *d = owner_of(m, card);
    int capacity = d ? d->connector_count : 0;
    pc_probe_connector *c =
        d ? pc__more(m, &d->connectors, &d->connector_count, &capacity, sizeof *d->connectors) : NULL;
    if (!c)
        return;
    c->name = pc__keep(m, dash + 1);
    snprintf(path, sizeof path, "sys/class/drm/%s/status", name);
    c->status = pc__keep(m, pc__root_line(m->root, path, line, sizeof line) ? line : "unknown");
    snprintf(path, sizeof path, "sys/class/drm/%s/enabled", name);
    c->in_use = pc__root_line(m->root, path, line, sizeof line) && !strcmp(line, "enabled");
    c->mode = largest_mode(m, name);
    c->now = d->asleep ? NULL : mode_now(m, card, c->name);
}

void pc__probe_displays(pc__machine *m)
{
    if (m->public.device_count)
        pc__root_list(m->root, "sys/class/drm", "", look, m);
}
