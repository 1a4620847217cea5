/* Drivers that do not work, played by a libcuda.so.1 of ours in front of the real one: the CUDA plug-in opens, gives no
 * device, and says why and what to do. Each case is this program again, since the loader reads its path at the start.
 */
#include "again.h"

#include <paracord/device.h>
#include <stdio.h>

static int ask(void)
{
    char why[512] = "";
    pc_device device;
    int count = pc_device_count(PC_CUDA, why, sizeof why);
    bool fine = count == 0 && pc_device_parse("auto", &device) == PC_OK && device.type != PC_CUDA;
    pc_error_clear();
    fine = fine && pc_device_parse("cuda", &device) == PC_ERR_DEVICE && strstr(pc_error_last()->message, why);
    printf("%s", why);
    return fine ? 0 : 1;
}

static void none(const char *driver, const char *visible, const char *const *words)
{
    char said[1024];
    const char *const environment[] = {"FAKE_DRIVER", driver, "CUDA_VISIBLE_DEVICES", visible, NULL};
    ask_again(PC_TEST_PLUGINS, environment, said, sizeof said);
    for (; *words; words++)
        if (!strstr(said, *words))
            fail_msg("driver %s: no \"%s\" in \"%s\"", driver, *words, said);
}
#define NONE(driver, visible, ...) none((driver), (visible), (const char *const[]){__VA_ARGS__, NULL})

/* Only where this build has the plug-in is there a driver to play. */
static bool can_play(void)
{
    return access(PC_TEST_PLUGINS "/libcuda.so.1", R_OK) == 0;
}

static void too_old(void **state)
{
    (void)state;
    if (!can_play())
        skip();
    NONE("12020 0", NULL, "supports CUDA 12.2, this build needs 1", "update the driver");
    NONE("9000 0", NULL, "supports CUDA 9.0, this build needs 1", "update the driver");
    NONE("11080 803", NULL, "supports CUDA 11.8", "update the driver");
}

static void nothing_there(void **state)
{
    (void)state;
    if (!can_play())
        skip();
    NONE("99000 100", NULL, "the NVIDIA driver finds no GPU");
    NONE("99000 100", "", "no GPU is visible (CUDA_VISIBLE_DEVICES=)");
    NONE("99000 100", "7", "CUDA_VISIBLE_DEVICES=7");
}

static void does_not_start(void **state)
{
    (void)state;
    if (!can_play())
        skip();
    NONE("99000 803", NULL, "CUDA does not start", "cudaErrorSystemDriverMismatch", "restart the machine");
    NONE("99000 802", NULL, "cudaErrorSystemNotReady", "systemctl start nvidia-fabricmanager");
    NONE("99000 804", NULL, "cudaErrorCompatNotSupportedOnDevice", "LD_LIBRARY_PATH");
    NONE("99000 34", NULL, "cudaErrorStubLibrary", "stubs");
    NONE("99000 304", NULL, "cudaErrorOperatingSystem", "/dev/nvidia");
    NONE("99000 46", NULL, "cudaErrorDevicesUnavailable", "exclusive");
    NONE("99000 999", NULL, "cudaErrorUnknown", "nvidia-modprobe");
    NONE("99000 2", NULL, "CUDA does not start", "cudaErrorMemoryAllocation");
    NONE("99000 0", NULL, "CUDA does not start", "cudaErrorNotSupported"); /* it starts, and can do nothing */
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "ask"))
        return ask();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_old),
        cmocka_unit_test(nothing_there),
        cmocka_unit_test(does_not_start),
    };
    return cmocka_run_group_tests_name("device.driver", tests, NULL, NULL);
}
