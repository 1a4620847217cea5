/* names.h: pc__op_names (device/plugin.h), for the one file of a library or plug-in that defines it. */
#include "device/plugin.h"

const char pc__op_names[] =
#define PC__OP(name, outputs, flags, infer, gradient) #name " "
#define PC__VIEW_OP(name, infer, gradient) #name " "
#include "ops/ops.def"
#undef PC__OP
#undef PC__VIEW_OP
    ;
