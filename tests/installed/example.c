/* A program of a user: what the installed headers and library promise, from C. */
#include <paracord/device.h>
#include <paracord/scope.h>
#include <stdio.h>
#include <string.h>

static int dropped;

static void drop(void *object)
{
    dropped += *(int *)object;
}

int main(void)
{
    int one = 1;
    PC_SCOPE {
        if (pc_scope_own(&one, drop) != PC_OK)
            return pc_report(stderr);
    }
    if (dropped != 1 || strcmp(pc_version(), PC_VERSION) != 0)
        return 1;
    pc_device cpu = pc_device_pick("cpu");
    pc_device wrong = pc_device_pick("toaster:7");
    char name[PC_DEVICE_NAME_MAX];
    if (wrong.type != -1 || !pc_failed() || pc_error_last()->status != PC_ERR_ARGUMENT)
        return 1;
    pc_error_clear();
    printf("paracord %s on %s from C\n", pc_version(), pc_device_name(cpu, name));
    return pc_failed() ? pc_report(stderr) : 0;
}
