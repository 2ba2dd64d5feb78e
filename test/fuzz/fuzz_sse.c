/*
 * Server-sent events, whole and in pieces. The input's first byte steers: its low three
 * bits are the number of sizes that follow, 0x08 asks for a small limit.
 */
#include <stdint.h>
#include <stdio.h>

#include "../sse_feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sse_feed whole, pieces;
	size_t n_sizes;
	size_t max;
	const char *in;

	if (size == 0)
		return 0;
	n_sizes = data[0] & 7;
	max = data[0] & 0x08 ? 12 : SSE_MAX;
	if (size < 1 + n_sizes)
		return 0;
	in = (const char *)data + 1 + n_sizes;
	size -= 1 + n_sizes;
	sse_feed_init(&whole, max);
	sse_feed_init(&pieces, max);
	sse_feed_all(&whole, in, size, NULL, 0);
	sse_feed_all(&pieces, in, size, data + 1, n_sizes);
	if (whole.refused != pieces.refused || whole.out.len != pieces.out.len ||
	    (whole.out.len > 0 && memcmp(whole.out.data, pieces.out.data, whole.out.len) != 0)) {
		fprintf(stderr, "whole:  %.*s\npieces: %.*s\n", (int)whole.out.len, whole.out.data,
			(int)pieces.out.len, pieces.out.data);
		abort();
	}
	sse_feed_done(&whole);
	sse_feed_done(&pieces);
	return 0;
}
