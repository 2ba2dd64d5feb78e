/* Shared by the files of this folder. */
#pragma once

#include "engine/record/record.h"

int record_feed_new(struct records *rs);
void record_feed_free(struct record_feed *f); /* accepts NULL */
/* Reads the queue, unless that is going on. */
void record_feed_go(struct record_feed *f);

int record_reaper_new(struct records *rs);
void record_reaper_free(struct record_reaper *r); /* accepts NULL */
