/* topo_ways.h: what collectives between GPUs will do, beside the matrix of their links. */
#ifndef CLI_TOPO_WAYS_H
#define CLI_TOPO_WAYS_H

#include <paracord-tools/probe.h>

/* Of the devices index[0..count-1], which the matrix numbers from 0: for people (nothing where there are no two GPUs), and
 * as members "collectives" and "advice" of a JSON object, without a comma around them. */
void cli_topo_ways(pc_machine *m, const int *index, int count);
void cli_topo_ways_json(pc_machine *m, const int *index, int count);

#endif
