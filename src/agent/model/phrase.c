/*
 * What went wrong, as a sentence: the agent's name, what happened, and what the provider said
 * about it; on one line, bounded, and without the key, which some providers repeat.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/model/inner.h"
#include "base/utf8.h"

/* A key shorter than this is no secret, and may be part of any word. */
enum { KEY_LEAST = 4 };

/* What one character of the input becomes, and how long it was. */
static size_t clean_one(struct text in, size_t at, struct text *ret_out)
{
	unsigned char c = (unsigned char)in.data[at];
	size_t n;

	if (c < 0x80) {
		*ret_out = c < 0x20 || c == 0x7f ? TEXT(" ")
						 : (struct text) {.data = in.data + at, .len = 1};
		return 1;
	}
	n = utf8_sequence(in.data + at, in.data + in.len);
	*ret_out = n ? (struct text) {.data = in.data + at, .len = n} : TEXT("?");
	return n ? n : 1;
}

void phrase_clean(char *out, size_t size, struct text in, const char *key)
{
	size_t key_len = key ? strlen(key) : 0;
	size_t at = 0;
	size_t n = 0;

	while (at < in.len) {
		struct text piece;
		size_t used;

		if (key_len >= KEY_LEAST && in.len - at >= key_len &&
		    memcmp(in.data + at, key, key_len) == 0) {
			piece = TEXT("[key]");
			used = key_len;
		} else {
			used = clean_one(in, at, &piece);
		}
		if (n + piece.len >= size)
			break;
		memcpy(out + n, piece.data, piece.len);
		n += piece.len;
		at += used;
	}
	while (n > 0 && out[n - 1] == ' ')
		n--;
	out[n] = '\0';
}

struct phrase phrase_after_colon(struct text said, const char *key)
{
	struct phrase w = {.text = ": "};

	phrase_clean(w.text + 2, sizeof(w.text) - 2, said, key);
	if (!w.text[2])
		w.text[0] = '\0';
	return w;
}

struct phrase phrase_of_ms(unsigned ms)
{
	struct phrase w;

	if (ms % 1000 == 0)
		snprintf(w.text, sizeof(w.text), "%u s", ms / 1000);
	else
		snprintf(w.text, sizeof(w.text), "%u ms", ms);
	return w;
}

int turn_fail(struct agent_turn *t, const char *type, const char *format, ...)
{
	char words[MODEL_TEXT_MAX];
	va_list args;
	int n;

	if (t->over)
		return -ECANCELED;
	n = snprintf(words, sizeof(words), "agent '%s': ", t->model->agent.name);
	va_start(args, format);
	vsnprintf(words + n, sizeof(words) - (size_t)n, format, args);
	va_end(args);
	phrase_clean(t->text, sizeof(t->text), text_of(words), t->key);
	t->over = true;
	t->outcome = AGENT_FAILED;
	t->type = type;
	return -ECANCELED;
}

int turn_fail_garbage(struct agent_turn *t, const char *what)
{
	return turn_fail(t, "ProviderError", "the provider sent an invalid response: %s", what);
}

/* ---- what the provider says ---- */

/*
 * {"error": {"message": …}} is what most send; others send a bare string, "message" or
 * "detail".
 */
struct text phrase_of_error(const struct value *answer)
{
	const struct value *error = value_find(answer, "error");
	struct text said = value_text(error);

	if (!said.data)
		said = value_text(value_find(error, "message"));
	if (!said.data)
		said = value_text(value_find(answer, "message"));
	if (!said.data)
		said = value_text(value_find(answer, "detail"));
	/* Anthropic's overload has a name and nothing else. */
	if (!said.len && value_text(value_find(error, "type")).data)
		said = value_text(value_find(error, "type"));
	return said;
}

struct text phrase_of_body(struct arena *arena, struct text body)
{
	const struct json_limits limits = {.depth = 32, .values = 10000};
	struct value *v;

	if (body.len == 0)
		return (struct text) {.data = NULL};
	if (json_read(arena, body.data, body.len, &limits, &v, NULL) == 0)
		return phrase_of_error(v);
	/* A page for browsers tells nobody anything. */
	if (memchr(body.data, '<', body.len))
		return (struct text) {.data = NULL};
	return body;
}
