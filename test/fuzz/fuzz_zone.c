/* Any bytes as a time zone's file: refused, or every moment lies in a period of its own. */
#include "../feed.h"

#include <errno.h>

#include "base/zone.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const struct zone *z, int64_t at)
{
	struct zone_period p = zone_period(z, at);

	FEED_CHECK(p.from <= at && (at < p.until || p.until == INT64_MAX));
	FEED_CHECK(p.offset >= -26 * 3600 && p.offset <= 26 * 3600);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *exact = malloc(size ? size : 1);
	struct zone *z = NULL;
	int r;

	FEED_CHECK(exact);
	if (size > 0)
		memcpy(exact, data, size);
	r = zone_read((struct text) {.data = exact, .len = size}, &z);
	free(exact);
	FEED_CHECK(r == 0 || r == -EBADMSG);
	if (r != 0)
		return 0;
	look(z, INT64_MIN);
	look(z, INT64_MAX);
	for (int64_t at = -5000000000; at < 20000000000; at += 77777777)
		look(z, at);
	zone_free(z);
	return 0;
}
