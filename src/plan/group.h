/* group.h: element-by-element calls that are to be one (regions.c), while others join them (group.c). */
#ifndef PC__PLAN_GROUP_H
#define PC__PLAN_GROUP_H

#include "plan/plan.h"

#include "ops/region_of.h"

typedef struct pc__group {
    int member[PC__REGION_STEPS], members; /* nodes */
    int ins_before[PC__REGION_STEPS];      /* inputs that were there when a member joined */
    pc_tensor *in[PC__REGION_IN];
    int in_number[PC__REGION_IN];
    pc__region region;
} pc__group;

/* What a call has in common with a group: of several it joins the one with which that is most. */
typedef enum pc__tie { PC__TIE_APART, PC__TIE_SMALL, PC__TIE_SAME_INPUT, PC__TIE_SAME_VALUE } pc__tie;

/* The result of a call that joined, which is node so and so, and the number of its storage. */
const pc_tensor *pc__group_tensor(const pc__plan *plan, int node);
int pc__group_number(const pc__plan *plan, int node);

/* Whether the node is a call that can join some group. */
bool pc__group_takes(const pc__plan *plan, const pc__plan_node *node);

/* The group with such a node in it: PC__TIE_APART where it cannot join, or has no reason to. */
pc__tie pc__group_grow(const pc__plan *plan, const pc__group *group, int node, pc__group *grown);

#endif
