/* child.c: in the child: opening devices and copying from each to each other. */
#include "peers/parts.h"

#include "base/child.h"

#include <paracord/ops.h>
#include <paracord/stream.h>
#include <paracord/tensor.h>

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS 3 /* what is wrong now and then */

void pc__peers_say(int socket, const char *format, ...)
{
    char line[640];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    n = PC__MIN(n, (int)sizeof line - 2);
    for (int i = 0; i < n; i++)
        line[i] = (unsigned char)line[i] < ' ' ? ' ' : line[i];
    line[n++] = '\n';
    for (int at = 0; at < n;) {
        const ssize_t sent = send(socket, line + at, (size_t)(n - at), MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            _exit(0); /* nobody listens any more */
        at += sent > 0 ? (int)sent : 0;
    }
}

char *pc__peers_compare(const int32_t *arrived, const int32_t *sent, char text[96])
{
    const unsigned char *a = (const unsigned char *)arrived, *b = (const unsigned char *)sent;
    const int64_t bytes = (int64_t)PC__PEERS_COUNT * 4;
    int64_t wrong = 0, first = 0;
    snprintf(text, 96, "intact");
    if (!memcmp(a, b, (size_t)bytes))
        return text;
    for (int64_t i = bytes - 1; i >= 0; i--)
        if (a[i] != b[i]) {
            wrong++;
            first = i;
        }
    snprintf(text, 96, "corrupt %lld of %lld bytes, the first at %lld", (long long)wrong, (long long)bytes,
             (long long)first);
    return text;
}

static void open_device(int socket, pc_device device)
{
    char name[PC_DEVICE_NAME_MAX];
    pc__peers_say(socket, "slow open %s", pc_device_name(device, name));
    if (pc_device_synchronize(device) != PC_OK)
        pc_error_clear(); /* whoever uses it says so */
}

/* The target is full of something else: what does not arrive shows. */
static pc_status copy_once(pc_device from, pc_device to, int round, int32_t *sent, int32_t *arrived, char text[96])
{
    const size_t bytes = (size_t)PC__PEERS_COUNT * 4;
    for (int64_t i = 0; i < PC__PEERS_COUNT; i++)
        sent[i] = pc__peers_element(i, round);
    pc_status status = PC_ERR_STATE;
    PC_SCOPE {
        pc_tensor *a = pc_from_data(sent, PC_SHAPE(PC__PEERS_COUNT), PC_I32, from);
        pc_tensor *b = pc_to(a, to, PC_I32, true);
        status = b ? pc_read(b, arrived, bytes) : pc_error_last()->status;
    }
    if (status == PC_OK)
        pc__peers_compare(arrived, sent, text);
    return status;
}

static void try_pair(int socket, pc_device from, pc_device to, int32_t *sent, int32_t *arrived)
{
    char a[PC_DEVICE_NAME_MAX], b[PC_DEVICE_NAME_MAX], text[96] = "";
    pc_device_name(from, a);
    pc_device_name(to, b);
    pc__peers_say(socket, "begin %s %s", a, b);
    for (int round = 0; round < ROUNDS && (!round || !strcmp(text, "intact")); round++)
        if (copy_once(from, to, round, sent, arrived, text) != PC_OK) {
            pc__peers_say(socket, "%s %s failed %s", a, b, pc_error_last()->message);
            pc_error_clear();
            return;
        }
    pc__peers_say(socket, "%s %s %s", a, b, text);
}

void pc__peers_work_on(const pc__peers_work *work)
{
    int socket = work->socket;
    char why[512] = "";
    pc__child_forget_files(&socket, 1);
    socket = 3; /* where that leaves it */
    if (work->without_p2p)
        setenv("NCCL_P2P_DISABLE", "1", 1);
    pc__peers_say(socket, "slow open %s", work->type == PC_SIM ? "sim" : "cuda");
    const int there = pc_device_count(work->type, why, sizeof why), count = PC__MIN(there, PC_PEERS_MAX);
    pc__peers_say(socket, "devices %d %s", there, why);
    for (int i = 0; i < count && count > 1; i++)
        open_device(socket, (pc_device){(int16_t)work->type, (int16_t)i});
    if (work->pair < 0)
        pc__peers_reduce(socket, work->type, count, work->without_p2p ? "all-reduce-without-p2p" : "all-reduce");
    const size_t bytes = (size_t)PC__PEERS_COUNT * 4;
    int32_t *sent = pc__alloc(bytes), *arrived = pc__alloc(bytes);
    for (int k = work->pair; k >= 0 && k < count * count && sent && arrived; k++)
        if (k / count != k % count)
            try_pair(socket, (pc_device){(int16_t)work->type, (int16_t)(k / count)},
                     (pc_device){(int16_t)work->type, (int16_t)(k % count)}, sent, arrived);
    pc__peers_say(socket, "done");
    _exit(0);
}
