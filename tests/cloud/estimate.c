/* What a training asks of a machine, and what each machine makes of it. */
#include "../data/pictures.h"

#include "cloud/work.h"
#include "data/folder.h"
#include "io/keras.h"
#include "train/arch.h"

#include <math.h>
#include <paracord-tools/draw.h>
#include <paracord/memory.h>
#include <paracord/keras.h>
#include <paracord/train.h>

static test_path root, data;
static pc_cloud *cloud;

static int prepare(void **state)
{
    (void)state;
    root = new_root();
    data = joined(root.s, "data");
    cloud = pc_cloud_open_builtin();
    return cloud &&
                   pc_draw_picture_set(data.s, PC_OPTIONS(pc_draw_options, .train = 10, .test = 4, .size = 32)) == PC_OK
               ? 0
               : -1;
}

static int tidy(void **state)
{
    (void)state;
    pc_cloud_free(cloud);
    remove_root(&root);
    return 0;
}

/* The article's network at 64: conv 3->32 of 3x3, stride 3 (21x21), pool 2 (10x10), 3200 -> 128 -> 1. By hand. */
static void network_is_counted(void **state)
{
    (void)state;
    pc_cloud_work w;
    pc_module *net = pc__arch_new("article", (pc__frame){64, 64, 3}, 1, PC_INIT_GLOROT);
    assert_not_null_ok(net);
    assert_ok(pc__cloud_count(net, (pc__frame){64, 64, 3}, &w));
    double conv = 2.0 * 32 * 21 * 21 * 27, dense = 2.0 * 3200 * 128, last = 2.0 * 128;
    double in = 3 * 64 * 64, a = 32 * 21 * 21, b = 3200, c = 128;
    assert_true(w.infer_flops == conv + dense + last);
    assert_true(w.train_flops == 2 * conv + 3 * (dense + last)); /* the picture needs no gradient */
    assert_true(w.infer_bytes == 4 * ((in + a) + (a + b) + (b + c) + (c + 1)));
    assert_true(w.train_bytes == 4 * ((2 * in + 3 * a) + 3 * ((a + b) + (b + c) + (c + 1))));
    assert_int_equal(w.parameters, 27 * 32 + 32 + 3200 * 128 + 128 + 128 + 1);
    assert_true(w.step_bytes == 40.0 * (double)w.parameters);
    assert_int_equal(w.layers, 4);
    assert_true(w.train_narrow == 0);
    pc_module_free(net);
    net = pc__arch_new("lenet", (pc__frame){32, 32, 3}, 1,
                       PC_INIT_GLOROT); /* 6 channels of 28 x 28, 16 of 10 x 10, 5 x 5 each */
    assert_ok(pc__cloud_count(net, (pc__frame){32, 32, 3}, &w));
    assert_true(w.infer_narrow == 2.0 * (6 * 28 * 28 * 75 + 16 * 10 * 10 * 150));
    assert_true(w.train_narrow == 2.0 * (2 * 6 * 28 * 28 * 75 + 3 * 16 * 10 * 10 * 150));
    pc_module_free(net);
}

/* What blocks compute, too; a few operations of attention aside, as pc_module_describe counts it. */
static void blocks_are_counted(void **state)
{
    (void)state;
    static const char *const names[] = {"resnet18", "resnet50", "mobilenet_v2", "vit_tiny"};
    static const double gflop[] = {3.63, 8.18, 0.602, 2.50};
    for (int i = 0; i < 4; i++) {
        pc_cloud_work w;
        pc_module *net = pc__arch_new(names[i], (pc__frame){224, 224, 3}, 1000, PC_INIT_GLOROT);
        assert_not_null_ok(net);
        assert_ok(pc__cloud_count(net, (pc__frame){224, 224, 3}, &w));
        if (!(fabs(w.infer_flops * 1e-9 - gflop[i]) <= 0.01 * gflop[i]))
            fail_msg("%s: %g GFLOP, and it is %g", names[i], w.infer_flops * 1e-9, gflop[i]);
        pc_module_free(net);
    }
}

/* What was measured on an H200 (us a step) and what the model makes of it. */
static void measured_steps_are_met(void **state)
{
    (void)state;
    static const struct {
        const char *arch;
        int size, batch;
        double us;
    } steps[] = {{"article", 64, 32, 26.3}, {"article", 64, 256, 85.0}, {"article", 224, 256, 571},
                 {"two-conv", 64, 32, 186}, {"two-conv", 64, 256, 976}, {"two-conv", 224, 256, 12433},
                 {"mlp", 64, 32, 75.4},     {"mlp", 128, 256, 453},     {"mlp", 224, 256, 1208},
                 {"lenet", 64, 32, 223},    {"lenet", 64, 256, 1226},   {"lenet", 224, 256, 13295}};
    const pc_cloud_gpu *h200 = pc_cloud_find_family(cloud, "p5en")->gpu;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        pc_cloud_work w;
        pc_module *net = pc__arch_new(steps[i].arch, (pc__frame){steps[i].size, steps[i].size, 3}, 1, PC_INIT_GLOROT);
        assert_not_null_ok(net);
        assert_ok(pc__cloud_count(net, (pc__frame){steps[i].size, steps[i].size, 3}, &w));
        assert_close(pc__cloud_step_time(&w, h200, steps[i].batch) * 1e6 / steps[i].us, 1,
                     pc_cloud_estimate_model().worst + 0.01);
        pc_module_free(net);
    }
}

static pc_cloud_job plan_of(const char *model, int epochs)
{
    pc_cloud_job job;
    pc_cloud_job_options plan = {.model = model, .folder = data.s, .epochs = epochs, .device = "cpu", .seconds = 0.01};
    assert_ok(pc_cloud_plan_job(cloud, plan, &job));
    return job;
}

/* A file of Keras with an output for each of two classes. */
static void two_outputs_are_measured(void **state)
{
    (void)state;
#if !PC_HAVE_HDF5
    skip();
#endif
    const test_path file = joined(root.s, "two.h5");
    pc_module *net = pc_sequential(pc_conv2d(3, 4, 3), pc_flatten(), pc_linear(4 * 14 * 14, 2));
    const pc_keras_options options = {.height = 16, .width = 16, .channels = 3, .head = PC_KERAS_SOFTMAX};
    assert_ok(pc_keras_save(file.s, net, options));
    pc_module_free(net);
    const pc_cloud_job job = plan_of(file.s, 1);
    assert_int_equal(job.height, 16);
    assert_true(job.here > 0);
}

/* (None, None, 3): the plan says what the file leaves open; (16, None, 3): that alone. */
static void open_sizes_are_chosen(void **state)
{
    (void)state;
#if !PC_HAVE_HDF5
    skip();
#endif
    const test_path file = joined(root.s, "open.h5");
    for (int half = 0; half < 2; half++) {
        pc__keras_model model = {.input_rank = 3, .input_shape = {half ? 16 : -1, -1, 3}};
        assert_not_null_ok(pc__keras_add(&model, PC__KERAS_GLOBAL_AVG_POOL2D));
        pc__keras_layer *layer = pc__keras_add(&model, PC__KERAS_DENSE);
        assert_not_null_ok(layer);
        layer->units = 1, layer->activation = PC__KERAS_SIGMOID;
        assert_ok(pc__keras_weight_make(layer, "kernel", 2, (int64_t[]){3, 1}));
        assert_ok(pc__keras_write(file.s, &model));
        pc__keras_free(&model);
        pc_cloud_job job;
        pc_cloud_job_options plan = {.model = file.s, .folder = data.s, .device = "cpu", .seconds = 0.001};
        assert_fails(pc_cloud_plan_job(cloud, plan, &job), PC_ERR_ARGUMENT,
                     "any size: say which size they are to be brought to (--size)");
        plan.height = 16, plan.width = 24;
        assert_ok(pc_cloud_plan_job(cloud, plan, &job));
        assert_true(job.height == 16 && job.width == 24 && job.here > 0);
        plan.height = plan.width = 0, plan.size = 24;
        if (half)
            assert_fails(pc_cloud_plan_job(cloud, plan, &job), PC_ERR_ARGUMENT, "pictures of 16 x 24, not of 24 x 24");
        else
            assert_ok(pc_cloud_plan_job(cloud, plan, &job));
    }
}

static void job_is_counted_and_measured(void **state)
{
    (void)state;
    pc_cloud_job job = plan_of("article", 0);
    assert_int_equal(job.train_pictures, 20);
    assert_int_equal(job.test_pictures, 8);
    assert_int_equal(job.classes, 2);
    assert_int_equal(job.height, 64);
    assert_int_equal(job.batch, 20); /* not 32: no batch has more than there are */
    assert_int_equal(job.epochs, 25);
    assert_string_equal(job.device, "cpu");
    assert_true(job.decode > 1e-6 && job.decode < 1 && job.augment > 1e-7 && job.augment < 1 && job.here > 1);
    assert_null(job.gpu);
    assert_true(job.correction == 1);
    pc_cloud_estimate here = pc_cloud_estimate_here(&job);
    double look = job.work.infer_flops / job.work.train_flops / job.here;
    assert_close(here.train, 25 * (20 * (1 / job.here + job.augment / job.threads) + 8 * look), 1e-9);
    assert_true(isnan(here.usd));

    pc_cloud_job_options plain = {
        .model = "mlp", .folder = joined(data.s, "train").s, .device = "cpu", .seconds = 0.001};
    assert_ok(pc_cloud_plan_job(cloud, plain, &job)); /* a fifth is kept for testing, as train does */
    assert_true(job.train_pictures == 16 && job.test_pictures == 4);
}

/* Twice the epochs take twice the time; a faster GPU takes less; a minute at least is billed. */
static void estimates_add_up(void **state)
{
    (void)state;
    pc_cloud_job job = plan_of("two-conv", 10), twice = job;
    twice.epochs = 20;
    const pc_cloud_instance *t4 = pc_cloud_find(cloud, "g4dn.xlarge"), *l40s = pc_cloud_find(cloud, "g6e.xlarge");
    pc_cloud_price price = pc_cloud_price_of(cloud, t4, NULL);
    pc_cloud_estimate a = pc_cloud_estimate_job(&job, t4, price), b = pc_cloud_estimate_job(&twice, t4, price);
    assert_int_equal(a.reason, PC_CLOUD_ESTIMATED);
    assert_close(b.train / a.train, 2, 1e-12);
    assert_true(a.decode == b.decode && a.seconds == a.decode + a.train);
    assert_close(a.decode, 28 * job.decode / t4->vcpus, 1e-12);
    assert_close(a.usd, price.usd / 60, 1e-12);
    job.epochs = 1000000;
    a = pc_cloud_estimate_job(&job, t4, price);
    assert_true(a.seconds > 60);
    assert_close(a.usd, price.usd * a.seconds / 3600, 1e-9);
    assert_true(pc_cloud_estimate_job(&job, l40s, price).train < a.train);
    pc_cloud_price unknown = {.usd = NAN};
    assert_true(isnan(pc_cloud_estimate_job(&job, t4, unknown).usd));
    job.correction = 3; /* of what the GPU does, not of what the host takes for a picture */
    double host = 1e6 * (20 + 8) * pc__cloud_model.host_seconds;
    assert_close((pc_cloud_estimate_job(&job, t4, price).train - host) / (a.train - host), 3, 1e-9);
}

static pc_cloud_reason reason_of(const pc_cloud_job *job, const char *name)
{
    const pc_cloud_instance *i = pc_cloud_find(cloud, name);
    pc_cloud_estimate e = pc_cloud_estimate_job(job, i, pc_cloud_price_of(cloud, i, NULL));
    assert_true(e.reason == PC_CLOUD_ESTIMATED || (isnan(e.seconds) && isnan(e.usd) && isnan(e.pictures_per_second)));
    return e.reason;
}

static void what_cannot_be_estimated_says_why(void **state)
{
    (void)state;
    pc_cloud_job job = plan_of("article", 1);
    assert_int_equal(reason_of(&job, "g4ad.xlarge"), PC_CLOUD_NO_CUDA);
    assert_int_equal(reason_of(&job, "inf2.xlarge"), PC_CLOUD_NO_CUDA);
    assert_int_equal(reason_of(&job, "p3.2xlarge"), PC_CLOUD_NO_CUDA); /* too old for CUDA 13 */
    assert_int_equal(reason_of(&job, "g5g.xlarge"), PC_CLOUD_OTHER_ARCH);
    assert_int_equal(reason_of(&job, "g6f.large"), PC_CLOUD_PART);
    assert_int_equal(reason_of(&job, "g7.2xlarge"), PC_CLOUD_NO_RATES);
    job.batch = 200000;
    assert_int_equal(reason_of(&job, "g4dn.xlarge"), PC_CLOUD_NO_ROOM);
    assert_true(pc_cloud_job_bytes(&job) > 0.9 * 15360 * 1048576);
    assert_int_equal(reason_of(&job, "p5en.48xlarge"), PC_CLOUD_ESTIMATED);
}

static void wrong_plans_are_refused(void **state)
{
    (void)state;
    pc_cloud_job job;
    test_path gone = joined(root.s, "gone"), flat = joined(data.s, "train/cat");
    pc_cloud_job_options plan = {.model = "resnet", .folder = data.s, .device = "cpu"};
    assert_fails(pc_cloud_plan_job(cloud, plan, &job), PC_ERR_ARGUMENT, "there are article, two-conv, mlp, lenet");
    plan.model = "model.h5";
    assert_fails(pc_cloud_plan_job(cloud, plan, &job), PC_ERR_FILE, "model.h5");
    plan.model = "article", plan.folder = gone.s;
    assert_fails(pc_cloud_plan_job(cloud, plan, &job), PC_ERR_FILE, "is not a folder");
    plan.folder = flat.s;
    assert_fails(pc_cloud_plan_job(cloud, plan, &job), PC_ERR_NOT_FOUND, "no class folders");
    plan.folder = data.s, plan.size = 4;
    assert_fails(pc_cloud_plan_job(cloud, plan, &job), PC_ERR_SHAPE, "too small");
    plan.size = 0, plan.batch = -1;
    assert_fails(pc_cloud_plan_job(cloud, plan, &job), PC_ERR_ARGUMENT, "1 or more");
    plan.batch = 0, plan.device = "abacus";
    assert_fails(pc_cloud_plan_job(cloud, plan, &job), PC_ERR_ARGUMENT, "abacus");
}

static void model_files_are_taken(void **state)
{
    (void)state;
#if !PC_HAVE_HDF5
    skip();
#endif
    pc_train_summary summary;
    test_path out = joined(root.s, "run"), model = joined(out.s, "model.h5");
    pc_train_options settings = {.data = data.s,
                                 .out = out.s,
                                 .arch = "lenet",
                                 .optimizer = "adam",
                                 .init = "glorot",
                                 .resize = "nearest",
                                 .device = "cpu",
                                 .epochs = 1,
                                 .batch = 8,
                                 .size = 32,
                                 .lr = 1e-3};
    assert_ok(pc_train_folder(settings, &summary));
    pc_cloud_job file, name;
    pc_cloud_job_options plan = {.model = model.s, .folder = data.s, .device = "cpu", .seconds = 0.001};
    assert_ok(pc_cloud_plan_job(cloud, plan, &file));
    assert_int_equal(file.height, 32);
    plan.height = 4;
    assert_fails(pc_cloud_plan_job(cloud, plan, &name), PC_ERR_ARGUMENT, "height 4 and width 0");
    plan.height = 0, plan.size = 64;
    assert_fails(pc_cloud_plan_job(cloud, plan, &name), PC_ERR_ARGUMENT, "pictures of 32 x 32");
    plan.model = "lenet", plan.size = 32;
    assert_ok(pc_cloud_plan_job(cloud, plan, &name));
    plan.size = 0, plan.height = 32, plan.width = 48;
    pc_cloud_job wide;
    assert_ok(pc_cloud_plan_job(cloud, plan, &wide));
    assert_true(wide.height == 32 && wide.width == 48 && wide.work.parameters > name.work.parameters);
    assert_memory_equal(&file.work, &name.work, sizeof name.work);
}

static void put_gpu(const char *proc, const char *address, const char *model)
{
    char text[128];
    int n = snprintf(text, sizeof text, "Model: \t\t %s\nIRQ:   \t\t 16\n", model);
    assert_int_equal(mkdir(joined(proc, address).s, 0777), 0);
    put_bytes(joined(proc, address).s, "information", text, (size_t)n);
}

/* Who has measured 30,000 pictures/s on a T4 is told 30,000 for it, and less than the plain model for others too. */
static void a_known_rate_corrects(void **state)
{
    (void)state;
    pc_cloud_job plain, known;
    const pc_cloud_instance *t4 = pc_cloud_find(cloud, "g4dn.xlarge"), *l4 = pc_cloud_find(cloud, "g6.xlarge");
    pc_cloud_price price = pc_cloud_price_of(cloud, t4, NULL);
    pc_cloud_job_options plan = {.model = "article", .folder = data.s, .device = "cpu", .seconds = 0.001};
    assert_ok(pc_cloud_plan_job(cloud, plan, &plain));
    plan.known_rate = 30000, plan.known_gpu = "T4";
    assert_ok(pc_cloud_plan_job(cloud, plan, &known));
    assert_string_equal(known.gpu->name, "T4");
    assert_close(pc_cloud_estimate_job(&known, t4, price).pictures_per_second, 30000, 1e-3);
    assert_true(pc_cloud_estimate_job(&known, l4, price).pictures_per_second <
                pc_cloud_estimate_job(&plain, l4, price).pictures_per_second);
    plan.known_gpu = "V9000";
    assert_fails(pc_cloud_plan_job(cloud, plan, &known), PC_ERR_NOT_FOUND, "T4, T4G, A10G");
    plan.known_gpu = "Trainium";
    assert_fails(pc_cloud_plan_job(cloud, plan, &known), PC_ERR_UNSUPPORTED, "no CUDA");
    plan.known_gpu = "RTX PRO 4500";
    assert_fails(pc_cloud_plan_job(cloud, plan, &known), PC_ERR_UNSUPPORTED, "does not know its rates");
    plan.known_gpu = NULL;
    assert_fails(pc_cloud_plan_job(cloud, plan, &known), PC_ERR_ARGUMENT, "needs both");
}

/* The driver's names for the catalogue's GPUs; several kinds in one machine are none. */
static void this_gpu_is_known_by_name(void **state)
{
    (void)state;
    static const char *const names[][2] = {{"NVIDIA H200", "H200"},
                                           {"NVIDIA H100 80GB HBM3", "H100"},
                                           {"NVIDIA L4", "L4"},
                                           {"NVIDIA L40S", "L40S"},
                                           {"Tesla T4", "T4"},
                                           {"NVIDIA A10G", "A10G"},
                                           {"NVIDIA B200", "B200"},
                                           {"NVIDIA A100-SXM4-40GB", "A100 40GB"},
                                           {"NVIDIA A100-SXM4-80GB", "A100 80GB"},
                                           {"Tesla V100-SXM2-16GB", "V100 16GB"},
                                           {"NVIDIA GeForce RTX 3060", NULL},
                                           {"NVIDIA H100 PCIe", NULL},
                                           {"NVIDIA L40", NULL}};
    test_path proc = joined(root.s, "proc");
    assert_null(pc__cloud_this_gpu(cloud, proc.s));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(mkdir(proc.s, 0777), 0);
        put_gpu(proc.s, "0000:01:00.0", names[i][0]);
        put_gpu(proc.s, "0000:02:00.0", names[i][0]);
        const pc_cloud_gpu *gpu = pc__cloud_this_gpu(cloud, proc.s);
        if (!names[i][1] ? gpu != NULL : !gpu || strcmp(gpu->name, names[i][1]) != 0)
            fail_msg("%s: want %s, got %s", names[i][0], names[i][1] ? names[i][1] : "none", gpu ? gpu->name : "none");
        put_gpu(proc.s, "0000:03:00.0", "NVIDIA Something");
        assert_null(pc__cloud_this_gpu(cloud, proc.s));
        remove_root(&proc);
    }
}

/* Whatever their number, not the same few: here the first of 37 is damaged. */
static void all_pictures_have_their_turn(void **state)
{
    (void)state;
    test_path many = joined(root.s, "many");
    pc__folder folder;
    double decode, augment;
    put_classes(placed(many.s, "/").s, (const char *[]){"cat"}, 1, 37);
    assert_ok(pc__folder_scan(many.s, &folder));
    assert_int_equal(folder.count, 37);
    char *first = pc__folder_path(&folder, 0);
    FILE *file = fopen(first, "w");
    assert_non_null(file);
    fputs("damaged", file);
    fclose(file);
    pc__free(first);
    assert_ok(pc__cloud_measure_pictures(&folder, (pc__frame){16, 16, 3}, 0.001, &decode, &augment));
    assert_true(decode > 0 && augment > 0);
    pc__folder_free(&folder);
    pc_error_clear();
    remove_root(&many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(network_is_counted),
        cmocka_unit_test(blocks_are_counted),
        cmocka_unit_test(measured_steps_are_met),
        cmocka_unit_test(two_outputs_are_measured),
        cmocka_unit_test(open_sizes_are_chosen),
        cmocka_unit_test(job_is_counted_and_measured),
        cmocka_unit_test(all_pictures_have_their_turn),
        cmocka_unit_test(estimates_add_up),
        cmocka_unit_test(what_cannot_be_estimated_says_why),
        cmocka_unit_test(a_known_rate_corrects),
        cmocka_unit_test(wrong_plans_are_refused),
        cmocka_unit_test(model_files_are_taken),
        cmocka_unit_test(this_gpu_is_known_by_name),
    };
    return cmocka_run_group_tests_name("cloud.estimate", tests, prepare, tidy);
}
