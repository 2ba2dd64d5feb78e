/* A settings file: its lines are the file, and what is read of a line can be written and read again. */
#include <stdint.h>
#include <stdlib.h>

#include "../feed.h"
#include "wire/ini.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_within(struct text part, struct text whole)
{
	return part.data >= whole.data && part.data + part.len <= whole.data + whole.len;
}

/* Right behind the equals sign, a value may begin with a semicolon. A key may begin with a byte order mark, so this is
 * not the first line of a file. */
static void check_again(const struct ini_line *line)
{
	struct ini_line again;
	struct buf text;
	struct ini ini;

	buf_init(&text, 2 * INI_LINE_MAX);
	if (line->kind == INI_SECTION)
		buf_printf(&text, "[%.*s]", TEXT_ARGS(line->name));
	else
		buf_printf(&text, "%.*s=%.*s", TEXT_ARGS(line->name), TEXT_ARGS(line->value));
	ini = (struct ini) {.rest = {.data = text.data, .len = text.len}};
	FEED_CHECK(ini_next(&ini, &again) && again.kind == line->kind);
	FEED_CHECK(text_equal(again.name, line->name));
	FEED_CHECK(line->kind == INI_SECTION || text_equal(again.value, line->value));
	FEED_CHECK(!ini_next(&ini, &again));
	buf_done(&text);
}

static void check_line(const struct ini_line *line)
{
	FEED_CHECK((line->kind == INI_INVALID) == (line->error != NULL));
	if (line->kind == INI_SECTION || line->kind == INI_PAIR) {
		FEED_CHECK(is_within(line->name, line->whole));
		check_again(line);
	}
	if (line->kind == INI_PAIR)
		FEED_CHECK(is_within(line->value, line->whole));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1);
	struct ini_line line;
	struct ini ini;
	const char *at;
	unsigned n = 0;

	FEED_CHECK(copy);
	memcpy(copy, data, size);
	ini_init(&ini, (struct text) {.data = copy, .len = size});
	at = ini.rest.data;
	while (ini_next(&ini, &line)) {
		FEED_CHECK(line.number == ++n);
		FEED_CHECK(line.whole.data == at && line.end.data == at + line.whole.len);
		at += line.whole.len + line.end.len;
		check_line(&line);
	}
	FEED_CHECK(at == copy + size);
	free(copy);
	return 0;
}
