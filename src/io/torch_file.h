/* torch_file.h: files of torch.save: where in them the tensors of a state dict lie. Both forms are read: archives (since
 * PyTorch 1.6) and what was before. No code of a file is run. */
#ifndef PC__TORCH_FILE_H
#define PC__TORCH_FILE_H

#include "io/pickle.h"
#include "io/safetensors.h"

enum { PC__TORCH_FRONT = 23 }; /* bytes that tell such a file */

bool pc__is_torch_file(const uint8_t *front);

/* Fill in the list of `w`, whose path and file are open: size bytes. PC_ERR_FORMAT, PC_ERR_UNSUPPORTED (says what is in the
 * way), PC_ERR_FILE. On failure what was read by then is there. */
pc_status pc__torch_file_index(pc_weights *w, int64_t size);

/* --- its parts --- */

/* Where the bytes of a storage are in the file. */
typedef struct pc__torch_storage {
    char key[32];
    int64_t begin, bytes;
} pc__torch_storage;

typedef struct pc__torch_storages {
    pc__torch_storage *list;
    int count, room;
} pc__torch_storages;

/* torch_archive.c: the pickle of an archive, to be freed, and its storages. */
pc_status pc__torch_archive(const pc_weights *w, int64_t size, uint8_t **pickle, size_t *n,
                            pc__torch_storages *storages);

/* torch_state.c: names that state dicts have in them; a storage's type and key, false where the value is none; the call that
 * makes a tensor, also of a parameter, NULL for all else; and what it says of type, shape and place. */
extern const char *const pc__torch_names[];
bool pc__torch_storage_of(const pc__pickle *p, const pc__pickled *kept, const pc__weight_type **type, char key[32],
                          int64_t *count);
const pc__pickled *pc__torch_tensor_of(const pc__pickle *p, const pc__pickled *v);
pc_status pc__torch_tensor_take(pc_weights *w, const pc__pickle *p, const pc__pickled *call, pc__weight *t,
                                const pc__torch_storages *storages);

/* torch_names.c: all tensors of a pickle, or of the state dict in it, into the list of `w`. Tensors of dictionaries and lists in
 * these have their names in front, with points between. */
pc_status pc__torch_state(pc_weights *w, const pc__pickle *p, pc__torch_storages *storages);

/* The storage of that key, of a list in order; NULL. */
const pc__torch_storage *pc__torch_find(const pc__torch_storages *storages, const char *key);
void pc__torch_sort(pc__torch_storages *storages);
#endif
