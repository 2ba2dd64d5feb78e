#include "base/error.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static void error_fill(struct error *error, enum refusal code, const char *format, va_list args)
{
	int n;

	error->code = code;
	error->field[0] = '\0';
	n = vsnprintf(error->text, sizeof(error->text), format, args);
	if (n >= (int)sizeof(error->text))
		error->text[utf8_whole(error->text, sizeof(error->text) - 1)] = '\0';
}

int refuse(struct error *error, enum refusal code, const char *format, ...)
{
	va_list args;

	if (!error)
		return code;
	va_start(args, format);
	error_fill(error, code, format, args);
	va_end(args);
	return code;
}

int refuse_name(struct error *error, enum refusal code, const char *words, struct text name)
{
	char shown[sizeof(error->text)];
	size_t n = 0;

	for (size_t i = 0; i < name.len && n + 3 < sizeof(shown); i++) {
		if (name.data[i] == '\0')
			n += utf8_encode(shown + n, 0xfffd);
		else
			shown[n++] = name.data[i];
	}
	shown[n] = '\0';
	return refuse(error, code, "%s%s", words, shown);
}

int refuse_field(struct error *error, const char *field, const char *format, ...)
{
	va_list args;

	if (!error)
		return REFUSE_PARAMS;
	va_start(args, format);
	error_fill(error, REFUSE_PARAMS, format, args);
	va_end(args);
	snprintf(error->field, sizeof(error->field), "%s", field);
	return REFUSE_PARAMS;
}

int text_check(struct text t, const char *field, size_t max, struct error *error)
{
	if (t.len > max)
		return refuse_field(error, field, "%s is longer than %zu bytes", field, max);
	if (t.len > 0 && memchr(t.data, '\0', t.len))
		return refuse_field(error, field, "%s has a NUL byte", field);
	return 0;
}

int texts_check(const struct text_limit *texts, size_t n, struct error *error)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = text_check(texts[i].text, texts[i].field, texts[i].max, error);
	return r;
}

static const struct error no_memory = {.code = REFUSE_INTERNAL, .text = "out of memory"};

const struct error *error_keep(const struct error *error)
{
	struct error *copy = malloc(sizeof(*copy));

	if (!copy)
		return &no_memory;
	*copy = *error;
	return copy;
}

void error_free(const struct error *error)
{
	if (error != &no_memory)
		free((struct error *)error);
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

const char *error_words(int result, const struct error *error)
{
	return result > 0 ? error->text : fault_words(result);
}
