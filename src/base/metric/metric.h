/*
 * What can be shown of a running program, as Prometheus knows it: families of series. A family is
 * a row of a table; whoever fills it hands samples to a sink, which does not know where they come
 * from: text is one, and something that keeps samples could be another.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/metric/histogram.h"
#include "base/text.h"

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

enum { METRIC_LABELS_MAX = 3 };

struct metric_sink;

struct metric_family {
	const char *name; /* with its unit, without "_total" */
	enum metric_kind kind;
	const char *unit; /* "seconds", "bytes"; NULL: none */
	const char *help; /* one sentence */
	const char *labels[METRIC_LABELS_MAX];
	const struct histogram_scale *scale; /* of a histogram */
	/* How many of what samples count make one of the unit: 1000 where seconds come as
	 * milliseconds. 0: 1. */
	uint64_t per;
	/* Hands its samples over; `from` is the same for all families of a table. */
	void (*collect)(const void *from, const struct metric_family *f, struct metric_sink *sink);
};

struct metric_sink {
	/* `labels` has a text for each of the family's. */
	void (*value)(struct metric_sink *s, const struct metric_family *f,
		      const struct text *labels, int64_t value);
	void (*histogram)(struct metric_sink *s, const struct metric_family *f,
			  const struct text *labels, const struct histogram *h);
};

static inline void metric_value(struct metric_sink *s, const struct metric_family *f,
				const struct text *labels, int64_t value)
{
	s->value(s, f, labels, value);
}

static inline void metric_count(struct metric_sink *s, const struct metric_family *f,
				const struct text *labels, uint64_t value)
{
	s->value(s, f, labels, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

static inline void metric_histogram(struct metric_sink *s, const struct metric_family *f,
				    const struct text *labels, const struct histogram *h)
{
	s->histogram(s, f, labels, h);
}
