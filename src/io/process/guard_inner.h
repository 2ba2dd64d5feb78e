/* Inside io/process/guard: what koined and its guard say to each other, a packet each. */
#pragma once

#include <stdint.h>

/* To the guard: the newest time. */
struct guard_order {
	uint64_t number; /* from 1 upwards */
	uint64_t until_ms;
	/* The order that came too late and whose sweep was not reported yet; 0: none. */
	uint64_t late;
};

/* From the guard: at first, after each order, and when a sweep has ended. */
struct guard_report {
	uint64_t number; /* the newest order that it knows */
	/* Everything that was started before this order was given, and had to end, is dead. */
	uint64_t swept;
	uint64_t n_sweeps; /* that have ended */
	uint64_t n_ended;  /* processes in the last of them, about */
};
