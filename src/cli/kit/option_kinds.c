/* The kinds of values that options take. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/kit/duration.h"
#include "cli/kit/options.h"

static bool is_within(const struct option *o, int64_t n)
{
	return n >= o->min && (o->max == 0 || n <= o->max);
}

bool option_flag(const struct option *o, void *member, const char *value)
{
	*(bool *)member = true;
	return true;
}

bool option_text(const struct option *o, void *member, const char *value)
{
	*(const char **)member = value;
	return true;
}

bool option_word(const struct option *o, void *member, const char *value)
{
	return option_text(o, member, value) && value[0] != '\0';
}

bool option_name(const struct option *o, void *member, const char *value)
{
	return option_text(o, member, value[0] ? value : NULL);
}

bool option_choice(const struct option *o, void *member, const char *value)
{
	const char *choice = o->choices ? o->choices : o->value;
	size_t len = strlen(value);

	*(const char **)member = value;
	while (choice) {
		if (strcspn(choice, "|") == len && memcmp(choice, value, len) == 0)
			return true;
		choice = strchr(choice, '|');
		choice = choice ? choice + 1 : NULL;
	}
	return false;
}

bool option_read_int(const char *text, int64_t *ret_n)
{
	char *end;
	long long n;

	errno = 0;
	n = strtoll(text, &end, 10);
	if (end == text || *end != '\0' || errno != 0)
		return false;
	*ret_n = n;
	return true;
}

bool option_number(const struct option *o, void *member, const char *value)
{
	int64_t *n = member;

	return option_read_int(value, n) && is_within(o, *n);
}

/* Also false for what is not a number. */
bool option_decimal(const struct option *o, void *member, const char *value)
{
	double *x = member;
	char *end;

	*x = strtod(value, &end);
	if (end == value || *end != '\0' || !isfinite(*x))
		return false;
	return o->max == 0 || (*x >= (double)o->min && *x <= (double)o->max);
}

bool option_span(const struct option *o, void *member, const char *value)
{
	int64_t *ms = member;

	return duration_parse(value, ms) && is_within(o, *ms);
}

bool option_texts(const struct option *o, void *member, const char *value)
{
	struct option_list *list = member;
	unsigned max = sizeof(list->values) / sizeof(list->values[0]);

	if (list->n == (o->max > 0 ? (unsigned)o->max : max))
		return false;
	list->values[list->n++] = value;
	return true;
}

bool option_list(const struct option *o, void *member, const char *value)
{
	return value[0] != '\0' && option_texts(o, member, value);
}

bool option_value(const struct cli *cli, const struct option *o, union option_value *ret)
{
	bool given = false, good = false;

	*ret = (union option_value) {.list = {.n = 0}};
	for (unsigned i = 0; i < cli->n_given; i++) {
		if (cli->given[i].option != o)
			continue;
		given = true;
		good = o->set(o, ret, cli->given[i].value);
	}
	return given ? good : o->usual && o->set(o, ret, o->usual);
}

bool option_take(struct cli *cli, const struct option *o, void *into, const char *value)
{
	union option_value v;

	cli->given[cli->n_given++] = (struct given) {.option = o, .value = value};
	return o->at > 0 ? o->set(o, (char *)into + o->at - 1, value) : option_value(cli, o, &v);
}

const char *option_from_environment(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}
