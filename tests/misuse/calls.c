/* calls.c: every public function with NULL and nonsense, one argument at a time. None may crash or hang; NULL where it
 * is not allowed is PC_ERR_ARGUMENT that names function and argument; a failure is told by the result and the error
 * alike. The calls are made from the headers (`generate`), so that a new function is tried without an edit; objects are
 * on the device of PARACORD_TEST_DEVICE. */
#include "nonsense.h"
#include "sane.h"

#include <ctype.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* --- one call, in a child --- */

typedef struct progress { /* seen by the parent too */
    int now, value, begun, faults;
    int sane, sane_ok;
} progress;

static progress *shared;
static const struct place *now;

#define BEGIN()                                                                                                        \
    do {                                                                                                               \
        if (!begin())                                                                                                  \
            return;                                                                                                    \
    } while (0)

/* False when what the call needs could not be made, as in a build without an optional library. */
static bool begin(void)
{
    bool made = !pc_failed();
    pc_error_clear();
    shared->begun = made;
    return made;
}

static void fault(const char *what)
{
    const pc_error *e = pc_error_last();
    shared->faults++;
    fprintf(stderr, "%s, %s%s (value %d): %s; error: %s \"%s\"\n", now->function,
            now->at == EVERY ? "all NULL" : now->argument, now->values == null ? " NULL" : "", shared->value, what,
            pc_status_name(e->status), e->message);
}

/* The word in the text, not a part of a longer one. */
static bool names(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = text; (p = strstr(p, word)); p++) {
        bool starts = p == text || (!isalnum(p[-1]) && (p[-1] != '_' || strncmp(p - 1, "_", 1) != 0));
        if (starts && !isalnum(p[n]) && p[n] != '_')
            return true;
    }
    return false;
}

/* pc_fn_linear is told as pc_fn_linear or linear, pc_conv2d_new as pc_conv2d or conv2d. */
static bool names_function(const char *message)
{
    char name[128];
    snprintf(name, sizeof name, "%s", now->function + (strncmp(now->function, "pc_fn_", 6) == 0 ? 6 : 3));
    if (names(message, now->function) || names(message, name))
        return true;
    char *end = strstr(name, "_new");
    if (end)
        *end = 0;
    return strstr(message, name) != NULL;
}

static void check(bool failed, pc_status status)
{
    const pc_error *e = pc_error_last();
    bool told = e->status != PC_OK;
    if (failed != told)
        fault(failed ? "fails without an error" : "succeeds with an error");
    if (failed && status != PC_OK && status != e->status)
        fault("returns another status than it records");
    if (told && (!e->message[0] || strchr(e->message, '\n')))
        fault("the message is not one line");
    if (now->at == SANE) {
        shared->sane++;
        shared->sane_ok += !told;
        if (told && getenv("PARACORD_TEST_SANE"))
            fprintf(stderr, "sane: %s: %s\n", now->function, e->message);
    }
    if (!now->refused)
        return;
    if (e->status != PC_ERR_ARGUMENT)
        fault("is not PC_ERR_ARGUMENT");
    else if (!names_function(e->message) || (now->at != EVERY && !names(e->message, now->argument)))
        fault("the message does not name function and argument");
}

static void end_status(pc_status status)
{
    check(status != PC_OK, status);
}

static void end_object(const void *object)
{
    check(!object, PC_OK);
}

static void end(void)
{
    check(pc_failed(), PC_OK);
}

#include "misuse_calls.h"

static int count_of(const void *values)
{
#define COUNT(list)                                                                                                    \
    if (values == (list))                                                                                              \
        return (int)(sizeof(list) / sizeof(*(list)));
    COUNT(ints)
    COUNT(longs)
    COUNT(lengths)
    COUNT(sizes)
    COUNT(words)
    COUNT(shorts)
    COUNT(doubles)
    COUNT(enums)
    COUNT(shapes)
    COUNT(devices)
#undef COUNT
    return 1;
}

/* --- all calls, from the parent --- */

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (file && fputs(text, file) >= 0)
        fclose(file);
}

/* The files, in the current folder. */
static void make_files(void)
{
    (void)test_device(); /* passed over where there is none */
    put_picture(".", "p.jpg", 1);
    for (unsigned i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "pictures/%s/%u.png", i % 2 ? "cat" : "dog", i);
        put_picture(".", name, i);
    }
    mkdir("machine", 0777);
    put("trace.json", "[{\"ph\":\"X\",\"name\":\"step\",\"cat\":\"step\",\"ts\":1,\"dur\":5,\"pid\":1,\"tid\":1}]");
    (void)!pc_npy_save(on_the_cpu(), "t.npy");
    (void)!pc_weights_save(net(), "net.safetensors");
    (void)!pc_gpt_save(gpt(), "gpt");
    (void)!pc_tokenizer_save(pc_tokenizer_new_letters("letters", 7), "words");
    put("t.csv", "a,b\n1,2\n3,4\n");
    put("t.bin", "sixteen tokens of 16 bits, ended");
    pc_train_options on_the_host = options();
    on_the_host.device = "cpu";
    pc_train_summary summary;
    (void)!pc_train_folder(on_the_host, &summary);
}

#define PLACES ((int)(sizeof places / sizeof *places))

/* The calls of one function from where shared->now and shared->value stand, in this process. */
static void play(void)
{
    if (!freopen("/dev/null", "w", stdout) || pc_allocator_set(allocator()) != PC_OK)
        _exit(3);
    pc_threads_set(1);
    for (const char *function = places[shared->now].function;
         shared->now < PLACES && places[shared->now].function == function; shared->now++, shared->value = 0)
        for (now = &places[shared->now]; shared->value < count_of(now->values); shared->value++) {
            shared->begun = 0;
            pc_error_clear();
            alarm(120); /* a busy machine is no hang */
            now->call(now->at, shared->value);
        }
    _exit(0);
}

static void tell_end(int status)
{
    const struct place *p = &places[shared->now];
    fprintf(stderr, "%s, %s%s (value %d): %s %s %d\n", p->function, p->at == EVERY ? "all NULL" : p->argument,
            p->values == null ? " NULL" : "", shared->value,
            WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "hangs," : "ends the process,",
            WIFSIGNALED(status) ? "signal" : "exit code", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    shared->faults++;
}

static int in_a_child(void (*function)(void))
{
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        function();
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

/* Not a test of cmocka's, which would catch the children's signals. The parent calls nothing: its children begin
 * without threads. */
int main(void)
{
    test_path root = folder_in_memory();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int made = shared != MAP_FAILED && chdir(root.s) == 0 ? in_a_child(make_files) : -1;
    if (made != 0) {
        remove_root(&root);
        return WIFEXITED(made) && WEXITSTATUS(made) == TEST_SKIPPED ? TEST_SKIPPED : 1;
    }
    for (const char *const *rule = stale_rules; *rule; rule++, shared->faults++)
        fprintf(stderr, "rules: \"%s\" is about nothing in the headers\n", *rule);
    while (shared->now < PLACES) {
        int ended = in_a_child(play);
        if (ended == 0)
            continue;
        tell_end(ended);
        if (++shared->value >= count_of(places[shared->now].values))
            shared->now++, shared->value = 0;
    }
    remove_root(&root);
    printf("%d places with NULL or nonsense: %d faults; %d of %d functions do their work where nothing is wrong\n",
           PLACES, shared->faults, shared->sane_ok, shared->sane);
    return shared->faults || shared->sane_ok < 0.95 * shared->sane;
}
