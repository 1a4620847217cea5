/* start.c: a start of the job: which hosts have how many ranks, which of them is the first, and what each agent is told. */
#if PC_HAVE_UV
#include "launch/parts.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The port, where nobody has it; one that the kernel chooses for 0. 0 where there is none. */
static int port_if_free(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t n = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool is_free = fd >= 0 && bind(fd, (struct sockaddr *)&address, n) == 0 &&
                         getsockname(fd, (struct sockaddr *)&address, &n) == 0;
    if (fd >= 0)
        close(fd);
    return is_free ? ntohs(address.sin_port) : 0;
}

/* A port that is free now, for masters of programs that serve one themselves, as PyTorch's do: below those that Linux gives
 * to connections, of which ranks may make some before their master listens. */
static int free_port(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now); /* launchers in containers may have one number and one network */
    for (int i = 0; i < 64; i++) {
        const int port = port_if_free(10000 + (int)(((unsigned)now.tv_nsec / 1000 + (unsigned)i) % 10000));
        if (port)
            return port;
    }
    const int port = port_if_free(0);
    return port ? port : 29500;
}

/* How many of the hosts before this one have ranks in this start. */
static int nodes_before(const pc__launch *l, int node)
{
    int n = 0;
    for (int i = 0; i < node; i++)
        n += l->nodes[i].ranks > 0;
    return n;
}

/* Where rank 0 is, for programs whose rank 0 serves something. */
static void name_master(const pc__launch *l, char host[PC__HOST_MAX])
{
    int ignored, first = 0;
    snprintf(host, PC__HOST_MAX, "127.0.0.1");
    if (l->options.nodes == 1)
        return;
    while (!l->nodes[first].ranks)
        first++;
    if (first)
        snprintf(host, PC__HOST_MAX, "%s", l->nodes[first].host);
    else
        (void)pc__env_address("--master", l->options.master, host, &ignored);
}

static void say_start(pc__launch *l, int node, int port)
{
    const pc__node *n = &l->nodes[node];
    char master[PC__HOST_MAX];
    pc__text body = {0};
    name_master(l, master);
    pc__put_u8(&body, PC__SAY_START);
    pc__put_u32(&body, (uint32_t)l->generation);
    pc__put_u32(&body, (uint32_t)l->size);
    pc__put_u32(&body, (uint32_t)n->base);
    pc__put_u32(&body, (uint32_t)nodes_before(l, node));
    pc__put_u32(&body, (uint32_t)nodes_before(l, l->options.nodes));
    pc__put_u32(&body, (uint32_t)port);
    pc__put_text(&body, master);
    pc__put_text(&body, l->start.run);
    pc__put_u32(&body, (uint32_t)n->ranks);
    for (int place = 0, left = n->ranks; left > 0; place++)
        if (!n->slots[place].out) {
            pc__put_u32(&body, (uint32_t)place);
            left--;
        }
    pc__job_say(l, node, &body);
}

void pc__job_start(pc__launch *launch)
{
    pc__launch *l = launch;
    for (int node = 0; node < l->options.nodes; node++)
        if (!l->nodes[node].ready && !l->nodes[node].out)
            return;
    l->size = 0;
    pc__job_divide(l);
    for (int node = 0; node < l->options.nodes; node++) {
        l->nodes[node].base = l->size;
        l->size += l->nodes[node].ranks;
    }
    if (pc__server_restart(l->server, l->size, l->generation) != PC_OK) {
        l->error = pc__error_take();
        pc__launch_over(l, 1);
        return;
    }
    l->phase = PC__RUNNING;
    l->has_culprit = l->culprit_known = l->culprit_told = false;
    l->culprit_said[0] = l->culprit_end[0] = 0;
    l->told_at = l->stop_due = 0;
    l->failed = -1;
    const int port = free_port();
    for (int node = 0; node < l->options.nodes; node++)
        l->nodes[node].busy = l->nodes[node].ranks > 0;
    for (int node = l->options.nodes - 1; node >= 0; node--)
        if (l->nodes[node].busy)
            say_start(l, node, port);
}
#endif
