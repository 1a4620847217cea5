/* trap.cpp: the checks of the emulated device: faults, and the bounds of dynamic shared memory. */
#include "trap.h"

#include "block.h"

#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

extern uint3 threadIdx, blockIdx;

namespace emulator
{
namespace
{

constexpr size_t FENCE = 256, ALIGNED = 128;
constexpr size_t ROOM = (MOST_SHARED + FENCE + PAGE - 1) / PAGE * PAGE;
constexpr unsigned SHARED_BEGINS = 0x40000000u; // what PTX calls the address of `room`

/* In the plug-in's own data, because PTX's addresses have 32 bits: so it is near the static shared memory. */
alignas(PAGE) char room[ROOM + PAGE];
size_t opened;

constexpr int SIGNALS[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
constexpr int COUNT = sizeof SIGNALS / sizeof *SIGNALS;
struct sigaction before[COUNT];
alignas(16) char handler_stack[64 << 10];
thread_local volatile bool watching;

const char *cause_of(int number)
{
    switch (number) {
    case SIGILL:
        return "a misaligned access, or an index outside of its array";
    case SIGFPE:
        return "an integer division by zero";
    default:
        return "an access outside of its memory (shared, global, or the thread's stack)";
    }
}

void caught(int number, siginfo_t *info, void *)
{
    if (!watching) { // not the kernel's: as if nobody had watched
        for (int i = 0; i < COUNT; i++)
            if (SIGNALS[i] == number)
                sigaction(number, &before[i], nullptr);
        if (info->si_code <= 0)
            raise(number); // it was sent, and does not come by an access that will be made again
        return;
    }
    fail("%s, at address %p", cause_of(number), info->si_addr);
}

constexpr int FLAGS = SA_SIGINFO | SA_ONSTACK;

bool is_ours(const struct sigaction &action)
{
    return (action.sa_flags & FLAGS) == FLAGS && action.sa_sigaction == caught;
}

/* Who sets back what was there by signal() sets `caught` back without its flags. */
void set_handler(int i)
{
    struct sigaction action = {}, there;
    action.sa_sigaction = caught;
    action.sa_flags = FLAGS;
    if (!sigaction(SIGNALS[i], &action, &there) && there.sa_sigaction != caught)
        before[i] = there;
}

} // namespace

char *dynamic_shared = room;

bool untouched(const char *from, const char *to)
{
    return from >= to || (static_cast<unsigned char>(*from) == NOTHING &&
                          !memcmp(from, from + 1, static_cast<size_t>(to - from) - 1));
}

void fail(const char *format, ...)
{
    char what[512], line[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    int n = snprintf(line, sizeof line, "emulator: %s: block %u %u %u, thread %u %u %u: %s\n", kernel_name, blockIdx.x,
                     blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, what);
    ssize_t written = write(STDERR_FILENO, line, n < (int)sizeof line ? n : sizeof line - 1);
    (void)written;
    _exit(1);
}

/* Handlers stay when a kernel has ended, as to set them takes as long as a small kernel: until a test sets its own. */
void watch_for_traps()
{
    static thread_local bool has_stack;
    if (!has_stack) {
        stack_t stack = {};
        stack.ss_sp = handler_stack; // a thread whose own stack is full has no room for the handler
        stack.ss_size = sizeof handler_stack;
        has_stack = !sigaltstack(&stack, nullptr);
    }
    for (int i = 0; i < COUNT; i++) {
        struct sigaction now;
        if (sigaction(SIGNALS[i], nullptr, &now) || !is_ours(now))
            set_handler(i);
    }
    watching = true;
}

void stop_watching()
{
    watching = false;
}

void open_shared(size_t bytes)
{
    static bool fenced = !mprotect(room + ROOM, PAGE, PROT_NONE);
    if (!fenced)
        fail("no page behind the shared memory");
    opened = bytes;
    dynamic_shared = room + ROOM - (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
    memset(dynamic_shared - FENCE, NOTHING, static_cast<size_t>(room + ROOM - dynamic_shared) + FENCE);
}

void close_shared()
{
    if (!untouched(dynamic_shared - FENCE, dynamic_shared))
        fail("a write before its %zu bytes of dynamic shared memory", opened);
    if (!untouched(dynamic_shared + opened, room + ROOM))
        fail("a write behind its %zu bytes of dynamic shared memory", opened);
}

unsigned shared_address(const void *place)
{
    return static_cast<unsigned>(static_cast<const char *>(place) - room) + SHARED_BEGINS;
}

char *shared_at(unsigned address, int bytes, const char *what)
{
    char *place = room + static_cast<int>(address - SHARED_BEGINS);
    if (reinterpret_cast<uintptr_t>(place) % static_cast<unsigned>(bytes))
        fail("%s of %d bytes of shared memory that are not aligned", what, bytes);
    if (place >= room && place < room + sizeof room &&
        (place < dynamic_shared || place + bytes > dynamic_shared + opened))
        fail("%s outside of its %zu bytes of dynamic shared memory", what, opened);
    return place;
}

} // namespace emulator
