/* Growing text, and JSON in it: quoting, and numbers that read back. */
#include "support.h"

#include "base/base.h"

#include <locale.h>
#include <math.h>
#include <paracord/memory.h>
#include <stdlib.h>

static void texts_grow(void **state)
{
    (void)state;
    pc__text text = {0};
    size_t length = 0;
    for (int i = 0; i < 500; i++) {
        pc__text_add(&text, "%d,%s;", i, "");
        length += (size_t)snprintf(NULL, 0, "%d,;", i);
        assert_int_equal(text.length, length);
        assert_true(text.capacity > length);
        assert_int_equal(strlen(text.data), length);
    }
    pc__text_append(&text, "a\0b", 3);
    assert_int_equal(text.length, length + 3);
    assert_memory_equal(text.data + length, "a\0b", 4);
    pc__text_free(&text);
    assert_null(text.data);
    pc__text_free(&text); /* again is fine */
    assert_int_equal(pc_allocator_live(), 0);
}

static int allowed;

static void *some_alloc(void *context, size_t bytes, size_t alignment)
{
    (void)context, (void)alignment;
    return allowed-- > 0 ? malloc(bytes) : NULL;
}

static void *some_resize(void *context, void *block, size_t bytes)
{
    (void)context;
    return allowed-- > 0 ? realloc(block, bytes) : NULL;
}

static void some_free(void *context, void *block)
{
    (void)context;
    free(block);
}

/* After a failure nothing is added any more, and what was there stays whole. */
static void a_failed_text_stays_failed(void **state)
{
    (void)state;
    assert_ok(pc_allocator_set(&(pc_allocator){some_alloc, some_resize, some_free, NULL}));
    allowed = 2;
    pc__text text = {0};
    for (int i = 0; i < 200; i++)
        pc__text_add(&text, "%04d", i);
    assert_true(text.failed);
    assert_int_equal(pc_error_last()->status, PC_ERR_MEMORY);
    size_t length = text.length;
    allowed = 100;
    pc__text_append(&text, "x", 1);
    pc__json_string(&text, "x");
    assert_int_equal(text.length, length);
    assert_int_equal(strlen(text.data), length);
    pc__text_free(&text);
    pc_error_clear();
    assert_ok(pc_allocator_set(NULL));
}

static void strings_are_quoted(void **state)
{
    (void)state;
    pc__text text = {0};
    pc__json_string(&text, "a\"b\\c\n\x01\x7f\xc3\xa9/");
    assert_string_equal(text.data, "\"a\\\"b\\\\c\\u000a\\u0001\\u007f\xc3\xa9/\"");
    pc__text_free(&text);
}

static void assert_number(double number, const char *want)
{
    pc__text text = {0};
    pc__json_number(&text, number);
    assert_string_equal(text.data, want);
    if (isfinite(number))
        assert_true(strtod(want, NULL) == number);
    pc__text_free(&text);
}

static void numbers_read_back(void **state)
{
    (void)state;
    assert_number(0, "0.0");
    assert_number(-3, "-3.0");
    assert_number(0.1, "0.1");
    assert_number(1e-7, "1e-07");
    assert_number(1e300, "1e+300");
    assert_number(0.1 + 0.2, "0.30000000000000004");
    assert_number(5e-324, "5e-324");
    assert_number(NAN, "null");
    assert_number(-INFINITY, "null");
    uint64_t seed = 1;
    for (int i = 0; i < 2000; i++) {
        double number = ldexp(pc_uniform(seed, 0, (uint64_t)i) - 0.5, i % 200 - 100);
        pc__text text = {0};
        pc__json_number(&text, number);
        assert_true(strtod(text.data, NULL) == number);
        pc__text_free(&text);
    }
}

/* A program that runs in German writes points all the same. */
static void numbers_have_points(void **state)
{
    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "de_DE.utf8"))
        skip();
    pc__text text = {0};
    pc__json_number(&text, 2.5);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(text.data, "2.5");
    pc__text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_grow),          cmocka_unit_test(a_failed_text_stays_failed),
        cmocka_unit_test(strings_are_quoted),  cmocka_unit_test(numbers_read_back),
        cmocka_unit_test(numbers_have_points),
    };
    return cmocka_run_group_tests_name("base.text", tests, NULL, NULL);
}
