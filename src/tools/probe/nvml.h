/* nvml.h: the part of NVML's binary interface that the probe uses, which is stable. Its own header is not needed to
 * build: the library is opened by name. */
#ifndef PC__PROBE_NVML_H
#define PC__PROBE_NVML_H

typedef struct pc__nvml_device *pc__nvml_device;

enum {
    PC__NVML_FINE = 0,
    PC__NVML_INVALID = 2, /* an argument */
    PC__NVML_NOT_SUPPORTED = 3,
    PC__NVML_NO_PERMISSION = 4,
    PC__NVML_STATES = 16, /* of performance; 32: unknown */
    PC__NVML_LINKS = 18   /* the most NVLinks that a device has */
};

typedef struct pc__nvml_pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char address[32];
} pc__nvml_pci;

typedef struct pc__nvml_memory {
    unsigned version; /* its size | 2 << 24 */
    unsigned long long total, reserved, free, used;
} pc__nvml_memory;

typedef struct pc__nvml_bar1 {
    unsigned long long total, free, used;
} pc__nvml_bar1;

typedef struct pc__nvml_use {
    unsigned gpu, memory;
} pc__nvml_use;

typedef struct pc__nvml_process {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
} pc__nvml_process;

typedef struct pc__nvml_fabric {
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
} pc__nvml_fabric;

#endif
