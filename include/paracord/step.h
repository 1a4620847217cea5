/* step.h: a training step that is queued as one piece of work.
 *
 *     static pc_status learn(void *user)
 *     {
 *         job *j = user;
 *         pc_status status = PC_OK;
 *         PC_SCOPE {
 *             pc_tensor *loss = pc_cross_entropy(pc_forward(j->net, j->x), j->labels);
 *             status = pc_backward(loss);
 *             if (status == PC_OK)
 *                 status = pc_optimizer_step(j->adam);
 *         }
 *         return status;
 *     }
 *
 *     pc_step *step = pc_step_new(learn, &j, j.adam);
 *     while (next_batch(&pictures, &labels)) {
 *         // always into the same tensors
 *         if (pc_copy(j.x, pictures) != PC_OK || pc_copy(j.labels, labels) != PC_OK || pc_step_run(step) != PC_OK)
 *             return pc_report(stderr);
 *     }
 *     pc_step_free(step);
 *
 * pc_fit does this by itself on devices that work later.
 *
 * Threads: a step, its optimiser and its network belong to one thread at a time. Any number of threads may run steps of
 * their own on one device, on its default stream too: what is recorded is recorded on a stream of the step's own, and
 * only launches go to the current one. A failure is told to all who use a stream (stream.h): threads that are not to
 * hear of each other's run each on a stream of its own.
 */
#ifndef PARACORD_STEP_H
#define PARACORD_STEP_H

#include <paracord/nn.h>

PC_BEGIN

typedef struct pc_step pc_step;
typedef pc_status (*pc_step_fn)(void *user);

/* A step that is function(user), which queues work on the parameters' device: forward, backward, pc_optimizer_step of
 * this optimiser. It must queue the same work on the same tensors each time, from the first, as long as nothing
 * changes that pc_step_run looks at: what it is to keep is made before. While it is recorded the current stream is one of the step's own, and all that it queues on the
 * device is part of the step, on streams that it names too. To see a loss after every run let it pc_copy it, inside
 * PC_NO_GRAD, to a tensor made before: what it makes and keeps is renewed by launches of that recording alone. On cuda
 * the optimiser of a step under autocast also keeps in 16 bits what pc_forward casts of its parameters, up to date
 * whoever writes them: 2 bytes for each number. Function, user and optimiser must live as long. The caller owns the
 * step. NULL: PC_ERR_ARGUMENT, PC_ERR_MEMORY. */
PC_API PC_MUST_USE pc_step *pc_step_new(pc_step_fn function, void *user, pc_optimizer *optimizer);

/* One step on the current stream of the parameters' device, ordered with other work as any op. The first run records
 * what the function queues and launches that, later ones launch. It is recorded anew after pc_seed; when something
 * changes that the function asked for: the mode (pc_module_set_training), the parts, the data (pc_module_data) or the
 * parameters of a module that it ran, whether they collect gradients, and the thread's settings around the run (autocast,
 * PC_NO_GRAD, precision, choice of convolutions, current device); and when the program has let go of a tensor that it
 * read or wrote, as of a loader's last batch, also where the memory stays, as for a slice of a set of data: after three
 * such recordings for one launch each, runs are plain calls. What else the function decides by, such as other tensors in
 * the place of some that are still held, the library cannot see. Weights, the optimiser's state and its count and the
 * thread's generator are those of plain calls of the function, with which runs may alternate. Where gradients are
 * waiting to be added to, also at tensors that only another optimiser trains or none, the function is called; gradients
 * that the function leaves there are left by a launch too.
 *
 * What no recording can hold (random numbers other than for dropout, which would repeat; reading data on the host;
 * pc_map, pc_from_data and any work on the host, or on another device where it waits for nothing of the step;
 * pc_loader_next; pc_optimizer_set_lr and pc_optimizer_reset; a step of another optimiser) makes this run a
 * plain call, and, where the next one cannot be recorded either, all later ones. The function was called for nothing
 * then, once in each of these two runs: what the library keeps is put back, what the function counts for itself is not.
 * Recording waits for the stream once. */
PC_API PC_MUST_USE pc_status pc_step_run(pc_step *step);

/* Why runs are plain calls, as a line of text of the step's; NULL while they are not. */
PC_API const char *pc_step_why(const pc_step *step);

PC_API void pc_step_free(pc_step *step);

PC_END
#endif
