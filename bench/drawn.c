/* drawn: cases that bench/peers/drawn.py draws, op by op and network by network, each timed in turns with PyTorch.
 * Usage: drawn [device, cpu unless given] [threads]. Lines on standard input, a line of answer to each:
 *   case TEXT                  make it; "ok" and sums of what it gives, or "error" and why
 *   eager SECONDS              "us" and microseconds of a go, called as it is, over about so long
 *   recorded SECONDS GOES      the same as launches of a recording of so many goes; a training step is one
 *   end                        let go of the case; "ok"
 * Nobody reads what a go of an op makes: PARACORD_PLAN=-dead,-duplicates has recordings do it all the same. */
#include "drawn/drawn.h"

#include <stdlib.h>
#include <string.h>

static pc_status begin(drawn *d, const char *line)
{
    pc_status status = words_read(&d->words, line);
    if (status == PC_OK)
        status = dtype_of(word_of(&d->words, "dtype"), &d->dtype);
    if (status != PC_OK)
        return status;
    const bool tf32 = strcmp(word_of(&d->words, "dtype"), "tf32") == 0, net = strcmp(d->words.word[0], "net") == 0;
    (void)pc_matmul_precision_set(tf32 ? PC_PRECISION_TF32 : PC_PRECISION_F32);
    pc_seed(1);
    status = net ? net_begin(d) : op_begin(d);
    if (status != PC_OK)
        return status;
    printf("ok");
    return net ? net_tell(d) : op_tell(d);
}

static pc_status answer(drawn *d, const char *line)
{
    double each;
    const bool recorded = strncmp(line, "recorded ", 9) == 0;
    if (strncmp(line, "case ", 5) == 0) {
        drawn_end(d);
        return begin(d, line + 5);
    }
    if (recorded || strncmp(line, "eager ", 6) == 0) {
        char *rest;
        const double seconds = strtod(strchr(line, ' '), &rest);
        const long goes = strtol(rest, NULL, 10);
        if (!d->go)
            return pc_fail(PC_ERR_STATE, "there is no case: the line 'case TEXT' comes first");
        const pc_status status = round_of(d, recorded, seconds, goes > 0 ? (int)goes : 1, &each);
        if (status == PC_OK)
            printf("us %.6g", each * 1e6);
        return status;
    }
    if (strncmp(line, "end", 3) != 0)
        return pc_fail(PC_ERR_ARGUMENT, "there are the lines case, eager, recorded and end");
    drawn_end(d);
    printf("ok");
    return PC_OK;
}

int main(int argc, char **argv)
{
    static char line[LINE_ROOM + 16];
    static drawn d;
    if (pc_device_parse(argc > 1 ? argv[1] : "cpu", &d.device) != PC_OK || pc_device_set_current(d.device) != PC_OK)
        return pc_report(stderr);
    pc_threads_set(argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0);
    while (fgets(line, sizeof line, stdin)) {
        if (answer(&d, line) != PC_OK || pc_failed()) {
            const pc_error *e = pc_error_last();
            printf("error %s%s%s", e->message, e->cause[0] ? ": " : "", e->cause);
            pc_error_clear();
            drawn_end(&d);
        }
        printf("\n");
        fflush(stdout);
    }
    drawn_end(&d);
    return 0;
}
