/* nvrm_words.c: the driver's numbers in words. Those of "RmInitAdapter failed! (0x62:0x65:1792)" are a step of the
 * start, a status and a line of its source; after osinit.c and nvstatuscodes.h of NVIDIA's open-gpu-kernel-modules. */
#include "probe/doctor.h"

static const struct {
    int number;
    const char *words;
} steps[] = {
    {0x10, "mapping its registers"},
    {0x11, "checking the system around it"},
    {0x20, "making room for it"},
    {0x21, "making a device of it"},
    {0x22, "attaching to it"},
    {0x23, "preparing it"},
    {0x24, "starting its parts"},
    {0x25, "loading its parts"},
    {0x26, "checking it and its access to memory"},
    {0x27, "checking its access to memory"},
    {0x30, "reading its VBIOS"},
    {0x31, "running its VBIOS"},
    {0x32, "running its VBIOS"},
    {0x40, "linking it with others"},
    {0x41, "starting its watchdog"},
    {0x60, "choosing its firmware"},
    {0x61, "fetching its firmware"},
    {0x62, "starting its firmware"},
    {0x63, "starting its firmware"},
};

static const struct {
    int number;
    const char *words;
} statuses[] = {
    {0x01, "its memory is broken"},
    {0x05, "no card answers"},
    {0x0b, "an ECC error"},
    {0x0f, "it is lost from the bus"},
    {0x10, "it is being reset"},
    {0x11, "it has not its full power"},
    {0x1a, "a resource ran out"},
    {0x1c, "too little power"},
    {0x1f, "an argument was refused"},
    {0x25, "its data are invalid"},
    {0x26, "the device is not valid"},
    {0x38, "the operation is not valid in this state"},
    {0x40, "it is in a state that does not allow it"},
    {0x45, "its interrupts do not arrive"},
    {0x46, "its interrupts are edge triggered"},
    {0x47, "its memory could not be trained"},
    {0x51, "no memory of the host was left"},
    {0x55, "it was not ready"},
    {0x56, "this driver does not support it"},
    {0x57, "something was not found"},
    {0x59, "the operating system refused"},
    {0x61, "its VBIOS was rejected"},
    {0x62, "it needs a reset first"},
    {0x65, "it did not answer in time"},
    {0x66, "it did not answer in time"},
    {0x6b, "its security refused"},
    {0x6f, "its power controller was not ready"},
    {0x70, "one of its controllers halted"},
    {0x71, "a fatal error"},
    {0x72, "a memory error"},
    {0x74, "NVLink could not be started"},
    {0x77, "NVLink could not be trained"},
    {0x79, "one of its controllers halted"},
    {0x7f, "its firmware could not be verified"},
    {0xffff, "a failure without a name"},
};

void pc__nvrm_words(int step, int status, char said[PC__NVRM_SAID])
{
    const char *where = NULL, *why = NULL;
    for (int i = 0; i < PC__COUNT(steps); i++)
        where = steps[i].number == step ? steps[i].words : where;
    for (int i = 0; i < PC__COUNT(statuses); i++)
        why = statuses[i].number == status ? statuses[i].words : why;
    snprintf(said, PC__NVRM_SAID, "It failed at step 0x%02x%s%s%s with status 0x%02x%s%s%s.", (unsigned)step,
             where ? " (" : "", where ? where : "", where ? ")" : "", (unsigned)status, why ? " (" : "", why ? why : "",
             why ? ")" : "");
}
