/* barrier.c: all ranks at one place, by names of the store: a deadline can tell who has not come. */
#include "store/client.h"

#include <paracord/dist.h>

static void put_name(pc__text *frame, const char *name, int rank)
{
    char key[PC__STORE_KEY_MAX + 1];
    snprintf(key, sizeof key, "barrier/%.200s/%d", name, rank);
    pc__put_text(frame, key);
}

/* "ranks 1, 3 have not come to NAME within 5 s". */
static pc_status missing(const char *name, pc__body *body, double seconds)
{
    char why[PC__WHY_MAX], ranks[128] = "", key[PC__STORE_KEY_MAX + 1];
    if (pc__dist_lost(NULL, why))
        return pc__fail(PC_ERR_LOST, "barrier %.100s: %s", name, why);
    const uint32_t count = pc__take_u32(body);
    for (size_t n = 0; body->at < body->end && !body->broken && n + 1 < sizeof ranks;) {
        pc__take_text(body, key, sizeof key);
        const char *slash = strrchr(key, '/');
        n += (size_t)snprintf(ranks + n, sizeof ranks - n, "%s%s", n ? ", " : "", slash ? slash + 1 : "?");
    }
    return pc__fail(PC_ERR_TIMEOUT, "barrier %.100s: of %d ranks %s%s ha%s not come within %.3g s", name,
                    pc_dist_size(), ranks, count > 8 ? ", ..." : "", count == 1 ? "s" : "ve", seconds);
}

static pc_status arrive(const char *name)
{
    pc__call call;
    pc__body body;
    pc__call_begin(&call, PC__WIRE_SET);
    put_name(&call.frame, name, pc_dist_rank());
    pc__put_bytes(&call.frame, NULL, 0);
    const pc_status status = pc__call_perform(&call, "barrier", PC__CALL_NOW, &body);
    pc__call_end(&call);
    return status;
}

pc_status pc__store_barrier(const char *name, double seconds)
{
    pc__call call;
    pc__body body;
    if (pc_dist_size() == 1)
        return PC_OK;
    PC__TRY(arrive(name));
    pc__call_begin(&call, PC__WIRE_WAIT);
    pc__put_u32(&call.frame, (uint32_t)pc_dist_size());
    for (int i = 0; i < pc_dist_size(); i++)
        put_name(&call.frame, name, i);
    pc_status status = pc__call_perform(&call, "barrier", PC__MAX(seconds, 0), &body);
    if (status == PC_OK && call.result != PC__WIRE_FINE)
        status = missing(name, &body, seconds);
    pc__call_end(&call);
    return status;
}
