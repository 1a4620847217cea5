/* orphans.c: processes that ranks have started and left behind. The launcher is their reaper: whose parent ends becomes its
 * child, whatever process group it has put itself into. */
#if PC_HAVE_UV
#include "launch/parts.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static bool is_rank(const pc__launch *launch, pid_t process)
{
    for (int i = 0; i < launch->options.ranks; i++)
        if (launch->processes[i].runs && launch->processes[i].id == process)
            return true;
    return false;
}

int pc__orphans_signal(pc__launch *launch, int number)
{
    char path[64];
    int count = 0, process;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)gettid());
    FILE *list = fopen(path, "re");
    while (list && fscanf(list, "%d", &process) == 1)
        if (!is_rank(launch, process)) {
            count++;
            if (number) {
                kill(process, number);
                kill(process, SIGCONT);
            }
        }
    if (list)
        fclose(list);
    return count;
}
#endif
