/* gpt_show.c: what gpt train, sample and eval share. */
#include "gpt.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "text.h"

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void cli_gpt_progress_show(cli_progress *progress, const pc_gpt_progress *at)
{
    char line[256], speed[32], left[32];
    const int64_t time = now();
    if (!progress->live || time - progress->last < 100000000)
        return;
    int n =
        snprintf(line, sizeof line, "step %lld/%lld  loss %.4f", (long long)at->step, (long long)at->steps, at->loss);
    if (isfinite(at->tokens_per_second))
        n += snprintf(line + n, sizeof line - (size_t)n, "  %s tokens/s",
                      cli_thousands((int64_t)(at->tokens_per_second + 0.5), speed));
    if (isfinite(at->mfu))
        n += snprintf(line + n, sizeof line - (size_t)n, "  MFU %.0f%%", 100 * at->mfu);
    if (at->seconds_left >= 0 && at->seconds_left < 1e8)
        snprintf(line + n, sizeof line - (size_t)n, "  %s left", cli_duration(at->seconds_left, left));
    fprintf(stderr, "\r%.*s\033[K", cli_width(stderr) - 1, line);
    fflush(stderr);
    progress->drawn = true;
    progress->last = time;
}

void cli_gpt_print_sample(FILE *out, const char *text)
{
    char line[1024];
    while (*text) {
        const size_t n = strcspn(text, "\n"), most = n < sizeof line - 1 ? n : sizeof line - 1;
        memcpy(line, text, most);
        line[most] = 0;
        fputs("  | ", out);
        cli_print_safe(out, line);
        fputc('\n', out);
        text += n + (text[n] == '\n');
    }
}

bool cli_gpt_open(const cli_call *call, const char *folder, const char *device, cli_writer *gpt)
{
    pc_device where;
    *gpt = (cli_writer){0};
    if (pc_device_parse(device, &where) == PC_OK)
        gpt->net = pc_gpt_open(folder, where);
    if (gpt->net)
        gpt->tokens = pc_tokenizer_open(folder);
    if (gpt->tokens)
        return true;
    cli_failed(call->command);
    cli_gpt_close(gpt);
    return false;
}

void cli_gpt_close(cli_writer *gpt)
{
    pc_module_free(gpt->net);
    pc_tokenizer_free(gpt->tokens);
}
