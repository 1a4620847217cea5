/* keras_h5_ask.h: questions about a file, and answers: plain memory, so that they can be sent to another process. */
#ifndef PC__KERAS_H5_ASK_H
#define PC__KERAS_H5_ASK_H

#include "base/jail.h"
#include "io/keras_h5_raw.h"

typedef enum pc__h5_kind {
    PC__H5_OPEN,
    PC__H5_CLOSE,
    PC__H5_GROUP,
    PC__H5_HAS,
    PC__H5_TEXTS,
    PC__H5_SHAPE,
    PC__H5_FLOATS,
    PC__H5_INTEGER,
    PC__H5_REAL
} pc__h5_kind;

/* `name` in `object`; `what` is for messages. Texts stand behind the struct when it is sent. */
typedef struct pc__h5_question {
    pc__h5_kind kind;
    hid_t object;
    const char *name, *what;
    int rank;
    int64_t shape[PC__KERAS_RANK_MAX];
} pc__h5_question;

/* What comes back. `bytes` of it lie in the room that `room` gave: texts each with a zero behind, or floats. Or they
 * lie in the file, at `place`, as this machine has floats in memory: then they are read from there. */
typedef struct pc__h5_answer {
    pc_error error; /* status PC_OK when there is none */
    hid_t object;
    int found; /* no bool: any bits may come */
    int rank, count;
    int64_t shape[PC__KERAS_RANK_MAX];
    int64_t integer;
    double real;
    uint64_t bytes, place; /* PC__H5_NOWHERE: in the room */
} pc__h5_answer;

#define PC__H5_NOWHERE UINT64_MAX

/* Where an answer's bytes go. NULL, with an error recorded, when they are too many. */
typedef struct pc__h5_room {
    void *(*take)(void *context, uint64_t bytes);
    void *context;
} pc__h5_room;

/* keras_h5_answer.c: the answer, by HDF5 in this process. Errors are the answer's, none stays recorded. */
void pc__h5_answer_here(const char *path, const pc__h5_source *source, const pc__h5_question *question,
                        const pc__h5_room *room, pc__h5_answer *answer);

/* An open file: asked in a child in jail, or, where `entered`, in this process. */
struct pc__h5_file {
    const char *path; /* the caller's */
    pc__h5_source source;
    uint8_t *own; /* the source's bytes, when they are ours */
    int64_t left; /* of the source's limit, for all answers together */
    bool apart;   /* asked in `jail`, to the end, whether the child lives or not */
    pc__jail jail;
    bool entered;
    pc__h5_quiet quiet;
    hid_t root;
};

/* keras_h5_apart.c: what a child gets that works on a file of `size` bytes. */
pc__jail_plan pc__h5_plan(const pc__h5_source *source);

/* Start it, under HDF5's lock. False: it has to be done in this process; `verb` is "read" or its like, for the log. */
bool pc__h5_start(pc__jail *jail, pc__jail_plan *plan, const char *path, uint64_t size, const char *verb);

/* What a child says is made text of that size, and no pointer of it is followed. */
void pc__h5_make_safe(pc_error *error);

/* keras_h5_apart.c: make the child that reads the file; false when the file has to be read in this process. */
bool pc__h5_start_apart(pc__h5_file *file);

/* The child's answer, of which only the sizes of texts and of the struct are sure; its bytes into *bytes (from
 * pc__alloc). PC_ERR_FORMAT when the child did not live to give it. */
pc_status pc__h5_ask_apart(pc__h5_file *file, const pc__h5_question *question, pc__h5_answer *answer);
pc_status pc__h5_take_apart(const pc__h5_file *file, uint64_t n, void **bytes);

/* keras_h5_open.c: the limit for a file of its size. */
void pc__h5_set_limit(pc__h5_source *source);

/* keras_h5_ask.c, keras_h5_open.c: open the root; close all. */
pc_status pc__h5_ask_to_open(pc__h5_file *file);
void pc__h5_release(pc__h5_file *file);

#endif
