/* cloud_reason.c: why paracord cloud pick left a machine out, and the options that take it. */
#include <string.h>

#include "cloud.h"

const char *cli_cloud_option(pc_cloud_misfit misfit, const pc_cloud_family *family, char text[CLI_CLOUD_TEXT_MAX])
{
    const char *option = misfit == PC_CLOUD_VENDOR     ? "--vendor "
                         : misfit == PC_CLOUD_ARCH     ? "--arch "
                         : misfit == PC_CLOUD_FRACTION ? "--fractions"
                         : misfit == PC_CLOUD_OLD      ? "--old"
                                                       : "";
    const char *value = misfit == PC_CLOUD_VENDOR ? family->gpu->vendor : misfit == PC_CLOUD_ARCH ? family->arch : "";
    snprintf(text, CLI_CLOUD_TEXT_MAX, "%s%s", option, value);
    return text;
}

bool cli_cloud_is_unpriced(const pc_cloud_offer *offer)
{
    return offer->misfit == PC_CLOUD_NO_PRICE && !offer->instance->family->blocks;
}

/* The family's trap where it is the reason: traps are told to who wants CUDA and programs for x86-64. */
static const char *apt_trap(const pc_cloud_offer *offer, const cli_cloud_settings *s)
{
    const pc_cloud_family *f = offer->instance->family;
    bool other = (offer->misfit == PC_CLOUD_VENDOR && strcmp(s->vendor, "nvidia") != 0) ||
                 (offer->misfit == PC_CLOUD_ARCH && strcmp(f->arch, "arm64") != 0);
    return other ? NULL : pc_cloud_trap(offer->instance);
}

static const char *vendor_name(const char *vendor)
{
    return !strcmp(vendor, "nvidia")  ? "NVIDIA"
           : !strcmp(vendor, "amd")   ? "AMD"
           : !strcmp(vendor, "aws")   ? "AWS"
           : !strcmp(vendor, "intel") ? "Intel"
                                      : vendor;
}

/* "It is NVIDIA, not AMD; it is a part of a GPU": what it is besides what was asked for. */
static void describe(const pc_cloud_offer *offer, const cli_cloud_settings *s, char *text, size_t n)
{
    char phrases[4][64];
    const pc_cloud_family *f = offer->instance->family;
    bool arm = !strcmp(f->arch, "arm64");
    snprintf(phrases[0], sizeof phrases[0], "it is %.20s, not %.20s", vendor_name(f->gpu->vendor),
             vendor_name(s->vendor));
    snprintf(phrases[1], sizeof phrases[1], "its CPU is %s, not %s", arm ? "Arm" : "x86-64", arm ? "x86-64" : "Arm");
    snprintf(phrases[2], sizeof phrases[2], "it is a part of a GPU");
    snprintf(phrases[3], sizeof phrases[3], "it is on its way out");
    size_t length = 0;
    for (int m = PC_CLOUD_VENDOR; m <= PC_CLOUD_OLD && length < n; m++)
        if (offer->misfits & 1 << m)
            length +=
                (size_t)snprintf(text + length, n - length, "%s%s", length ? "; " : "", phrases[m - PC_CLOUD_VENDOR]);
    text[0] = text[0] == 'i' ? 'I' : text[0];
}

const char *cli_cloud_reason(const pc_cloud_offer *offer, const cli_cloud_settings *s, char text[CLI_CLOUD_REASON_MAX])
{
    char options[4 * CLI_CLOUD_TEXT_MAX] = "", option[CLI_CLOUD_TEXT_MAX];
    const char *trap = apt_trap(offer, s);
    int count = 0;
    if (cli_cloud_is_unpriced(offer))
        snprintf(text, CLI_CLOUD_REASON_MAX, "its price is unknown");
    else if (trap)
        snprintf(text, CLI_CLOUD_REASON_MAX, "%s", trap);
    else
        describe(offer, s, text, CLI_CLOUD_REASON_MAX);
    for (int m = PC_CLOUD_VENDOR; m <= PC_CLOUD_OLD; m++) {
        size_t n = strlen(options);
        if (offer->misfits & 1 << m)
            snprintf(options + n, sizeof options - n, "%s%s", count++ ? " " : "",
                     cli_cloud_option((pc_cloud_misfit)m, offer->instance->family, option));
    }
    size_t n = strlen(text);
    if (count)
        snprintf(text + n, CLI_CLOUD_REASON_MAX - n, " (%s take%s it)", options, count > 1 ? "" : "s");
    return text;
}
