/* What must hold for any bytes that an editor of koine connect is given as a file. */
#pragma once

#include "../feed.h"

#include "cli/connect/edit.h"
#include "cli/kit/value.h"

/* Every byte of the old text is in the new one, in order. */
static inline bool edit_feed_is_within(struct text old, struct text new)
{
	size_t at = 0;

	for (size_t i = 0; i < new.len &&at < old.len; i++)
		at += new.data[i] == old.data[at];
	return at == old.len;
}

static inline struct text edit_feed_exact(const void *data, size_t n)
{
	char *copy = malloc(n ? n : 1);

	FEED_CHECK(copy);
	if (n > 0)
		memcpy(copy, data, n);
	return (struct text) {.data = copy, .len = n};
}

/* Whatever was taken, the file can still be read, and nothing more is to be taken. */
static inline void edit_feed_take(const struct editor *by, struct text file, struct text before,
				  const struct edit *e)
{
	struct buf taken, again;
	struct error error = {0};

	buf_init(&taken, EDIT_FILE_MAX);
	buf_init(&again, EDIT_FILE_MAX);
	if (edit_take_each(by, file, before, e, 1, &taken, &error) == 0) {
		FEED_CHECK(edit_take_each(by, buf_text(&taken), before, e, 1, &again, &error) == 0);
		FEED_CHECK(text_equal(buf_text(&again), buf_text(&taken)));
		buf_clear(&again);
		FEED_CHECK(edit_put(by, buf_text(&taken), e, 1, &again, &error) == 0 ||
			   error.code == REFUSE_CONFLICT);
	}
	buf_done(&taken);
	buf_done(&again);
}

static inline void edit_feed(const struct editor *by, const struct edit *e, const void *data,
			     size_t size)
{
	struct text file = edit_feed_exact(data, size);
	struct buf out, again;
	struct error error = {0};
	int r;

	buf_init(&out, EDIT_FILE_MAX);
	buf_init(&again, EDIT_FILE_MAX);
	r = edit_put(by, file, e, 1, &out, &error);
	FEED_CHECK(r >= 0 && (r == 0 || error.text[0]));
	if (r == 0) {
		/* Only what is already ours is ever replaced. */
		FEED_CHECK(memmem(file.data, file.len, "koine", 5) ||
			   memmem(file.data, file.len, "\\u", 2) ||
			   edit_feed_is_within(file, buf_text(&out)));
		FEED_CHECK(edit_put(by, buf_text(&out), e, 1, &again, &error) == 0);
		FEED_CHECK(text_equal(buf_text(&again), buf_text(&out)));
		FEED_CHECK(edit_take(by, buf_text(&out), file, e, 1, &again, &error) == 0);
		FEED_CHECK(text_equal(buf_text(&again), file));
		edit_feed_take(by, buf_text(&out), file, e);
	}
	edit_feed_take(by, file, TEXT("{}"), e);
	buf_done(&out);
	buf_done(&again);
	free((char *)file.data);
}
