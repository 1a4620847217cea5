/* machine.c: the machine that a command looks at. */
#include "machine.h"

bool cli_machine_awake(const pc_machine *m)
{
    int nvidia = 0, asleep = 0;
    for (int i = 0; i < m->device_count; i++) {
        nvidia += m->devices[i].nvidia;
        asleep += m->devices[i].nvidia && m->devices[i].asleep;
    }
    return !m->hung && !(nvidia && asleep == nvidia);
}

int cli_with_machine(const cli_call *call, const cli_machine_from *from,
                     int (*then)(const cli_call *call, pc_machine *machine))
{
    pc_machine *machine = pc_machine(.root = from->root, .timeout_ms = from->timeout, .recording = from->record != NULL,
                                     .wake = from->wake);
    if (!machine)
        return cli_failed(call->command);
    int status = then(call, machine);
    pc_machine_free(machine);
    return status;
}
