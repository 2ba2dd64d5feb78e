#include "base/why.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static void fill(struct why *why, enum refusal code, const char *format, va_list args)
{
	int n;

	why->code = code;
	why->field[0] = '\0';
	n = vsnprintf(why->text, sizeof(why->text), format, args);
	if (n >= (int)sizeof(why->text))
		why->text[utf8_whole(why->text, sizeof(why->text) - 1)] = '\0';
}

int refuse(struct why *why, enum refusal code, const char *format, ...)
{
	va_list args;

	if (!why)
		return code;
	va_start(args, format);
	fill(why, code, format, args);
	va_end(args);
	return code;
}

int refuse_name(struct why *why, enum refusal code, const char *words, struct text name)
{
	char shown[sizeof(why->text)];
	size_t n = 0;

	for (size_t i = 0; i < name.len && n + 3 < sizeof(shown); i++) {
		if (name.data[i] == '\0')
			n += utf8_encode(shown + n, 0xfffd);
		else
			shown[n++] = name.data[i];
	}
	shown[n] = '\0';
	return refuse(why, code, "%s%s", words, shown);
}

int refuse_field(struct why *why, const char *field, const char *format, ...)
{
	va_list args;

	if (!why)
		return REFUSE_PARAMS;
	va_start(args, format);
	fill(why, REFUSE_PARAMS, format, args);
	va_end(args);
	snprintf(why->field, sizeof(why->field), "%s", field);
	return REFUSE_PARAMS;
}

int text_check(struct text t, const char *field, size_t max, struct why *why)
{
	if (t.len > max)
		return refuse_field(why, field, "%s is longer than %zu bytes", field, max);
	if (t.len > 0 && memchr(t.data, '\0', t.len))
		return refuse_field(why, field, "%s has a NUL byte", field);
	return 0;
}

int texts_check(const struct text_limit *texts, size_t n, struct why *why)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = text_check(texts[i].text, texts[i].field, texts[i].max, why);
	return r;
}

static const struct why no_memory = {.code = REFUSE_INTERNAL, .text = "out of memory"};

const struct why *why_keep(const struct why *why)
{
	struct why *copy = malloc(sizeof(*copy));

	if (!copy)
		return &no_memory;
	*copy = *why;
	return copy;
}

void why_free(const struct why *why)
{
	if (why != &no_memory)
		free((struct why *)why);
}

static const struct fault_name *_Atomic named;

void fault_set_names(const struct fault_name *names)
{
	atomic_store(&named, names);
}

const char *fault_words(int fault)
{
	const struct fault_name *n = atomic_load(&named);

	for (; n && n->fault != 0; n++) {
		if (n->fault == fault)
			return n->words;
	}
	return strerror(abs(fault));
}
