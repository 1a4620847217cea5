/* doctor_health.c: is each GPU's memory well, and does anything hold its clocks down? */
#include "probe/doctor.h"

static bool more_than(const pc_fact *fact, double least)
{
    return fact->known && fact->number > least;
}

const char *pc__index_of(pc__exam *e, const pc_probe_device *d)
{
    return d->index_pci.known ? pc__keepf(e->m, "%.0f", d->index_pci.number) : d->address.text;
}

/* A bad row has several signs: counters of NVML and Xids of the log are one finding. */
void pc__check_ecc(pc__exam *e)
{
    int i = 0;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));) {
        bool failed = more_than(&d->rows_failed, 0), pending = more_than(&d->rows_pending, 0);
        bool uncorrected = more_than(&d->ecc_uncorrected, 0);
        if (!failed && !pending && !uncorrected)
            continue;
        pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, d);
        if (failed)
            pc__what(e, f, "The GPU's memory has more broken rows than it can replace.");
        else if (pending)
            pc__what(e, f, "A broken row of the GPU's memory waits for a reset to be replaced.");
        else
            pc__what(e, f, "The GPU's memory had errors that ECC could not correct: results since then may be wrong.");
        if (failed)
            pc__how(e, f, "NVML: replacing memory rows failed.");
        if (pending)
            pc__how(e, f, "NVML: remapped rows pending; uncorrected so far: %.0f.",
                    d->rows_remapped_uncorrected.known ? d->rows_remapped_uncorrected.number : 0);
        if (uncorrected)
            pc__how(e, f, "NVML counts %.0f uncorrected errors since the driver was loaded.",
                    d->ecc_uncorrected.number);
        pc__xid_quote_memory(e, f, d);
        if (failed) {
            pc__fix(e, f, "# have the card replaced (RMA); take it out of use until then");
            continue;
        }
        pc__fix(e, f, "sudo nvidia-smi --gpu-reset -i %s # nothing may use it", pc__index_of(e, d));
        pc__fix(e, f, "# if it comes again, run NVIDIA's field diagnostics and have the card replaced");
    }
}

void pc__check_throttle(pc__exam *e)
{
    static const struct {
        const char *reason, *what, *fix;
    } causes[] = {
        {"hardware thermal slowdown", "The GPU is too hot and runs at half its clocks or less.",
         "# clean fans and filters, look at the air flow; nvidia-smi -q -d TEMPERATURE"},
        {"software thermal slowdown", "The GPU is near its highest temperature and lowers its clocks.",
         "# clean fans and filters, look at the air flow; nvidia-smi -q -d TEMPERATURE"},
        {"hardware power brake",
         "The power supply asked the GPU to brake: the machine has too little power for its cards.",
         "# look at the power supplies (all plugged in, redundancy), the power cap of the machine's controller, the "
         "cables"},
        {"hardware slowdown", "The hardware holds the GPU's clocks down: heat or power.",
         "# nvidia-smi -q -d TEMPERATURE,POWER says which; look at fans, power cables, power supplies"},
    };
    int i = 0;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));) {
        int found = -1;
        for (int c = 0; d->clock_reasons.known && found < 0 && c < PC__COUNT(causes); c++)
            if (strstr(d->clock_reasons.text, causes[c].reason))
                found = c;
        if (found >= 0) {
            pc_finding *f = pc__found(e, PC_SEVERITY_WRONG, d);
            pc__what(e, f, "%s", causes[found].what);
            pc__how(e, f, "Clocks held down by: %s; now %.0f C, %.0f W.", d->clock_reasons.text,
                    d->temperature.known ? d->temperature.number : 0, d->power.known ? d->power.number : 0);
            pc__fix(e, f, "%s", causes[found].fix);
        } else if (d->power_limit.known && d->power_limit_default.known &&
                   d->power_limit.number < 0.9 * d->power_limit_default.number) {
            pc_finding *f = pc__found(e, PC_SEVERITY_ADVICE, d);
            pc__what(e, f, "Somebody lowered the GPU's power limit.");
            pc__how(e, f, "It is %.0f W, and %.0f W by default.", d->power_limit.number, d->power_limit_default.number);
            pc__fix(e, f, "sudo nvidia-smi -i %s -pl %.0f # if that is not meant", pc__index_of(e, d),
                    d->power_limit_default.number);
        }
    }
}
