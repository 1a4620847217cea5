/* paracord-tools.h: everything in libparacord-tools: what is known of machines, of runs and of their times, beside
 * paracord.h, which computes. Each header of paracord-tools/ can also be included, and read, alone. */
#ifndef PARACORD_TOOLS_H
#define PARACORD_TOOLS_H

#include <paracord-tools/calls.h>
#include <paracord-tools/cloud.h>
#include <paracord-tools/doctor.h>
#include <paracord-tools/draw.h>
#include <paracord-tools/launch.h>
#include <paracord-tools/peers.h>
#include <paracord-tools/probe.h>
#include <paracord-tools/ras.h>
#include <paracord-tools/report.h>
#include <paracord-tools/timeline.h>

#endif
