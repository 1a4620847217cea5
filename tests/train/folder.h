/* folder.h: a temporary folder in memory where there is one: for tests of thousands of runs that each wait for the disk. */
#ifndef PC_TEST_FOLDER_H
#define PC_TEST_FOLDER_H

#include "../data/pictures.h"

static inline test_path folder_in_memory(void)
{
    test_path path = {"/dev/shm/paracord-test-XXXXXX"};
    return mkdtemp(path.s) ? path : new_root();
}

#endif
