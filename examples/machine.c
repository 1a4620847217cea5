/* machine.c: what this machine has to compute on, and what is wrong with it. Works without a driver and without a GPU.
 */
#include <paracord-tools.h>

int main(void)
{
    pc_machine *m = pc_machine();
    if (!m)
        return pc_report(stderr);
    for (int i = 0; i < m->device_count; i++) {
        const pc_probe_device *d = &m->devices[i];
        printf("%s: %s\n", d->address.text, d->model.known ? d->model.text : d->model.why);
        if (d->memory_total.known) /* a fact is known, or has a reason: never 0 for "who knows" */
            printf("  %.0f MiB\n", d->memory_total.number / (1 << 20));
        else
            printf("  memory unknown: %s\n", d->memory_total.why);
    }
    pc_diagnosis *sick = pc_diagnosis(m, .job = PC_JOB_TRAIN);
    for (int i = 0; sick && i < sick->finding_count; i++)
        printf("%s\n%s\n", sick->findings[i].what, sick->findings[i].fix);
    printf("%d devices, %d things wrong\n", m->device_count, sick ? sick->wrong_count : -1);
    pc_diagnosis_free(sick);
    pc_machine_free(m);
    return pc_failed() ? pc_report(stderr) : 0;
}
