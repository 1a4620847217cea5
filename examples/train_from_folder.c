/* train_from_folder.c: folders of pictures, a network and a training loop of your own; the network goes to a Keras file
 * and comes back from it to name pictures it has not seen. Writes pets/ and pets.h5 where it runs. */
#include <paracord-tools.h>
#include <paracord.h>

static pc_status train(pc_module *net, pc_optimizer *adam, pc_loader *pictures)
{
    pc_batch batch;
    for (int epoch = 1; epoch <= 12; epoch++) {
        double sum = 0;
        while (pc_loader_next(pictures, &batch))
            PC_SCOPE {
                pc_tensor *loss = pc_bce_with_logits(pc_forward(net, batch.x), batch.y);
                if (pc_backward(loss) != PC_OK || pc_optimizer_step(adam) != PC_OK)
                    return pc_error_last()->status;
                sum += pc_item(loss) * (double)batch.n;
            }
        if (pc_failed()) /* not the end of the epoch, then */
            return pc_error_last()->status;
        printf("epoch %d  loss %.4f\n", epoch, sum / (double)pc_loader_count(pictures));
    }
    return PC_OK;
}

static void predict(pc_module *net, pc_loader *pictures)
{
    pc_batch batch;
    pc_picture picture;
    if (pc_loader_next(pictures, &batch))
        PC_SCOPE {
            pc_tensor *probability = pc_predict(net, batch.x);
            for (int64_t i = 0; i < batch.n && pc_loader_picture(pictures, batch.sample[i], &picture) == PC_OK; i++) {
                double p = pc_item(pc_slice(probability, 0, i, i + 1, 1));
                printf("%-16s %s (%.3f)\n", picture.path, pc_loader_class_name(pictures, p >= 0.5), p);
            }
        }
}

int main(void)
{
    pc_draw_options drawn = {.train = 400, .test = 4, .size = 96};
    if (pc_draw_picture_set("pets", drawn) != PC_OK)
        return pc_report(stderr);
    pc_module *net =
        pc_sequential(pc_conv2d(3, 32, 3, .stride = 3, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2),
                      pc_flatten(), pc_linear(3200, 128, .activation = PC_ACTIVATION_RELU), pc_linear(128, 1));
    pc_optimizer *adam = pc_adam(net, .lr = 1e-3);
    pc_loader *pictures = pc_loader("pets/train", .size = 64, .shuffle = true, .flip = true);
    pc_keras_options file = {.height = 64, .width = 64, .channels = 3, .head = PC_KERAS_SIGMOID, .optimizer = adam};
    if (pictures && adam && train(net, adam, pictures) == PC_OK && pc_keras_save("pets.h5", net, file) == PC_OK) {
        pc_module *again = pc_keras_load("pets.h5", NULL);
        pc_loader *test = pc_loader("pets/test", .size = 64);
        predict(again, test);
        pc_loader_free(test);
        pc_module_free(again);
    }
    pc_loader_free(pictures);
    pc_optimizer_free(adam);
    pc_module_free(net);
    return pc_failed() ? pc_report(stderr) : 0;
}
