/* run_folder.c: the folder of a run: its files, which of them an earlier run has left, and who may write there. */
#include "train/run.h"

#include "io/file.h"
#include "train/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

static pc_status name_files(pc__run *run)
{
    const struct {
        char **path;
        const char *name;
    } files[] = {{&run->checkpoint, "checkpoint"},
                 {&run->metrics, "metrics.jsonl"},
                 {&run->model, pc__model_name(run->arch)},
                 {&run->report, "report.html"}};
    for (int i = 0; i < PC__COUNT(files); i++) {
        pc__text text = {0};
        pc__text_add(&text, "%s/%s", run->s.out, files[i].name);
        *files[i].path = text.data;
        if (text.failed)
            return PC_ERR_MEMORY;
    }
    return PC_OK;
}

/* Two runs would overwrite each other's files. The system gives the lock back however this process ends; a file system
 * that has no locks goes without. */
static pc_status lock(pc__run *run)
{
    run->lock = open(run->s.out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (run->lock < 0)
        return pc__fail_file(errno, "cannot open the folder %s", run->s.out);
    if (flock(run->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return pc__fail(PC_ERR_STATE, "another run is writing to %s; wait for it, or choose another --out", run->s.out);
    return PC_OK;
}

/* What a killed run was writing. */
static pc_status remove_temporaries(const pc__run *run)
{
    const char *files[] = {run->checkpoint, run->metrics, run->model, run->report};
    for (int i = 0; i < PC__COUNT(files); i++)
        PC__TRY(pc__file_sweep(files[i]));
    return PC_OK;
}

pc_status pc__run_open_folder(pc__run *run)
{
    PC__TRY(name_files(run));
    if (!pc__fit_speaks(&run->fit))
        return PC_OK;
    PC__TRY(pc__folder_make(run->s.out));
    PC__TRY(lock(run));
    return remove_temporaries(run);
}

static pc_status remove_file(const char *path, bool ours)
{
    (void)ours;
    unlink(path);
    return PC_OK;
}

/* Where no run has left its history, files are somebody else's. */
static pc_status leave_file(const char *path, bool ours)
{
    return ours || access(path, F_OK) != 0
               ? PC_OK
               : pc__fail(PC_ERR_STATE,
                          "%s is there and is no run's, as there is no metrics.jsonl: choose another --out", path);
}

/* The network of an earlier run may be in a file of another kind. */
static pc_status each_old_file(const pc__run *run, bool ours, pc_status (*of)(const char *path, bool ours))
{
    static const char *const names[] = {"model.h5", "model.safetensors", "report.html"};
    const size_t folder = strlen(run->model) - strlen(pc__model_name(run->arch));
    for (int i = 0; i < PC__COUNT(names); i++) {
        pc__text path = {0};
        pc__text_add(&path, "%.*s%s", (int)folder, run->model, names[i]);
        const pc_status status = path.failed ? PC_ERR_MEMORY : of(path.data, ours);
        pc__text_free(&path);
        PC__TRY(status);
    }
    return PC_OK;
}

/* The empty history shows now, not after hours, whether the folder can be written to. The checkpoint goes first: a
 * folder is never left with the checkpoint of a finished run but without its network. */
static pc_status begin(pc__run *run)
{
    const bool ours = access(run->metrics, F_OK) == 0 || access(run->checkpoint, F_OK) == 0;
    PC__TRY(each_old_file(run, ours, leave_file));
    PC__TRY(pc__file_write(run->metrics, "", 0));
    unlink(run->checkpoint);
    return each_old_file(run, ours, remove_file);
}

static pc_status go_on(pc__run *run)
{
    PC__TRY(pc__checkpoint_load(run->checkpoint, &run->fit, run->settings));
    run->resumed = true;
    PC__TRY(pc__metrics_load(run->metrics, (int)run->fit.at.epoch, &run->history));
    return PC_OK;
}

/* A checkpoint that cannot be read may be all that somebody has of a long run. */
static pc_status spare(const pc__run *run)
{
    bool finished;
    const pc_status status = pc__checkpoint_look(run->checkpoint, &finished);
    if (status == PC_ERR_MEMORY || status == PC_ERR_FILE)
        return status; /* it may be a good one */
    pc_error_clear();
    if (status != PC_OK)
        return pc__fail(PC_ERR_STATE,
                        "%s cannot be read as a run's, so that it may be of an unfinished one; choose another --out, "
                        "or delete it",
                        run->checkpoint);
    return finished ? PC_OK
                    : pc__fail(PC_ERR_STATE,
                               "%s holds an unfinished run; go on with it by --resume, or choose another --out or "
                               "delete it",
                               run->s.out);
}

static pc_status find_start(pc__run *run)
{
    const bool there = access(run->checkpoint, F_OK) == 0;
    if (there && run->s.resume)
        return go_on(run);
    if (there)
        PC__TRY(spare(run));
    return begin(run);
}

pc_status pc__run_find_start(pc__run *run)
{
    PC__TRY(pc__run_settings_text(run));
    PC__TRY(pc__fit_speaks(&run->fit) ? find_start(run) : PC_OK);
    return pc__run_agree_start(run);
}

void pc__run_close_folder(pc__run *run)
{
    if (run->lock >= 0)
        close(run->lock);
    char *paths[] = {run->checkpoint, run->metrics, run->model, run->report};
    for (int i = 0; i < PC__COUNT(paths); i++)
        pc__free(paths[i]);
}
