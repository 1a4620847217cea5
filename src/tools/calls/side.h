/* side.h: calls of a group side by side. */
#ifndef PC__CALLS_SIDE_H
#define PC__CALLS_SIDE_H

#include "calls/calls.h"

/* A group on one kind of device: what is compared. Ranks are those of the group. */
typedef struct pc__side {
    const pc_calls *calls;
    const pc__seen_call **list; /* by number, then rank */
    int count, size;
    int *who;  /* of each rank; -1: it has made no call of this group that is known */
    bool *set; /* room for a set of ranks */
    int64_t low, high;
} pc__side;

/* Of the group of `first`, which marks its calls in `taken`. Close it also after an error. */
pc_status pc__side_open(pc__side *side, const pc_calls *calls, const pc__seen_call *first, bool *taken);
void pc__side_close(pc__side *side);

/* Whether a call is one to be compared; whether two are alike. */
bool pc__side_counts(const pc__seen_call *call);
bool pc__side_alike(const pc__seen_call *a, const pc__seen_call *b);

/* The first of the calls of that number, and how many there are; what most of these are; how long the first rank has been in it. */
int pc__side_at(const pc__side *side, int64_t number, int *n);
const pc__seen_call *pc__side_usual(const pc__side *side, int first, int n);
double pc__side_waited(const pc__side *side, int first, int n);

/* The ranks of side->set in words, as ranks of the world where these are known. Changes the set. */
void pc__side_names(const pc__side *side, char *text, size_t n);

/* say.c: what is wrong with n calls of one number, whose most are as `most`. */
void pc__side_say_mismatch(const pc__side *side, int first, int n, const pc__seen_call *most, char *words, size_t room);
void pc__side_say_missing(const pc__side *side, int first, int n, const pc__seen_call *most, char *words, size_t room);

#endif
