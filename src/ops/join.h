/* join.h: attributes of cat. */
#ifndef PC__OP_JOIN_H
#define PC__OP_JOIN_H

typedef struct pc__dim_attributes {
    int dim;
} pc__dim_attributes;

#endif
