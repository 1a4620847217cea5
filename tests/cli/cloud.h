/* cloud.h: what the tests of paracord cloud share: a home of their own with a folder of pictures. */
#ifndef PC_TEST_CLOUD_H
#define PC_TEST_CLOUD_H

#include "job.h"

static test_path root, data;
static job_end e;

static inline int prepare(void **state)
{
    (void)state;
    root = new_root();
    data = joined(root.s, "pictures");
    setenv("XDG_DATA_HOME", root.s, 1);
    setenv("COLUMNS", "80", 1);
    draw_pictures(data.s, 6, 3);
    return 0;
}

static inline int tidy(void **state)
{
    (void)state;
    remove_root(&root);
    return 0;
}

static inline void assert_prints(const char *words)
{
    if (!strstr(e.out, words))
        fail_msg("no \"%s\" in:\n%s", words, e.out);
}

static inline void assert_fits(size_t columns)
{
    for (const char *line = e.out; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (strcspn(line, "\n") > columns)
            fail_msg("wider than %zu columns: %.*s", columns, (int)strcspn(line, "\n"), line);
}
#define assert_no_wide_line() assert_fits(80)

/* A command of that name that does what the script says. */
static inline void put_program(const char *folder, const char *name, const char *script)
{
    mkdir(folder, 0777);
    put_bytes(folder, name, script, strlen(script));
    assert_int_equal(chmod(joined(folder, name).s, 0755), 0);
}

#endif
