/* table.c: the sub-commands, in the order of the overview. Each is one file. */
#include "command.h"

/* clang-format off */
const cli_command *const cli_commands[] = {
    /* networks */
    &cli_train, &cli_report, &cli_eval, &cli_predict, &cli_show, &cli_pictures, &cli_pictures_check,
    /* networks that write */
    &cli_gpt, &cli_gpt_train, &cli_gpt_sample, &cli_gpt_eval,
    /* many processes */
    &cli_launch,
    /* where time goes */
    &cli_trace, &cli_trace_view, &cli_trace_summary, &cli_trace_calls,
    /* small programs */
    &cli_add, &cli_saxpy, &cli_matmul, &cli_mandelbrot,
    /* the machine */
    &cli_devices, &cli_topo, &cli_doctor, &cli_doctor_job, &cli_bench, &cli_bench_collective,
    /* machines to rent */
    &cli_cloud, &cli_cloud_list, &cli_cloud_pick, &cli_cloud_cost, &cli_cloud_update, &cli_cloud_run,
    &cli_help, &cli_man, &cli_completion, NULL,
};
/* clang-format on */

const char cli_about[] =
    "A GPU survival toolkit: what is in this machine, is it healthy, how fast is it, what to rent where there is none; "
    "first programs on a GPU; and training: picture classifiers on folders of pictures, networks that write on texts.";

const cli_example cli_first_run[] = {
    {"paracord pictures faces", "Draw cat and dog faces to practise on"},
    {"paracord train faces --epochs 5", "Train on them; the network goes to run/model.h5"},
    {"paracord predict run/model.h5 faces/test/dog/*.jpg", "Ask it about pictures that it has not seen"},
    {0},
};
