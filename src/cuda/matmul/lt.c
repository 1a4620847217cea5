/* lt.c: cuBLASLt knows matrices by columns, so it is asked for c^T = b^T a^T: rows of its result are columns of ours,
 * and its bias, one for each row, is ours. What it advises for a shape is asked once and kept in a table. */
#include "cuda/matmul/lt.h"

#include "cuda/runtime/hash.h"

#include <paracord/ops.h>

#include <cublasLt.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#define WORKSPACE_MOST ((size_t)32 << 20) /* bytes that a product may work in */
#define PLANS 256                         /* shapes whose plans are kept; a power of two */
#define ALIGNED 256                       /* bytes: more alignment than that is not told apart */
#define TRIES 4                           /* places of the table where a shape may be */

/* The functions that are used, under cuBLASLt's own names. */
#define EACH_FUNCTION(F)                                                                                               \
    F(GetVersion)                                                                                                      \
    F(Create)                                                                                                          \
    F(Matmul)                                                                                                          \
    F(MatmulAlgoGetHeuristic)                                                                                          \
    F(MatmulDescCreate)                                                                                                \
    F(MatmulDescDestroy)                                                                                               \
    F(MatmulDescSetAttribute)                                                                                          \
    F(MatrixLayoutCreate)                                                                                              \
    F(MatrixLayoutDestroy)                                                                                             \
    F(MatrixLayoutSetAttribute)                                                                                        \
    F(MatmulPreferenceCreate)                                                                                          \
    F(MatmulPreferenceDestroy)                                                                                         \
    F(MatmulPreferenceSetAttribute)

static struct library {
    char missing[256]; /* why it cannot be used; empty: it can */
#define POINTER(name) __typeof__(&cublasLt##name) name;
    EACH_FUNCTION(POINTER)
#undef POINTER
} lt;

/* What a plan depends on. Compared as bytes: made from zeros. */
typedef struct shape {
    int32_t device, dtype, epilogue, transposed; /* transposed: bit 0 first operand, bit 1 second */
    int32_t tf32;                                /* 1: factors rounded to it */
    int32_t advice;                              /* which of the ways that are advised, from 0 */
    int32_t wide;                                /* 1: a float32 result of 16-bit factors */
    int64_t m, n, k, batch;                      /* of ours; m and n are exchanged in the call */
    int64_t ld1, ld2, ld_c, batch1, batch2;
    uint32_t align1, align2, align_c, align_bias, align_aux; /* of the pointers, up to 256; 0: there is none */
} shape;

typedef struct plan {
    bool used, refused; /* refused: cuBLASLt has no way to do it */
    shape of;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t first, second, result;
    cublasLtMatmulAlgo_t way;
    size_t workspace;
} plan;

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over what follows */
static plan plans[PLANS];
static cublasLtHandle_t handles[PC__DEVICES_MAX];
static unsigned oldest; /* turns through the places where a new plan may go */

static void open_library(void)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
    void *library = NULL;
    for (int i = 0; i < PC__COUNT(names) && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        snprintf(lt.missing, sizeof lt.missing, "cuBLASLt cannot be opened: %s", why ? why : "no reason given");
        return;
    }
#define FIND(name)                                                                                                     \
    *(void **)&lt.name = dlsym(library, "cublasLt" #name);                                                             \
    if (!lt.name)                                                                                                      \
        snprintf(lt.missing, sizeof lt.missing, "cuBLASLt lacks the function cublasLt" #name);
    EACH_FUNCTION(FIND)
#undef FIND
}

size_t pc__cuda_lt_version(void)
{
    return pc__cuda_lt_missing() ? 0 : lt.GetVersion();
}

const char *pc__cuda_lt_missing(void)
{
    pthread_once(&opened, open_library);
    return lt.missing[0] ? lt.missing : NULL;
}

/* A matrix as columns of `rows` elements that lie side by side, `*ld` apart; or its transpose, where *transposed. False
 * when it is neither. */
static bool by_columns(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride, bool *transposed,
                       int64_t *ld)
{
    row_stride = rows == 1 ? 1 : row_stride;
    *transposed = false;
    *ld = columns == 1 ? rows : column_stride;
    if (row_stride == 1 && *ld >= rows)
        return true;
    column_stride = columns == 1 ? 1 : column_stride;
    *transposed = true;
    *ld = rows == 1 ? columns : row_stride;
    return column_stride == 1 && *ld >= columns;
}

/* The epilogue for a bias and an activation, or -1 where cuBLASLt has none. */
static int32_t epilogue_of(const pc__cuda_gemm *g)
{
    if (g->activation == PC_ACTIVATION_RELU)
        return g->bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    if (g->activation != PC_ACTIVATION_NONE)
        return -1;
    return g->bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

/* False: strides or sizes that cuBLASLt cannot take. */
static bool shape_of(const pc__cuda_gemm *g, int device, int32_t epilogue, const void *aux, shape *s)
{
    bool first, second;
    memset(s, 0, sizeof *s);
    if (g->m > INT32_MAX || g->n > INT32_MAX || g->k > INT32_MAX || g->batch > INT32_MAX || g->k == 0)
        return false;
    if (!by_columns(g->n, g->k, g->b_cs, g->b_rs, &first, &s->ld1) ||
        !by_columns(g->k, g->m, g->a_cs, g->a_rs, &second, &s->ld2))
        return false;
    s->device = device, s->dtype = g->dtype, s->epilogue = epilogue, s->transposed = first | second << 1;
    s->tf32 = g->dtype == PC__CUDA_F32 && pc_matmul_precision_get() == PC_PRECISION_TF32;
    s->wide = g->wide != 0;
    s->m = g->m, s->n = g->n, s->k = g->k, s->batch = g->batch, s->ld_c = pc__cuda_gemm_row(g);
    s->batch1 = g->batch > 1 ? g->b_batch : 0, s->batch2 = g->batch > 1 ? g->a_batch : 0;
    s->align1 = pc__cuda_alignment(g->b, ALIGNED), s->align2 = pc__cuda_alignment(g->a, ALIGNED);
    s->align_c = pc__cuda_alignment(g->c, ALIGNED);
    s->align_bias = g->bias && epilogue != CUBLASLT_EPILOGUE_DEFAULT ? pc__cuda_alignment(g->bias, ALIGNED) : 0;
    s->align_aux = aux ? pc__cuda_alignment(aux, ALIGNED) : 0;
    return true;
}

static cudaDataType_t type_of(const shape *s)
{
    switch (s->dtype) {
    case PC__CUDA_F16:
        return CUDA_R_16F;
    case PC__CUDA_BF16:
        return CUDA_R_16BF;
    case PC__CUDA_F32:
        return CUDA_R_32F;
    default:
        return CUDA_R_64F;
    }
}

/* In which sums are, and the factors of the result. */
static cudaDataType_t sum_type_of(const shape *s)
{
    return s->dtype == PC__CUDA_F64 ? CUDA_R_64F : CUDA_R_32F;
}

static bool layout(const shape *s, cudaDataType_t type, cublasLtMatrixLayout_t *to, int64_t rows, int64_t columns,
                   int64_t ld, int64_t batch)
{
    const int32_t count = (int32_t)s->batch;
    if (lt.MatrixLayoutCreate(to, type, (uint64_t)rows, (uint64_t)columns, ld) != CUBLAS_STATUS_SUCCESS)
        return false;
    return count == 1 || (lt.MatrixLayoutSetAttribute(*to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count) ==
                              CUBLAS_STATUS_SUCCESS &&
                          lt.MatrixLayoutSetAttribute(*to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &batch,
                                                      sizeof batch) == CUBLAS_STATUS_SUCCESS);
}

static bool set_bias(const plan *p, const void *bias)
{
    return lt.MatmulDescSetAttribute(p->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias) ==
           CUBLAS_STATUS_SUCCESS;
}

static bool set_aux(const plan *p, const void *aux)
{
    return lt.MatmulDescSetAttribute(p->product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux) ==
               CUBLAS_STATUS_SUCCESS &&
           lt.MatmulDescSetAttribute(p->product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &p->of.ld_c,
                                     sizeof p->of.ld_c) == CUBLAS_STATUS_SUCCESS;
}

static bool describe(plan *p, const void *bias, const void *aux)
{
    const shape *s = &p->of;
    const bool first = s->transposed & 1, second = s->transposed & 2;
    const cublasOperation_t operations[2] = {first ? CUBLAS_OP_T : CUBLAS_OP_N, second ? CUBLAS_OP_T : CUBLAS_OP_N};
    const cublasLtEpilogue_t epilogue = (cublasLtEpilogue_t)s->epilogue;
    const cublasComputeType_t compute = s->dtype == PC__CUDA_F64 ? CUBLAS_COMPUTE_64F
                                        : s->tf32                ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                 : CUBLAS_COMPUTE_32F;
    if (lt.MatmulDescCreate(&p->product, compute, sum_type_of(s)) != CUBLAS_STATUS_SUCCESS)
        return false;
    return lt.MatmulDescSetAttribute(p->product, CUBLASLT_MATMUL_DESC_TRANSA, &operations[0], sizeof operations[0]) ==
               CUBLAS_STATUS_SUCCESS &&
           lt.MatmulDescSetAttribute(p->product, CUBLASLT_MATMUL_DESC_TRANSB, &operations[1], sizeof operations[1]) ==
               CUBLAS_STATUS_SUCCESS &&
           lt.MatmulDescSetAttribute(p->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue) ==
               CUBLAS_STATUS_SUCCESS &&
           (s->align_bias == 0 || set_bias(p, bias)) && (s->align_aux == 0 || set_aux(p, aux)) &&
           layout(s, type_of(s), &p->first, first ? s->k : s->n, first ? s->n : s->k, s->ld1, s->batch1) &&
           layout(s, type_of(s), &p->second, second ? s->m : s->k, second ? s->k : s->m, s->ld2, s->batch2) &&
           layout(s, s->wide ? CUDA_R_32F : type_of(s), &p->result, s->n, s->m, s->ld_c, s->m * s->ld_c);
}

/* Ask for a way, the best where `advice` is 0; false when there is none. Parts of a sum are never added in 16 bits. */
static bool choose(plan *p, cublasLtHandle_t handle)
{
    const shape *s = &p->of;
    const size_t workspace = WORKSPACE_MOST;
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    cublasLtMatmulPreference_t wish;
    cublasLtMatmulHeuristicResult_t found[PC__CUDA_LT_ADVICES];
    int count = 0;
    if (lt.MatmulPreferenceCreate(&wish) != CUBLAS_STATUS_SUCCESS)
        return false;
    const bool asked = lt.MatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                                       sizeof workspace) == CUBLAS_STATUS_SUCCESS &&
                       lt.MatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                                       sizeof schemes) == CUBLAS_STATUS_SUCCESS &&
                       lt.MatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &s->align1,
                                                       sizeof s->align1) == CUBLAS_STATUS_SUCCESS &&
                       lt.MatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &s->align2,
                                                       sizeof s->align2) == CUBLAS_STATUS_SUCCESS &&
                       lt.MatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &s->align_c,
                                                       sizeof s->align_c) == CUBLAS_STATUS_SUCCESS &&
                       lt.MatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &s->align_c,
                                                       sizeof s->align_c) == CUBLAS_STATUS_SUCCESS &&
                       lt.MatmulAlgoGetHeuristic(handle, p->product, p->first, p->second, p->result, p->result, wish,
                                                 s->advice + 1, found, &count) == CUBLAS_STATUS_SUCCESS;
    lt.MatmulPreferenceDestroy(wish);
    if (!asked || count <= s->advice || found[s->advice].state != CUBLAS_STATUS_SUCCESS)
        return false;
    p->way = found[s->advice].algo;
    p->workspace = found[s->advice].workspaceSize;
    return true;
}

static void forget(plan *p)
{
    if (p->product)
        lt.MatmulDescDestroy(p->product);
    cublasLtMatrixLayout_t *layouts[] = {&p->first, &p->second, &p->result};
    for (int i = 0; i < PC__COUNT(layouts); i++)
        if (*layouts[i])
            lt.MatrixLayoutDestroy(*layouts[i]);
    *p = (plan){0};
}

static unsigned hash(const shape *s)
{
    const unsigned h = pc__cuda_hash(s, sizeof *s);
    return h ^ h >> 16;
}

/* The plan of a shape, out of the table or made. */
static plan *plan_of(const shape *s, cublasLtHandle_t handle, const void *bias, const void *aux)
{
    const unsigned home = hash(s);
    plan *p = NULL;
    for (unsigned i = 0; i < TRIES; i++) {
        plan *here = &plans[(home + i) % PLANS];
        if (here->used && memcmp(&here->of, s, sizeof *s) == 0)
            return here;
        if (!p && !here->used)
            p = here;
    }
    if (!p)
        p = &plans[(home + oldest++ % TRIES) % PLANS];
    forget(p);
    p->used = true;
    p->of = *s;
    p->refused = !describe(p, bias, aux) || !choose(p, handle);
    return p;
}

/* One product under the lock. */
static pc_status multiply(pc_stream *stream, const pc__cuda_gemm *g, const shape *s, const void *aux, bool *done)
{
    const double one = 1, zero = 0;
    const float one_f32 = 1, zero_f32 = 0;
    const bool single = s->dtype != PC__CUDA_F64;
    const void *alpha = single ? (const void *)&one_f32 : &one, *beta = single ? (const void *)&zero_f32 : &zero;
    cublasLtHandle_t *handle = &handles[s->device];
    if (!*handle && lt.Create(handle) != CUBLAS_STATUS_SUCCESS) {
        *handle = NULL;
        return PC_OK;
    }
    plan *p = plan_of(s, *handle, g->bias, aux);
    if (p->refused || (s->align_bias && !set_bias(p, g->bias)) || (s->align_aux && !set_aux(p, aux)))
        return PC_OK;
    void *workspace = p->workspace ? pc__cuda_scratch(stream, p->workspace) : NULL;
    if (p->workspace && !workspace)
        return PC_ERR_MEMORY;
    const cublasStatus_t status =
        lt.Matmul(*handle, p->product, alpha, g->b, p->first, g->a, p->second, beta, g->c, p->result, g->c, p->result,
                  &p->way, workspace, p->workspace, pc__cuda_queue(stream));
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE)
        p->refused = true;
    else if (status != CUBLAS_STATUS_SUCCESS)
        return pc__fail(PC_ERR_BACKEND, "matmul: cuBLASLt failed with status %d", (int)status);
    *done = !p->refused;
    return PC_OK;
}

static pc_status attempt(pc_stream *stream, const pc__cuda_gemm *g, int32_t epilogue, const void *aux, bool *done)
{
    shape s;
    if (!shape_of(g, stream->device.index, epilogue, aux, &s))
        return PC_OK;
    pthread_mutex_lock(&lock);
    const pc_status status = multiply(stream, g, &s, aux, done);
    pthread_mutex_unlock(&lock);
    return status;
}

pc_status pc__cuda_lt_gemm(pc_stream *stream, const pc__cuda_gemm *g, bool *done)
{
    *done = false;
    if (pc__cuda_lt_missing())
        return PC_OK;
    const int32_t epilogue = epilogue_of(g);
    if (epilogue >= 0)
        PC__TRY(attempt(stream, g, epilogue, NULL, done));
    if (*done || epilogue == CUBLASLT_EPILOGUE_DEFAULT)
        return PC_OK;
    PC__TRY(attempt(stream, g, CUBLASLT_EPILOGUE_DEFAULT, NULL, done));
    if (*done)
        pc__cuda_gemm_finish(pc__cuda_queue(stream), g);
    return PC_OK;
}

pc_status pc__cuda_lt_gelu(pc_stream *stream, const pc__cuda_gemm *g, void *aux, bool *done)
{
    *done = false;
    return pc__cuda_lt_missing()
               ? PC_OK
               : attempt(stream, g, g->bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX, aux, done);
}
