/* Fuzz target: recorded machines of any bytes, probed and examined. */
#include "fuzz/fuzz.h"

#include <paracord-tools/doctor.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    pc_machine *machine = pc_machine(.root = pc__fuzz_file(bytes, n));
    if (machine)
        pc_diagnosis_free(pc_diagnosis(machine, .job = PC_JOB_ANY));
    pc_machine_free(machine);
    pc_error_clear();
    return 0;
}
