/* narrow.c: gradients of float32 that cross the links in 16 bits. They are cast on the group's stream, beside what is computed,
 * and are float32 again in their bucket. */
#include "parallel/narrow.h"

#include "dist/group.h"
#include "ops/table.h"

#include <paracord/no_grad.h>
#include <paracord/ops.h>
#include <paracord/stream.h>

static bool is_narrow(pc_dtype dtype)
{
    return dtype == PC_F16 || dtype == PC_BF16;
}

pc_status pc__narrow_check(const char *who, pc_dtype dtype)
{
    if (dtype == 0 || dtype == PC_F32 || is_narrow(dtype))
        return PC_OK;
    return pc__fail(PC_ERR_ARGUMENT,
                    "%s: gradients are reduced in bfloat16 or float16, or, by 0, as they are, not in %s (reduce_dtype)",
                    who, pc_dtype_name(dtype));
}

static bool narrows(const pc__reducer *r, const pc_tensor *flat)
{
    return is_narrow(r->how.dtype) && flat->dtype == PC_F32 && r->group->size > 1;
}

/* In the current stream, the group's. `part` may be `flat`. */
static pc_status narrowed(const pc__reducer *r, pc_tensor *part, pc_tensor *flat)
{
    const pc_dtype dtype = r->how.dtype;
    pc_tensor *narrow = pc__as_dtype(flat, dtype);
    pc_tensor *own = part == flat ? narrow : pc_empty(pc_tensor_shape(part), dtype, pc_tensor_device(part));
    if (!narrow || !own)
        return pc_error_last()->status;
    if (part == flat)
        PC__TRY(pc_group_all_reduce(r->group, narrow, PC_GROUP_MEAN));
    else
        PC__TRY(pc_group_reduce_scatter(r->group, own, narrow, PC_GROUP_MEAN));
    return pc_copy(part, own);
}

static pc_status reduce(const pc__reducer *r, pc_tensor *part, pc_tensor *flat)
{
    pc_stream *stream = pc_group_stream(r->group, pc_tensor_device(flat));
    pc_status status = stream ? PC_OK : pc_error_last()->status;
    if (status == PC_OK)
        PC_SCOPE {
            PC_NO_GRAD {
                PC_WITH_STREAM(stream) {
                    status = narrowed(r, part, flat);
                }
            }
        }
    return status;
}

pc_status pc__narrow_all_reduce(const pc__reducer *r, pc_tensor *flat)
{
    return narrows(r, flat) ? reduce(r, flat, flat) : pc_group_all_reduce(r->group, flat, PC_GROUP_MEAN);
}

pc_status pc__narrow_reduce_scatter(const pc__reducer *r, pc_tensor *part, pc_tensor *flat)
{
    return narrows(r, flat) ? reduce(r, part, flat) : pc_group_reduce_scatter(r->group, part, flat, PC_GROUP_MEAN);
}
