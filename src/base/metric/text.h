/* Metrics as text: OpenMetrics 1.0.0, or the form before it, Prometheus's 0.0.4. */
#pragma once

#include "base/buf.h"
#include "base/metric/metric.h"

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
