/* jail_filter.c: the system calls that are left to a child in jail: a program for the kernel's packet filter machine,
 * which seccomp runs before each call. */
#include "base/jail.h"

#include <stddef.h>
#include <sys/prctl.h>

#if defined(__x86_64__) || defined(__aarch64__)
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#ifdef __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#else
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* Reading and answering through what is open, memory, the end. The last lines are what malloc, the C library's clock
 * and the sanitizers' run times ask for. No call here takes a path, makes a descriptor or names a process. */
static const int allowed[] = {
    SYS_read,
    SYS_pread64,
    SYS_lseek,
    SYS_sendto,
    SYS_recvfrom,
    SYS_munmap,
    SYS_mremap,
    SYS_brk,
    SYS_madvise,
    SYS_exit,
    SYS_exit_group,
    SYS_rt_sigreturn,
    SYS_restart_syscall,
    SYS_futex,
    SYS_sched_yield,
    SYS_clock_gettime,
    SYS_gettimeofday,
    SYS_getrandom,
    SYS_getpid,
    SYS_gettid,
    SYS_rt_sigprocmask,
    SYS_sigaltstack,
    SYS_clock_nanosleep,
    SYS_nanosleep,
};

#define WORD(field) ((unsigned)offsetof(struct seccomp_data, field))
#define LOW(argument) (WORD(args) + 8 * (argument)) /* of a 64-bit argument, in little-endian order */

enum { CALLS = sizeof allowed / sizeof *allowed, LENGTH_MAX = 2 * CALLS + 24 };

typedef struct program {
    struct sock_filter steps[LENGTH_MAX];
    unsigned short length;
} program;

static void add(program *p, unsigned short code, unsigned k, unsigned char when_true, unsigned char when_false)
{
    p->steps[p->length++] = (struct sock_filter){code, when_true, when_false, k};
}

static void load(program *p, unsigned offset)
{
    add(p, BPF_LD | BPF_W | BPF_ABS, offset, 0, 0);
}

static void leave(program *p, unsigned verdict)
{
    add(p, BPF_RET | BPF_K, verdict, 0, 0);
}

/* Memory may be had, but not to be executed. */
static void allow_without_execution(program *p, int call)
{
    add(p, BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 4);
    load(p, LOW(2)); /* protection */
    add(p, BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1);
    leave(p, SECCOMP_RET_ERRNO | EPERM);
    leave(p, SECCOMP_RET_ALLOW);
}

static void write_program(program *p)
{
    load(p, WORD(arch));
    add(p, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    leave(p, SECCOMP_RET_KILL_PROCESS);
    load(p, WORD(nr));
    for (int i = 0; i < CALLS; i++) {
        add(p, BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
        leave(p, SECCOMP_RET_ALLOW);
    }
    allow_without_execution(p, SYS_mmap);
    allow_without_execution(p, SYS_mprotect);
    leave(p, SECCOMP_RET_ERRNO | EPERM);
}

bool pc__jail_filter(void)
{
    program p = {.length = 0};
    write_program(&p);
    struct sock_fprog all = {p.length, p.steps};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all, 0, 0) == 0;
}

#else

bool pc__jail_filter(void)
{
    return false; /* nobody wrote the list for this machine */
}

#endif
