/* errors_later.c: queued work fails after the call that queued it has returned. The error comes with the next wait, and
 * names the op and the line that queued it. Faults are injected, so this runs on a simulated device. */
#include <paracord.h>

static pc_tensor *queue(pc_tensor *x)
{
    pc_tensor *a = pc_tanh(x);
    pc_tensor *b = pc_exp(a); /* this one will fail */
    pc_tensor *c = pc_neg(b); /* and this will not be computed from what is not there */
    return c;
}

static void lesson(pc_device dev, pc_sim_fault fault, const char *what)
{
    PC_SCOPE
        PC_TRACE_RANGE(what) {
            pc_tensor *x = pc_ones(PC_SHAPE(1000), PC_F32, dev);
            if (pc_stream_synchronize(NULL) == PC_OK && pc_sim_inject(dev, fault, 2) == PC_OK) {
                pc_tensor *c = queue(x);
                printf("%s: queuing went %s\n", what, c ? "well" : "wrong");
            }
            pc_status status = pc_stream_synchronize(NULL);
            printf("  waiting: %s: %s\n", pc_status_name(status), pc_error_last()->message);
            pc_error_clear();
            double sum = pc_item(pc_sum(pc_ones(PC_SHAPE(10), PC_F32, dev)));
            printf("  afterwards: %s\n", sum == 10 ? "the device computes as before" : pc_error_last()->message);
            pc_error_clear();
        }
}

int main(void)
{
    pc_sim_options options = PC_OPTIONS(pc_sim_options, .devices = 1, .kernels = 1, .kernel_time = 2e-3);
    pc_device dev;
    if (pc_sim_configure(options) != PC_OK || pc_device_parse("sim:0", &dev) != PC_OK ||
        pc_device_set_current(dev) != PC_OK)
        return pc_report(stderr);
    PC_TRACE_RANGE("errors_later") {
        lesson(dev, PC_SIM_FAIL_KERNEL, "a kernel fails");
        lesson(dev, PC_SIM_LOSE, "the device is lost");
    }
    return pc_failed() ? pc_report(stderr) : 0;
}
