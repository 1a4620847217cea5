/* frame.h: the size that pictures are brought to, and that a network takes. */
#ifndef PC__FRAME_H
#define PC__FRAME_H

#include <stddef.h>

/* channels: 1 grey, 3 RGB. */
typedef struct pc__frame {
    int height, width, channels;
} pc__frame;

/* Bytes of one picture, and elements. */
static inline size_t pc__frame_bytes(pc__frame frame)
{
    return (size_t)frame.height * (size_t)frame.width * (size_t)frame.channels;
}

#endif
