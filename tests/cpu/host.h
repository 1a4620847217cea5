/* host.h: device.h for tests of the CPU's own kernels, which are not repeated on other devices. */
#ifndef PC_TEST_HOST_H
#define PC_TEST_HOST_H

#include "device.h"

#endif
