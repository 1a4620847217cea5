/* event.h: one parsed trace event on its way into a timeline. */
#ifndef PC__TIMELINE_EVENT_H
#define PC__TIMELINE_EVENT_H

#include "timeline/timeline.h"

#include <cjson/cJSON.h>

/* Note what the object says. Kinds of events that timelines have no use for are passed over. */
pc_status pc__timeline_add(pc_timeline *timeline, const cJSON *object);

#endif
