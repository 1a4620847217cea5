/* nearest.h: which name did the user mean? */
#ifndef CLI_NEAREST_H
#define CLI_NEAREST_H

/* Changes of one letter (put in, left out, replaced, two neighbours swapped) that make `b` of `a`. */
int cli_edit_distance(const char *a, const char *b);

/* The better of `best` (or NULL) and `name` as a guess at `typed`; a name that is too far off is no guess. */
const char *cli_nearer(const char *typed, const char *best, const char *name);

#endif
