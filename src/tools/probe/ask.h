/* ask.h: what the child that asks the driver's libraries writes, a line each:
 *
 *     call nvmlInit_v2             what it is about to call: where it hangs, if it does
 *     slow cuInit                  the same, of a call that may take four times as long
 *     nvml = 13.580.65.06          a fact of the machine, and below "gpu" of that device
 *     driver ! the reason          an unknown one
 *     gpu 0000:01:00.0             what follows is of the device at this address
 *     link 3 gpu 0000:02:00.0      an NVLink that is up: its number, the kind of its other end, that one's address
 *     process 4711 compute 1048576 its memory in bytes, ? when unknown
 *     mig MIG-... 1048576
 *     cuda 0 0000:01:00.0          a device's index in CUDA order
 *     lost 3 the reason            a GPU that the driver lists and cannot open
 *     done
 *
 * These lines, without the calls, are answers/nvml of a recorded machine; "hang NAME" there stands for a call that did
 * not answer.
 */
#ifndef PC__PROBE_ASK_H
#define PC__PROBE_ASK_H

#include "base/base.h"

/* CUDA's address of a GPU that is in no PCI tree. */
#define PC__ADDRESS_INTEGRATED "0000:00:00.0"

/* The child's side: where it writes. */
typedef struct pc__answer {
    int to;
} pc__answer;

void pc__say(pc__answer *answer, const char *format, ...) PC_PRINTF(2, 3);

/* ask_nvml.c: open the library (NULL: the usual one) and ask; with `again` only what changes. */
void pc__ask_nvml(pc__answer *answer, const char *library, bool again);

/* ask_cuda.c: the newest CUDA of the driver, and the order in which CUDA counts devices. Makes no context. */
void pc__ask_cuda(pc__answer *answer);

#endif
