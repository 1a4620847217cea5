/* doctor_licence.c: a virtual machine's slice of a GPU (vGPU) works at first without a licence, then ever slower, and
 * not with CUDA. After NVIDIA's "Virtual GPU Client Licensing User Guide". */
#include "probe/doctor.h"

/* "NVIDIA A40-16Q", "GRID T4-8C", "NVIDIA A100-4-20C": memory in GB and the product's letter end the name. */
static bool is_slice(const pc_probe_device *d)
{
    const char *name = d->model.known ? d->model.text : "";
    const char *dash = strrchr(name, '-');
    size_t digits = dash ? strspn(dash + 1, "0123456789") : 0;
    return d->nvml && digits && dash[1 + digits] && strchr("QCAB", dash[1 + digits]) && !dash[2 + digits];
}

/* Of old servers gridd.conf has the address, of newer ones a token is put into a folder. */
static bool is_configured(pc__exam *e)
{
    int tokens = 0;
    char *text = pc__root_whole(e->m->root, "etc/nvidia/gridd.conf", 65536, false), *rest = NULL;
    bool server = false;
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
        line += strspn(line, " \t");
        size_t n = strcspn(line, "= \t");
        bool names =
            (n == 13 && !strncmp(line, "ServerAddress", n)) || (n == 21 && !strncmp(line, "ClientConfigTokenPath", n));
        server |= names && strcspn(line, "=") + 1 < strlen(line);
    }
    if (server) /* whose address it is, is nobody's business */
        pc__root_note(e->m->root, "etc/nvidia/gridd.conf", "ServerAddress=yes");
    pc__free(text);
    pc__root_list(e->m->root, "etc/nvidia/ClientConfigToken", "", pc__count_name, &tokens);
    return server || tokens;
}

void pc__check_licence(pc__exam *e)
{
    int i = 0;
    pc__cards cards = {0};
    if (e->container || e->wsl || pc__root_exists(e->m->root, "sys/module/nvidia_vgpu_vfio"))
        return;
    for (const pc_probe_device *d; (d = pc__next_gpu(e, &i));)
        if (is_slice(d))
            pc__add_card(&cards, d);
    if (!cards.count || is_configured(e))
        return;
    /* clouds may have licensed the driver that they bring; only programs that fail tell */
    pc_finding *f = pc__found(e, PC_SEVERITY_ADVICE, cards.first);
    pc__what(e, f,
             "This slice of a GPU (vGPU) was not told of a licence: without one it soon runs slowly, and CUDA fails.");
    pc__name_cards(e, f, &cards);
    pc__how(e, f,
            "It is an %s; /etc/nvidia/ClientConfigToken has no token, and /etc/nvidia/gridd.conf no ServerAddress.",
            cards.first->model.text);
    pc__fix(e, f, "nvidia-smi -q | grep -A 2 -i license # Licensed: the cloud has done it, and nothing is to do");
    pc__fix(e, f,
            "# put the token of your licence server (NVIDIA Licensing Portal) into /etc/nvidia/ClientConfigToken");
    pc__fix(e, f, "sudo systemctl restart nvidia-gridd && journalctl -u nvidia-gridd | tail");
}
