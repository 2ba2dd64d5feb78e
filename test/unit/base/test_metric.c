/* Histograms, what agents used, and metrics as text in both forms. */
#include "check.h"

#include "base/metric.h"

/* ---- histograms ---- */

TEST(a_value_on_a_bound_is_below_it)
{
	struct histogram h = {0};

	histogram_add(&h, &histogram_times, 1, 0);
	histogram_add(&h, &histogram_times, 1, 1000);
	histogram_add(&h, &histogram_times, 1, 1001);
	histogram_add(&h, &histogram_times, 1, 100000000000ULL);
	histogram_add(&h, &histogram_times, 1, 100000000001ULL);
	histogram_add(&h, &histogram_times, 1, UINT64_MAX / 2);
	assert_int_equal(h.n[0], 2);
	assert_int_equal(h.n[1], 1);
	assert_int_equal(h.n[16], 1);
	assert_int_equal(h.n[17], 2);
	assert_int_equal(histogram_count(&h), 6);
}

TEST(several_that_took_a_time_together_share_it)
{
	struct histogram h = {0};

	/* 2.5 µs each. */
	histogram_add(&h, &histogram_times, 4, 10000);
	assert_int_equal(h.n[1], 4);
	assert_int_equal(h.sum, 10000);
}

TEST(scales_grow)
{
	const struct histogram_scale *scales[] = {&histogram_times, &histogram_waits,
						  &histogram_sizes};

	for (unsigned s = 0; s < 3; s++) {
		assert_true(scales[s]->n > 0 && scales[s]->n <= HISTOGRAM_BOUNDS_MAX);
		for (unsigned i = 1; i < scales[s]->n; i++)
			assert_true(scales[s]->bounds[i - 1] < scales[s]->bounds[i]);
		for (unsigned i = 0; i < scales[s]->n; i++) {
			assert_int_equal(histogram_place(scales[s], scales[s]->bounds[i]), i);
			assert_int_equal(histogram_place(scales[s], scales[s]->bounds[i] + 1),
					 i + 1);
		}
	}
}

TEST(a_shared_one_reads_as_it_was_added)
{
	struct shared_histogram s = {0};
	struct histogram h;

	shared_histogram_add(&s, &histogram_sizes, 1);
	shared_histogram_add(&s, &histogram_sizes, 3);
	shared_histogram_add(&s, &histogram_sizes, 5000);
	shared_histogram_read(&s, &h);
	assert_int_equal(h.n[0], 1);
	assert_int_equal(h.n[2], 1);
	assert_int_equal(h.n[11], 1);
	assert_int_equal(h.sum, 5004);
}

/* ---- what agents used ---- */

TEST(agents_are_counted_by_name)
{
	const struct spent one = {.input = 10, .output = 2, .cache_read = -1, .micro_usd = 5};
	const struct spent bad = {
		.input = -1, .output = -1, .micro_usd = -1, .outcome = SPEND_FAILED};
	struct spend s = {0};

	spend_add(&s, TEXT("a"), &one);
	spend_add(&s, TEXT("b"), &one);
	spend_add(&s, TEXT("a"), &one);
	spend_add(&s, TEXT("a"), &bad);
	assert_int_equal(s.n, 2);
	assert_int_equal(s.rows[0]->input, 20);
	assert_int_equal(s.rows[0]->output, 4);
	assert_int_equal(s.rows[0]->cache_read, 0);
	assert_int_equal(s.rows[0]->micro_usd, 10);
	assert_int_equal(s.rows[0]->n[SPEND_DONE], 2);
	assert_int_equal(s.rows[0]->n[SPEND_FAILED], 1);
	assert_string_equal(s.rows[1]->name, "b");
	spend_done(&s);
}

TEST(too_many_agents_are_one)
{
	const struct spent one = {.input = 1};
	struct spend s = {0};
	char name[200];

	for (int i = 0; i < SPEND_MAX + 7; i++) {
		snprintf(name, sizeof(name), "agent-%d", i);
		spend_add(&s, text_of(name), &one);
	}
	/* The same name again, and one that is longer than a name may be. */
	spend_add(&s, TEXT("agent-0"), &one);
	memset(name, 'x', sizeof(name));
	spend_add(&s, (struct text) {name, sizeof(name)}, &one);
	spend_add(&s, (struct text) {0}, &one);
	assert_int_equal(s.n, SPEND_MAX);
	assert_int_equal(s.rows[0]->input, 2);
	assert_int_equal(s.other.input, 9);
	spend_done(&s);
}

TEST(a_long_name_is_cut_and_found_again)
{
	const struct spent one = {.input = 1};
	struct spend s = {0};
	char name[200];

	memset(name, 'x', sizeof(name));
	spend_add(&s, (struct text) {name, sizeof(name)}, &one);
	spend_add(&s, (struct text) {name, sizeof(name)}, &one);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.rows[0]->input, 2);
	assert_int_equal(strlen(s.rows[0]->name), SPEND_NAME_MAX - 1);
	spend_done(&s);
}

/* ---- text ---- */

static void collect_hostile(const void *from, const struct metric_family *f, struct metric_sink *s)
{
	const struct text labels[] = {TEXT("a\"} 7\nkoine_fake 9\\n"), TEXT("")};

	metric_value(s, f, labels, 3);
}

static void collect_times(const void *from, const struct metric_family *f, struct metric_sink *s)
{
	struct histogram h = {0};
	const struct text label = TEXT("x");

	histogram_add(&h, f->scale, 1, 1500);
	histogram_add(&h, f->scale, 1, 999);
	histogram_add(&h, f->scale, 1, 2000000);
	metric_histogram(s, f, &label, &h);
}

static void collect_parts(const void *from, const struct metric_family *f, struct metric_sink *s)
{
	metric_value(s, f, NULL, *(const int64_t *)from);
}

static const struct histogram_scale small = {.n = 2, .bounds = {1000, 1000000}};

static char *written(enum metric_format format, const struct metric_family *f, int64_t value)
{
	struct buf out;

	buf_init(&out, 1 << 16);
	metric_write_text(&out, format, f, 1, &value);
	buf_add_char(&out, '\0');
	assert_int_equal(out.err, 0);
	return out.data;
}

TEST(label_values_cannot_leave_their_quotes)
{
	const struct metric_family f = {"koine_x",      METRIC_COUNTER,
					NULL,           "A \\ and\na line.",
					{"one", "two"}, .collect = collect_hostile};
	char *text = written(METRIC_PROMETHEUS, &f, 0);

	assert_string_equal(text,
			    "# HELP koine_x_total A \\\\ and\\na line.\n"
			    "# TYPE koine_x_total counter\n"
			    "koine_x_total{one=\"a\\\"} 7\\nkoine_fake 9\\\\n\",two=\"\"} 3\n");
	free(text);
	text = written(METRIC_OPENMETRICS, &f, 0);
	assert_string_equal(text, "# HELP koine_x A \\\\ and\\na line.\n"
				  "# TYPE koine_x counter\n"
				  "koine_x_total{one=\"a\\\"} 7\\nkoine_fake 9\\\\n\",two=\"\"} 3\n"
				  "# EOF\n");
	free(text);
}

TEST(buckets_add_up)
{
	const struct metric_family f = {
		"koine_y_seconds", METRIC_HISTOGRAM, "seconds", "Y.", {"l"}, &small,
		1000000,           collect_times};
	char *text = written(METRIC_OPENMETRICS, &f, 0);

	assert_string_equal(text, "# HELP koine_y_seconds Y.\n"
				  "# TYPE koine_y_seconds histogram\n"
				  "# UNIT koine_y_seconds seconds\n"
				  "koine_y_seconds_bucket{l=\"x\",le=\"0.001\"} 1\n"
				  "koine_y_seconds_bucket{l=\"x\",le=\"1.0\"} 2\n"
				  "koine_y_seconds_bucket{l=\"x\",le=\"+Inf\"} 3\n"
				  "koine_y_seconds_sum{l=\"x\"} 2.002499\n"
				  "koine_y_seconds_count{l=\"x\"} 3\n"
				  "# EOF\n");
	free(text);
	text = written(METRIC_PROMETHEUS, &f, 0);
	assert_non_null(strstr(text, "le=\"1\"} 2\n"));
	assert_null(strstr(text, "UNIT"));
	assert_null(strstr(text, "EOF"));
	free(text);
}

TEST(numbers_are_exact)
{
	static const struct {
		int64_t value;
		uint64_t per;
		const char *text;
	} cases[] = {
		{0, 0, " 0\n"},
		{-5, 0, " -5\n"},
		{INT64_MAX, 0, " 9223372036854775807\n"},
		{INT64_MIN, 1, " -9223372036854775808\n"},
		{1794973551660, 1000, " 1794973551.66\n"},
		{1, 1000000000, " 0.000000001\n"},
		{-1500, 1000, " -1.5\n"},
		{3000, 1000, " 3\n"},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct metric_family f = {
			"koine_z", METRIC_GAUGE,        NULL,
			"Z.",      .per = cases[i].per, .collect = collect_parts};
		char *text = written(METRIC_PROMETHEUS, &f, cases[i].value);

		assert_string_equal(strstr(text, "gauge\nkoine_z") + 13, cases[i].text);
		free(text);
	}
}

TEST(the_form_is_the_one_that_was_asked_for)
{
	static const struct {
		const char *accept;
		enum metric_format wanted;
	} cases[] = {
		{NULL, METRIC_PROMETHEUS},
		{"", METRIC_PROMETHEUS},
		{"*/*", METRIC_PROMETHEUS},
		{"text/plain", METRIC_PROMETHEUS},
		{"application/openmetrics-text", METRIC_OPENMETRICS},
		{"Application/OpenMetrics-Text ; version=1.0.0", METRIC_OPENMETRICS},
		{"application/openmetrics-text;version=1.0.0,application/"
		 "openmetrics-text;version=0.0.1"
		 ";q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		 METRIC_OPENMETRICS},
		{"text/plain, application/openmetrics-text", METRIC_OPENMETRICS},
		{"application/openmetrics-text;q=0", METRIC_PROMETHEUS},
		{"application/openmetrics-text; q=0.000, text/plain", METRIC_PROMETHEUS},
		{"application/openmetrics-text;q=0.01", METRIC_OPENMETRICS},
		{"application/openmetrics-textual", METRIC_PROMETHEUS},
		{",;,", METRIC_PROMETHEUS},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(metric_format_wanted(text_of(cases[i].accept)), cases[i].wanted);
}
