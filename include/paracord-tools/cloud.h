/* cloud.h: which machine to rent: what there is, what fits a wish, what a training would cost on each.
 *
 *     pc_cloud *cloud = pc_cloud_open(NULL);                         // built in, or the user's newer copy
 *     pc_cloud_pick_options wish = {.use = PC_CLOUD_TRAIN, .memory_gb = 40, .gpus = 4, .budget = 20};
 *     pc_cloud_offer *offers;
 *     int count;
 *     if (!cloud || pc_cloud_pick(cloud, wish, &offers, &count) != PC_OK)
 *         return pc_report(stderr);
 *     if (!offers[0].misfit)
 *         printf("%s\n", offers[0].instance->name);                 // g6e.12xlarge
 *     pc_cloud_offers_free(offers);
 *     pc_cloud_free(cloud);
 *
 * Today it knows Amazon's accelerated instances. Prices are US dollars an hour for Linux, on demand, on shared
 * hardware, before tax, storage and traffic. What is unknown is NaN, never 0. Nothing here uses a network. A catalogue
 * does not change while it is open, but for pc_cloud_update; any number of threads may read it.
 */
#ifndef PARACORD_TOOLS_CLOUD_H
#define PARACORD_TOOLS_CLOUD_H

#include <paracord/error.h>

PC_BEGIN

typedef struct pc_cloud pc_cloud;

/* Where facts are from. */
typedef struct pc_cloud_source {
    const char *name, *date, *text; /* date: "2026-07-20", or "-" */
} pc_cloud_source;

typedef enum pc_cloud_use {
    PC_CLOUD_ANY = 0,
    PC_CLOUD_TRAIN = 1,
    PC_CLOUD_INFER = 2,
    PC_CLOUD_GRAPHICS = 4
} pc_cloud_use;

/* An accelerator. NaN: unknown. */
typedef struct pc_cloud_gpu {
    const char *name, *vendor; /* vendor: "nvidia", "amd", "aws", "intel" */
    int capability;            /* 89 is compute capability 8.9; 0: it runs no CUDA */
    double memory_gb;          /* of the name on the box */
    double f32, tf32, half;    /* TFLOP/s of its datasheet, without sparsity; 0: it has no such units */
    double bandwidth;          /* GB/s of its memory */
    const pc_cloud_source *source;
} pc_cloud_gpu;

typedef struct pc_cloud_family {
    const char *name; /* "g6e" */
    const pc_cloud_gpu *gpu;
    const char *arch; /* "x86_64", "arm64" */
    int uses;         /* pc_cloud_use, or'ed */
    const char *link; /* between the accelerators of one machine: "nvlink", "pcie", "neuronlink", "ethernet", or NULL */
    bool old;         /* a generation that is on its way out */
    bool blocks;      /* for hire by the block of days only: it has no price by the hour */
    const char *about;    /* what it is for */
    const char *trap;     /* what it is taken for and is not; NULL: nothing known */
    bool trap_of_several; /* that is about machines of several accelerators */
} pc_cloud_family;

/* SageMaker rents an instance as ml.NAME for these. */
enum { PC_CLOUD_ML_TRAINING = 1, PC_CLOUD_ML_HOSTING = 2, PC_CLOUD_ML_NOTEBOOK = 4 };

typedef struct pc_cloud_instance {
    const char *name; /* "g6e.12xlarge" */
    const pc_cloud_family *family;
    int gpus;           /* accelerators */
    int parts;          /* 1: whole ones; 8: an eighth of one */
    double memory_gb;   /* of each accelerator, as its name says, or of the part of it */
    int64_t memory_mib; /* the same as programs see it */
    int vcpus;
    int64_t host_mib;
    int sagemaker; /* or'ed; 0: SageMaker does not have it */
} pc_cloud_instance;

/* The family's trap where it is one for this machine, else NULL. */
PC_API const char *pc_cloud_trap(const pc_cloud_instance *instance);

typedef struct pc_cloud_price {
    double usd; /* an hour; NaN: unknown */
    const char *region, *date;
    const pc_cloud_source *source;
} pc_cloud_price;

/* Read a catalogue: `path`, or (NULL) the one that is built in, with the prices of the user's own copy, which
 * pc_cloud_update and pc_cloud_save made, where they are not older. NULL: PC_ERR_FILE, PC_ERR_FORMAT (the message names
 * file, line and fault), PC_ERR_MEMORY. The caller frees it. */
PC_API PC_MUST_USE pc_cloud *pc_cloud_open(const char *path);
PC_API PC_MUST_USE pc_cloud *pc_cloud_open_builtin(void);
PC_API void pc_cloud_free(pc_cloud *cloud);

/* "built in", or its file, or the user's copy where a price is from that; the date of its newest prices. They live as
 * long as the catalogue. */
PC_API const char *pc_cloud_path(const pc_cloud *cloud);
PC_API const char *pc_cloud_date(const pc_cloud *cloud);

/* What is in it, in its order; NULL behind the last. */
PC_API const pc_cloud_instance *pc_cloud_instance_at(const pc_cloud *cloud, int i);
PC_API const pc_cloud_family *pc_cloud_family_at(const pc_cloud *cloud, int i);
PC_API const pc_cloud_gpu *pc_cloud_gpu_at(const pc_cloud *cloud, int i);
PC_API const char *pc_cloud_region_at(const pc_cloud *cloud, int i);

/* The GPU that a driver calls `model` ("NVIDIA A100-SXM4-40GB"). NULL, without an error, where the catalogue does not
 * have it, which goes for boards of PCIe: their rates are others. */
PC_API const pc_cloud_gpu *pc_cloud_gpu_named(const pc_cloud *cloud, const char *model);

/* By name (a region may be NULL: the first). PC_ERR_NOT_FOUND, with a message that says which names there are. */
PC_API PC_MUST_USE const pc_cloud_instance *pc_cloud_find(const pc_cloud *cloud, const char *name);
PC_API PC_MUST_USE const pc_cloud_family *pc_cloud_find_family(const pc_cloud *cloud, const char *name);
PC_API PC_MUST_USE pc_status pc_cloud_check_region(const pc_cloud *cloud, const char *region);

/* Whether it is written as AWS writes regions ("us-east-1"), in a catalogue or not. */
PC_API bool pc_cloud_is_region(const char *name);

/* What an instance costs in a region of the catalogue (NULL: its first). usd is NaN where no price is known. */
PC_API pc_cloud_price pc_cloud_price_of(const pc_cloud *cloud, const pc_cloud_instance *instance, const char *region);

/* What somebody wants. 0 and NULL ask for nothing. */
typedef enum pc_cloud_order { PC_CLOUD_CHEAPEST, PC_CLOUD_FASTEST, PC_CLOUD_VALUE } pc_cloud_order;
typedef struct pc_cloud_pick_options {
    int reserved_;
    pc_cloud_use use;
    double memory_gb;    /* at least, of each accelerator */
    int gpus, vcpus;     /* at least */
    double budget;       /* US dollars an hour, at most */
    const char *region;  /* NULL: the catalogue's first */
    const char *vendor;  /* NULL: nvidia; "any" */
    const char *arch;    /* NULL: x86_64; "any" */
    bool fractions, old; /* parts of an accelerator will do; old generations too */
    pc_cloud_order order;
} pc_cloud_pick_options;

/* Why an instance is no answer: what is first here comes first. From PC_CLOUD_VENDOR on it has all that was asked for
 * and is something else than it looks like, or its price is in the way. */
typedef enum pc_cloud_misfit {
    PC_CLOUD_FITS,
    PC_CLOUD_WRONG_USE,
    PC_CLOUD_TOO_LITTLE, /* memory, accelerators or vCPUs */
    PC_CLOUD_VENDOR,
    PC_CLOUD_ARCH,
    PC_CLOUD_FRACTION,
    PC_CLOUD_OLD,
    PC_CLOUD_NO_PRICE,
    PC_CLOUD_TOO_DEAR
} pc_cloud_misfit;

typedef struct pc_cloud_offer {
    const pc_cloud_instance *instance;
    pc_cloud_price price;
    /* What counts for the use, of all accelerators: TFLOP/s in half precision for training (and any use), GB/s of
     * memory for inference, TFLOP/s in float32 for graphics. NaN: unknown. */
    double speed;
    pc_cloud_misfit misfit; /* the first of */
    int misfits;            /* all of them: 1 << each, or'ed */
} pc_cloud_offer;

/* All instances with a verdict on each: those that fit first, in the order asked for (the cheapest; the fastest; the
 * most speed for a dollar; unknown speeds last, then by price, then by name), then the others by price. *offers is the
 * caller's (pc_cloud_offers_free). PC_ERR_NOT_FOUND (region), PC_ERR_ARGUMENT (vendor, arch, numbers that are no wish),
 * PC_ERR_MEMORY. PC_OK also when nothing fits: offers[0].misfit says so. */
PC_API PC_MUST_USE pc_status pc_cloud_pick(const pc_cloud *cloud, pc_cloud_pick_options wish, pc_cloud_offer **offers,
                                           int *count);
PC_API void pc_cloud_offers_free(pc_cloud_offer *offers);

/* What a training asks of a machine: counted in the network, layer by layer. Flops count a multiplication and an
 * addition as two; bytes are those of memory that each layer's arrays take forward and back when none stays in a cache.
 */
typedef struct pc_cloud_work {
    double train_flops, train_bytes;   /* a picture: forward and back */
    double infer_flops, infer_bytes;   /* a picture: forward */
    double train_narrow, infer_narrow; /* of those flops, in convolutions to fewer than 32 channels */
    double step_bytes;                 /* a step: weights, gradients and Adam's state */
    double resident_bytes;             /* a picture of the batch: what forward keeps for back */
    int64_t parameters;
    int layers; /* that compute */
} pc_cloud_work;

typedef struct pc_cloud_job_options {
    int reserved_;
    const char *model;  /* as of paracord train --arch, or a Keras file */
    const char *folder; /* pictures, as `paracord train` takes them */
    int size;           /* of the pictures; 0: 64, or the file's, which must not leave it open then */
    int height, width;  /* or this, where given: both, or neither */
    int batch, epochs;  /* 0: 32; 25 */
    const char *device; /* to measure on; NULL: auto */
    double seconds;     /* to measure for, about; 0: 0.02 on a CPU, 0.5 on a GPU */
    /* What somebody has measured elsewhere with this model, size and batch: pictures a second of training on a GPU of
     * the catalogue ("T4"). It then corrects the estimates, not what this machine's GPU does. 0 and NULL: nothing. */
    double known_rate;
    const char *known_gpu;
} pc_cloud_job_options;

/* A training, counted and measured here. */
typedef struct pc_cloud_job {
    pc_cloud_work work;
    int height, width, channels; /* of the pictures */
    int batch, epochs, classes;  /* batch: no more than there are to train on */
    int64_t train_pictures, test_pictures;
    char device[16];         /* that was measured on */
    int threads;             /* of this machine */
    double decode;           /* seconds that one thread here takes to read and decode a picture of the folder */
    double augment;          /* and to make an altered copy of it, which a GPU does itself */
    double here;             /* pictures a second that training reached on the device */
    int measured_batch;      /* of that measurement: smaller than `batch` where one step would take too long */
    const pc_cloud_gpu *gpu; /* measured here or known, where the catalogue has it; else NULL */
    double correction;       /* measured over modelled time of its steps; 1 where there is none */
} pc_cloud_job;

/* Count and measure. The networks of `paracord train` are made anew, files are read; the folder's pictures are counted
 * and a few decoded. Nothing is written. PC_ERR_FILE, PC_ERR_FORMAT, PC_ERR_NOT_FOUND, PC_ERR_ARGUMENT, PC_ERR_SHAPE,
 * PC_ERR_DEVICE, PC_ERR_MEMORY. */
PC_API PC_MUST_USE pc_status pc_cloud_plan_job(const pc_cloud *cloud, pc_cloud_job_options options, pc_cloud_job *job);

/* What an estimate assumes of every GPU: a step takes pass_seconds for each layer's pass, plus its flops at flops_share
 * of the rate in float32 (narrow_share of it in convolutions to fewer than narrow_channels), plus its bytes at
 * bytes_share of the memory's bandwidth; the host adds host_seconds for a picture. That fits what was measured on an
 * H200; the step that it fits worst is off by a share of `worst`. */
typedef struct pc_cloud_model {
    double pass_seconds, flops_share, narrow_share, bytes_share, host_seconds, worst;
    double billed_seconds; /* at least */
    int narrow_channels;
} pc_cloud_model;
PC_API pc_cloud_model pc_cloud_estimate_model(void);

/* Whether Paracord has code for it: NVIDIA's from compute capability 7.5 on. False for NULL. */
PC_API bool pc_cloud_gpu_runs(const pc_cloud_gpu *gpu);

/* Why there is no estimate for an instance. */
typedef enum pc_cloud_reason {
    PC_CLOUD_ESTIMATED,
    PC_CLOUD_NO_CUDA,    /* another vendor's accelerator, or CUDA that Paracord has no code for */
    PC_CLOUD_OTHER_ARCH, /* not x86-64 */
    PC_CLOUD_PART,       /* a fraction of a GPU: its share of the speed is not known */
    PC_CLOUD_NO_RATES,   /* the catalogue does not know how fast it is */
    PC_CLOUD_NO_ROOM     /* the training does not fit its memory */
} pc_cloud_reason;

/* What the job takes on one GPU of the instance: decoding with all its vCPUs, then the epochs. */
typedef struct pc_cloud_estimate {
    pc_cloud_reason reason;
    double pictures_per_second; /* of training, batches and their way to the GPU included, decoding aside */
    double decode, train;       /* seconds */
    double seconds;             /* both */
    double usd;                 /* of that time, a minute at least, which is what is billed; NaN: no price */
} pc_cloud_estimate;
PC_API pc_cloud_estimate pc_cloud_estimate_job(const pc_cloud_job *job, const pc_cloud_instance *instance,
                                               pc_cloud_price price);

/* Bytes of a GPU's memory that the job takes; PC_CLOUD_NO_ROOM where they are more than nine tenths of it. */
PC_API double pc_cloud_job_bytes(const pc_cloud_job *job);

/* The estimate for the machine it was measured on; usd is NaN. */
PC_API pc_cloud_estimate pc_cloud_estimate_here(const pc_cloud_job *job);

/* What an update did. */
typedef struct pc_cloud_update_report {
    const char *region, *date; /* of the newest of the new prices; they live as long as the catalogue */
    int products;              /* in the list */
    int changed, same, added;  /* prices of the catalogue's instances; added: none was known in this region */
    int kept;                  /* instances that the list does not have: they keep their price and its date */
    int older;                 /* prices that are older than what is known, which stays: left out */
    int zero;                  /* prices of $0 for instances of the catalogue, which are no prices: left out */
    const char *strangers;     /* "g8.xlarge, ...": instances with GPUs that the catalogue does not have; or NULL */
} pc_cloud_update_report;

/* Take the prices of one region from what `aws pricing get-products --service-code AmazonEC2 ...` printed: Linux,
 * shared hardware, on demand; each with the day it was published, and where what is known is not newer. On failure none:
 * PC_ERR_FORMAT when it is no price list, lacks its last page, has no price of any instance of the catalogue, has two
 * prices for one instance, or (region NULL) has several regions; PC_ERR_STATE when each is older than what it
 * would replace; PC_ERR_UNSUPPORTED without cJSON; PC_ERR_MEMORY. `name` (may be NULL) is used in messages. */
PC_API PC_MUST_USE pc_status pc_cloud_update(pc_cloud *cloud, const char *json, size_t n, const char *name,
                                             const char *region, pc_cloud_update_report *report);

/* Write the catalogue, whole or not at all: to `path`, or (NULL) to the user's copy, which pc_cloud_open(NULL) finds.
 * PC_ERR_FILE, PC_ERR_MEMORY. */
PC_API PC_MUST_USE pc_status pc_cloud_save(const pc_cloud *cloud, const char *path);

/* The user's copy, whether it is there or not: $XDG_DATA_HOME/paracord/cloud.txt, else ~/.local/share/... The text is
 * the caller's (pc_text_free). NULL: PC_ERR_FILE when neither XDG_DATA_HOME nor HOME is set, PC_ERR_MEMORY. */
PC_API PC_MUST_USE char *pc_cloud_user_path(void);

PC_END
#endif
