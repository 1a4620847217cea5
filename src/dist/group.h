/* group.h: the inside of groups. */
#ifndef PC__GROUP_INSIDE_H
#define PC__GROUP_INSIDE_H

#include "dist/place.h"

/* A rank's end of the group on one type of device. */
typedef struct pc__group_end {
    pc__comm comm;
    pc_stream *stream; /* NULL: not open yet */
} pc__group_end;

struct pc_group {
    pc__place *place; /* of ranks that are threads; NULL: they are processes, and meet in the store */
    char name[48];
    int rank, size;
    int *members; /* rank in the world, or among the threads, by rank of this group */
    double seconds;
    int64_t *pairs; /* two for each rank: pc__comm's */
    int64_t talks;  /* exchanges that the ranks have had */
    int64_t splits;
    pc__group_end end[PC_DEVICE_TYPES];
};

/* group.c: a group with all but place set. members: size of them, copied. */
pc_group *pc__group_new(const char *name, int rank, int size, const int *members, double seconds) PC_MUST_USE;

/* Every rank gives so many bytes and gets those of all, in the order of ranks. The host waits. */
pc_status pc__group_exchange(pc_group *group, const void *mine, size_t bytes, void *all);

/* world.c: the same between processes. */
pc_status pc__world_exchange(pc_group *group, const void *mine, size_t bytes, void *all);

/* This rank cannot go on: what others wait for in the group, now or later, fails with that. */
void pc__group_abort(pc_group *group, const char *why);

/* The same, with the error that the thread has as the reason. */
void pc__group_fail(pc_group *group);

/* And told as another group calls the rank. */
void pc__group_fail_as(pc_group *group, int rank);

/* The group's end on the device, opened where it is not; all ranks do that in the same call. NULL: an error. */
pc__group_end *pc__group_end_of(pc_group *group, pc_device device);

/* world.c: who moves data between processes on that type of device; NULL: an error names what is missing. */
const pc__engine *pc__world_engine(pc_device_type type);

#endif
