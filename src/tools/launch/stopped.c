/* stopped.c: ranks that somebody has stopped (SIGSTOP) and left so. The store sees that in ranks that have joined and not left;
 * before and after that, and in programs that never do, nobody would. */
#if PC_HAVE_UV
#include "launch/parts.h"

#include <signal.h>

#define LOOK_MS 500

static bool is_stopped(pid_t process)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    if (file)
        fclose(file);
    return state == 'T'; /* 't' is in a debugger */
}

void pc__stopped_end(pc__launch *launch, uint64_t now)
{
    pc__launch *l = launch;
    if (l->beat_limit <= 0 || now < l->looked_at + LOOK_MS)
        return;
    l->looked_at = now;
    for (int i = 0; i < l->options.ranks; i++) {
        pc__process *p = &l->processes[i];
        if (!p->runs || !is_stopped(p->id))
            p->stopped_since = 0;
        else if (!p->stopped_since)
            p->stopped_since = now;
        else if (now >
                 p->stopped_since + (uint64_t)(1000 * l->beat_limit) + 2 * LOOK_MS) { /* behind the store's word */
            p->hung = true;
            kill(-p->id, SIGKILL);
        }
    }
}
#endif
