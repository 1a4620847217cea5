/* picture.h: counts of the Mandelbrot set as a picture: colours, and a terminal's blocks. */
#ifndef CLI_PICTURE_H
#define CLI_PICTURE_H

#include <stdio.h>

#include <paracord/image.h>

#include "command.h"

/* The palettes' names, for an option. */
extern const cli_choice cli_palettes[];

/* The picture of counts (height x width, as float; `most`: inside, which is black). Colours are spread over the counts
 * that occur, so that a deep zoom has as many as the whole set. The caller frees it; false: an error. */
bool cli_picture_make(const float *counts, int height, int width, int most, const char *palette, pc_image *picture);

/* Whether such a picture can be written there, as PNG or JPEG. False: an error, told. */
bool cli_picture_may_write(const cli_command *command, const char *path);

/* The picture in `columns` of a terminal: by libchafa where it is installed, else two pixels a letter, in 24-bit
 * colours or, where $COLORTERM does not speak of them, the 256 of xterm. Plain letters where `out` is no terminal.
 * False: out of memory. */
bool cli_picture_show(FILE *out, const pc_image *picture, int columns);

#endif
