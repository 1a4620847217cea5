/* run_report.c: report.html, as the run stands, and what is to be known of the network for it. */
#include "train/run.h"
#include "train/run_settings.h"
#include "train/run_shots.h"
#include "train/summary.h"

#include <math.h>
#include <time.h>

/* What a report is made of beside the run itself. */
typedef struct report_parts {
    pc__run_shots shots;
    pc__report_class *classes;
    pc__report_score *scores; /* of two classes */
    int64_t score_count;
} report_parts;

/* The last name of a path, as a title: "catdog" of "data/catdog/". */
typedef struct name {
    char s[128];
} name;

static name last_part(const char *path)
{
    name result = {"pictures"};
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    if (end > start && path[start] != '.')
        snprintf(result.s, sizeof result.s, "%.*s", (int)(end - start), path + start);
    return result;
}

/* Seconds to the next version of the page, about. */
static int next_seconds(const pc__run *run)
{
    const pc__pace *pace = &run->saving_report;
    double often = fmax(pace->least, pace->took / pace->share);
    return (int)fmin(fmax(ceil(often), ceil(run->fit.last.seconds)), 60);
}

static const pc__epoch_record *record_of(const pc__run *run, int epoch)
{
    for (int i = 0; i < run->history.count; i++)
        if (run->history.epochs[i].epoch == epoch)
            return &run->history.epochs[i];
    return NULL;
}

static int64_t files_in_all(const pc__run *run, int64_t (*count)(const pc_loader *loader))
{
    return count(run->fit.train) + (run->fit.test ? count(run->fit.test) : 0);
}

/* Why there are fewer epochs than were asked for; "" where there are not. */
static void say_end(const pc__run *run, bool running, char text[160])
{
    text[0] = 0;
    if (run->fit.stopped)
        snprintf(text, 160, "Stopped in epoch %lld of %d; paracord train with --resume goes on from here.",
                 (long long)run->fit.at.epoch + 1, run->s.epochs);
    else if (!running && run->fit.at.epoch < run->s.epochs)
        snprintf(text, 160, "Ended early: the last %d epochs were no better than epoch %d.", run->s.early_stop,
                 run->fit.best.result.epoch);
}

static pc_status write_report(pc__run *run, const report_parts *p, bool running)
{
    const pc_train_options *s = &run->s;
    char date[32], device[PC_DEVICE_NAME_MAX], title[160], notice[160];
    pc__run_settings settings;
    pc__run_settings_take(run, &settings);
    snprintf(title, sizeof title, "%s on %.120s", s->arch, last_part(s->data).s);
    time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    const pc_epoch_result *kept = pc__run_kept(run);
    const pc__epoch_record *final = record_of(run, kept->epoch);
    say_end(run, running, notice);
    pc__report report = {.title = title,
                         .notice = notice[0] ? notice : NULL,
                         .running = running,
                         .next_seconds = next_seconds(run),
                         .written = (int64_t)now,
                         .curve = &run->fit.curve,
                         .final = final,
                         .kept_epoch = run->fit.test && final ? kept->epoch : 0,
                         .mistakes = p->shots.mistakes,
                         .mistake_count = p->shots.mistake_count,
                         .scores = p->scores,
                         .score_count = p->score_count,
                         .without_test = !run->fit.test,
                         .date = date,
                         .device = pc_device_name(run->device, device),
                         .version = pc_version(),
                         .seconds = run->seconds,
                         .planned_epochs = s->epochs,
                         .settings = settings.rows,
                         .setting_count = settings.count,
                         .network = run->network,
                         .data = s->data,
                         .classes = p->classes,
                         .class_count = pc_loader_class_count(run->fit.train),
                         .skipped = {run->skipped.files, run->skipped.count, files_in_all(run, pc_loader_skipped)},
                         .damaged = {run->damaged.files, run->damaged.count, files_in_all(run, pc_loader_damaged)},
                         .history = &run->history,
                         .confusion = run->shown.confusion,
                         .samples = p->shots.samples,
                         .sample_count = p->shots.sample_count};
    return s->report(run->report, &report);
}

static pc_status take_classes(const pc__run *run, report_parts *p)
{
    int classes = pc_loader_class_count(run->fit.train);
    p->classes = pc__calloc((size_t)classes, sizeof *p->classes);
    if (!p->classes)
        return PC_ERR_MEMORY;
    for (int k = 0; k < classes; k++) {
        p->classes[k] = (pc__report_class){run->class_names[k], run->counts[k], -1};
        if (run->fit.test && run->shown_epoch)
            p->classes[k].test = pc__class_pictures(run->shown.confusion, classes, k);
    }
    return PC_OK;
}

static pc_status take_scores(const pc__run *run, report_parts *p)
{
    if (!run->fit.test || !run->shown_epoch || run->shown.classes != 2)
        return PC_OK;
    p->scores = pc__alloc((size_t)run->shown.count * sizeof *p->scores);
    if (!p->scores)
        return PC_ERR_MEMORY;
    p->score_count = run->shown.count;
    for (int64_t i = 0; i < run->shown.count; i++)
        p->scores[i] = (pc__report_score){run->shown.list[i].logit, run->shown.list[i].label == 1};
    return PC_OK;
}

/* The network as a table, once. */
static pc_status describe_network(pc__run *run)
{
    pc__layer_row *rows = NULL;
    pc__text text = {0};
    int count = 0;
    if (run->network)
        return PC_OK;
    PC__TRY(pc__summary_rows(run->kept ? run->kept : run->fit.net, pc__run_frame(run), &rows, &count));
    pc__summary_text(&text, rows, count);
    pc__free(rows);
    run->network = text.data;
    return text.failed ? PC_ERR_MEMORY : PC_OK;
}

pc_status pc__run_look(pc__run *run)
{
    const pc_epoch_result *kept = pc__run_kept(run);
    pc_loader *loader = run->fit.test ? run->fit.test : run->fit.train;
    pc__score score;
    if (!kept->epoch || (!run->kept && run->fit.at.batch > 0)) /* its weights are gone */
        return PC_OK;
    PC__TRY(run->kept ? pc__best_exchange(&run->fit.best, run->fit.net, pc__fit_parameters(&run->fit)) : PC_OK);
    pc_status status = pc__answers_collect(&run->shown, run->fit.net, loader, &score);
    if (run->kept) {
        pc_status back = pc__best_exchange(&run->fit.best, run->fit.net, pc__fit_parameters(&run->fit));
        status = status == PC_OK ? back : status;
    }
    run->shown_epoch = status == PC_OK ? kept->epoch : 0;
    return status;
}

static pc_status report(pc__run *run, bool running)
{
    report_parts p = {.classes = NULL};
    if (!run->s.report)
        return PC_OK;
    double start = pc__seconds_now();
    pc_status status = describe_network(run);
    if (status == PC_OK && !running && !run->fit.stopped && !run->shown_epoch)
        status = pc__run_look(run);
    if (status == PC_OK && run->shown_epoch)
        status = pc__run_shots_take(run, run->fit.test ? run->fit.test : run->fit.train, &p.shots);
    if (status == PC_OK)
        status = take_classes(run, &p);
    if (status == PC_OK)
        status = take_scores(run, &p);
    if (status == PC_OK)
        status = write_report(run, &p, running);
    pc__run_shots_free(&p.shots);
    pc__free(p.classes);
    pc__free(p.scores);
    pc__pace_took(&run->saving_report, start);
    return status;
}

pc_status pc__run_report(pc__run *run)
{
    return report(run, false);
}

void pc__run_offer_report(pc__run *run)
{
    if (!run->s.report || !pc__pace_pays(&run->saving_report))
        return;
    run->seconds = pc__seconds_now() - run->start;
    if (report(run, true) == PC_OK)
        return;
    pc__log(PC_LOG_WARNING, "training goes on without a new report: %s", pc_error_last()->message);
    pc_error_clear();
}
