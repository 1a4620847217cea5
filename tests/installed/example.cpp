// A program of a user: what the installed headers and library promise, from C++.
#include <cstdio>
#include <cstring>
#include <paracord/device.h>
#include <paracord/scope.h>

int main()
{
    static int dropped = 0;
    PC_SCOPE {
        if (pc_scope_own(&dropped, [](void *object) { ++*static_cast<int *>(object); }) != PC_OK)
            return pc_report(stderr);
    }
    if (dropped != 1 || std::strcmp(pc_version(), PC_VERSION) != 0)
        return 1;
    char name[PC_DEVICE_NAME_MAX];
    std::printf("paracord %s on %s from C++\n", pc_version(), pc_device_name(PC_DEVICE_CPU, name));
    return pc_failed() ? pc_report(stderr) : 0;
}
