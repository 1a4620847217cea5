/* nodes.h: paracord launch on two hosts, which are two launchers on one, or two network namespaces with a cable between. */
#ifndef PC_TEST_NODES_H
#define PC_TEST_NODES_H

#include "launch.h"
#include "port.h"

/* In the lines below: "node R OPTIONS -- COMMAND" is the launcher of host R, in its namespace where there is one; "seen
 * WORDS FILE" waits for the words. */
#define NODE                                                                                                           \
    "node() { r=$1; shift; ${IN:+ip netns exec $IN$r} timeout 30 $P launch --nodes 2 --node-rank $r --master $M "      \
    "\"$@\"; }; "                                                                                                      \
    "seen() { i=0; until grep -q \"$1\" $2 2>/dev/null; do i=$((i + 1)); test $i -lt 2000 || break; sleep 0.01; "      \
    "done; }; "

static inline void fresh(void)
{
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%d", free_port());
    setenv("M", address, 1);
    setenv("PARACORD_TOKEN", "a secret of two hosts", 1);
}

/* Both launchers' output and exit statuses: what 0 prints is in `a`, what 1 prints in `b`. */
static inline void both(const char *line)
{
    char whole[2048];
    fresh();
    snprintf(whole, sizeof whole, NODE "%s; cat a b; rm -f a b", line);
    assert_status(whole, 0);
}

/* Two hosts, A0 and A1, with a cable between them. */
static inline int lay_cable(void **state)
{
    char names[32];
    (void)state;
    snprintf(names, sizeof names, "pc%d-", (int)getpid() % 100000);
    setenv("IN", names, 1);
    (void)shell(output, "exec 2>&1; ip netns add ${IN}0 && ip netns add ${IN}1 && "
                        "ip link add v0 netns ${IN}0 type veth peer name v1 netns ${IN}1 && for i in 0 1; do "
                        "ip -n $IN$i addr add 10.231.77.1$i/24 dev v$i && ip -n $IN$i link set v$i up && ip -n $IN$i "
                        "link set lo up; done");
    return 0; /* where that is not allowed the test says so */
}

/* The lines that follow are for these two; skipped where there can be none. */
static inline void use_cable(void)
{
    fresh();
    if (shell(output, "ip netns exec ${IN}1 true 2>&1") != 0) {
        print_message("no network namespaces here: %s\n", output);
        skip();
    }
    setenv("M", "10.231.77.10:29500", 1);
}

static inline int take_away(void **state)
{
    (void)state;
    (void)shell(output, "ip netns del ${IN}0; ip netns del ${IN}1");
    unsetenv("IN");
    unsetenv("PARACORD_BEAT_LIMIT");
    return 0;
}

#endif
