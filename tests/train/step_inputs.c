/* What a recorded step works with is what its function would: not work of the host or of another device that was done while
 * it was recorded, and not tensors that the program has let go of since. */
#include "same.h"
#include "step_job.h"

#include <math.h>

static pc_status maps_memory(job *j, pc_tensor **x, pc_tensor **labels)
{
    (void)labels;
    float *values = pc_map(j->pinned, PC_MAP_WRITE);
    if (!values)
        return pc_error_last()->status;
    for (int i = 0; i < BATCH * FEATURES; i++)
        values[i] = (float)((i * 37 + j->number * 11) % 101) / 101;
    *x = pc_unmap(j->pinned) == PC_OK ? pc_to(j->pinned, test_device(), PC_F32, true) : NULL;
    return *x ? PC_OK : pc_error_last()->status;
}

static pc_status reads_a_number(job *j, pc_tensor **x, pc_tensor **labels)
{
    (void)labels;
    const double number = pc_item(pc_slice(pc_reshape(j->drawn, PC_SHAPE(-1)), 0, 0, 1, 1));
    *x = pc_mul_scalar(*x, number);
    return *x && !isnan(number) ? PC_OK : pc_error_last()->status;
}

static pc_status takes_data(job *j, pc_tensor **x, pc_tensor **labels)
{
    (void)labels;
    float values[BATCH * FEATURES];
    for (int i = 0; i < BATCH * FEATURES; i++)
        values[i] = (float)((i * 37 + j->number * 11) % 101) / 101;
    pc_tensor *t = pc_from_data(values, PC_SHAPE(BATCH, FEATURES), PC_F32, PC_DEVICE_CPU);
    *x = t && pc_copy(j->pinned, t) == PC_OK ? pc_to(j->pinned, test_device(), PC_F32, true) : NULL;
    return *x ? PC_OK : pc_error_last()->status;
}

static pc_status copies_beside(job *j, pc_tensor **x, pc_tensor **labels)
{
    (void)labels;
    pc_tensor *half = pc_mul_scalar(j->drawn, 0.5);
    *x = half && pc_copy(j->pinned, half) == PC_OK ? pc_to(j->pinned, test_device(), PC_F32, true) : NULL;
    return *x ? PC_OK : pc_error_last()->status;
}

static void add_one(void *number)
{
    ++*(float *)number;
}

static float called;

static pc_status calls_a_function(job *j, pc_tensor **x, pc_tensor **labels)
{
    (void)j, (void)x, (void)labels;
    return pc_stream_call(pc_stream_current(PC_DEVICE_CPU), add_one, &called);
}

/* Beside the step's device, in memory of the host or on another device, everything would be done while recording alone. */
static void compare_beside(pc_status (*first)(job *j, pc_tensor **x, pc_tensor **labels), pc_device beside,
                           const char *why)
{
    job plain, recorded;
    assert_true(begin(&plain, true, false) && begin(&recorded, true, false));
    for (int k = 0; k < 2; k++) {
        job *j = k ? &recorded : &plain;
        j->first = first;
        j->pinned = pc_empty_pinned(PC_SHAPE(BATCH, FEATURES), PC_F32, test_device());
        j->drawn = pc_zeros(PC_SHAPE(BATCH, FEATURES), PC_F32, beside);
        assert_true(j->pinned && j->drawn);
    }
    pc_step *step = pc_step_new(learn, &recorded, recorded.optimizer);
    for (int i = 0; i < 6; i++) {
        plain.number = recorded.number = i;
        assert_ok(pc_fill(plain.drawn, 0.25 * i));
        assert_ok(pc_fill(recorded.drawn, 0.25 * i));
        assert_ok(learn(&plain));
        assert_ok(pc_step_run(step));
        assert_same(plain.optimizer, recorded.optimizer);
        assert_same_bits(plain.loss, recorded.loss);
    }
    assert_non_null(pc_step_why(step));
    assert_non_null(strstr(pc_step_why(step), why));
    pc_step_free(step);
    end(&plain);
    end(&recorded);
}

static void work_beside_is_not_recorded(void **state)
{
    (void)state;
    compare_beside(maps_memory, PC_DEVICE_CPU, "pc_map");
    compare_beside(reads_a_number, PC_DEVICE_CPU, "pc_item");
    compare_beside(takes_data, PC_DEVICE_CPU, "pc_from_data");
    if (test_device().type == PC_CPU)
        return; /* the rest is the step's own there */
    compare_beside(copies_beside, PC_DEVICE_CPU, "work on cpu");
    compare_beside(calls_a_function, PC_DEVICE_CPU, "pc_stream_call");
    assert_true(called == 12); /* none of the refused ones */
    if (test_device().type == PC_SIM)
        compare_beside(copies_beside, (pc_device){PC_SIM, 1}, "work on sim:1");
}

enum { BATCHES = 5 };

/* Batch i, which nobody but these jobs has after that. */
static void give_batch(job *jobs, int n, int i, const pc_tensor *data)
{
    PC_SCOPE {
        pc_tensor *x =
            data ? pc_slice((pc_tensor *)(uintptr_t)data, 0, BATCH * i, BATCH * (i + 1), 1) : pictures(i, BATCH);
        assert_not_null_ok(x);
        for (int k = 0; k < n; k++) {
            pc_tensor_free(jobs[k].x[0]);
            jobs[k].x[0] = pc_tensor_retain(x);
        }
    }
}

/* New tensors in the place of `x`, of memory of their own or in a set of data that stays: recordings would go on with
 * those that they were made of. So many steps read each one, so often; then it is gone. */
static void compare_new_tensors(bool views, int steps, int runs_each, const char *why)
{
    job plain[2], recorded[2];
    pc_step *step[2];
    pc_tensor *data = NULL;
    pc_generator generator[2] = {{3, 0}, {4, 0}};
    for (int k = 0; k < steps; k++) {
        assert_true(begin(&plain[k], true, true) && begin(&recorded[k], true, true));
        step[k] = pc_step_new(learn, &recorded[k], recorded[k].optimizer);
    }
    PC_SCOPE {
        pc_tensor *all[BATCHES];
        for (int i = 0; i < BATCHES; i++)
            all[i] = pictures(i, BATCH);
        data = views ? pc_keep(pc_cat(all, BATCHES, 0)) : NULL;
    }
    for (int i = 0; i < BATCHES * runs_each; i++) {
        if (i % runs_each == 0) {
            give_batch(plain, steps, i / runs_each, data);
            give_batch(recorded, steps, i / runs_each, data);
        }
        for (int k = 0; k < steps; k++) {
            pc_generator_set(generator[k]);
            assert_ok(learn(&plain[k]));
            pc_generator_set(generator[k]);
            assert_ok(pc_step_run(step[k]));
            generator[k] = pc_generator_get();
            assert_same(plain[k].optimizer, recorded[k].optimizer);
            assert_same_bits(plain[k].loss, recorded[k].loss);
        }
    }
    for (int k = 0; k < steps; k++) {
        if (why)
            assert_non_null(strstr(pc_step_why(step[k]), why));
        else
            assert_null(pc_step_why(step[k]));
        assert_int_equal(recorded[k].calls, BATCHES);
        pc_step_free(step[k]);
        end(&plain[k]);
        end(&recorded[k]);
    }
    pc_tensor_free(data);
}

static void new_tensors_are_recorded_anew(void **state)
{
    (void)state;
    for (int steps = 1; steps <= 2; steps++)
        for (int views = 0; views < 2; views++) {
            compare_new_tensors(views, steps, 1, "works with new tensors each time");
            compare_new_tensors(views, steps, 3, NULL);
        }
}

/* The tensor that takes the loss, all of which a step writes, is another one each time, or every third. */
static void compare_new_places(bool pinned, int runs_each, const char *why)
{
    job plain, recorded;
    assert_true(begin(&plain, true, false) && begin(&recorded, true, false));
    pc_step *step = pc_step_new(learn, &recorded, recorded.optimizer);
    for (int i = 0; i < BATCHES * runs_each; i++) {
        for (int k = 0; k < 2 && i % runs_each == 0; k++) {
            job *j = k ? &recorded : &plain;
            pc_tensor_free(j->loss);
            j->loss = pinned ? pc_empty_pinned(PC_SHAPE_SCALAR, PC_F32, test_device())
                             : pc_zeros(PC_SHAPE_SCALAR, PC_F32, test_device());
            assert_ok(pc_fill(j->loss, -1));
        }
        assert_ok(learn(&plain));
        assert_ok(pc_step_run(step));
        assert_same(plain.optimizer, recorded.optimizer);
        assert_same_bits(plain.loss, recorded.loss);
    }
    if (why)
        assert_non_null(strstr(pc_step_why(step), why));
    else
        assert_null(pc_step_why(step));
    pc_step_free(step);
    end(&plain);
    end(&recorded);
}

static void new_tensors_are_written(void **state)
{
    (void)state;
    for (int pinned = 0; pinned < 2; pinned++) {
        compare_new_places(pinned, 1, "works with new tensors each time");
        compare_new_places(pinned, 3, NULL);
    }
}

/* Tensors that the function makes of what stays are no others each time. */
static pc_status takes_a_view(job *j, pc_tensor **x, pc_tensor **labels)
{
    (void)j;
    *x = pc_reshape(pc_slice(*x, 0, 0, BATCH, 1), PC_SHAPE(BATCH, FEATURES));
    *labels = pc_slice(*labels, 0, 0, BATCH, 1);
    return *x && *labels ? PC_OK : pc_error_last()->status;
}

static void views_of_its_own_stay(void **state)
{
    (void)state;
    job j;
    assert_true(begin(&j, true, false));
    j.first = takes_a_view;
    pc_step *step = pc_step_new(learn, &j, j.optimizer);
    for (int i = 0; i < 6; i++)
        PC_SCOPE {
            assert_ok(pc_step_run(step));
        }
    assert_null(pc_step_why(step));
    assert_int_equal(j.calls, 1);
    pc_step_free(step);
    end(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_beside_is_not_recorded),
        cmocka_unit_test(new_tensors_are_recorded_anew),
        cmocka_unit_test(new_tensors_are_written),
        cmocka_unit_test(views_of_its_own_stay),
    };
    return cmocka_run_group_tests_name("train.step_inputs", tests, NULL, tidy);
}
