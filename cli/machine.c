/* machine.c: the machine that a command looks at. */
#include "machine.h"

int cli_with_machine(const cli_call *call, const cli_machine_from *from,
                     int (*then)(const cli_call *call, pc_machine *machine))
{
    pc_machine *machine = pc_machine_probe(
        &(pc_probe_options){.root = from->root, .timeout_ms = from->timeout, .recording = from->record != NULL});
    if (!machine)
        return cli_failed(call->command);
    int status = then(call, machine);
    pc_machine_free(machine);
    return status;
}
