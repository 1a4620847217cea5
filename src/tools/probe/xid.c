/* xid.c: the numbers that the driver writes into the kernel log when something went wrong. After NVIDIA's document
 * "XID Errors" (docs.nvidia.com/deploy/xid-errors). {gpu} in an advice stands for the number or address of the GPU. */
#include "probe/doctor.h"

static const char program[] = "# look for the error in the program: compute-sanitizer PROGRAM";
static const char reset[] = "# stop what uses the GPU, then: sudo nvidia-smi --gpu-reset -i {gpu}";
static const char reboot[] =
    "sudo reboot\n# when it comes back: sudo nvidia-bug-report.sh, and have the card, its slot and power looked at";
static const char links[] =
    "nvidia-smi nvlink -e # which link counts errors\nsudo nvidia-smi --gpu-reset # of all GPUs "
    "at once; if it comes again, have bridge or board looked at";
static const char replace[] = "# run NVIDIA's field diagnostics; if it comes again, have the card replaced";

static const struct {
    int xid;
    bool harmless;
    const char *meaning, *advice;
} known[] = {
    {8, false, "the GPU stopped working on a queue for too long", reset},
    {13, true, "a program made the graphics engine fault, mostly by reading or writing outside its memory", program},
    {31, true, "a program used an address that is none of its own (MMU fault)", program},
    {32, false, "a queue of commands was corrupt: the PCIe link or the memory of the host is suspect", reboot},
    {38, false, "the driver's firmware failed", reset},
    {43, true, "a program was stopped after its own fault; the GPU itself is well", program},
    {44, false, "the graphics engine failed while switching programs", reset},
    {45, true, "the driver took a program's queues away, mostly because it was ended", program},
    {46, false, "the GPU stopped working", reset},
    {48, false, "a memory error of two bits that ECC cannot correct", reset},
    {56, false, "the display engine failed", reboot},
    {57, false, "the memory interface could not be trained: the card is suspect", replace},
    {58, false, "a memory clock could not be set", replace},
    {61, false, "the GPU's own controller met a breakpoint: its firmware failed", reset},
    {62, false, "the GPU's own controller halted: its firmware failed", reset},
    {63, false, "a broken row of memory was set aside; a reset puts the spare one in its place", reset},
    {64, false, "a broken row of memory could not be set aside", replace},
    {68, false, "the video decoder failed", reset},
    {69, false, "the graphics engine met a class of commands that it does not have", program},
    {73, false, "the video encoder failed", reset},
    {74, false, "an NVLink failed", links},
    {79, false, "the GPU fell off the bus: PCIe no longer reaches it (power, heat, slot or card)", reboot},
    {92, false, "very many memory errors of one bit", replace},
    {94, false, "a memory error that could not be corrected was kept to the program that met it", reset},
    {95, false, "a memory error that could not be corrected may have reached several programs", reset},
    {109, false, "switching programs took too long", reset},
    {110, false, "a security fault of the GPU's firmware", replace},
    {119, false, "the GPU's system processor (GSP) did not answer",
     "sudo reboot\n# update the driver; where it comes again: echo 'options nvidia NVreg_EnableGpuFirmware=0' | sudo "
     "tee /etc/modprobe.d/nvidia-gsp.conf"},
    {120, false, "the GPU's system processor (GSP) failed", reboot},
    {121, true, "errors on the link between chips were corrected", "# nothing, unless there are many"},
    {122, false, "the information in the card's flash memory cannot be read or written", replace},
    {123, false, "the GPU's power controller failed", reset},
    {136, false, "an NVLink link could not be trained", reset},
    {137, false, "a program used memory of another GPU that is not there (NVLink fault)", program},
    {140, false, "an ECC error in an unusual place could not be corrected", reset},
    {143, false, "the GPU failed to start", reboot},
    {144, false, "an NVLink met an error", links},
    {145, false, "an NVLink met an error", links},
    {146, false, "an NVLink met an error", links},
    {147, false, "an NVLink met an error", links},
    {148, false, "an NVLink met an error", links},
    {149, false, "an NVLink met an error", links},
    {150, false, "an NVLink met an error", links},
    {154, false, "the driver says what the GPU needs to recover: see the log",
     "sudo dmesg | grep 'Xid.*154' | tail -n 3"},
};

const char *pc__xid_meaning(int xid, bool *harmless, const char **advice)
{
    for (int i = 0; i < PC__COUNT(known); i++)
        if (known[i].xid == xid) {
            *harmless = known[i].harmless;
            *advice = known[i].advice;
            return known[i].meaning;
        }
    return NULL;
}
