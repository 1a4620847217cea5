/* embedding.c: rows of a table by their numbers. */
#include "nn/layers.h"
#include "ops/factory.h"
#include "tensor/read.h"

static pc_tensor *forward(pc_module *module, pc_tensor *x)
{
    const pc__embedding_layer *layer = pc_module_data(module);
    return pc_fn_embedding(pc__module_own(module, "weight"), x, layer->spec);
}

static void describe(const pc_module *module, char *text, size_t n)
{
    const pc__embedding_layer *layer = pc_module_data(module);
    const int at = snprintf(text, n, "%lld, %lld", (long long)layer->rows, (long long)layer->columns);
    if (layer->spec.padded && at > 0 && (size_t)at < n)
        snprintf(text + at, n - (size_t)at, ", padding_idx=%lld", (long long)layer->spec.padding_idx);
}

static const pc_module_class embedding_class = {.name = "Embedding", .forward = forward, .describe = describe};

/* Standard normal; the row that stands for nothing is 0. */
static pc_status add_table(pc_module *module, const pc__embedding_layer *layer)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *table = pc_empty(PC_SHAPE(layer->rows, layer->columns), PC_F32, PC_DEVICE_CPU);
        status = table ? pc__fill_normal(table, 0, 1) : pc_error_last()->status;
        if (status == PC_OK && layer->spec.padded) {
            const int64_t row = layer->spec.padding_idx;
            status = pc_fill(pc_slice(table, 0, row, row + 1, 1), 0);
        }
        if (status == PC_OK)
            status = pc_module_add_parameter(module, "weight", table);
    }
    return status;
}

pc_module *pc_embedding_new(int64_t rows, int64_t columns, pc_embedding_options options)
{
    if (rows < 1 || columns < 1 || rows > INT32_MAX || columns > INT32_MAX)
        return pc__null(PC_ERR_ARGUMENT, "embedding: %lld rows of %lld: both sizes must be at least 1", (long long)rows,
                        (long long)columns);
    if (options.padded && (options.padding_idx < -rows || options.padding_idx >= rows))
        return pc__null(PC_ERR_RANGE, "embedding: padding_idx is %lld; it must be %lld to %lld",
                        (long long)options.padding_idx, (long long)-rows, (long long)rows - 1);
    const int64_t row = options.padding_idx < 0 ? options.padding_idx + rows : options.padding_idx;
    const pc__embedding_layer layer = {
        rows, columns, {.padded = options.padded, .padding_idx = options.padded ? row : 0}};
    pc_module *module = pc_module_new(&embedding_class, sizeof layer);
    if (!module)
        return NULL;
    *(pc__embedding_layer *)pc_module_data(module) = layer;
    if (add_table(module, &layer) == PC_OK)
        return module;
    pc_module_free(module);
    return NULL;
}
