/* file.c: what a level's file shows to the library that opens it. */
#include "cpu/level/kernels.h"
#include "cpu/level/lessons.h"
#include "cpu/place/place.h"

#define TEXT(word) #word
#define NAME(word) TEXT(word)

extern PC_API const pc__level pc__cpu_level;
const pc__level pc__cpu_level = {.build = pc__level_build,
                                 .name = NAME(PC__LEVEL),
                                 .kernels = PC__K(kernels),
                                 .lessons = PC__K(lessons),
                                 .parallel = pc__parallel};
