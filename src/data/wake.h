/* wake.h: opening a device beside other work of the host: a GPU's first use in a process takes a tenth of a second or
 * two, and hardly any of the cores. */
#ifndef PC__WAKE_H
#define PC__WAKE_H

#include <paracord/device.h>
#include <pthread.h>

typedef struct pc__wake {
    pthread_t thread;
    pc_device device;
    bool running;
} pc__wake;

/* Begin, for any device. Whatever goes wrong is told again to whoever uses the device. */
void pc__wake_begin(pc__wake *wake, pc_device device);
void pc__wake_end(pc__wake *wake);

#endif
