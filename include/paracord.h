/* paracord.h: everything in libparacord. Each header of paracord/ can also be included, and read, alone. */
#ifndef PARACORD_H
#define PARACORD_H

#include <paracord/amp.h>
#include <paracord/api.h>
#include <paracord/augment.h>
#include <paracord/autograd.h>
#include <paracord/check.h>
#include <paracord/classifier.h>
#include <paracord/data_parallel.h>
#include <paracord/device.h>
#include <paracord/ema.h>
#include <paracord/error.h>
#include <paracord/fit.h>
#include <paracord/gpt.h>
#include <paracord/gpt_train.h>
#include <paracord/group.h>
#include <paracord/half.h>
#include <paracord/image.h>
#include <paracord/keras.h>
#include <paracord/ladder.h>
#include <paracord/loader.h>
#include <paracord/log.h>
#include <paracord/loss.h>
#include <paracord/memory.h>
#include <paracord/models.h>
#include <paracord/module.h>
#include <paracord/nn.h>
#include <paracord/no_grad.h>
#include <paracord/op.h>
#include <paracord/ops.h>
#include <paracord/random.h>
#include <paracord/schedule.h>
#include <paracord/sample.h>
#include <paracord/samples.h>
#include <paracord/scope.h>
#include <paracord/sim.h>
#include <paracord/step.h>
#include <paracord/stream.h>
#include <paracord/tensor.h>
#include <paracord/text.h>
#include <paracord/threads.h>
#include <paracord/trace.h>
#include <paracord/train.h>
#include <paracord/weights.h>

#endif
