/* add, saxpy, matmul and mandelbrot as a user runs them, on PARACORD_TEST_DEVICE: right results, whole files, errors
 * that name what would be right. */
#include "job.h"
#include "root.h"

#include "device.h"

#include <math.h>

#include <paracord/image.h>

static job_end e;

#define ON "--device", test_device_name()

/* Every brace and bracket is closed, on one line, and the words are there. */
static void assert_json(const char *text, const char *const *words)
{
    int depth = 0;
    for (const char *at = text; *at; at++)
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
    const char *end = strchr(text, '\n');
    if (depth || text[0] != '{' || !end || end[1])
        fail_msg("no JSON object on one line: %s", text);
    for (; *words; words++)
        if (!strstr(text, *words))
            fail_msg("no %s in %s", *words, text);
}
#define assert_json_has(text, ...) assert_json((text), ARGUMENTS(__VA_ARGS__))

static void add_prints_the_sums(void **state)
{
    (void)state;
    run(&e, "add", ON);
    assert_went_well(&e);
    const char *sums = "c[0]=8\nc[1]=10\nc[2]=12\nc[3]=14\nc[4]=16\nc[5]=18\n6 elements of int32, all compared with a "
                       "plain loop: equal\n";
    if (strncmp(e.out, sums, strlen(sums)) != 0)
        fail_msg("want %s, got %s", sums, e.out);
    assert_non_null(strstr(e.out, "compute, first call"));
    assert_non_null(strstr(e.out, "a plain loop on one core"));
}

static void add_is_right_for_every_size(void **state)
{
    (void)state;
    static const char *const sizes[] = {"0", "1", "6", "1023", "1025", "100003"}, *const dtypes[] = {"int32", "int64",
                                                                                                     "float32",
                                                                                                     "float64"};
    for (int i = 0; i < 6; i++)
        for (int t = 0; t < 4; t++) {
            run(&e, "add", "--json", "--size", sizes[i], "--dtype", dtypes[t], ON);
            assert_went_well(&e);
            assert_json_has(e.out, "\"wrong\": 0", "\"program\": \"add\"", dtypes[t], "\"speedup\"");
        }
    run(&e, "add", "--json", "--size", "1025", "--pinned", ON);
    assert_went_well(&e);
    assert_json_has(e.out, "\"ends\": [1027, 1029, 1031, 3071, 3073, 3075]", "\"wrong\": 0");
}

/* Great numbers beside files: of int64 the sums are whole or refused, of float64 they are float64; what is no number is
 * null in JSON. */
static void add_keeps_files_whole(const char *path)
{
    int64_t odd[] = {((int64_t)1 << 53) + 1, 5};
    double real[] = {0.5, INFINITY};
    assert_ok(pc_npy_save(pc_from_data(odd, PC_SHAPE(2), PC_I64, PC_DEVICE_CPU), path));
    run(&e, "add", "--json", "4611686018427387904,0", path, ON);
    assert_json_has(e.out, "\"int64\"", "\"ends\": [4620693217682128897, 5]");
    run(&e, "add", path, "9223372036854775807,0", ON);
    assert_refused(&e, 1, "too great for int64", "--dtype float64");
    run(&e, "add", "9223372036854775808,0", path, ON);
    assert_refused(&e, 1, "too great for int64");
    run(&e, "add", "--json", "0.5,1e300", path, ON);
    assert_json_has(e.out, "\"float64\"", "\"wrong\": 0");
    run(&e, "add", "1", path, ON);
    assert_refused(&e, 1, "different shapes");
    odd[0] = INT64_MAX;
    assert_ok(pc_npy_save(pc_from_data(odd, PC_SHAPE(2), PC_I64, PC_DEVICE_CPU), path));
    run(&e, "add", path, "1,1", ON);
    assert_refused(&e, 1, "too great for int64");
    run(&e, "add", "--json", ON, "--", path, "-1,1");
    assert_json_has(e.out, "\"int64\"", "\"ends\": [9223372036854775806, 6]");
    assert_ok(pc_npy_save(pc_from_data(real, PC_SHAPE(2), PC_F64, PC_DEVICE_CPU), path));
    run(&e, "add", "--json", "9223372036854775807,1", path, ON);
    assert_json_has(e.out, "\"float64\"", "\"ends\": [9.2233720368547758e+18, null]");
    run(&e, "add", "9223372036854775808,1", path, ON);
    assert_memory_equal(e.out, "c[0]=9.22337203685478e+18\nc[1]=inf\n2 elements of float64", 56);
}

/* Numbers of the command line, and arrays of files: of one shape, in the type that takes both. */
static void add_takes_arrays(void **state)
{
    (void)state;
    char folder[] = "/tmp/paracord-test-XXXXXX", a[64], b[64], c[64];
    assert_non_null(mkdtemp(folder));
    snprintf(a, sizeof a, "%s/a.npy", folder);
    snprintf(b, sizeof b, "%s/b.npy", folder);
    snprintf(c, sizeof c, "%s/c.npy", folder);
    run(&e, "add", "1,-2,3", "10,20,30", ON);
    assert_went_well(&e);
    assert_memory_equal(e.out, "c[0]=11\nc[1]=18\nc[2]=33\n3 elements of int32", 41);
    run(&e, "add", "--json", "1.5,2", "10,20", ON);
    assert_went_well(&e);
    assert_json_has(e.out, "\"ends\": [11.5, 22]", "\"float32\"", "\"wrong\": 0");
    /* sums that int32 or float32 would have otherwise */
    run(&e, "add", "2147483647", "1", ON);
    assert_went_well(&e);
    assert_memory_equal(e.out, "c[0]=2147483648\n1 element of int64", 34);
    run(&e, "add", "99999999999", "1", ON);
    assert_memory_equal(e.out, "c[0]=100000000000\n", 18);
    run(&e, "add", "16777217", "1.5", ON);
    assert_memory_equal(e.out, "c[0]=16777218.5\n1 element of float64", 36);
    run(&e, "add", "--json", "1e16", "1", ON);
    assert_json_has(e.out, "\"float64\"", "\"wrong\": 0");
    run(&e, "add", "-1", "1", ON);
    assert_refused(&e, 2, "a number below 0 goes behind --");
    run(&e, "add", ON, "--", "-1", "1");
    assert_memory_equal(e.out, "c[0]=0\n1 element of int32", 25);
    PC_SCOPE { /* nor do they go round beside a file's numbers */
        assert_ok(pc_npy_save(pc_full(PC_SHAPE(2), 2000000000, PC_I32, PC_DEVICE_CPU), a));
        run(&e, "add", a, "1000000000,1", ON);
        assert_memory_equal(e.out, "c[0]=3000000000\nc[1]=2000000001\n2 elements of int64", 50);
    }
    PC_SCOPE {
        pc_tensor *x = pc_arange(0, 6, 1, PC_I64, PC_DEVICE_CPU);
        assert_ok(pc_npy_save(pc_reshape(x, PC_SHAPE(2, 3)), a));
        assert_ok(pc_npy_save(pc_full(PC_SHAPE(2, 3), 0.5, PC_F64, PC_DEVICE_CPU), b));
        run(&e, "add", a, b, "--out", c, "--json", ON);
        assert_went_well(&e);
        assert_json_has(e.out, "\"float64\"", "\"ends\": [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]");
        pc_tensor *sums = pc_npy_load(c, PC_DEVICE_CPU);
        assert_not_null_ok(sums);
        assert_int_equal(pc_tensor_ndim(sums), 2);
        assert_true(pc_item(pc_sum(sums)) == 18);
        /* numbers beside float64 are float64 */
        assert_ok(pc_npy_save(pc_full(PC_SHAPE(1), 0.2, PC_F64, PC_DEVICE_CPU), b));
        run(&e, "add", b, "0.1", "--json", ON);
        assert_json_has(e.out, "\"float64\"", "\"ends\": [0.30000000000000004]");
        assert_ok(pc_npy_save(pc_full(PC_SHAPE(1), 0.25, PC_F32, PC_DEVICE_CPU), b));
        run(&e, "add", "0.5", b, "--json", ON);
        assert_json_has(e.out, "\"float32\"", "\"ends\": [0.75]");
        add_keeps_files_whole(b);
    }
    run(&e, "add", "1,2", "1", ON);
    assert_refused(&e, 1, "different shapes: 2 and 1 elements");
    run(&e, "add", "1,2", ON);
    assert_refused(&e, 1, "one array is missing");
    run(&e, "add", "1,x", "1,2", ON);
    assert_refused(&e, 1, "numbers with commas between them");
    run(&e, "add", "1,2.5", "1,2", "--dtype", "int32", ON);
    assert_refused(&e, 1, "int32 takes whole numbers");
    unlink(a), unlink(b), unlink(c), rmdir(folder);
}

/* int64 has what a double has not. */
static void add_keeps_great_numbers_whole(void **state)
{
    (void)state;
    run(&e, "add", "9007199254740993", "2", ON);
    assert_memory_equal(e.out, "c[0]=9007199254740995\n1 element of int64", 40);
    run(&e, "add", "--json", "4611686018427387001", "4611686018427387001", ON);
    assert_json_has(e.out, "\"ends\": [9223372036854774002]", "\"int64\"");
    run(&e, "add", "9223372036854775807", "1", ON);
    assert_refused(&e, 1, "9223372036854775807 + 1", "int64", "--dtype float64", "--dtype int64");
    run(&e, "add", "9223372036854775807", "1", "--dtype", "int64", ON);
    assert_memory_equal(e.out, "c[0]=-9223372036854775808\n1 element of int64", 44);
    run(&e, "add", "9223372036854775808", "1", "--dtype", "int64", ON);
    assert_refused(&e, 1, "int64 takes whole numbers");
    run(&e, "add", "9223372036854775807", "x", ON);
    assert_refused(&e, 1, "x: must be numbers");
    /* int64 as long as each sum fits, and no float64 that would round one of them in silence */
    run(&e, "add", "--json", "4611686018427387904,1,-9223372036854775808", "1,4611686018427387904,9223372036854775807",
        ON);
    assert_json_has(e.out, "\"ends\": [4611686018427387905, 4611686018427387905, -1]", "\"int64\"");
    run(&e, "add", "--json", "4611686018427387904", "4611686018427387904", ON);
    assert_json_has(e.out, "\"ends\": [9.2233720368547758e+18]", "\"float64\"");
    run(&e, "add", "9223372036854775808", "1", ON);
    assert_refused(&e, 1, "9223372036854775808 + 1", "--dtype float64");
    run(&e, "add", "--json", "0x20000000000001,-0x10", "2,1", ON);
    assert_json_has(e.out, "\"ends\": [9007199254740995, -15]", "\"int64\"");
    run(&e, "add", "--json", "9007199254740993.0,9007199254740993e0", "1,1", ON);
    assert_json_has(e.out, "\"float64\"");
    run(&e, "add", "--json", "9007199254740991.0", "1", ON);
    assert_json_has(e.out, "\"ends\": [9007199254740992]", "\"int64\"");
    run(&e, "add", "--json", "9223372036854775807", "1", "--dtype", "float64", ON);
    assert_json_has(e.out, "\"float64\"", "\"ends\": [9.2233720368547758e+18]");
}

/* More than 2^28 elements, and no multiple of anything: where there is room for them. */
static void add_is_right_for_many(void **state)
{
    (void)state;
    double kilobytes = 0;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %lf", &kilobytes) == 1)
            break;
    if (file)
        fclose(file);
    if (SANITIZED || kilobytes < 12e6 || test_device().type == PC_SIM)
        skip();
    run(&e, "add", "--json", "--size", "268435459", ON);
    assert_went_well(&e);
    assert_json_has(e.out, "\"ends\": [268435461, 268435463, 268435465, 805306373, 805306375, 805306377]",
                    "\"wrong\": 0");
}

static void saxpy_and_matmul_are_right(void **state)
{
    (void)state;
    static const char *const sizes[] = {"1", "7", "128", "300"};
    for (int i = 0; i < 4; i++) {
        run(&e, "saxpy", "--json", "--size", sizes[i], "--factor", "-0.3", ON);
        assert_went_well(&e);
        assert_json_has(e.out, "\"wrong\": 0", "\"unit\": \"B\"");
        run(&e, "matmul", "--json", "--size", sizes[i], ON);
        assert_went_well(&e);
        assert_json_has(e.out, "\"wrong\": 0", "\"rows_checked\"", "\"unit\": \"FLOP\"");
    }
    run(&e, "matmul", "--tf32", "--size", "100", ON);
    assert_went_well(&e);
    run(&e, "saxpy", "--size", "0", "--pinned", ON);
    assert_went_well(&e);
}

static void ladders_have_their_rungs(void **state)
{
    (void)state;
    run(&e, "add", "--ladder", "--size", "100003", ON);
    assert_went_well(&e);
    assert_non_null(strstr(e.out, "the library"));
    assert_non_null(strstr(e.out, test_device().type == PC_CUDA ? "one thread" : "SIMD"));
    run(&e, "matmul", "--ladder", "--json", "--size", "128", ON);
    assert_went_well(&e);
    assert_json_has(e.out, "\"rungs\": [{", "\"rung\": \"the library\"", "\"share\": ", "\"why\": ");
    run(&e, "matmul", "--ladder", "--size", "640", ON); /* a rung is too slow for that */
    assert_went_well(&e);
    assert_non_null(strstr(e.out, test_device().type == PC_CUDA ? "shared memory" : "512 rows and columns)"));
    const bool host = test_device().type == PC_CPU; /* where OpenBLAS is installed, or what would install it */
    assert_true(host == (strstr(e.out, "\nBLAS ") != NULL));
    assert_true(host == (strstr(e.out, "cblas_sgemm on ") || strstr(e.out, "apt install libopenblas0")));
}

static pc_image read_picture(const char *path)
{
    pc_image picture;
    assert_ok(pc_image_read(path, PC_OPTIONS(pc_image_options, .channels = 3), &picture));
    return picture;
}

static void mandelbrot_draws(void **state)
{
    (void)state;
    test_path here = joined(root.s, "here.png"), there = joined(root.s, "there.png"), soft = joined(root.s, "soft.png");
    run(&e, "mandelbrot", "-W", "301", "-H", "200", "-n", "300", "--no-smooth", "-o", there.s, "--json", ON);
    assert_went_well(&e);
    assert_json_has(e.out, "\"wrong\": 0", "\"rows_checked\": 200", "there.png");
    run(&e, "mandelbrot", "-W", "301", "-H", "200", "-n", "300", "--no-smooth", "-o", here.s, "--device", "cpu");
    assert_went_well(&e);
    assert_non_null(strstr(e.out, "all compared with a plain loop: equal"));
    pc_image a = read_picture(here.s), b = read_picture(there.s);
    assert_int_equal(a.width, 301);
    assert_int_equal(a.height, 200);
    assert_memory_equal(a.pixels, b.pixels, (size_t)301 * 200 * 3); /* the same on every device */
    const uint8_t *inside = a.pixels + (100 * 301 + 200) * 3, *rim = a.pixels + (100 * 301 + 230) * 3;
    assert_int_equal(inside[0] + inside[1] + inside[2], 0);
    assert_true(rim[0] + rim[1] + rim[2] > 200);
    pc_image_free(&a);
    pc_image_free(&b);
    run(&e, "mandelbrot", "-W", "90", "-H", "60", "-n", "50", "-p", "ocean", "-c", "-0.75,0.1", "-z", "20", "-o",
        soft.s, "--view", ON);
    assert_went_well(&e);
    assert_non_null(strstr(e.out, "##")); /* no terminal: letters */
    a = read_picture(soft.s);
    assert_int_equal(a.width, 90);
    pc_image_free(&a);
    assert_no_temporaries(root.s);
}

static void a_zoom_is_numbered_pictures(void **state)
{
    (void)state;
    test_path out = joined(root.s, "zoom.png");
    run(&e, "mandelbrot", "-W", "60", "-H", "40", "-n", "200", "-c", "-0.7436439,0.1318259", "-z", "1000", "-f", "3",
        "-o", out.s, ON);
    assert_went_well(&e);
    assert_true(exists(root.s, "zoom-0001.png") && exists(root.s, "zoom-0003.png"));
    assert_false(exists(root.s, "zoom.png") || exists(root.s, "zoom-0004.png"));
    assert_non_null(strstr(e.out, "3 pictures"));
}

/* What the command prints on a terminal. */
static void on_terminal(char *text, size_t room, const char *const *arguments)
{
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    const int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0);
    const pid_t child = start(arguments, (job_limits){0}, terminal, open("/dev/null", O_WRONLY));
    size_t n = 0;
    for (ssize_t more; n + 1 < room && (more = read(master, text + n, room - 1 - n)) > 0;) /* until nobody writes */
        n += (size_t)more;
    text[n] = 0;
    assert_int_equal(wait_for(child), 0);
    close(master);
}

/* By libchafa or without it: colours and blocks; letters for those who want no colours. */
static void a_terminal_shows_colours(void **state)
{
    (void)state;
    static char text[1 << 20];
    const char *const arguments[] = {"mandelbrot", "--view",           "-W", "60", "-H", "40",
                                     "--device",   test_device_name(), NULL};
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("TERM", "xterm-256color", 1); /* which a job in the background may lack */
    setenv("COLORTERM", "truecolor", 1);
    unsetenv("NO_COLOR");
    on_terminal(text, sizeof text, arguments);
    assert_non_null(strstr(text, "\033[")); /* the first bytes of a colour, and of a block */
    assert_non_null(strstr(text, "8;2;"));
    assert_non_null(strstr(text, "\342\226"));
    setenv("NO_COLOR", "1", 1);
    on_terminal(text, sizeof text, arguments);
    assert_null(strstr(text, "8;2;"));
    assert_non_null(strstr(text, "::"));
}

/* Killed while it writes: what is there can be read, and a temporary at most is left, which the next run takes. */
static void a_killed_zoom_leaves_whole_pictures(void **state)
{
    (void)state;
    test_path folder = joined(root.s, "killed"), out = joined(folder.s, "z.png");
    assert_int_equal(mkdir(folder.s, 0777), 0);
    const char *const arguments[] = {
        "mandelbrot",       "-W", "400", "-H", "300", "-n", "100", "-z", "1000", "-f", "9999", "-o", out.s, "--device",
        test_device_name(), NULL};
    pid_t child = start_quietly(arguments);
    while (!exists(folder.s, "z-0003.png") && waitpid(child, NULL, WNOHANG) == 0)
        sleep_for(0.01);
    kill(child, SIGKILL);
    assert_int_equal(wait_for(child), -SIGKILL);
    int pictures = 0, others = 0;
    DIR *dir = opendir(folder.s);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        const size_t n = strlen(entry->d_name);
        if (n > 4 && !strcmp(entry->d_name + n - 4, ".png")) {
            pc_image picture = read_picture(joined(folder.s, entry->d_name).s);
            assert_int_equal(picture.width, 400);
            pc_image_free(&picture);
            pictures++;
        } else
            others += entry->d_name[0] != '.';
    }
    closedir(dir);
    assert_true(pictures >= 3 && others <= 1);
}

#define REFUSED_IN(limits, status, words, ...)                                                                         \
    do {                                                                                                               \
        run_limited(&e, limits, ARGUMENTS(__VA_ARGS__));                                                               \
        assert_refused(&e, status, words);                                                                             \
        assert_string_equal(e.out, "");                                                                                \
    } while (0)
#define REFUSED(status, words, ...) REFUSED_IN((job_limits){0}, status, words, __VA_ARGS__)

static void bad_input(void **state)
{
    (void)state;
    test_path gif = joined(root.s, "x.gif"), nowhere = joined(root.s, "no/x.png");
    const job_limits small = {.memory_bytes = (rlim_t)4 << 30}; /* whatever the machine has */
    REFUSED(2, "must be 0 to 2147483647", "add", "--size", "-1");
    REFUSED(2, "int32, int64, float32 or float64", "add", "--dtype", "int8");
    if (!SANITIZED) { /* their shadow takes more than any limit */
        REFUSED_IN(small, 1, "take a smaller --size", "matmul", "--size", "65536", "--device", "cpu");
        REFUSED_IN(small, 1, "take a smaller --width or --height", "mandelbrot", "-W", "65535", "-H", "65535",
                   "--device", "cpu");
    }
    REFUSED(2, "write auto, cpu, sim:N or cuda:N", "saxpy", "--device", "gpu");
    REFUSED(1, "the devices are: ", "saxpy", "--device", "sim:60");
    REFUSED(2, "fire, ocean, forest, rainbow or grey", "mandelbrot", "--palette", "blue");
    REFUSED(2, "the first must be less", "mandelbrot", "--x", "1,-2");
    REFUSED(2, "the first must be less", "mandelbrot", "--y", "1,1");
    REFUSED(2, "give one or the other", "mandelbrot", "--x", "0,1", "--centre", "0,0");
    REFUSED(1, "cannot write", "mandelbrot", "-n", "1000000000", "-o", nowhere.s); /* before it computes */
    REFUSED(2, "too close for float64", "mandelbrot", "--centre", "0.1,0.7", "--zoom", "1e15");
    REFUSED(2, "--out FILE", "mandelbrot", "--frames", "3");
    REFUSED(1, ".jpg, .jpeg or .png", "mandelbrot", "-W", "6", "-H", "4", "-o", gif.s);
    REFUSED(1, "cannot write", "mandelbrot", "-W", "6", "-H", "4", "-o", nowhere.s);
    assert_false(exists(root.s, "x.gif"));
    assert_no_temporaries(root.s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(add_prints_the_sums),
    cmocka_unit_test(add_is_right_for_every_size),
    cmocka_unit_test(add_takes_arrays),
    cmocka_unit_test(add_keeps_great_numbers_whole),
    cmocka_unit_test(add_is_right_for_many),
    cmocka_unit_test(saxpy_and_matmul_are_right),
    cmocka_unit_test(ladders_have_their_rungs),
    cmocka_unit_test(mandelbrot_draws),
    cmocka_unit_test(a_zoom_is_numbered_pictures),
    cmocka_unit_test(a_terminal_shows_colours),
    cmocka_unit_test(a_killed_zoom_leaves_whole_pictures),
    cmocka_unit_test(bad_input),
};

int main(void)
{
    (void)test_device(); /* skipped where it is not there */
    return cmocka_run_group_tests_name("cli.programs", tests, make_root, drop_root);
}
