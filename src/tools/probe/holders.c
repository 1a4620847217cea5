/* holders.c: processes that have a GPU's device file open, also those that the driver does not list: workers of a run
 * that was killed inherit the file and keep the GPU's memory. Without root only the user's own can be seen. */
#include "probe/doctor.h"

#include <ctype.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct search {
    pc__exam *e;
    pc__text *lines;
    char process[32]; /* the one whose files are looked at */
    bool holds;
} search;

static void look_at_file(void *context, const char *name)
{
    search *s = context;
    char path[128], target[256];
    if (s->holds)
        return;
    snprintf(path, sizeof path, "proc/%s/fd/%.32s", s->process, name);
    s->holds = pc__root_link(s->e->m->root, path, target, sizeof target) && !strncmp(target, "/dev/nvidia", 11) &&
               isdigit((unsigned char)target[11]);
}

static void look_at_process(void *context, const char *name)
{
    search *s = context;
    char path[128], comm[64];
    if (!isdigit((unsigned char)*name) || strlen(name) >= sizeof s->process || atoi(name) == (int)getpid())
        return;
    s->holds = false;
    snprintf(s->process, sizeof s->process, "%s", name);
    snprintf(path, sizeof path, "proc/%s/fd", name);
    pc__root_list(s->e->m->root, path, "", look_at_file, s);
    if (!s->holds)
        return;
    snprintf(path, sizeof path, "proc/%s/comm", name);
    if (!pc__root_line(s->e->m->root, path, comm, sizeof comm))
        snprintf(comm, sizeof comm, "?");
    pc__text_add(s->lines, "%s %s\n", name, comm);
}

char *pc__holders(pc__exam *e)
{
    char *recorded = e->machine->live ? NULL : pc__root_text(e->m->root, "answers/holders", 65536, false);
    if (recorded)
        return recorded;
    pc__text lines = {0};
    search s = {.e = e, .lines = &lines};
    pc__root_keep_quiet(e->m->root, true); /* a recording need not tell which files are open */
    pc__root_list(e->m->root, "proc", "", look_at_process, &s);
    pc__root_keep_quiet(e->m->root, false);
    if (lines.data)
        pc__root_note(e->m->root, "answers/holders", lines.data);
    return lines.data;
}
