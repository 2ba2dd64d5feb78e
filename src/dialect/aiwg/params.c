/* Parameters as the original accepts them, and its words for those that it refuses. */
#include <math.h>
#include <stdio.h>

#include "dialect/aiwg/aiwg.h"

bool aiwg_is_nothing(const struct value *v)
{
	double n;

	switch ((enum value_kind)(v ? v->kind : VALUE_NULL)) {
	case VALUE_NULL:
	case VALUE_FALSE:
		return true;
	case VALUE_NUMBER:
		return value_double(v, &n) && n == 0;
	case VALUE_STRING:
		return v->len == 0;
	case VALUE_TRUE:
	case VALUE_ARRAY:
	case VALUE_OBJECT:
		break;
	}
	return false;
}

int aiwg_explain_field(const struct field *f, const struct value *v, struct error *error)
{
	const char *type = field_type_name(f->type);

	if (f->required && aiwg_is_nothing(v))
		return refuse_field(error, f->name, "Missing required parameter: %s", f->name);
	return refuse_field(error, f->name, "Invalid parameter: %s must be %s %s, not %s", f->name,
			    strchr("aeiou", type[0]) ? "an" : "a", type, value_kind_name(v));
}

static bool read_number(const struct value *v, double *ret)
{
	struct value digits = *v;

	if (v->kind == VALUE_STRING) {
		/* strtod would also accept hex and "inf", which are not numbers here. */
		for (uint32_t i = 0; i < v->len; i++)
			if (!memchr("0123456789.+-eE", v->text[i], 15))
				return false;
		digits.kind = VALUE_NUMBER;
	}
	return value_double(&digits, ret) && !isnan(*ret);
}

int aiwg_read_limit(const struct value *v, int64_t *ret_limit, struct error *error)
{
	double n = 0;

	if (!aiwg_is_nothing(v) && !read_number(v, &n))
		return refuse_field(error, "limit", "Invalid parameter: limit must be a number");
	if (n < 0)
		return refuse_field(error, "limit",
				    "Invalid parameter: limit must not be negative");
	*ret_limit = n < TASK_LIST_MAX ? (int64_t)n : TASK_LIST_MAX;
	return 0;
}

/* ---- why a task has failed, in Node's words ---- */

bool aiwg_word_unstarted(struct text error, int64_t exit_status, char out[AIWG_UNSTARTED])
{
	static const struct {
		int64_t exit_status;
		struct text words;
		const char *code;
	} rows[] = {
		{127, TEXT(TASK_NO_COMMAND), "ENOENT"},
		{127, TEXT(TASK_NO_FILE), "ENOENT"},
		{126, TEXT(TASK_FORBIDDEN), "EACCES"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct text words = rows[i].words;
		size_t n = error.len - words.len;

		if (exit_status != rows[i].exit_status || error.len <= words.len || n > 100 ||
		    memcmp(error.data + n, words.data, words.len) != 0)
			continue;
		snprintf(out, AIWG_UNSTARTED, "spawn %.*s %s", (int)n, error.data, rows[i].code);
		return true;
	}
	return false;
}

static void word_exit(char *out, size_t size, int status, int signal)
{
	if (signal == 0)
		snprintf(out, size, "Process exited with code %d", status);
	else
		snprintf(out, size, "Process was ended by signal %d (%s)", signal,
			 strsignal(signal));
}

static void word_timeout(char *out, size_t size, int64_t timeout_ms)
{
	snprintf(out, size, "Task timed out after %lldms", (long long)timeout_ms);
}

const struct task_wording aiwg_task_wording = {
	.stopped = "Killed during shutdown",
	.exited = word_exit,
	.timed_out = word_timeout,
};
