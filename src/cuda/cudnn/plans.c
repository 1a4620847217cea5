/* plans.c: from a graph to a plan for it: cuDNN guesses which engines are the fastest, and each has its plan. */
#include "cuda/cudnn/builder.h"

#if PC__HAVE_CUDNN

#include "base/base.h"

int pc__cudnn_configs(const pc__cudnn_target *target, cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode,
                      cudnnBackendDescriptor_t *configs, int most)
{
    int64_t found = 0;
    pc__cudnn_builder b = {.target = target};
    const cudnnBackendDescriptor_t guesses = pc__cudnn_make(&b, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    pc__cudnn_set_descriptor(&b, guesses, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    pc__cudnn_set(&b, guesses, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
#if CUDNN_VERSION >= 90800
    if (!target->handle)
        pc__cudnn_set_descriptor(&b, guesses, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, target->properties);
#endif
    pc__cudnn_finish(&b, guesses);
    for (int i = 0; i < most; i++)
        if (pc__cudnn.BackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[i]) != CUDNN_STATUS_SUCCESS)
            b.failed = true, configs[i] = NULL;
    if (b.failed || pc__cudnn.BackendGetAttribute(guesses, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                                  most, &found, configs) != CUDNN_STATUS_SUCCESS)
        found = 0;
    const int count = (int)PC__MIN(found, most);
    pc__cudnn_destroy(configs + count, most - count);
    pc__cudnn_destroy(b.made, b.count);
    return count;
}

bool pc__cudnn_plan_of(const pc__cudnn_target *target, cudnnBackendDescriptor_t config, cudnnBackendDescriptor_t *plan,
                       int64_t *workspace)
{
    pc__cudnn_builder b = {.target = target};
    int64_t one;
    *plan = pc__cudnn_make(&b, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (target->handle)
        pc__cudnn_set(&b, *plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &target->handle);
#if CUDNN_VERSION >= 90800
    else
        pc__cudnn_set_descriptor(&b, *plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, target->properties);
#endif
    pc__cudnn_set_descriptor(&b, *plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    pc__cudnn_finish(&b, *plan);
    if (!b.failed && pc__cudnn.BackendGetAttribute(*plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                                   &one, workspace) == CUDNN_STATUS_SUCCESS)
        return true;
    pc__cudnn_destroy(b.made, b.count);
    *plan = NULL;
    return false;
}

#endif
