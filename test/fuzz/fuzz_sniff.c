/*
 * Recognising a protocol: once it is decided, more bytes change nothing; it is
 * decided by SNIFF_MAX bytes, and at the end of the stream in any case. The
 * first byte of the input picks the listener's limit.
 */
#include "../feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum sniffed sniff_exactly(const uint8_t *in, size_t n, bool eof, size_t max)
{
	char *exact = malloc(n ? n : 1);
	enum sniffed s;

	FEED_CHECK(exact);
	memcpy(exact, in, n);
	s = sniff(exact, n, eof, max);
	free(exact);
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum sniffed decided = SNIFF_MORE;
	size_t max;

	if (size == 0)
		return 0;
	max = (size_t)1 << (data[0] % 33);
	data++;
	size--;
	for (size_t n = 0; n <= size && n < 2 * SNIFF_MAX; n++) {
		enum sniffed s = sniff_exactly(data, n, false, max);

		FEED_CHECK(decided == SNIFF_MORE || s == decided);
		FEED_CHECK(n < SNIFF_MAX || s != SNIFF_MORE);
		decided = s;
		s = sniff_exactly(data, n, true, max);
		FEED_CHECK(s != SNIFF_MORE);
		FEED_CHECK(decided == SNIFF_MORE || s == decided);
	}
	return 0;
}
