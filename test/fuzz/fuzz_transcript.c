/*
 * What a coding agent prints, whole and in pieces. The low three bits of the input's first byte
 * are the number of sizes that follow. Whatever comes is told, and is UTF-8.
 */
#include <stdint.h>
#include <stdio.h>

#include "../transcript_feed.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_utf8(const struct buf *out)
{
	const char *p = out->len > 0 ? out->data : "";
	const char *end = p + out->len;

	while (p < end) {
		size_t n = (unsigned char)*p < 0x80 ? 1 : utf8_sequence(p, end);

		if (n == 0)
			abort();
		p += n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct transcript_feed whole, pieces;
	size_t n_sizes;
	const char *in;

	if (size == 0)
		return 0;
	n_sizes = data[0] & 7;
	if (size < 1 + n_sizes)
		return 0;
	in = (const char *)data + 1 + n_sizes;
	size -= 1 + n_sizes;
	transcript_feed_init(&whole);
	transcript_feed_init(&pieces);
	transcript_feed_all(&whole, in, size, NULL, 0);
	transcript_feed_all(&pieces, in, size, data + 1, n_sizes);
	if (whole.result != 0 || pieces.result != 0 || whole.out.len != pieces.out.len ||
	    (whole.out.len > 0 && memcmp(whole.out.data, pieces.out.data, whole.out.len) != 0)) {
		fprintf(stderr, "whole:  %.*s\npieces: %.*s\n", (int)whole.out.len, whole.out.data,
			(int)pieces.out.len, pieces.out.data);
		abort();
	}
	check_utf8(&whole.out);
	transcript_feed_done(&whole);
	transcript_feed_done(&pieces);
	return 0;
}
