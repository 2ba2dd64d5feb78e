/*
 * Any text as cron's fields: refused with a sentence, or the next occurrences are found, each after the one
 * before. The first eight bytes are the time to begin at; the ninth picks a zone.
 */
#include "../feed.h"

#include "engine/automation/schedule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const struct schedule *s, int64_t at)
{
	for (unsigned i = 0; i < 4; i++) {
		int64_t next = schedule_next(s, at);

		if (next == 0)
			return;
		FEED_CHECK(next > at && next % 1000 == 0);
		at = next;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const zones[] = {"", "Europe/Berlin", "Australia/Lord_Howe",
					    "Pacific/Apia"};
	struct error error = {.text = ""};
	struct schedule *s = NULL;
	struct text expression;
	char *exact;
	int64_t at, every;
	int r;

	if (size < 9)
		return 0;
	memcpy(&at, data, 8);
	expression.len = size - 9;
	exact = malloc(expression.len ? expression.len : 1);
	FEED_CHECK(exact);
	memcpy(exact, data + 9, expression.len);
	expression.data = exact;
	r = schedule_cron(expression, zones[data[8] % 4], &s, &error);
	FEED_CHECK(r == 0 || (r == REFUSE_PARAMS && error.text[0]));
	if (r == 0) {
		walk(s, at);
		/* Mostly nobody lives in the year 200 million. */
		walk(s, at % INT64_C(4102444800000));
	}
	schedule_free(s);
	if (schedule_parse_duration(expression, &every) == 0)
		FEED_CHECK(every >= 0);
	free(exact);
	return 0;
}
