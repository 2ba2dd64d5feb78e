#include "engine/notify/inner.h"

#include <errno.h>
#include <stdlib.h>

#include "base/uuid.h"

/* 128 random bits. A UUID has six less, so two of them are folded into one. */
static int make_text(char out[TOKEN_LEN + 1])
{
	static const char digits[] = "0123456789abcdef";
	char a[UUID_LEN + 1], b[UUID_LEN + 1];
	unsigned n = 0;
	int r = uuid4(a) ?: uuid4(b);

	/* The second is read backwards: their fixed digits fall on free ones. */
	for (unsigned i = 0, k = UUID_LEN; r == 0 && i < UUID_LEN; i++) {
		const char *x, *y;

		if (a[i] == '-')
			continue;
		do
			k--;
		while (b[k] == '-');
		x = memchr(digits, a[i], 16);
		y = memchr(digits, b[k], 16);
		out[n++] = digits[(x - digits) ^ (y - digits)];
	}
	out[n] = '\0';
	return r;
}

void tokens_done(struct tokens *t)
{
	free(t->list);
	*t = (struct tokens) {NULL};
}

static int notify_token_make_room(struct tokens *t)
{
	unsigned room = t->room > 0 ? t->room * 2 : 16;
	struct token *list;

	if (t->n < t->room)
		return 0;
	if (t->n >= TOKENS_MAX)
		return -ENOBUFS;
	list = realloc(t->list, room * sizeof(*list));
	if (!list)
		return -ENOMEM;
	t->list = list;
	t->room = room;
	return 0;
}

int tokens_add(struct tokens *t, const void *about, enum approval_status decision, int64_t until_ms,
	       char ret_text[TOKEN_LEN + 1])
{
	struct token new = {.about = about, .decision = decision, .until_ms = until_ms};
	int r = notify_token_make_room(t) ?: make_text(new.text);

	if (r != 0)
		return r;
	t->list[t->n++] = new;
	memcpy(ret_text, new.text, sizeof(new.text));
	return 0;
}

static const struct token *notify_token_find(const struct tokens *t, struct text text)
{
	const struct token *found = NULL;

	/* All are compared, so that the time says nothing. */
	for (unsigned i = 0; i < t->n; i++) {
		if (text_equal_secret(text, text_of(t->list[i].text)))
			found = &t->list[i];
	}
	return found;
}

static void set_used(struct tokens *t, const void *about, bool used)
{
	for (unsigned i = 0; i < t->n; i++) {
		if (t->list[i].about == about)
			t->list[i].used = used;
	}
}

enum token_state tokens_see(const struct tokens *t, struct text text, int64_t now_ms,
			    const struct token **ret_token)
{
	const struct token *found = notify_token_find(t, text);

	if (!found)
		return TOKEN_UNKNOWN;
	*ret_token = found;
	if (found->used)
		return TOKEN_USED;
	return now_ms >= found->until_ms ? TOKEN_LATE : TOKEN_GOOD;
}

enum token_state tokens_use(struct tokens *t, struct text text, int64_t now_ms,
			    const void **ret_about, enum approval_status *ret_decision)
{
	const struct token *found = NULL;
	enum token_state state = tokens_see(t, text, now_ms, &found);

	if (state == TOKEN_UNKNOWN)
		return state;
	*ret_about = found->about;
	*ret_decision = found->decision;
	if (state == TOKEN_GOOD)
		set_used(t, found->about, true);
	return state;
}

void tokens_release(struct tokens *t, const void *about)
{
	set_used(t, about, false);
}

void tokens_forget(struct tokens *t, const void *about)
{
	unsigned n = 0;

	for (unsigned i = 0; i < t->n; i++) {
		if (t->list[i].about != about)
			t->list[n++] = t->list[i];
	}
	t->n = n;
}
