/* ask_cuda.c: what the CUDA driver says without a context: its version, whether it starts, and its order of devices.
 * Runs in the child process of ask.c alone. */
#include "probe/ask.h"

#include <dlfcn.h>

/* Whoever asks for devices in CUDA order wants them as this environment has them: CUDA_VISIBLE_DEVICES counts. */
static void say_order(pc__answer *answer, void *cuda)
{
    int count = 0, device;
    int (*how_many)(int *) = (int (*)(int *))dlsym(cuda, "cuDeviceGetCount");
    int (*get)(int *, int) = (int (*)(int *, int))dlsym(cuda, "cuDeviceGet");
    int (*address)(char *, int, int) = (int (*)(char *, int, int))dlsym(cuda, "cuDeviceGetPCIBusId");
    if (!how_many || !get || !address || how_many(&count))
        return;
    for (int i = 0; i < count; i++) {
        char text[32] = "";
        if (!get(&device, i) && !address(text, sizeof text, device))
            pc__say(answer, "cuda %d %s", i, text);
    }
}

void pc__ask_cuda(pc__answer *answer)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!cuda) {
        pc__say(answer, "cuda_init ! %s", dlerror());
        return;
    }
    int version = 0;
    int (*get_version)(int *) = (int (*)(int *))dlsym(cuda, "cuDriverGetVersion");
    int (*start)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
    int (*text)(int, const char **) = (int (*)(int, const char **))dlsym(cuda, "cuGetErrorString");
    if (!get_version || !start) {
        pc__say(answer, "cuda_init ! libcuda.so.1 is not NVIDIA's");
        return;
    }
    pc__say(answer, "call cuDriverGetVersion");
    if (!get_version(&version) && version)
        pc__say(answer, "cuda_driver = %d.%d", version / 1000, version % 1000 / 10);
    pc__say(answer, "slow cuInit");
    int code = start(0);
    const char *words = NULL;
    if (code && text && text(code, &words))
        words = NULL;
    if (code) {
        pc__say(answer, "cuda_init = error %d: %s", code, words ? words : "unknown");
        return;
    }
    pc__say(answer, "cuda_init = works");
    say_order(answer, cuda);
}
