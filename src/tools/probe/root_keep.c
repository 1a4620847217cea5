/* root_keep.c: keeping what was read, and writing it as a recording. */
#include "probe/root_parts.h"

#include <errno.h>

/* True the first time that something is kept for this kind of question about a path. */
static bool first_time(pc__root *root, const char *path, char question)
{
    uint64_t hash = 1469598103934665603u ^ (unsigned char)question;
    for (; *path; path++)
        hash = (hash ^ (unsigned char)*path) * 1099511628211u;
    for (int i = 0; i < root->seen_count; i++)
        if (root->seen[i] == hash)
            return false;
    if (pc__grow((void **)&root->seen, &root->seen_capacity, root->seen_count, sizeof *root->seen) != PC_OK) {
        root->starved = true;
        return false;
    }
    root->seen[root->seen_count++] = hash;
    return true;
}

void pc__root_keep(pc__root *root, const pc__root_entry *entry, char question)
{
    if (root->recording && !root->quiet && first_time(root, entry->path, question))
        pc__recording_add(&root->kept, entry);
}

void pc__root_keep_content(pc__root *root, const char *path, const char *content, size_t n, bool link)
{
    pc__root_entry entry = {
        .path = (char *)path, .content = (char *)content, .length = n, .link = link, .total = -1, .free = -1};
    pc__root_keep(root, &entry, 'c');
}

void pc__root_keep_quiet(pc__root *root, bool quiet)
{
    root->quiet = quiet;
}

void pc__root_note(pc__root *root, const char *path, const char *content)
{
    pc__root_keep_content(root, path, content, strlen(content), false);
}

pc_status pc__root_write(pc__root *root, const char *path)
{
    static const char *const variables[] = {"PATH",
                                            "LD_LIBRARY_PATH",
                                            "CUDA_VISIBLE_DEVICES",
                                            "CUDA_DEVICE_ORDER",
                                            "NVIDIA_VISIBLE_DEVICES",
                                            "NVIDIA_DRIVER_CAPABILITIES",
                                            "CUDA_HOME",
                                            "NVCC_CCBIN",
                                            "CUDAHOSTCXX",
                                            "NVCC_PREPEND_FLAGS",
                                            "NVCC_APPEND_FLAGS",
                                            "NCCL_P2P_DISABLE",
                                            "NCCL_P2P_LEVEL",
                                            "NCCL_SHM_DISABLE",
                                            "NCCL_NVLS_ENABLE"};
    if (!root->recording)
        return pc__fail(PC_ERR_STATE, "the machine was probed without .recording: there is nothing to write");
    if (root->kept.failed)
        return pc__fail(PC_ERR_MEMORY, "no memory for the recording");
    FILE *file = fopen(path, "we");
    if (!file)
        return pc__fail_file(errno, "cannot write the recording %s", path);
    fputs("paracord machine 1\nanswers/environment =\n", file);
    for (int i = 0; i < PC__COUNT(variables); i++)
        if (pc__root_env(root, variables[i]))
            fprintf(file, "|%s=%s\n", variables[i], pc__root_env(root, variables[i]));
    if (pc__root_env(root, "KUBERNETES_SERVICE_HOST")) /* which address it is, is nobody's business */
        fputs("|KUBERNETES_SERVICE_HOST=yes\n", file);
    if (root->kept.data)
        fwrite(root->kept.data, 1, root->kept.length, file);
    bool failed = ferror(file);
    if (fclose(file) || failed)
        return pc__fail_file(errno, "cannot write the recording %s", path);
    return PC_OK;
}
