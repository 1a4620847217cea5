/* Call sites: the line and function of the call, the same number for the same place, whatever calls and from wherever.
 * The tests link the library statically: the first caller outside of it is the test. */
#include "base/site.h"

#include "base/base.h"
#include "support.h"

#include <pthread.h>
#include <stdio.h>

/* No tail calls: the caller's frame would be gone. */
static _Thread_local volatile pc__site sink;

#define HERE(site)                                                                                                     \
    do {                                                                                                               \
        sink = pc__site_here();                                                                                        \
        (site) = sink;                                                                                                 \
        line = __LINE__;                                                                                               \
    } while (0)
static _Thread_local int line;

static void assert_says(pc__site site, int at, const char *function)
{
    char text[PC__SITE_TEXT], want[PC__SITE_TEXT];
#if PC_HAVE_DW
    snprintf(want, sizeof want, "site.c:%d (%s)", at, function);
    assert_string_equal(pc__site_text(site, text), want);
#else
    (void)at, (void)want, (void)function;
    assert_non_null(strstr(pc__site_text(site, text), "+0x"));
#endif
}

static void a_call_has_its_line(void **state)
{
    (void)state;
    pc__site first, second;
    HERE(first);
    int first_line = line;
    HERE(second);
    assert_int_not_equal(first, 0);
    assert_int_not_equal(second, 0);
    assert_int_not_equal(first, second);
    assert_says(first, first_line, "a_call_has_its_line");
    assert_says(second, line, "a_call_has_its_line");
}

__attribute__((noinline)) static pc__site from_a_function(void)
{
    pc__site site;
    HERE(site);
    return site;
}

static inline __attribute__((always_inline)) pc__site from_an_inlined_function(void)
{
    pc__site site;
    HERE(site);
    return site;
}

static void the_function_is_the_one_that_calls(void **state)
{
    (void)state;
    pc__site site = from_a_function();
    assert_says(site, line, "from_a_function");
    site = from_an_inlined_function();
    assert_says(site, line, "from_an_inlined_function");
}

static void the_same_place_has_the_same_number(void **state)
{
    (void)state;
    pc__site first = 0;
    for (int i = 0; i < 1000; i++) {
        pc__site site = from_a_function();
        assert_true(site && (i == 0 || site == first));
        first = site;
    }
}

__attribute__((noinline)) static pc__site at_depth(int depth)
{
    pc__site site = depth ? at_depth(depth - 1) : from_a_function();
    sink = site;
    return site;
}

static void depth_does_not_matter(void **state)
{
    (void)state;
    pc__site deep = at_depth(1000), deeper = at_depth(20000);
    assert_true(deep && deep == deeper);
    assert_says(deep, line, "from_a_function");
    pc__site shallow = at_depth(3);
    assert_says(shallow, line, "from_a_function");
}

static void zero_is_unknown(void **state)
{
    (void)state;
    char text[PC__SITE_TEXT];
    assert_string_equal(pc__site_text(0, text), "unknown place");
    assert_string_equal(pc__site_text(UINT32_MAX, text), "unknown place");
    assert_string_equal(pc__site_text(32768, text), "unknown place");
}

#define THREADS 8

static void *call_much(void *context)
{
    pc__site *sites = context;
    for (int i = 0; i < 2000; i++) {
        sites[0] = from_a_function();
        sites[1] = at_depth(i % 30);
    }
    char text[PC__SITE_TEXT];
    pc__site_text(sites[0], text);
    return NULL;
}

static void any_thread_may_ask(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    pc__site sites[THREADS][2];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_much, sites[i]), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    int at = (from_a_function(), line);
    for (int i = 0; i < THREADS; i++) {
        assert_says(sites[i][0], at, "from_a_function");
        assert_int_equal(sites[i][0], sites[0][0]);
        assert_int_equal(sites[i][1], sites[0][1]);
    }
}

#if defined(__x86_64__) && !defined(__clang__)
/* The register holds what such code has put there: it is no frame pointer. */
__attribute__((noinline, optimize("omit-frame-pointer"))) static pc__site with_garbage(uintptr_t garbage)
{
    __asm__ volatile("mov %0, %%rbp" : : "r"(garbage) : "rbp");
    sink = pc__site_here(), line = __LINE__;
    return sink;
}

static void code_without_frame_pointers_may_call(void **state)
{
    (void)state;
    uintptr_t loop[64];
    for (int i = 0; i < 64; i++) /* frames that name each other, and code that is none */
        loop[i] = i % 2 ? (uintptr_t)&loop[i] : (uintptr_t)&loop[62 - i];
    uintptr_t top = (uintptr_t)__builtin_frame_address(0);
    const uintptr_t garbage[] = {0,
                                 1,
                                 UINTPTR_MAX,
                                 UINTPTR_MAX - 7,
                                 0x1000,
                                 0x7fffffffeff8,
                                 top,
                                 top + 1,
                                 top + 4096,
                                 (uintptr_t)&loop[0],
                                 (uintptr_t)&loop[40],
                                 (uintptr_t)with_garbage};
    for (int i = 0; i < PC__COUNT(garbage); i++) {
        pc__site site = with_garbage(garbage[i]);
        assert_says(site, line, "with_garbage");
    }
    for (uintptr_t at = top & ~(uintptr_t)7; at < top + 2048; at += 8) /* whatever is on the stack */
        assert_true(with_garbage(at));
}
#endif

/* A way of its own to one call for each `bits`. What is before and after the two calls differs, so that they stay two.
 */
__attribute__((noinline)) static pc__site on_the_way(unsigned bits, int left)
{
    pc__site site;
    if (left == 0)
        site = from_a_function();
    else if (bits & 1) {
        __asm__ volatile("# one way");
        site = on_the_way(bits >> 1, left - 1);
        __asm__ volatile("# back" : "+r"(site));
    } else {
        __asm__ volatile("# the other way");
        site = on_the_way(bits >> 1, left - 1);
        __asm__ volatile("# and back" : "+r"(site));
    }
    sink = site;
    return site;
}

#define WAYS (1u << 16)

/* One call for both times: two calls would be two places. */
__attribute__((noinline)) static void all_ways(pc__site *sites)
{
    for (unsigned bits = 0; bits < WAYS; bits++)
        sites[bits] = on_the_way(bits, 16);
    sink = sites[0];
}

/* The last test: it fills the table. What is in it keeps its number. */
static void a_full_table_gives_zero(void **state)
{
    (void)state;
    pc__site *sites = pc__calloc(2 * WAYS, sizeof *sites);
    assert_non_null(sites);
    for (volatile unsigned round = 0; round < 2; round++)
        all_ways(sites + round * WAYS);
    unsigned unknown = 0;
    for (unsigned i = 0; i < WAYS; i++) {
        assert_int_equal(sites[i], sites[WAYS + i]);
        unknown += sites[i] == 0;
    }
    print_message("%u of %u ways have no number\n", unknown, WAYS);
    assert_in_range(unknown, WAYS / 2, WAYS - 1000);
    assert_says(sites[0], line, "from_a_function");
    pc__free(sites);
    assert_false(pc_failed());
}

/* The package carries tests without debug information: there are no lines to find. */
static bool is_stripped(void)
{
    return PC_TEST_GOLDEN[0] != '/';
}

int main(void)
{
    if (is_stripped()) {
        print_message("base.site: passed over, stripped of debug information\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_has_its_line),
        cmocka_unit_test(the_function_is_the_one_that_calls),
        cmocka_unit_test(the_same_place_has_the_same_number),
        cmocka_unit_test(depth_does_not_matter),
        cmocka_unit_test(zero_is_unknown),
        cmocka_unit_test(any_thread_may_ask),
#if defined(__x86_64__) && !defined(__clang__)
        cmocka_unit_test(code_without_frame_pointers_may_call),
#endif
        cmocka_unit_test(a_full_table_gives_zero),
    };
    return cmocka_run_group_tests_name("base.site", tests, NULL, NULL);
}
