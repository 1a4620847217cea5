/* site_text.c: call sites in words. Lines come from the program's debug information, read by libdw, which is opened
 * when the first report asks; without either, dladdr's nearest exported function has to do. */
#include "base/base.h"
#include "base/site.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

typedef struct place {
    const char *function; /* or NULL */
    const char *file;     /* NULL: the line is not known */
    int line;
} place;

#if PC_HAVE_DW
#include <dwarf.h>
#include <elfutils/libdwfl.h>

#define DW_FUNCTIONS(X)                                                                                                \
    X(dwfl_begin)                                                                                                      \
    X(dwfl_linux_proc_report)                                                                                          \
    X(dwfl_linux_proc_find_elf)                                                                                        \
    X(dwfl_report_begin)                                                                                               \
    X(dwfl_report_end)                                                                                                 \
    X(dwfl_addrmodule)                                                                                                 \
    X(dwfl_module_addrdie)                                                                                             \
    X(dwfl_module_nextcu)                                                                                              \
    X(dwfl_module_addrname)                                                                                            \
    X(dwarf_getsrc_die)                                                                                                \
    X(dwarf_linesrc)                                                                                                   \
    X(dwarf_lineno)                                                                                                    \
    X(dwarf_child)                                                                                                     \
    X(dwarf_siblingof)                                                                                                 \
    X(dwarf_tag)                                                                                                       \
    X(dwarf_haspc)                                                                                                     \
    X(dwarf_diename)

/* All of libdw's, used by one thread at a time. */
static pthread_mutex_t dw_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
#define MEMBER(name) __typeof__(name) *name;
    DW_FUNCTIONS(MEMBER)
#undef MEMBER
} dw;
static Dwfl *loaded; /* what is loaded into the process; NULL: without libdw */

/* What was looked up last: a place without debug information takes a walk over all symbols of its file, and reports name
 * the same few thousand again and again. */
enum { KEPT = 1024 };
static struct {
    uintptr_t address; /* 0: none */
    place found;
} kept[KEPT];

/* Only what is in the loaded files themselves: looking for it elsewhere may ask servers. */
static int find_no_other_file(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *file,
                              const char *link, GElf_Word sum, char **found)
{
    (void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)sum, (void)found;
    return -1;
}

static bool open_dw(void)
{
    static bool tried;
    static Dwfl_Callbacks callbacks = {.find_debuginfo = find_no_other_file};
    if (tried)
        return loaded;
    tried = true;
    void *library = dlopen("libdw.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!library)
        return false;
#define FIND(name)                                                                                                     \
    if (!(dw.name = (__typeof__(name) *)dlsym(library, #name)))                                                        \
        return false;
    DW_FUNCTIONS(FIND)
#undef FIND
    callbacks.find_elf = dw.dwfl_linux_proc_find_elf;
    loaded = dw.dwfl_begin(&callbacks);
    return loaded;
}

/* The loaded object at an address; the list of them is made again for one that has come since. */
static Dwfl_Module *module_at(Dwarf_Addr address)
{
    Dwfl_Module *module = dw.dwfl_addrmodule(loaded, address);
    if (module)
        return module;
    memset(kept, 0, sizeof kept); /* names of files that are closed go with them */
    dw.dwfl_report_begin(loaded);
    int failed = dw.dwfl_linux_proc_report(loaded, getpid());
    failed |= dw.dwfl_report_end(loaded, NULL, NULL);
    return failed ? NULL : dw.dwfl_addrmodule(loaded, address);
}

/* The compilation unit at an address. Not every compiler writes the index by address. */
static Dwarf_Die *unit_at(Dwfl_Module *module, Dwarf_Addr address, Dwarf_Addr *bias)
{
    Dwarf_Die *unit = dw.dwfl_module_addrdie(module, address, bias);
    if (!unit)
        while ((unit = dw.dwfl_module_nextcu(module, unit, bias)) && dw.dwarf_haspc(unit, address - *bias) <= 0)
            ;
    return unit;
}

static bool is_scope(int tag)
{
    return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block;
}

/* The innermost function, which may be inlined into others: it is the one that the line is in. */
static const char *function_at(Dwarf_Die *unit, Dwarf_Addr address)
{
    const char *innermost = NULL;
    Dwarf_Die scope = *unit, inner;
    while (dw.dwarf_child(&scope, &inner) == 0) {
        bool found = false;
        do
            found = is_scope(dw.dwarf_tag(&inner)) && dw.dwarf_haspc(&inner, address) > 0;
        while (!found && dw.dwarf_siblingof(&inner, &inner) == 0);
        if (!found)
            break;
        const char *name = dw.dwarf_tag(&inner) == DW_TAG_lexical_block ? NULL : dw.dwarf_diename(&inner);
        if (name)
            innermost = name;
        scope = inner;
    }
    return innermost;
}

static place find(uintptr_t address)
{
    place found = {0};
    Dwfl_Module *module = module_at(address);
    if (!module)
        return found;
    Dwarf_Addr bias = 0;
    Dwarf_Die *unit = unit_at(module, address, &bias);
    Dwarf_Line *line = unit ? dw.dwarf_getsrc_die(unit, address - bias) : NULL;
    if (line && dw.dwarf_lineno(line, &found.line) == 0)
        found.file = dw.dwarf_linesrc(line, NULL, NULL);
    if (unit)
        found.function = function_at(unit, address - bias);
    if (!found.function)
        found.function = dw.dwfl_module_addrname(module, address);
    return found;
}

static place look_up(uintptr_t address)
{
    const size_t slot = (address ^ address >> 10) % KEPT;
    if (kept[slot].address != address) {
        const place found = find(address); /* which may empty the table */
        if (!found.function && !found.file)
            return found; /* what was missing may be there the next time */
        kept[slot].address = address;
        kept[slot].found = found;
    }
    return kept[slot].found;
}
#endif

static place nearest_symbol(uintptr_t address)
{
    Dl_info info;
    return (place){.function = dladdr((void *)address, &info) ? info.dli_sname : NULL};
}

static bool is_named_as_ours(const place *at)
{
    return at->function && strncmp(at->function, "pc_", 3) == 0;
}

static bool is_ours(const place *at)
{
    static const char here[] = __FILE__, tail[] = "base/site_text.c";
    size_t n = sizeof here - PC__MIN(sizeof tail, sizeof here); /* the folder of the library's sources */
    return is_named_as_ours(at) || (at->file && n && strncmp(at->file, here, n) == 0);
}

/* Which address of a list is the program's: the innermost with a line and not the library's; where no line is known,
 * the one that called the outermost function with a name of the library's, since its static functions have any name. */
static int choose(const place *places, int n)
{
    int outermost = n - 2; /* when nothing has a name: the program's start is outside for sure */
    for (int i = 0; i < n; i++)
        if (places[i].file && !is_ours(&places[i]))
            return i;
    for (int i = n - 1; i >= 0; i--)
        if (is_named_as_ours(&places[i])) {
            outermost = i;
            break;
        }
    return PC__MIN(outermost + 1, n - 1);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void write_text(const place *at, uintptr_t address, char text[PC__SITE_TEXT])
{
    Dl_info info;
    const char *function = at->function ? at->function : "", *in = at->function ? " in " : "";
    if (at->file)
        snprintf(text, PC__SITE_TEXT, at->function ? "%s:%d (%s)" : "%s:%d%s", base_name(at->file), at->line, function);
    else if (dladdr((void *)address, &info) && info.dli_fname)
        snprintf(text, PC__SITE_TEXT, "%s%s%s+0x%zx", function, in, base_name(info.dli_fname),
                 (size_t)(address - (uintptr_t)info.dli_fbase));
    else
        snprintf(text, PC__SITE_TEXT, "%s%s0x%zx", function, in, (size_t)address);
}

/* A return address is that of the instruction after the call, which may be on another line: look at the one before. */
char *pc__site_text(pc__site site, char text[PC__SITE_TEXT])
{
    place places[PC__SITE_MOST];
    const uintptr_t *addresses = NULL;
    int n = pc__site_addresses(site, &addresses);
    snprintf(text, PC__SITE_TEXT, "unknown place");
    if (n == 0)
        return text;
#if PC_HAVE_DW
    pthread_mutex_lock(&dw_lock);
    bool with_dw = open_dw();
    for (int i = 0; i < n; i++)
        places[i] = with_dw ? look_up(addresses[i] - 1) : nearest_symbol(addresses[i] - 1);
#else
    for (int i = 0; i < n; i++)
        places[i] = nearest_symbol(addresses[i] - 1);
#endif
    int chosen = choose(places, n);
    write_text(&places[chosen], addresses[chosen] - 1, text);
#if PC_HAVE_DW
    pthread_mutex_unlock(&dw_lock);
#endif
    return text;
}
