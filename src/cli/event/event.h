/* koine events: what its files share. */
#pragma once

#include "cli/kit/cli.h"

/* Where to start: a number of the log, a time, or neither. */
struct event_start {
	int64_t seq;   /* -1: none */
	char time[32]; /* "": none */
};

/* "10m", "2h", "7d", "90s": that long ago; digits: a sequence number; otherwise an ISO time. */
bool event_start_read(const char *since, struct event_start *ret_start);

/* Prints one event as the options say: a line for people, or a JSON object. */
void event_print(const struct cli *cli, const struct koine_value *event);

/* Prints that so many are no longer kept. */
void event_print_gone(const struct cli *cli, int64_t n);
