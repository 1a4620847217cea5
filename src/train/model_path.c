/* model_path.c: which file a model is in. */
#include "train/model_path.h"

#include "train/checkpoint_form.h"
#include "train/checkpoint_model.h"
#include "train/data_folders.h"

#include "io/torch_file.h"

#include <sys/stat.h>
#include <unistd.h>

/* The file of that name in the folder; NULL where there is none. */
static pc_status find(const char *folder, const char *name, char **file)
{
    pc__text text = {0};
    pc__text_add(&text, "%s/%s", folder, name);
    *file = text.data;
    if (text.failed)
        return PC_ERR_MEMORY;
    if (access(text.data, F_OK) != 0) {
        pc__text_free(&text);
        *file = NULL;
    }
    return PC_OK;
}

pc_status pc__model_find(const char *path, char **file)
{
    if (!pc__is_folder(path)) {
        *file = pc__strdup(path);
        return *file ? PC_OK : PC_ERR_MEMORY;
    }
    static const char *const names[] = {"model.h5", "model.safetensors", "checkpoint"};
    *file = NULL;
    for (int i = 0; i < PC__COUNT(names) && !*file; i++)
        PC__TRY(find(path, names[i], file));
    return *file
               ? PC_OK
               : pc__fail(PC_ERR_NOT_FOUND,
                          "the folder %s holds no run: there is neither model.h5 nor model.safetensors nor checkpoint "
                          "in it",
                          path);
}

/* Of an archive, which files of Keras are too, the first member is the pickle. */
static bool is_torch(const uint8_t *front, size_t n)
{
    static const char member[] = "/data.pkl";
    return n > PC__TORCH_FRONT && pc__is_torch_file(front) &&
           (front[0] != 'P' || memmem(front, n, member, sizeof member - 1));
}

/* A safetensors file, whose first bytes are the length of a header, and its brace; or one of torch.save. */
static bool is_weights(const char *file)
{
    enum { BRACE = 8 };
    uint8_t front[128] = {0};
    struct stat info; /* opening a FIFO would wait for a writer */
    FILE *f = stat(file, &info) == 0 && S_ISREG(info.st_mode) ? fopen(file, "rbe") : NULL;
    const size_t n = f ? fread(front, 1, sizeof front, f) : 0;
    if (f)
        fclose(f);
    return (n > BRACE && front[BRACE] == '{' && !front[4] && !front[5] && !front[6] && !front[7]) || is_torch(front, n);
}

pc_status pc__model_open_any(const char *file, pc__opened_model *model)
{
    if (pc__is_checkpoint(file))
        return pc__checkpoint_model(file, model);
    return is_weights(file) ? pc__model_open_weights(file, model) : pc__model_open(file, model);
}
