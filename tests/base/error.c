/* Errors: the first one stays, messages are one line, scopes own. */
#include "base/base.h"
#include "support.h"

static void the_first_error_stays(void **state)
{
    (void)state;
    pc_error_clear();
    assert_int_equal(pc__fail(PC_ERR_SHAPE, "first %d\nline", 1), PC_ERR_SHAPE);
    assert_int_equal(pc__fail(PC_ERR_DTYPE, "second"), PC_ERR_DTYPE);
    assert_string_equal(pc_error_last()->message, "first 1 line");
    assert_int_equal(pc_error_last()->suppressed, 1);
    pc_error_clear();
    assert_false(pc_failed());
}

static void every_status_has_words(void **state)
{
    (void)state;
    for (int s = 0; s < PC_STATUS_COUNT; s++)
        assert_true(strlen(pc_status_name(s)) > 1 && strlen(pc_status_text(s)) > 5);
    assert_string_equal(pc_status_name((pc_status)999), "unknown");
}

static int dropped;

static void drop(void *object)
{
    dropped += *(int *)object;
}

static int leave_early(int *object)
{
    PC_SCOPE {
        assert_ok(pc_scope_own(object, drop));
        return 1;
    }
    return 0;
}

static void scopes_own_and_release(void **state)
{
    (void)state;
    int one = 1, two = 2, four = 4;
    dropped = 0;
    PC_SCOPE {
        assert_ok(pc_scope_own(&one, drop));
        PC_SCOPE {
            assert_ok(pc_scope_own(&two, drop));
            assert_ok(pc_scope_own(&four, drop));
            assert_ok(pc_scope_release(&two));
        }
        assert_int_equal(dropped, 4);
    }
    assert_int_equal(dropped, 7);
    assert_int_equal(leave_early(&one), 1);
    assert_int_equal(dropped, 8);
    PC_SCOPE {
        assert_ok(pc_scope_own(&one, drop));
        assert_ok(pc_scope_release(&one));
    }
    assert_int_equal(dropped, 8);
    assert_false(pc_scope_active());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_error_stays),
        cmocka_unit_test(every_status_has_words),
        cmocka_unit_test(scopes_own_and_release),
    };
    return cmocka_run_group_tests_name("base.error", tests, NULL, NULL);
}
