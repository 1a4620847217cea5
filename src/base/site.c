/* site.c: the numbers of call sites: a walk up the frame pointers, and a table of the lists of return addresses that it
 * met. The table lies in the library's zeroed memory, which costs nothing until it is used: no allocation can fail, and
 * nothing is left to free.
 *
 * As a shared library Paracord has a range of code to itself, and libparacord-tools, which calls it for the program,
 * has another: one address says it all, the first outside. (Kernels may be in a third one, and have no frame pointers:
 * an error in one gets its place behind it, by pc__error_here.) Linked statically its code lies among the program's,
 * and only debug information can tell them apart: the list holds the whole way up, and the same place reached on two
 * ways has two numbers. */
#include "base/site.h"

#include "base/base.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>

#define DEEPEST 1000 /* frames of a shared library's own on the way out: modules may lie deep in modules */
#define SLOTS (1u << 15)
#define PROBES 64
#define WORDS (1u << 19)

/* What a frame pointer points to on 64-bit x86 and Arm. */
typedef struct frame {
    uintptr_t previous, back;
} frame;

/* Frames lie where the sanitizers see red zones, other threads' variables and, in what a program without frame pointers
 * left in the register, anything that is on the stack. */
#define UNWATCHED __attribute__((no_sanitize("address", "thread", "undefined")))

/* The loaded object that this code is in: its code, and whether it is the shared library. Every thread that comes first
 * finds the same; `code_end` is written last. */
static atomic_uintptr_t code_start, code_end;
static atomic_uintptr_t tools_start, tools_size; /* of libparacord-tools, where it is loaded by then */
static atomic_bool is_shared;

/* A slot: the upper half of the list's hash, and where the list is in `words`; 0: free. A site is its slot's number
 * plus 1. A list in `words`: how many, then the addresses. It never changes once a slot names it. */
static atomic_uint_least64_t slots[SLOTS];
static uintptr_t words[WORDS];
static atomic_uint words_used = 1;

static bool is_called(const char *path, const char *beginning)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return strncmp(name, beginning, strlen(beginning)) == 0;
}

static bool is_library_name(const char *path)
{
    return is_called(path, "libparacord.") || is_called(path, "libparacord-");
}

bool pc__site_is_outside(pc__site site)
{
    const uintptr_t *list;
    Dl_info object;
    const int n = pc__site_addresses(site, &list);
    return n > 1 ||
           (n == 1 && !(dladdr((void *)list[0], &object) && object.dli_fname && is_library_name(object.dli_fname)));
}

static int look_at_object(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    uintptr_t here = (uintptr_t)pc__site_here;
    bool tools = is_called(object->dlpi_name, "libparacord-tools.");
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + part->p_vaddr;
        if (tools && part->p_type == PT_LOAD && (part->p_flags & PF_X)) {
            atomic_store_explicit(&tools_start, start, memory_order_relaxed);
            atomic_store_explicit(&tools_size, part->p_memsz, memory_order_relaxed);
        }
        if (part->p_type != PT_LOAD || here < start || here - start >= part->p_memsz)
            continue;
        atomic_store_explicit(&is_shared, is_library_name(object->dlpi_name), memory_order_relaxed);
        atomic_store_explicit(&code_start, start, memory_order_relaxed);
        *(uintptr_t *)context = start + part->p_memsz;
    }
    return 0;
}

/* The end of the object's code, after which the others are known too. */
static uintptr_t find_code(void)
{
    uintptr_t end = atomic_load_explicit(&code_end, memory_order_acquire);
    if (end)
        return end;
    end = 1; /* found nowhere: no address is inside */
    dl_iterate_phdr(look_at_object, &end);
    atomic_store_explicit(&code_end, end, memory_order_release);
    return end;
}

typedef struct stack {
    uintptr_t low, high;
} stack;

static stack find_stack(void)
{
    stack found = {1, 1};
    pthread_attr_t attributes;
    void *low;
    size_t bytes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return found;
    if (pthread_attr_getstack(&attributes, &low, &bytes) == 0)
        found = (stack){(uintptr_t)low, (uintptr_t)low + bytes};
    pthread_attr_destroy(&attributes);
    return found;
}

/* Up to where frames of this thread may lie; 0 when `at` is not on its stack (the program has stacks of its own). */
static uintptr_t stack_end(uintptr_t at)
{
    static _Thread_local stack own;
    if (!own.high)
        own = find_stack();
    return at >= own.low && at < own.high ? own.high - sizeof(frame) : 0;
}

/* Arm may sign return addresses: take the signature off (a no-op elsewhere, also on older processors). */
static inline uintptr_t plain_address(uintptr_t address)
{
#ifdef __aarch64__
    register uintptr_t x30 __asm__("x30") = address;
    __asm__("hint #7" : "+r"(x30));
    address = x30;
#endif
    return address;
}

/* The next frame up. Garbage may be in its place, but nothing outside of the stack is ever read. */
static inline UNWATCHED uintptr_t up(uintptr_t at, uintptr_t end)
{
    uintptr_t next = ((const frame *)at)->previous;
    return next > at && next <= end && next % sizeof(void *) == 0 ? next : 0;
}

/* Every frame on the way is the libraries' and has its frame pointer: the stack's end need not be known. */
static UNWATCHED int first_outside(uintptr_t at, uintptr_t start, uintptr_t end, uintptr_t *list)
{
    const uintptr_t tools = atomic_load_explicit(&tools_start, memory_order_relaxed);
    const uintptr_t size = atomic_load_explicit(&tools_size, memory_order_relaxed);
    for (int i = 0; at && i < DEEPEST; i++, at = up(at, UINTPTR_MAX)) {
        uintptr_t back = plain_address(((const frame *)at)->back);
        if (back - start >= end - start && back - tools >= size) {
            list[0] = back;
            return 1;
        }
    }
    return 0;
}

/* What is outside is left out: it is the system's, or what a program without frame pointers had in the register, which
 * would be a new list each time. */
static UNWATCHED int all_inside(uintptr_t at, uintptr_t start, uintptr_t end, uintptr_t *list)
{
    int n = 0;
    for (uintptr_t high = stack_end(at); at && n < PC__SITE_MOST; at = up(at, high)) {
        uintptr_t back = plain_address(((const frame *)at)->back);
        if (back - start >= end - start)
            break;
        list[n++] = back;
    }
    return n;
}

/* Copy a list into `words`: where it is then, or 0 when there is no room. */
static uint32_t keep(const uintptr_t *list, int n)
{
    if (atomic_load_explicit(&words_used, memory_order_relaxed) > WORDS - (PC__SITE_MOST + 1))
        return 0;
    uint32_t at = atomic_fetch_add_explicit(&words_used, (uint32_t)n + 1, memory_order_relaxed);
    if (at > WORDS - (PC__SITE_MOST + 1)) /* other threads took the rest */
        return 0;
    words[at] = (uintptr_t)n;
    memcpy(words + at + 1, list, (size_t)n * sizeof *list);
    return at;
}

static inline bool is_at(uint32_t at, const uintptr_t *list, int n)
{
    if (words[at] != (uintptr_t)n)
        return false;
    for (int i = 0; i < n; i++)
        if (words[at + 1 + (uint32_t)i] != list[i])
            return false;
    return true;
}

static pc__site number(const uintptr_t *list, int n)
{
    uint64_t hash = (uint64_t)n;
    for (int i = 0; i < n; i++)
        hash = (hash ^ list[i]) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
    uint64_t tag = hash >> 32 << 32;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < PROBES;) {
        uint32_t place = (uint32_t)(hash + i) % SLOTS;
        uint64_t there = atomic_load_explicit(&slots[place], memory_order_acquire);
        if (!there) {
            if (!kept && !(kept = keep(list, n)))
                return 0;
            if (atomic_compare_exchange_strong_explicit(&slots[place], &there, tag | kept, memory_order_release,
                                                        memory_order_acquire))
                return place + 1;
        }
        if (there >> 32 << 32 == tag && is_at((uint32_t)there, list, n))
            return place + 1;
        i++;
    }
    return 0;
}

__attribute__((noinline)) UNWATCHED pc__site pc__site_here(void)
{
    uintptr_t list[PC__SITE_MOST], end = find_code(), at = (uintptr_t)__builtin_frame_address(0);
    uintptr_t start = atomic_load_explicit(&code_start, memory_order_relaxed);
    int n = atomic_load_explicit(&is_shared, memory_order_relaxed) ? first_outside(at, start, end, list)
                                                                   : all_inside(at, start, end, list);
    return n ? number(list, n) : 0;
}

int pc__site_addresses(pc__site site, const uintptr_t **list)
{
    uint64_t there = site && site <= SLOTS ? atomic_load_explicit(&slots[site - 1], memory_order_acquire) : 0;
    if (!there)
        return 0;
    *list = words + (uint32_t)there + 1;
    return (int)words[(uint32_t)there];
}
