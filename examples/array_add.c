/* array_add.c: two arrays are added where that is fastest; and the questions that come before: is there a GPU, how
 * many, which is current, where is this tensor, what happens when a device is not there. */
#include <paracord.h>

int main(void)
{
    char text[256], name[PC_DEVICE_NAME_MAX];

    int gpus = pc_device_count(PC_CUDA, text, sizeof text);
    printf("GPUs: %d%s%s\n", gpus, gpus ? "" : ", because ", gpus ? "" : text);
    printf("devices: %s\n", pc_device_list(text, sizeof text));
    printf("current: %s\n", pc_device_name(pc_device_current(), name));

    pc_device dev = pc_device_pick("auto"); /* cuda:0 where there is one, else cpu */
    PC_SCOPE {
        pc_tensor *a = pc_arange(1, 7, 1, PC_I64, dev);
        pc_tensor *b = pc_arange(7, 13, 1, PC_I64, dev);
        pc_tensor *sum = pc_add(a, b);
        pc_print(sum);
        printf("the sum is on %s\n", pc_device_name(pc_tensor_device(sum), name));
    }
    if (pc_failed())
        return pc_report(stderr);

    if (pc_device_pick("cuda:99").type < 0) { /* no exit, no abort: an error to look at */
        printf("%s: %s\n", pc_status_name(pc_error_last()->status), pc_error_last()->message);
        pc_error_clear();
    }
    return 0;
}
