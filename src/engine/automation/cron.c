#include "engine/automation/schedule.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { EXPRESSION_MAX = 512 };

static const char *const month_names[] = {"jan", "feb", "mar", "apr", "may", "jun", "jul",
					  "aug", "sep", "oct", "nov", "dec", NULL};
static const char *const day_names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL};

struct automation_cron_field {
	const char *name;
	int min, max;
	const char *const *names; /* of min and the following numbers; or NULL */
	size_t set;               /* offset in struct cron */
};

/* A weekday may be 7, which means 0. */
static const struct automation_cron_field fields[] = {
	{"minute", 0, 59, NULL, offsetof(struct cron, minutes)},
	{"hour", 0, 23, NULL, offsetof(struct cron, hours)},
	{"day of month", 1, 31, NULL, offsetof(struct cron, days)},
	{"month", 1, 12, month_names, offsetof(struct cron, months)},
	{"day of week", 0, 7, day_names, offsetof(struct cron, weekdays)},
};

enum { N_FIELDS = sizeof(fields) / sizeof(fields[0]) };

static const struct {
	const char *name;
	const char *expression;
} nicknames[] = {
	{"@hourly", "0 * * * *"},   {"@daily", "0 0 * * *"},   {"@midnight", "0 0 * * *"},
	{"@weekly", "0 0 * * 0"},   {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"},
	{"@annually", "0 0 1 1 *"},
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

static struct text take_word(struct text *t)
{
	struct text word;

	while (t->len > 0 && is_space(t->data[0])) {
		t->data++;
		t->len--;
	}
	word = *t;
	while (t->len > 0 && !is_space(t->data[0])) {
		t->data++;
		t->len--;
	}
	word.len -= t->len;
	return word;
}

/* Reads up to the sign, and skips the sign. */
static struct text take_until(struct text *t, char sign, bool *ret_found)
{
	struct text part = *t;
	const char *at = text_find(*t, sign);

	*ret_found = at != NULL;
	if (at)
		part.len = (size_t)(at - t->data);
	t->data += part.len + (at != NULL);
	t->len -= part.len + (at != NULL);
	return part;
}

static int refuse_part(struct error *error, const struct automation_cron_field *f, struct text part,
		       const char *text)
{
	return refuse_field(error, "cron", "cron: %s '%.*s': %s", f->name,
			    part.len < 60 ? (int)part.len : 60, part.data ? part.data : "", text);
}

static bool parse_digits(struct text t, int *ret)
{
	int64_t n;

	if (!text_number(t, 4, &n))
		return false;
	*ret = (int)n;
	return true;
}

/* A number or a name. */
static int parse_value(const struct automation_cron_field *f, struct text t, int *ret,
		       struct error *error)
{
	for (int i = 0; f->names && f->names[i]; i++) {
		if (t.len == 3 && strncasecmp(f->names[i], t.data, 3) == 0) {
			*ret = f->min + i;
			return 0;
		}
	}
	if (!parse_digits(t, ret))
		return refuse_part(error, f, t,
				   f->names ? "not a number or a name" : "not a number");
	if (*ret < f->min || *ret > f->max) {
		char text[48];

		snprintf(text, sizeof(text), "expected %d to %d", f->min, f->max);
		return refuse_part(error, f, t, text);
	}
	return 0;
}

/* "*", "a" or "a-b" */
static int parse_range(const struct automation_cron_field *f, struct text t, int *low, int *high,
		       struct error *error)
{
	struct text rest = t;
	struct text first;
	bool range;
	int r;

	if (text_is(t, "*")) {
		*low = f->min;
		*high = f->names == day_names ? 6 : f->max;
		return 0;
	}
	first = take_until(&rest, '-', &range);
	r = parse_value(f, first, low, error);
	*high = *low;
	if (r == 0 && range)
		r = parse_value(f, rest, high, error);
	/* "sat-sun" */
	if (r == 0 && f->names == day_names && *high == 0 && *low > 0)
		*high = 7;
	if (r == 0 && *high < *low)
		r = refuse_part(error, f, t, "range ends before it starts");
	return r;
}

/* One element of a list: a range, perhaps with a step. */
static int parse_part(const struct automation_cron_field *f, struct text t, uint64_t *set,
		      struct error *error)
{
	struct text rest = t;
	bool stepped;
	struct text range = take_until(&rest, '/', &stepped);
	int low = 0, high = 0, step = 1;
	int r = parse_range(f, range, &low, &high, error);

	if (r != 0)
		return r;
	if (stepped && (!parse_digits(rest, &step) || step == 0))
		return refuse_part(error, f, t, "expected a step of at least 1");
	if (stepped && !text_is(range, "*") && !text_find(range, '-'))
		return refuse_part(error, f, t, "step requires a range: '*/n' or 'a-b/n'");
	for (int i = low; i <= high; i += step)
		*set |= UINT64_C(1) << (f->names == day_names ? i % 7 : i);
	return 0;
}

static int parse_field(const struct automation_cron_field *f, struct text t, uint64_t *set,
		       struct error *error)
{
	bool more = true;

	while (more) {
		struct text part = take_until(&t, ',', &more);
		int r = part.len == 0 ? refuse_part(error, f, part, "empty value")
				      : parse_part(f, part, set, error);

		if (r != 0)
			return r;
	}
	return 0;
}

static int expand(struct text *expression, struct error *error)
{
	struct text rest = *expression;
	struct text word = take_word(&rest);

	if (word.len == 0 || word.data[0] != '@')
		return 0;
	for (size_t i = 0; i < sizeof(nicknames) / sizeof(nicknames[0]); i++) {
		if (word.len == strlen(nicknames[i].name) &&
		    strncasecmp(word.data, nicknames[i].name, word.len) == 0 &&
		    take_word(&rest).len == 0) {
			*expression = text_of(nicknames[i].expression);
			return 0;
		}
	}
	return refuse_field(
		error, "cron",
		"cron: unknown '%.*s': use @hourly, @daily, @weekly, @monthly or @yearly",
		word.len < 40 ? (int)word.len : 40, word.data);
}

static unsigned count_words(struct text t)
{
	unsigned n = 0;

	while (take_word(&t).len > 0)
		n++;
	return n;
}

int cron_parse(struct text expression, struct cron *ret_cron, struct error *error)
{
	struct cron c = {0};
	int r = 0;

	if (expression.len > EXPRESSION_MAX || text_find(expression, '\0'))
		return refuse_field(error, "cron",
				    "cron: the expression is too long or contains a NUL byte");
	r = expand(&expression, error);
	if (r == 0 && count_words(expression) != N_FIELDS)
		r = refuse_field(error, "cron",
				 "cron: %u fields; expected 5: minute, hour, day of month, month, "
				 "day of week",
				 count_words(expression));
	for (unsigned i = 0; r == 0 && i < N_FIELDS; i++) {
		struct text word = take_word(&expression);

		/* Quartz uses it if the other field chooses the days. */
		if ((i == 2 || i == 4) && text_is(word, "?"))
			word = TEXT("*");
		r = parse_field(&fields[i], word, (uint64_t *)((char *)&c + fields[i].set), error);
		c.any_hour |= i == 1 && word.data[0] == '*';
		c.any_day |= i == 2 && word.data[0] == '*';
		c.any_weekday |= i == 4 && word.data[0] == '*';
	}
	if (r == 0)
		*ret_cron = c;
	return r;
}
