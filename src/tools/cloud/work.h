/* work.h: what a network asks of a machine, counted and measured. */
#ifndef PC__CLOUD_WORK_H
#define PC__CLOUD_WORK_H

#include "base/base.h"
#include "io/frame.h"

#include <paracord-tools/cloud.h>
#include <paracord/nn.h>

/* Count a network for pictures of that frame: a Sequential of the layers there are. */
pc_status pc__cloud_count(pc_module *net, pc__frame pictures, pc_cloud_work *work);

/* Train it for about `seconds` on made-up batches, on the device its parameters are on: the median time of a step, in
 * seconds, and what of it is the optimiser's, which does not grow with the batch (on a CPU; 0 elsewhere). Its weights
 * change. */
pc_status pc__cloud_measure_steps(pc_module *net, pc__frame pictures, int classes, int batch, double seconds,
                                  double *step, double *update);

/* Seconds of one thread to read and decode a picture of these files (below `root`), and to alter it as `paracord train`
 * does unless told otherwise; taken evenly from the list for about `seconds`. */
struct pc__folder;
pc_status pc__cloud_measure_pictures(const struct pc__folder *folder, pc__frame pictures, double seconds,
                                     double *decode, double *augment);

/* Seconds that a GPU takes for a training step of `batch` pictures, and for looking at as many, by its datasheet. NaN
 * where the catalogue does not know it. */
double pc__cloud_step_time(const pc_cloud_work *work, const pc_cloud_gpu *gpu, int batch);
double pc__cloud_look_time(const pc_cloud_work *work, const pc_cloud_gpu *gpu, int batch);

extern const pc_cloud_model pc__cloud_model;

/* The catalogue's row for the GPU of this machine, by the driver's name for it; NULL when there is none, or several
 * kinds. `proc` is where the driver tells: /proc/driver/nvidia/gpus. */
const pc_cloud_gpu *pc__cloud_this_gpu(const pc_cloud *cloud, const char *proc);

#endif
