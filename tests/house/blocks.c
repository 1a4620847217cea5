/* Ways to use PC_SCOPE and its kin that compilers once warned of, wrongly. Compiled by house/blocks, in C and in C++;
 * its main checks that each does what it should. */
#include <paracord.h>

static int opened; /* scopes of the program's own kind, to see that they close */

static void drop(void *object)
{
    (void)object;
    opened--;
}

static int enter(int value)
{
    opened += pc_scope_own(&opened, drop) == PC_OK;
    return value;
}

static int set_inside(int k)
{
    int r;
    PC_SCOPE {
        r = enter(k) + 1;
    }
    return r;
}

static int left_by_break(int k)
{
    int r;
    PC_SCOPE {
        r = enter(k);
        if (r > 3)
            break;
        r = enter(10);
    }
    return r;
}

static pc_status returns_inside(void)
{
    PC_SCOPE {
        return enter(1) ? PC_OK : PC_ERR_STATE;
    }
}

static int returns_on_both_ways(int k)
{
    PC_SCOPE {
        if (k)
            return enter(k);
        else
            return 3;
    }
}

static int left_by_goto(int k)
{
    int r;
    PC_SCOPE {
        r = enter(k);
        if (r == 7)
            goto done;
        r = enter(0);
    }
done:
    return r;
}

static int continues(int k)
{
    int turns = 0;
    for (int i = 0; i < k; i++)
        PC_SCOPE {
            turns++;
            if (enter(i) % 2)
                continue;
            turns += 10;
        }
    return turns;
}

static int set_in_a_loop(int k)
{
    int sum = 0;
    while (k-- > 0) {
        int one;
        PC_SCOPE {
            one = enter(k);
            if (one == 2)
                break;
        }
        sum += one;
    }
    return sum;
}

static int without_braces(int k)
{
    if (k)
        PC_SCOPE {
            k = enter(k);
        }
    return k;
}

static int beside_else(int k)
{
    int r;
    if (k)
        PC_SCOPE {
            r = enter(k);
        }
    else
        r = 5;
    return r;
}

static int in_a_switch(int k)
{
    int r;
    switch (k) {
    case 1:
        PC_SCOPE {
            r = enter(8);
        }
        break;
    default:
        r = 4;
    }
    return r;
}

/* One line, as far as names go. */
#define BOTH(r, a, b)                                                                                                  \
    PC_SCOPE {                                                                                                         \
        r = enter(a);                                                                                                  \
    }                                                                                                                  \
    PC_SCOPE {                                                                                                         \
        r += enter(b);                                                                                                 \
    }

static int several_on_a_line(void)
{
    int r;
    BOTH(r, 1, 1)
    PC_SCOPE
        PC_NO_GRAD {
            r += enter(1);
        }
    return r;
}

static int one_in_another(void)
{
    const float *from;
    static const float numbers[] = {1, 2};
    PC_SCOPE {
        PC_SCOPE {
            from = numbers + enter(1);
        }
        return (int)*from;
    }
}

static bool without_gradients(void)
{
    bool records;
    PC_NO_GRAD {
        records = pc_grad_enabled();
    }
    return records || !pc_grad_enabled();
}

static pc_dtype casting(void)
{
    PC_AUTOCAST(PC_BF16) {
        return pc_autocast_dtype();
    }
}

static pc_stream *on_its_stream(void)
{
    PC_WITH_STREAM(pc_stream_current(PC_DEVICE_CPU)) {
        return pc_stream_current(PC_DEVICE_CPU);
    }
}

static int in_a_range(void)
{
    int r;
    PC_TRACE_RANGE("range") {
        r = 6;
    }
    return r;
}

int main(void)
{
    const bool right = set_inside(1) == 2 && left_by_break(4) == 4 && left_by_break(1) == 10 &&
                       returns_inside() == PC_OK && returns_on_both_ways(2) == 2 && returns_on_both_ways(0) == 3 &&
                       left_by_goto(7) == 7 && left_by_goto(1) == 0 && continues(4) == 24 && set_in_a_loop(4) == 6 &&
                       without_braces(2) == 2 && beside_else(1) == 1 && beside_else(0) == 5 && in_a_switch(1) == 8 &&
                       in_a_switch(2) == 4 && several_on_a_line() == 3 && one_in_another() == 2 &&
                       !without_gradients() && casting() == PC_BF16 && pc_autocast_dtype() == PC_F32 &&
                       on_its_stream() && in_a_range() == 6;
    if (!right || opened || pc_scope_active() || !pc_grad_enabled())
        printf("a block was left wrongly (%d objects are left)\n", opened);
    return !right || opened || pc_scope_active();
}
