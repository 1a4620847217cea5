/* group.h: what groups of tests of whole trainings share: a temporary folder, its pictures, and tidying up. */
#ifndef PC_TEST_GROUP_H
#define PC_TEST_GROUP_H

#include "folder.h"

/* The group's folder. */
static test_path root;

static inline int open_folder(void **state)
{
    (void)state;
    root = folder_in_memory();
    return 0;
}

/* Pictures of noise in root/data/train and test: the figures of the test pictures go up and down by epoch. */
static inline void put_data(void)
{
    put_classes(placed(root.s, "data/train/").s, (const char *[]){"cat", "dog"}, 2, 9);
    put_classes(placed(root.s, "data/test/").s, (const char *[]){"cat", "dog"}, 2, 7);
}

static inline int tidy(void **state)
{
    (void)state;
    remove_root(&root);
    assert_no_leak();
    return 0;
}

#endif
