/* picture_show.h: the ways to show a picture in a terminal. */
#ifndef CLI_PICTURE_SHOW_H
#define CLI_PICTURE_SHOW_H

#include <stdbool.h>

#include "picture.h"

/* By libchafa, in so many letters; false where it is not installed. */
bool cli_picture_chafa(FILE *out, const pc_image *picture, int columns, int rows, bool all_colours);

#endif
