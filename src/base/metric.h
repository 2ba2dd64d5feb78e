/* Counters, histograms and their text format. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/text.h"

/*
 * How often something took so long, or was so large: counts between fixed bounds, and the sum.
 * Const size, nothing is allocated; adding costs a few comparisons.
 */

enum { HISTOGRAM_BOUNDS_MAX = 17 };

/* Upper bounds, in the unit that is added; beyond the last one there is one more place. */
struct histogram_scale {
	unsigned n;
	uint64_t bounds[HISTOGRAM_BOUNDS_MAX];
};

/* Nanoseconds, from a microsecond to 100 seconds. */
extern const struct histogram_scale histogram_times;
/* Milliseconds, from a second to a day: what people take. */
extern const struct histogram_scale histogram_waits;
/* Pieces, 1 to 1024. */
extern const struct histogram_scale histogram_sizes;

struct histogram {
	uint64_t n[HISTOGRAM_BOUNDS_MAX + 1];
	uint64_t sum;
};

static inline unsigned histogram_place(const struct histogram_scale *s, uint64_t value)
{
	unsigned i = 0;

	while (i < s->n && value > s->bounds[i])
		i++;
	return i;
}

/* n things that took `sum` together, and about the same each. n is not 0. */
static inline void histogram_add(struct histogram *h, const struct histogram_scale *s, uint64_t n,
				 uint64_t sum)
{
	h->n[histogram_place(s, sum / n)] += n;
	h->sum += sum;
}

/* How many there are in all. */
uint64_t histogram_count(const struct histogram *h);

/* The same for several threads. What is read while others add may miss the last of it. */
struct shared_histogram {
	atomic_ullong n[HISTOGRAM_BOUNDS_MAX + 1];
	atomic_ullong sum;
};

void shared_histogram_add(struct shared_histogram *h, const struct histogram_scale *s,
			  uint64_t value);
void shared_histogram_read(const struct shared_histogram *h, struct histogram *ret);

/*
 * What can be shown of a running program, as Prometheus knows it: families of series. A family is
 * a row of a table; whoever fills it hands samples to a sink, which does not know where they come
 * from: text is one, and something that keeps samples could be another.
 */

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
	size_t at; /* for a `collect` that reads a member of a struct: its offset */
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

/* Metrics as text: OpenMetrics 1.0.0, or the form before it, Prometheus's 0.0.4. */

enum metric_format { METRIC_PROMETHEUS, METRIC_OPENMETRICS };

extern const char metric_type_prometheus[];
extern const char metric_type_openmetrics[];

const char *metric_content_type(enum metric_format format);

/* Which one a scraper wants, by its Accept header; {NULL, 0}: it sent none. OpenMetrics where it
 * is named and not refused (q=0), else the older. */
enum metric_format metric_format_wanted(struct text accept);

/* Writes all families of a table. An error sticks to the buffer. */
void metric_write_text(struct buf *out, enum metric_format format,
		       const struct metric_family *families, unsigned n, const void *from);

/*
 * What agents used, counted by their names: tokens, money, how their turns ended. There are few
 * names, those of the settings; SPEND_MAX bounds them anyway, and the rest counts as "other".
 */

enum { SPEND_MAX = 64, SPEND_NAME_MAX = 64 };

enum spend_outcome { SPEND_DONE, SPEND_FAILED, SPEND_CANCELLED, N_SPEND_OUTCOMES };

/* What one turn used; negative: not known, and not counted. */
struct spent {
	int64_t input; /* tokens; everything that was read, cached or not */
	int64_t output;
	int64_t cache_read;
	int64_t cache_written;
	int64_t micro_usd;
	enum spend_outcome outcome;
};

struct spend_row {
	char name[SPEND_NAME_MAX];
	uint64_t input;
	uint64_t output;
	uint64_t cache_read;
	uint64_t cache_written;
	uint64_t micro_usd;
	uint64_t n[N_SPEND_OUTCOMES];
};

struct spend {
	unsigned n;
	struct spend_row *rows[SPEND_MAX]; /* made with their first use */
	struct spend_row other;
};

void spend_add(struct spend *s, struct text agent, const struct spent *what);
void spend_done(struct spend *s);
