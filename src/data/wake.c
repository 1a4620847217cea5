/* wake.c: opening a device in a thread of its own. */
#include "data/wake.h"

#include "base/base.h"

#include <paracord/memory.h>
#include <signal.h>

/* Asking for its memory opens it. The thread's error ends with the thread. */
static void *wake(void *context)
{
    const pc__wake *w = context;
    pc_memory_stats unused;
    (void)!pc_memory_query(w->device, &unused);
    return NULL;
}

/* Signals are for the program's own threads. */
void pc__wake_begin(pc__wake *w, pc_device device)
{
    *w = (pc__wake){.device = device};
    if (device.type == PC_CPU)
        return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    w->running = pthread_create(&w->thread, NULL, wake, w) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void pc__wake_end(pc__wake *w)
{
    if (w->running)
        pthread_join(w->thread, NULL);
    w->running = false;
}
