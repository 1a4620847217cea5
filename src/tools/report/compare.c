/* compare.c: what the folder of a run says. */
#include "report/compare.h"

#include "io/file.h"
#include "train/checkpoint_form.h"
#include "train/data_folders.h"
#include "train/metrics_line.h"

#include <unistd.h>

static pc_status join(const char *folder, const char *name, char **path)
{
    pc__text text = {0};
    pc__text_add(&text, "%s/%s", folder, name);
    *path = text.data;
    return text.failed ? PC_ERR_MEMORY : PC_OK;
}

static const pc__epoch_record *record_of(const pc__history *history, int64_t epoch)
{
    for (int i = 0; i < history->count; i++)
        if (history->epochs[i].epoch == epoch)
            return &history->epochs[i];
    return NULL;
}

/* A run may have no checkpoint any more; then its figures are all there is. */
static void take_checkpoint(const char *path, pc__compared *run)
{
    pc__checkpoint_file file;
    pc_error before = pc__error_take();
    if (pc__checkpoint_open(path, &file) == PC_OK) {
        const pc__checkpoint_header *h = &file.header;
        /* the weights of the best epoch are in it where they are what is kept */
        const pc__epoch_record *kept = record_of(&run->history, h->kept ? h->best.epoch : h->last.epoch);
        run->known = true;
        run->finished = h->finished;
        run->curve = file.curve;
        snprintf(run->settings, sizeof run->settings, "%s", h->settings);
        if (kept)
            run->kept = *kept;
    }
    pc__checkpoint_close(&file);
    pc_error_clear();
    if (before.status != PC_OK)
        (void)pc__error_put(&before);
}

pc_status pc__compared_read(const char *folder, pc__compared *run)
{
    char *metrics = NULL, *checkpoint = NULL;
    *run = (pc__compared){.folder = folder, .kept = pc__epoch_unknown(0)};
    pc_status status = join(folder, "metrics.jsonl", &metrics);
    if (status == PC_OK)
        status = join(folder, "checkpoint", &checkpoint);
    if (status == PC_OK && access(metrics, F_OK) != 0)
        status = pc__fail(PC_ERR_NOT_FOUND, "%s %s: name a folder that paracord train has written (--out)", folder,
                          pc__is_folder(folder) ? "holds no run" : "is no folder");
    if (status == PC_OK)
        status = pc__metrics_read(metrics, &run->history);
    if (status == PC_OK)
        take_checkpoint(checkpoint, run);
    pc__free(metrics);
    pc__free(checkpoint);
    return status;
}

void pc__compared_free(pc__compared *run)
{
    pc__history_free(&run->history);
}

size_t pc__compared_name(const char *line)
{
    size_t whole = strcspn(line, "\n"), at = whole;
    while (at > 0 && line[at - 1] != ' ')
        at--;
    return at ? at - 1 : whole;
}

const char *pc__compared_setting(const pc__compared *run, const char *name, size_t n, size_t *length)
{
    for (const char *line = run->settings; *line;) {
        size_t whole = strcspn(line, "\n"), mine = pc__compared_name(line);
        if (mine == n && memcmp(line, name, n) == 0) {
            *length = whole > mine ? whole - mine - 1 : 0;
            return line + mine + (whole > mine);
        }
        line += whole + (line[whole] == '\n');
    }
    return NULL;
}

static bool differ(const pc__compared *runs, int count, const char *line)
{
    size_t n = pc__compared_name(line), a, b;
    const char *first = pc__compared_setting(&runs[0], line, n, &a);
    for (int i = 1; i < count; i++) {
        const char *other = pc__compared_setting(&runs[i], line, n, &b);
        if (!first != !other || (first && (a != b || memcmp(first, other, a) != 0)))
            return true;
    }
    return false;
}

bool pc__compared_shows(const pc__compared *runs, int count, int run, const char *line)
{
    size_t length;
    for (int i = 0; i < run; i++)
        if (pc__compared_setting(&runs[i], line, pc__compared_name(line), &length))
            return false;
    return count == 1 || (strncmp(line, "--no-", 5) != 0 && differ(runs, count, line));
}

const char *pc__compared_absent(const pc__compared *run, const char *line)
{
    bool flag = pc__compared_name(line) == strcspn(line, "\n");
    return !run->known ? "unknown" : flag ? "no" : "not set";
}

static pc_status write_all(const pc__compared *runs, int count, const char *page, char **text, char **json)
{
    pc__text table = {0}, object = {0}, html = {0};
    pc__plain_numbers plain = pc__plain_numbers_begin();
    pc__compare_text(&table, runs, count);
    pc__compare_json(&object, runs, count);
    if (page)
        pc__compare_page(&html, runs, count);
    pc__plain_numbers_end(plain);
    pc_status status = table.failed || object.failed || html.failed ? PC_ERR_MEMORY : PC_OK;
    if (status == PC_OK && page)
        status = pc__file_write(page, html.data, html.length);
    pc__text_free(&html);
    if (status != PC_OK) {
        pc__text_free(&table);
        pc__text_free(&object);
    }
    *text = table.data, *json = object.data;
    return status;
}

pc_status pc_runs_compare(const char *const *folders, int count, const char *page, char **text, char **json)
{
    PC__NEED(text);
    PC__NEED(json);
    *text = *json = NULL;
    PC__NEED(folders);
    if (count < 1)
        return pc__fail(PC_ERR_ARGUMENT, "pc_runs_compare: no runs are named");
    pc__compared *runs = pc__calloc((size_t)count, sizeof *runs);
    if (!runs)
        return PC_ERR_MEMORY;
    pc_status status = PC_OK;
    for (int i = 0; i < count && status == PC_OK; i++)
        status = folders[i] ? pc__compared_read(folders[i], &runs[i])
                            : pc__fail(PC_ERR_ARGUMENT, "pc_runs_compare: folder %d is NULL", i);
    if (status == PC_OK)
        status = write_all(runs, count, page, text, json);
    for (int i = 0; i < count; i++)
        pc__compared_free(&runs[i]);
    pc__free(runs);
    return status;
}
