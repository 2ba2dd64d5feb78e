#include "base/metric.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define US(n) ((n)*1000ULL)
#define MS(n) ((n)*1000000ULL)
#define S(n)  ((n)*1000000000ULL)

/* Three places a decade would cost half as many series again, for little. */
const struct histogram_scale histogram_times = {
	.n = 17,
	.bounds = {US(1), US(3), US(10), US(30), US(100), US(300), MS(1), MS(3), MS(10), MS(30),
		   MS(100), MS(300), S(1), S(3), S(10), S(30), S(100)},
};

const struct histogram_scale histogram_waits = {
	.n = 11,
	.bounds = {1000, 5000, 15000, 30000, 60000, 300000, 900000, 3600000, 14400000, 43200000,
		   86400000},
};

const struct histogram_scale histogram_sizes = {
	.n = 11,
	.bounds = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024},
};

uint64_t histogram_count(const struct histogram *h)
{
	uint64_t n = 0;

	for (unsigned i = 0; i <= HISTOGRAM_BOUNDS_MAX; i++)
		n += h->n[i];
	return n;
}

void shared_histogram_add(struct shared_histogram *h, const struct histogram_scale *s,
			  uint64_t value)
{
	unsigned i = histogram_place(s, value);

	atomic_fetch_add_explicit(&h->n[i], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&h->sum, value, memory_order_relaxed);
}

void shared_histogram_read(const struct shared_histogram *h, struct histogram *ret)
{
	for (unsigned i = 0; i <= HISTOGRAM_BOUNDS_MAX; i++)
		ret->n[i] = atomic_load_explicit(&h->n[i], memory_order_relaxed);
	ret->sum = atomic_load_explicit(&h->sum, memory_order_relaxed);
}

const char metric_type_prometheus[] = "text/plain; version=0.0.4; charset=utf-8";
const char metric_type_openmetrics[] = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const char *metric_content_type(enum metric_format format)
{
	return format == METRIC_OPENMETRICS ? metric_type_openmetrics : metric_type_prometheus;
}

/* ---- which one ---- */

/* "q=0", "q=0.000" */
static bool refuses(struct text parameter)
{
	if (parameter.len < 3 || strncasecmp(parameter.data, "q=", 2) != 0)
		return false;
	for (size_t i = 2; i < parameter.len; i++) {
		if (parameter.data[i] != '0' && parameter.data[i] != '.')
			return false;
	}
	return true;
}

static bool names_openmetrics(struct text range)
{
	struct text item;

	if (!text_next(&range, ';', &item) ||
	    !text_is_any_case(text_trim(item, " \t"), "application/openmetrics-text"))
		return false;
	while (text_next(&range, ';', &item)) {
		if (refuses(text_trim(item, " \t")))
			return false;
	}
	return true;
}

enum metric_format metric_format_wanted(struct text accept)
{
	struct text range;

	while (text_next(&accept, ',', &range)) {
		if (names_openmetrics(range))
			return METRIC_OPENMETRICS;
	}
	return METRIC_PROMETHEUS;
}

/* ---- writing ---- */

struct metric_writer {
	struct metric_sink sink; /* the first */
	struct buf *out;
	enum metric_format format;
};

/* Backslash and newline everywhere, quotes where they would end the text. */
static void add_escaped(struct buf *out, struct text t, bool quoted)
{
	size_t from = 0;

	for (size_t i = 0; i < t.len; i++) {
		char c = t.data[i];

		if (c != '\n' && c != '\\' && (c != '"' || !quoted))
			continue;
		buf_add(out, t.data + from, i - from);
		buf_add_char(out, '\\');
		buf_add_char(out, c == '\n' ? 'n' : c);
		from = i + 1;
	}
	if (from < t.len)
		buf_add(out, t.data + from, t.len - from);
}

static void add_label(struct buf *out, bool *any, const char *name, struct text value)
{
	buf_add_char(out, *any ? ',' : '{');
	*any = true;
	buf_add_str(out, name);
	buf_add_str(out, "=\"");
	add_escaped(out, value, true);
	buf_add_char(out, '"');
}

/* A number of parts as a decimal number of the unit: exact, without a float on its way. */
static void add_number(struct buf *out, uint64_t value, uint64_t per)
{
	uint64_t rest;

	if (per == 0)
		per = 1;
	buf_add_uint(out, value / per);
	rest = value % per;
	if (rest == 0)
		return;
	buf_add_char(out, '.');
	for (; rest > 0; rest = rest * 10 % per)
		buf_add_char(out, (char)('0' + rest * 10 / per));
}

/* The name and the labels of a sample; `le` is a bucket's bound, or {NULL, 0}. */
static void begin_sample(struct buf *out, const struct metric_family *f, const char *suffix,
			 const struct text *labels, struct text le)
{
	bool any = false;

	buf_add_str(out, f->name);
	buf_add_str(out, suffix);
	for (unsigned i = 0; i < METRIC_LABELS_MAX && f->labels[i]; i++)
		add_label(out, &any, f->labels[i], labels[i]);
	if (le.data)
		add_label(out, &any, "le", le);
	if (any)
		buf_add_char(out, '}');
	buf_add_char(out, ' ');
}

static void write_value(struct metric_sink *s, const struct metric_family *f,
			const struct text *labels, int64_t value)
{
	struct buf *out = ((struct metric_writer *)s)->out;

	begin_sample(out, f, f->kind == METRIC_COUNTER ? "_total" : "", labels, (struct text) {0});
	if (value < 0)
		buf_add_char(out, '-');
	add_number(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, f->per);
	buf_add_char(out, '\n');
}

static void write_uint(struct buf *out, uint64_t n)
{
	buf_add_uint(out, n);
	buf_add_char(out, '\n');
}

/* OpenMetrics wants bounds as floats: "1.0". */
static struct text bound_text(const struct metric_writer *w, const struct metric_family *f,
			      unsigned i, char room[32])
{
	struct buf le = {.data = room, .cap = 32, .max = 32};

	if (i == f->scale->n)
		return TEXT("+Inf");
	add_number(&le, f->scale->bounds[i], f->per);
	if (w->format == METRIC_OPENMETRICS && !memchr(le.data, '.', le.len))
		buf_add(&le, ".0", 2);
	return (struct text) {.data = room, .len = le.len};
}

static void write_histogram(struct metric_sink *s, const struct metric_family *f,
			    const struct text *labels, const struct histogram *h)
{
	const struct metric_writer *w = (struct metric_writer *)s;
	uint64_t n = 0;
	char room[32];

	for (unsigned i = 0; i <= f->scale->n; i++) {
		n += h->n[i];
		begin_sample(w->out, f, "_bucket", labels, bound_text(w, f, i, room));
		write_uint(w->out, n);
	}
	begin_sample(w->out, f, "_sum", labels, (struct text) {0});
	add_number(w->out, h->sum, f->per);
	buf_add_char(w->out, '\n');
	begin_sample(w->out, f, "_count", labels, (struct text) {0});
	write_uint(w->out, n);
}

static void write_line(struct metric_writer *w, const char *word, const struct metric_family *f,
		       const char *text)
{
	buf_add_str(w->out, word);
	buf_add_str(w->out, f->name);
	/* The older form names the series, the newer one the family. */
	if (f->kind == METRIC_COUNTER && w->format == METRIC_PROMETHEUS)
		buf_add_str(w->out, "_total");
	buf_add_char(w->out, ' ');
	add_escaped(w->out, text_of(text), w->format == METRIC_OPENMETRICS);
	buf_add_char(w->out, '\n');
}

static void write_head(struct metric_writer *w, const struct metric_family *f)
{
	static const char *const kinds[] = {
		[METRIC_COUNTER] = "counter",
		[METRIC_GAUGE] = "gauge",
		[METRIC_HISTOGRAM] = "histogram",
	};

	write_line(w, "# HELP ", f, f->help);
	write_line(w, "# TYPE ", f, kinds[f->kind]);
	if (f->unit && w->format == METRIC_OPENMETRICS)
		write_line(w, "# UNIT ", f, f->unit);
}

void metric_write_text(struct buf *out, enum metric_format format,
		       const struct metric_family *families, unsigned n, const void *from)
{
	struct metric_writer w = {.sink = {.value = write_value, .histogram = write_histogram},
				  .out = out,
				  .format = format};

	for (unsigned i = 0; i < n; i++) {
		write_head(&w, &families[i]);
		families[i].collect(from, &families[i], &w.sink);
	}
	if (format == METRIC_OPENMETRICS)
		buf_add_str(out, "# EOF\n");
}

static struct spend_row *spend_make(struct spend *s, struct text agent)
{
	struct spend_row *row;

	if (s->n == SPEND_MAX)
		return &s->other;
	row = calloc(1, sizeof(*row));
	if (!row)
		return &s->other;
	memcpy(row->name, agent.data, agent.len);
	s->rows[s->n++] = row;
	return row;
}

static struct spend_row *spend_find(struct spend *s, struct text agent)
{
	agent = text_cut(agent, SPEND_NAME_MAX - 1);
	if (agent.len == 0)
		return &s->other;
	for (unsigned i = 0; i < s->n; i++) {
		if (text_is(agent, s->rows[i]->name))
			return s->rows[i];
	}
	return spend_make(s, agent);
}

static void spend_count(uint64_t *sum, int64_t n)
{
	if (n > 0)
		*sum += (uint64_t)n;
}

void spend_add(struct spend *s, struct text agent, const struct spent *what)
{
	struct spend_row *row = spend_find(s, agent);

	spend_count(&row->input, what->input);
	spend_count(&row->output, what->output);
	spend_count(&row->cache_read, what->cache_read);
	spend_count(&row->cache_written, what->cache_written);
	spend_count(&row->micro_usd, what->micro_usd);
	row->n[what->outcome]++;
}

void spend_done(struct spend *s)
{
	for (unsigned i = 0; i < s->n; i++)
		free(s->rows[i]);
	s->n = 0;
}
