/* group.h: ranks that communicate, and what they do together.
 *
 *     pc_group *world = pc_group_world();           // after pc_dist_init (dist.h): this process is a rank of it
 *     pc_group_all_reduce(world, gradient, PC_GROUP_MEAN);
 *
 * A rank is a process of a world that was launched, or a thread of this process (pc_group_threads). Every rank of a group
 * makes the same calls in the same order; those of send and receive are for two of them. A call is queued on a stream of
 * the group's on the tensor's device, ordered by data with all other work, and it is part of recordings as any op; on
 * `cpu` it returns when it is done. On GPUs NCCL does it, between processes on `cpu` and `sim` MPI, between threads the
 * library itself. Each is opened when it is first needed: PC_ERR_UNSUPPORTED names what is missing.
 *
 * Errors: arguments that do not fit on this rank are told at once. What does not fit together (another op, dtype, count
 * or memory order), a rank that does not come within the group's time-out, or is lost, is told at the next wait for what
 * was queued, by name: PC_ERR_STATE; between processes PC_ERR_TIMEOUT for a rank that does not come, PC_ERR_LOST for one
 * that is lost. A group is then of no more use, and neither are what its calls were to write. Between processes on `cpu`
 * and `sim`, what does not fit together is found where PARACORD_CHECK=collectives is set (docs/ranks.md).
 *
 * Each process keeps its last 1,000 calls. Where PARACORD_DIST_DUMP names a folder, all ranks that live write them there when a
 * wait ends by its deadline or a rank is lost, and `paracord trace calls FOLDER` says where they part.
 *
 * Threads: a group belongs to one thread at a time. */
#ifndef PARACORD_GROUP_H
#define PARACORD_GROUP_H

#include <paracord/stream.h>
#include <paracord/tensor.h>

PC_BEGIN

typedef struct pc_group pc_group;

/* Integers have no mean. In float16 and bfloat16 ranks on `cpu` and `sim` are added in float32 and rounded once, in the
 * order of ranks. */
typedef enum pc_group_op { PC_GROUP_SUM, PC_GROUP_MEAN, PC_GROUP_MIN, PC_GROUP_MAX } pc_group_op;

/* --- groups --- */

/* The group of all ranks of the world (dist.h), which is one rank where nothing was launched. The caller owns it. NULL:
 * PC_ERR_MEMORY. */
PC_API PC_MUST_USE pc_group *pc_group_world(void);

/* A group of n ranks (1 to 64) in this process: groups[i] is the end of rank i, for a thread that works as that rank, on
 * a device of its own where there are several. The caller owns them. */
PC_API PC_MUST_USE pc_status pc_group_threads(int n, pc_group *groups[]);

/* New groups of this one's ranks: one for each color, with the ranks that gave it, in the order of their keys, and of
 * their ranks where these are equal. All ranks of the group call it, at the same time. *made, of this rank, is the
 * caller's; NULL where its color is -1, which is for no group. */
PC_API PC_MUST_USE pc_status pc_group_split(pc_group *group, int color, int key, pc_group **made);

/* Waits for what the rank has queued in it. Graphs that hold calls of the group go first. */
PC_API void pc_group_free(pc_group *group);

PC_API int pc_group_rank(const pc_group *group);
PC_API int pc_group_size(const pc_group *group);

/* How long a call waits for other ranks, in seconds; 0: for ever. Groups begin with 600, or PARACORD_GROUP_TIMEOUT (where
 * that is no such number making a group is PC_ERR_ARGUMENT); those of a split with what theirs had. */
PC_API PC_MUST_USE pc_status pc_group_set_timeout(pc_group *group, double seconds);

/* The stream on which the group's calls for tensors of this device are queued (borrowed). All ranks call it or have used
 * the group on the device: it opens what is not open yet. NULL: an error. */
PC_API pc_stream *pc_group_stream(pc_group *group, pc_device device);

/* --- collectives. t, to and from are on one device of each rank; a group uses one device of each type in each rank.
 * Tensors are of the same shape and dtype in all ranks unless it says otherwise; those in any memory order are sent
 * in that order, which must be the same in all ranks; those with gaps are copied. No gradient. --- */

/* t becomes the reduction of all ranks' t. */
PC_API PC_MUST_USE pc_status pc_group_all_reduce(pc_group *group, pc_tensor *t, pc_group_op reduction);

/* t becomes rank root's t. */
PC_API PC_MUST_USE pc_status pc_group_broadcast(pc_group *group, pc_tensor *t, int root);

/* Rank root's t becomes the reduction of all ranks' t; what others' t is then is not said. */
PC_API PC_MUST_USE pc_status pc_group_reduce(pc_group *group, pc_tensor *t, pc_group_op reduction, int root);

/* `to`, of size times as many elements, becomes all ranks' `from` one behind the other, in C order. */
PC_API PC_MUST_USE pc_status pc_group_all_gather(pc_group *group, pc_tensor *to, pc_tensor *from);

/* `to` becomes part number `rank` of the reduction of all ranks' `from`, which has size times as many elements. */
PC_API PC_MUST_USE pc_status pc_group_reduce_scatter(pc_group *group, pc_tensor *to, pc_tensor *from,
                                                     pc_group_op reduction);

/* Rank root's `to`, of size times as many elements, becomes all ranks' `from`; others pass NULL. */
PC_API PC_MUST_USE pc_status pc_group_gather(pc_group *group, pc_tensor *to, pc_tensor *from, int root);

/* `to` becomes part number `rank` of rank root's `from`, of size times as many elements; others pass NULL. */
PC_API PC_MUST_USE pc_status pc_group_scatter(pc_group *group, pc_tensor *to, pc_tensor *from, int root);

/* Part r of `to` becomes part number `rank` of rank r's `from`; both have a whole number of elements for each rank. */
PC_API PC_MUST_USE pc_status pc_group_all_to_all(pc_group *group, pc_tensor *to, pc_tensor *from);

/* Rank `to` receives t; between two ranks in the order of the calls. */
PC_API PC_MUST_USE pc_status pc_group_send(pc_group *group, pc_tensor *t, int to);
PC_API PC_MUST_USE pc_status pc_group_receive(pc_group *group, pc_tensor *t, int from);

/* The host waits until all ranks are here. */
PC_API PC_MUST_USE pc_status pc_group_barrier(pc_group *group);

PC_END
#endif
