/* Shared by the files about events in this folder. */
#pragma once

#include "store/db/query.h"
#include "store/event.h"

/* Runs a DELETE that returns a row for each, of at most limit - *n; *n grows. */
int store_event_count_deleted(struct statement *q, unsigned limit, unsigned *n);

/* Deletes up to limit - *n events of before that time; *n grows. */
int store_event_delete_older(struct connection *c, int64_t before_ms, unsigned limit, unsigned *n);
