/* clock.c: asking the store's server what time it is. Processes of one kernel and one time namespace have one clock. */
#include "store/clock.h"

#include "device/trace.h"
#include "store/client.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#define ROUNDS 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pc__clock the_clock;

void pc__clock_name(char name[PC__CLOCK_NAME_MAX])
{
    char boot[64] = "", space[64] = "";
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, boot, sizeof boot - 1) : 0;
    if (fd >= 0)
        close(fd);
    boot[n > 0 ? strcspn(boot, "\n") : 0] = 0;
    n = readlink("/proc/self/ns/time", space, sizeof space - 1);
    space[PC__MAX(n, 0)] = 0;
    snprintf(name, PC__CLOCK_NAME_MAX, "%s%s%s", boot, boot[0] ? " " : "", boot[0] ? space : "");
}

/* One round trip; false where it fails. */
static bool ask(pc__clock *clock, bool *same)
{
    pc__call call;
    pc__body body;
    char mine[PC__CLOCK_NAME_MAX], theirs[PC__CLOCK_NAME_MAX];
    pc__call_begin(&call, PC__WIRE_CLOCK);
    const int64_t begun = pc__now();
    bool fine = pc__call_perform(&call, "the clock", PC__CALL_NOW, &body) == PC_OK;
    const int64_t ended = pc__now();
    if (fine) {
        const int64_t time = (int64_t)pc__take_u64(&body);
        clock->job = pc__take_u64(&body);
        pc__take_text(&body, theirs, sizeof theirs);
        pc__clock_name(mine);
        clock->at = begun + (ended - begun) / 2;
        clock->error = (ended - begun) / 2;
        clock->offset = time - clock->at;
        fine = clock->known = !body.broken;
        *same = theirs[0] && strcmp(mine, theirs) == 0;
    }
    pc__call_end(&call);
    return fine;
}

void pc__clock_measure(void)
{
    pc__clock best = {.known = false};
    bool same = false;
    const pc_error before = pc__error_take();
    for (int i = 0; i < ROUNDS && !same; i++) {
        pc__clock once = {.known = false};
        if (!ask(&once, &same))
            break;
        if (!best.known || once.error < best.error)
            best = once;
    }
    if (same)
        best.offset = best.error = 0;
    pc_error_clear();
    (void)pc__error_put(&before);
    pthread_mutex_lock(&lock);
    if (best.known)
        the_clock = best;
    pthread_mutex_unlock(&lock);
}

pc__clock pc__clock_get(void)
{
    pthread_mutex_lock(&lock);
    const pc__clock clock = the_clock;
    pthread_mutex_unlock(&lock);
    return clock;
}

void pc__clock_forget(void)
{
    pthread_mutex_lock(&lock);
    the_clock = (pc__clock){.known = false};
    pthread_mutex_unlock(&lock);
}
