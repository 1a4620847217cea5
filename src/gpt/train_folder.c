/* train_folder.c: the folder of a training: who may write there, and what others have left in it. */
#include "gpt/train.h"
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

pc_status pc__gpt_path(const pc__gpt_training *t, const char *name, char path[PATH_MAX])
{
    return snprintf(path, PATH_MAX, "%s/%s", t->o.out, name) < PATH_MAX
               ? PC_OK
               : pc__fail(PC_ERR_FILE, "%.64s...: the name is too long", t->o.out);
}

/* Two trainings would overwrite each other's files. The system gives the lock back however this process ends; a file
 * system that has no locks goes without. */
static pc_status lock(pc__gpt_training *t)
{
    if (t->rank || t->lock >= 0)
        return PC_OK;
    t->lock = open(t->o.out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (t->lock < 0)
        return errno == ENOENT ? PC_OK : pc__fail_file(errno, "cannot open the folder %s", t->o.out);
    if (flock(t->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return pc__fail(PC_ERR_STATE, "another training is writing to %s; wait for it, or choose another --out",
                        t->o.out);
    return PC_OK;
}

static bool same_folder(const char *one, const char *other)
{
    struct stat a, b;
    return one && stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static const char *const networks[] = {PC__GPT_WEIGHTS};

/* What no training has left there is somebody else's. A tokenizer that it takes from there is written as it was. */
static pc_status leave_others(const pc__gpt_training *t)
{
    static const char *const names[] = {PC__GPT_WEIGHTS, "config.json", "report.html", "vocab.json", "merges.txt"};
    enum { TOKENS = 2 }; /* at the end */
    const int count = PC__COUNT(names) - (same_folder(t->o.tokens, t->o.out) ? TOKENS : 0);
    char path[PATH_MAX];
    for (int i = 0; i < count; i++) {
        PC__TRY(pc__gpt_path(t, names[i], path));
        if (access(path, F_OK) == 0)
            return pc__fail(PC_ERR_STATE,
                            "%s is there and is no training's, as there is no checkpoint: choose another --out", path);
    }
    return PC_OK;
}

/* An empty file that says that the folder is a training's, while that has no checkpoint yet. */
#define MARK "begun"

pc_status pc__gpt_folder_look(pc__gpt_training *t, bool *resumed)
{
    char checkpoint[PATH_MAX], mark[PATH_MAX];
    PC__TRY(pc__gpt_path(t, "checkpoint", checkpoint));
    PC__TRY(pc__gpt_path(t, MARK, mark));
    PC__TRY(lock(t));
    const bool there = access(checkpoint, F_OK) == 0;
    *resumed = t->o.resume && there;
    if (*resumed)
        return PC_OK;
    return there ? pc__gpt_checkpoint_spare(t, checkpoint) : access(mark, F_OK) == 0 ? PC_OK : leave_others(t);
}

static pc_status remove_file(const pc__gpt_training *t, const char *name)
{
    char path[PATH_MAX];
    PC__TRY(pc__gpt_path(t, name, path));
    return unlink(path) == 0 || errno == ENOENT ? PC_OK : pc__fail_file(errno, "cannot remove %s", path);
}

/* What an earlier training has left goes, its network before its tokens do: a folder never has the network of one and the
 * tokens of another. */
static pc_status begin(pc__gpt_training *t)
{
    char path[PATH_MAX];
    PC__TRY(pc__gpt_path(t, MARK, path));
    PC__TRY(pc__file_write(path, "", 0));
    PC__TRY(remove_file(t, "checkpoint"));
    for (int i = 0; i < PC__COUNT(networks) && !same_folder(t->o.from, t->o.out); i++)
        PC__TRY(remove_file(t, networks[i]));
    return t->tokenizer ? pc_tokenizer_save(t->tokenizer, t->o.out) : PC_OK;
}

/* What a killed training was writing. */
static pc_status remove_temporaries(const pc__gpt_training *t)
{
    static const char *const names[] = {MARK,          "checkpoint", "model.safetensors", "config.json",
                                        "report.html", "vocab.json", "merges.txt"};
    for (int i = 0; i < PC__COUNT(names); i++) {
        char path[PATH_MAX];
        PC__TRY(pc__gpt_path(t, names[i], path));
        PC__TRY(pc__file_sweep(path));
    }
    return PC_OK;
}

pc_status pc__gpt_folder_open(pc__gpt_training *t, bool resumed)
{
    if (t->rank)
        return PC_OK;
    const bool is_ours = t->lock >= 0;
    bool begun = false;
    PC__TRY(pc__folder_make(t->o.out));
    PC__TRY(lock(t));
    if (!is_ours) /* it was not there to be locked when it was looked at */
        PC__TRY(pc__gpt_folder_look(t, &begun));
    if (begun)
        return pc__fail(PC_ERR_STATE, "another training has begun in %s meanwhile; start again to go on with it",
                        t->o.out);
    PC__TRY(remove_temporaries(t));
    return resumed ? PC_OK : begin(t);
}

pc_status pc__gpt_folder_saved(const pc__gpt_training *t)
{
    return t->rank ? PC_OK : remove_file(t, MARK);
}

void pc__gpt_folder_close(pc__gpt_training *t)
{
    if (t->lock >= 0)
        close(t->lock);
    t->lock = -1;
}
