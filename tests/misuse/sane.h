/* sane.h: what the calls of calls.c and dtypes.c are given where nothing is to be wrong: small objects, made anew for each call and
 * left behind, since the process that makes them ends soon. */
#ifndef PC_TEST_SANE_H
#define PC_TEST_SANE_H

#include "../train/folder.h"
#include "gpt/run.h"
#include "train/report.h"

#include <paracord-tools.h>
#include <paracord.h>

/* Zeros for whatever a pointer points to: options, results, texts, lists. */
static void *room(void)
{
    return calloc(1, 1 << 16);
}

/* For dtypes.c, which calls with every dtype: what stands for float32; and whether floating tensors require gradients. */
static struct {
    pc_dtype dtype;
    bool any, learns; /* any: it stands for those too that are to be of one dtype, whatever that is */
} given = {PC_F32, false, false};

static pc_tensor *tensor(pc_dtype dtype, pc_shape shape)
{
    const pc_dtype real = dtype == PC_F32 ? given.dtype : dtype;
    pc_tensor *t = pc_to(pc_ones(shape, PC_F32, PC_DEVICE_CPU), test_device(), real, false);
    if (given.learns && real >= PC_F16)
        (void)!pc_require_grad(t, true);
    return t;
}

/* Of a dtype that the function takes, as one among others. */
static pc_tensor *numbers(pc_dtype dtype, pc_shape shape)
{
    return tensor(given.any ? given.dtype : dtype, shape);
}

/* What is written in place: it requires no gradient. */
static pc_tensor *constant(pc_shape shape)
{
    return pc_detach(tensor(PC_F32, shape));
}

static pc_tensor *matrix(void)
{
    return tensor(PC_F32, PC_SHAPE(4, 4));
}

static pc_tensor *on_the_cpu(void)
{
    return pc_ones(PC_SHAPE(4, 4), PC_F32, PC_DEVICE_CPU);
}

static pc_tensor *mapped(void)
{
    pc_tensor *t = on_the_cpu();
    return pc_map(t, PC_MAP_READ) ? t : NULL;
}

static pc_tensor *pictures(void)
{
    return tensor(PC_F32, PC_SHAPE(2, 3, 8, 8));
}

static pc_tensor *labels(void)
{
    return tensor(PC_I64, PC_SHAPE(4));
}

static pc_tensor *loss(void)
{
    pc_tensor *leaf = matrix();
    return pc_require_grad(leaf, true) == PC_OK ? pc_sum(leaf) : NULL;
}

static void *two(void *a, void *b)
{
    void **both = room();
    both[0] = a, both[1] = b;
    return both;
}

static const char *const *class_names(void)
{
    return two("cat", "dog");
}

/* --- networks --- */

static pc_tensor *same(pc_module *module, pc_tensor *x)
{
    (void)module;
    return pc_cast(x, pc_tensor_dtype(x));
}

static pc_module_class *class_of_ours(void)
{
    pc_module_class *type = room();
    *type = (pc_module_class){.name = "Same", .forward = same};
    return type;
}

static pc_module *net(void)
{
    pc_module *module =
        pc_sequential(pc_flatten(), pc_linear(4, 4), pc_activation(PC_ACTIVATION_RELU), pc_linear(4, 4));
    return pc_module_to(module, test_device(), PC_F32) == PC_OK ? module : NULL;
}

static pc_module *net_of_pictures(void)
{
    pc_module *module = pc_sequential(pc_conv2d(3, 2, 3), pc_max_pool2d(2), pc_flatten(), pc_linear(18, 1));
    return pc_module_to(module, test_device(), PC_F32) == PC_OK ? module : NULL;
}

static pc_module *net_of_classes(void)
{
    pc_module *module = pc_sequential(pc_flatten(), pc_linear(192, 1));
    return pc_module_to(module, test_device(), PC_F32) == PC_OK ? module : NULL;
}

/* With gradients that a step can use. */
static pc_optimizer *optimizer_of(pc_module *module)
{
    return module ? pc_adam(module) : NULL;
}

static pc_optimizer *optimizer(pc_module *module)
{
    pc_optimizer *adam = pc_adam(module);
    return pc_backward(pc_sum(pc_forward(module, matrix()))) == PC_OK ? adam : NULL;
}

static pc_parameter *state(pc_module *module)
{
    pc_parameter *list = room();
    pc_module_parameter_list(module, list, 4);
    return list;
}

static pc_data_parallel *data_parallel(void)
{
    return pc_data_parallel_new((pc_module *[]){net()}, 1);
}

static pc_tensor *mean_square(void *context, pc_tensor *y, pc_tensor *target)
{
    (void)context;
    return target ? pc_mse(y, target) : pc_mean(pc_mul(y, y));
}

static pc_pipeline *pipeline(void)
{
    return pc_pipeline_new(net(), pc_group_world(), mean_square, NULL, (pc_pipeline_options){.microbatches = 2});
}

static pc_ema *swapped_in(void)
{
    pc_ema *ema = pc_ema_new(net(), 0.9);
    return pc_ema_swap_in(ema) == PC_OK ? ema : NULL;
}

static pc_parameter *averages(void)
{
    pc_parameter *list = room();
    pc_ema_state_list(pc_ema_new(net(), 0.9), list, 5);
    return list;
}

static pc_status look(void *context, pc_module *module, pc_tensor **in, int in_count)
{
    (void)context, (void)module, (void)in, (void)in_count;
    return PC_OK;
}

static pc_status look_back(void *context, pc_module *module, pc_tensor *const *in, int in_count, pc_tensor **out,
                           int out_count)
{
    (void)context, (void)module, (void)in, (void)in_count, (void)out, (void)out_count;
    return PC_OK;
}

static pc_tensor *through(void *context, pc_tensor *x)
{
    (void)context;
    return x;
}

static pc_module *with_hook(void)
{
    pc_module *module = net();
    return pc_module_add_hook(module, look, NULL, NULL) ? module : NULL;
}

static pc_module *with_buffer(void)
{
    pc_module *module = pc_sequential(pc_flatten());
    return pc_module_add_buffer(pc_module_child(module, 0), "kept", matrix()) == PC_OK ? module : NULL;
}

static pc_status first_of_all(pc_module *module, pc_tensor *const *in, int in_count, pc_tensor **out, int out_count)
{
    (void)module, (void)in_count, (void)out_count;
    out[0] = in[0];
    return PC_OK;
}

static pc_module *with_two_inputs(void)
{
    static const pc_module_class type = {.name = "First", .forward_many = first_of_all};
    return pc_module_new(&type, 0);
}

static pc_named_module *named_modules(void)
{
    pc_named_module *children = room();
    children[0] = (pc_named_module){"first", pc_flatten()};
    children[1] = (pc_named_module){"second", pc_linear(4, 4)};
    return children;
}

static pc_status learn(void *user)
{
    (void)user;
    return PC_OK;
}

static pc_loader *loader(void)
{
    return pc_loader("pictures", .size = 8, .batch = 2, .prefetch = -1, .device = test_device());
}

static pc_module *gpt(void)
{
    pc_module *module = pc_gpt(.layers = 1, .heads = 1, .width = 4, .context = 4, .vocabulary = 16);
    return pc_module_to(module, test_device(), PC_F32) == PC_OK ? module : NULL;
}

static const pc_gpt_run *untold_gpt(void)
{
    static const pc_gpt_run nothing;
    return &nothing;
}

static pc_gpt_train_options gpt_options(void)
{
    return (pc_gpt_train_options){.data = "trace.json",
                                  .out = "gpt-run",
                                  .net = {.layers = 1, .heads = 1, .width = 4, .context = 4},
                                  .device = "cpu",
                                  .batch = 2,
                                  .steps = 1,
                                  .test_batches = 1,
                                  .sample = 3,
                                  .threads = 1};
}

static pc_corpus *corpus(void)
{
    const char text[] = "letters and letters";
    pc_tokenizer *letters = pc_tokenizer_new_letters(text, sizeof text - 1);
    return pc_corpus_new(letters, text, sizeof text - 1, (pc_corpus_options){.held_out = -1});
}

static pc_status four_numbers(void *context, int64_t sample, int64_t epoch, void *const *to)
{
    (void)context, (void)sample, (void)epoch;
    memset(to[0], 0, 4 * sizeof(float));
    return PC_OK;
}

static pc_samples *samples(void)
{
    pc_samples *zeros = room();
    *zeros = (pc_samples){.count = 4, .fields = 1, .field = {{PC_F32, PC_SHAPE(4)}}, .sample = four_numbers};
    return zeros;
}

static const pc_run_report *untold(void)
{
    static const pc_run_report nothing;
    return &nothing;
}

static pc_train_options options(void)
{
    return (pc_train_options){.data = "pictures",
                              .out = "run",
                              .arch = "mlp",
                              .device = test_device_name(),
                              .epochs = 1,
                              .batch = 4,
                              .size = 16,
                              .threads = 1,
                              .lr = 1e-3,
                              .val_split = 0.5};
}

/* --- ops --- */

static pc_status as_it_is(const pc_op_run *run)
{
    memcpy(run->out[0].data, run->in[0].data, (size_t)run->in[0].count * pc_dtype_size(run->in[0].dtype));
    return PC_OK;
}

/* On a GPU's memory: the host cannot look at it. */
static pc_status nothing(const pc_op_run *run)
{
    (void)run;
    return PC_OK;
}

static pc_op_spec *op_spec(void)
{
    pc_op_spec *spec = room();
    *spec = (pc_op_spec){.name = "misuse.new", .inputs = 1, .outputs = 1, .cpu = as_it_is, .cuda = nothing};
    return spec;
}

static const pc_op *op_of_ours(void)
{
    pc_op_spec *spec = op_spec();
    spec->name = "misuse.op";
    const pc_op *op = pc_op_find(spec->name);
    return op ? op : pc_op_register(spec);
}

static void part_of_work(void *context, int64_t i)
{
    (void)context, (void)i;
}

/* --- streams --- */

static pc_stream *recording(void)
{
    pc_stream *stream = pc_stream(test_device());
    return pc_graph_begin(stream) == PC_OK ? stream : NULL;
}

static pc_graph *graph(void)
{
    pc_stream *stream = recording();
    pc_tensor *to = NULL;
    PC_WITH_STREAM(stream) {
        to = pc_exp(matrix());
    }
    return to ? pc_graph_end(stream) : NULL;
}

static pc_event *event(void)
{
    pc_event *made = pc_event_new(test_device());
    return pc_event_record(made, NULL) == PC_OK ? made : NULL;
}

static void called(void *context)
{
    (void)context;
}

static void *allocate(void *context, size_t bytes, size_t alignment)
{
    (void)context;
    return bytes > 256 << 20 ? NULL : aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void *resize(void *context, void *block, size_t bytes)
{
    (void)context;
    return bytes > 256 << 20 ? NULL : realloc(block, bytes);
}

static void release(void *context, void *block)
{
    (void)context;
    free(block);
}

/* An allocator that has no room for nonsense. */
static pc_allocator *allocator(void)
{
    pc_allocator *a = room();
    *a = (pc_allocator){allocate, resize, release, NULL};
    return a;
}

/* --- files, pictures, machines --- */

static pc_machine_options of_a_folder(void)
{
    return (pc_machine_options){.root = "machine", .recording = true, .timeout_ms = 1000};
}

static const pc_fact *some_fact(void)
{
    pc_machine *machine = pc_machine_new(of_a_folder());
    return machine ? &machine->kernel : NULL;
}

static pc_image *picture(void)
{
    pc_image *image = room();
    return pc_image_new(8, 8, 3, image) == PC_OK ? image : NULL;
}

/* The length of a file that is read into *bytes; 0: it is not there. */
static size_t content(const char *path, void *bytes)
{
    FILE *file = fopen(path, "rb");
    size_t n = file ? fread(bytes, 1, 1 << 16, file) : 0;
    if (file)
        fclose(file);
    return n;
}

static void *bytes_of(const char *path)
{
    void *bytes = room();
    return content(path, bytes) ? bytes : NULL;
}

static size_t size_of(const char *path)
{
    return content(path, room());
}

static pc_augment_values *neutral(void)
{
    pc_augment_values *values = room();
    *values = pc_augment_neutral();
    return values;
}

static pc_preparation *preparation(void)
{
    pc_preparation *p = room();
    *p = (pc_preparation){.rescale = 1, .std = {1, 1, 1}};
    return p;
}

static pc_draw_options draw_few(void)
{
    return (pc_draw_options){.train = 1, .test = -1, .size = 16};
}

static pc_keras_options keras_options(void)
{
    return (pc_keras_options){.height = 8, .width = 8, .channels = 3, .class_names = class_names(), .class_count = 2};
}

static pc_cloud_job_options plan(void)
{
    return (pc_cloud_job_options){
        .model = "mlp", .folder = "pictures", .size = 16, .batch = 4, .device = "cpu", .seconds = 1e-3};
}

#endif
