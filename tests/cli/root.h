/* root.h: a folder in memory for all tests of a file. */
#ifndef PC_TEST_ROOT_H
#define PC_TEST_ROOT_H

#include "../train/folder.h"

static test_path root;

static inline int make_root(void **state)
{
    (void)state;
    root = folder_in_memory();
    return 0;
}

static inline int drop_root(void **state)
{
    (void)state;
    remove_root(&root);
    return 0;
}

#endif
