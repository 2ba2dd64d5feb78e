/* What koine top counts: rates, memory, cost. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/kit/value.h"
#include "cli/top/top.h"

/* "koine_calls_total{dialect="koine"} 17", without its newline: adds the number if it is of that
 * family. */
static void add_sample(struct text line, struct text family, double *sum)
{
	char number[32];
	struct text rest;
	const char *space;

	if (!text_begins(line, family))
		return;
	rest = text_skip(line, family.len);
	if (rest.len == 0 || (rest.data[0] != '{' && rest.data[0] != ' '))
		return;
	space = memrchr(rest.data, ' ', rest.len);
	if (!space)
		return;
	snprintf(number, sizeof(number), "%.*s", (int)(rest.data + rest.len - space - 1),
		 space + 1);
	*sum += strtod(number, NULL);
}

void top_count(struct top *t, const struct koine_value *result)
{
	struct text all = member_string(result, "text");
	struct top_figures f = {.at_ms = clock_steady_ms(), .own_calls = t->calls_asked};
	const struct {
		struct text family;
		double *sum;
	} families[] = {
		{TEXT("koine_calls_total"), &f.calls},
		{TEXT("koine_agent_tokens_total"), &f.tokens},
		{TEXT("koine_process_resident_memory_bytes"), &f.resident},
	};

	while (all.len > 0) {
		const char *end = memchr(all.data, '\n', all.len);
		struct text line = {.data = all.data,
				    .len = end ? (size_t)(end - all.data) : all.len};

		for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
			add_sample(line, families[i].family, families[i].sum);
		all = text_skip(all, line.len + (end != NULL));
	}
	t->before = t->now;
	t->now = f;
}

static double rate(const struct top *t, double before, double now)
{
	uint64_t ms = t->now.at_ms - t->before.at_ms;

	if (t->before.at_ms == 0 || t->now.at_ms == 0 || ms == 0)
		return -1;
	return now > before ? (now - before) * 1000 / (double)ms : 0;
}

double top_calls_rate(const struct top *t)
{
	return rate(t, t->before.calls - (double)t->before.own_calls,
		    t->now.calls - (double)t->now.own_calls);
}

double top_tokens_rate(const struct top *t)
{
	return rate(t, t->before.tokens, t->now.tokens);
}

static int64_t begin_of_today_ms(void)
{
	time_t now = time(NULL);
	struct tm day;

	localtime_r(&now, &day);
	day.tm_hour = day.tm_min = day.tm_sec = 0;
	day.tm_isdst = -1;
	return (int64_t)mktime(&day) * 1000;
}

void top_add_costs(struct top *t, const struct koine_value *sessions, size_t limit)
{
	const struct koine_value *s = koine_value_first(sessions);
	int64_t today = begin_of_today_ms();
	size_t n = 0;

	t->cost_today = 0;
	for (; s; s = koine_value_next(s)) {
		double usd;

		if (member_time(s, "active_at") < today)
			continue;
		n++;
		if (koine_value_double(koine_value_get(s, "cost_usd"), &usd))
			t->cost_today += usd;
	}
	t->cost_is_less = n >= limit;
}
