/* peers.c: copies between two devices: how fast, and whether the bytes arrive. */
#include "peers.h"

#include <stdlib.h>
#include <string.h>

#include <paracord/scope.h>
#include <paracord/stream.h>
#include <paracord/tensor.h>

#include "clock.h"

#define LARGE 8  /* copies of a measurement */
#define SMALL 41 /* the median of so many */

/* `count` copies queued one behind the other, then one wait; NULL clears nothing. */
static pc_status copy(pc_tensor *from, pc_device to, int count, double *seconds)
{
    double begin = cli_now();
    for (int i = 0; i < count; i++)
        PC_SCOPE {
            if (!pc_to(from, to, pc_tensor_dtype(from), true))
                return pc_error_last()->status;
        }
    if (pc_device_synchronize(to) != PC_OK || pc_device_synchronize(pc_tensor_device(from)) != PC_OK)
        return pc_error_last()->status;
    *seconds = (cli_now() - begin) / count;
    return PC_OK;
}

/* Numbers that name their place, so that a byte out of its place shows. */
static pc_status check(pc_device from, pc_device to, int64_t bytes, bool *intact)
{
    int64_t count = bytes / 4;
    int32_t *sent = malloc((size_t)count * 4), *arrived = malloc((size_t)count * 4);
    pc_status status = sent && arrived ? PC_OK : pc_fail(PC_ERR_MEMORY, "no memory to compare what was copied");
    for (int64_t i = 0; status == PC_OK && i < count; i++)
        sent[i] = (int32_t)((uint32_t)i * 2654435761u + 12345u);
    PC_SCOPE {
        pc_tensor *a = status == PC_OK ? pc_from_data(sent, PC_SHAPE(count), PC_I32, from) : NULL;
        pc_tensor *b = a ? pc_to(a, to, PC_I32, false) : NULL;
        if (status == PC_OK)
            status = b ? pc_read(b, arrived, (size_t)count * 4) : pc_error_last()->status;
        *intact = status == PC_OK && !memcmp(sent, arrived, (size_t)count * 4);
    }
    free(sent);
    free(arrived);
    return status;
}

pc_status cli_peer_measure(pc_device from, pc_device to, int64_t bytes, cli_peer *result)
{
    double seconds = 0, small[SMALL] = {0};
    pc_status status = check(from, to, bytes < (16 << 20) ? bytes : (16 << 20), &result->intact);
    PC_SCOPE {
        pc_tensor *large = pc_zeros(PC_SHAPE(bytes), PC_U8, from), *little = pc_zeros(PC_SHAPE(1), PC_I32, from);
        if (status == PC_OK && (!large || !little))
            status = pc_error_last()->status;
        if (status == PC_OK)
            status = copy(large, to, 2, &seconds); /* the first ones make room and open the way */
        if (status == PC_OK)
            status = copy(large, to, LARGE, &seconds);
        for (int i = 0; status == PC_OK && i < SMALL; i++)
            status = copy(little, to, 1, &small[i]);
    }
    cli_sort(small, SMALL);
    result->bandwidth = seconds > 0 ? (double)bytes / seconds : 0;
    result->latency = small[SMALL / 2];
    return status;
}
