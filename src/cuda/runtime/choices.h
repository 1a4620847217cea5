/* choices.h: the file of what measuring chose: a number for a text, which names the GPU, the library, the op and its shape.
 * Plain C without CUDA's headers: tests without a GPU link it. */
#ifndef PC__CUDA_CHOICES_H
#define PC__CUDA_CHOICES_H

#include <limits.h>
#include <stdbool.h>

enum { PC__CHOICE_TEXT = 384, PC__CHOICE_MOST = 9999 /* the largest number */ };

/* Make a text that a row can begin with of one that has a device's name in it. */
void pc__choices_clean(char *text);

/* The file: $XDG_CACHE_HOME/paracord/choices, or in ~/.cache. False where there is no such place. */
bool pc__choices_file(char path[PATH_MAX]);

/* The number that the file has for `text`, -1 where it has none: then, and where it cannot be read, it is measured anew.
 * Of several rows the first is right. */
int pc__choices_recall(const char *path, const char *text);

/* Add a row. Each is written by one call at the end of the file, whoever else writes, and carries a check of itself;
 * what does not work is let be. */
void pc__choices_note(const char *path, const char *text, int number);

#endif
