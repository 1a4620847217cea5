/* compare.h: several runs side by side: what their folders say, as text, as JSON and as a page. */
#ifndef PC__COMPARE_H
#define PC__COMPARE_H

#include "train/curve.h"
#include "train/metrics.h"

#include <paracord-tools/report.h>

typedef struct pc__compared {
    const char *folder; /* as it was given; borrowed */
    pc__history history;
    pc__epoch_record kept; /* of the epoch whose weights model.h5 has; epoch 0: unknown */
    bool known, finished;  /* there is a checkpoint; it says that the run is finished */
    char settings[1024];   /* the checkpoint's: "--name value" lines */
    pc__curve curve;
} pc__compared;

/* Read a run's folder, which another process may be writing to; it is left as it is. PC_ERR_NOT_FOUND when it has no
 * metrics.jsonl. To be given to pc__compared_free, also after a failure. */
pc_status pc__compared_read(const char *folder, pc__compared *run);
void pc__compared_free(pc__compared *run);

/* The bytes of the name that a line of settings begins with: of "--lr 0.1" and "the set of pictures 0123" all but the
 * last word, of "--flip" the whole. */
size_t pc__compared_name(const char *line);

/* The value of a setting, with its length; NULL: the run does not name it. */
const char *pc__compared_setting(const pc__compared *run, const char *name, size_t n, size_t *length);

/* Whether a line of settings of run number `run` is to be shown: no run before has named it, and, of several runs, not
 * all have the same value. "--no-x" is told by the absence of "--x". */
bool pc__compared_shows(const pc__compared *runs, int count, int run, const char *line);

/* What to say where a run does not name the setting of that line. */
const char *pc__compared_absent(const pc__compared *run, const char *line);

/* compare_text.c, compare_page.c: append them. */
void pc__compare_text(pc__text *text, const pc__compared *runs, int count);
void pc__compare_json(pc__text *json, const pc__compared *runs, int count);
void pc__compare_page(pc__text *html, const pc__compared *runs, int count);

#endif
