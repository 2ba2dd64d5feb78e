/*
 * A stream offered in one go and in pieces must give the same messages and the
 * same refusal.
 *
 * The input's first byte steers: its low three bits are the number of sizes
 * that follow (a piece has a size and one byte; they are used in turn), 0x08 asks
 * for small limits and 0x40 for the end of the stream behind its last byte. So
 * "1" is one size, without end, and "a" the same with it.
 */
#pragma once

#include "../feed.h"

static inline void fuzz_framing(const struct framing *framing, const uint8_t *data, size_t size)
{
	static const struct framing_limits wide = {
		.message = 1 << 20, .http_line = 8192, .http_headers = 32768, .n_headers = 100};
	static const struct framing_limits narrow = {
		.message = 16, .http_line = 24, .http_headers = 64, .n_headers = 3};
	const struct framing_limits *limits;
	struct feed whole, pieces;
	const char *in;
	size_t n_sizes;
	bool eof;

	if (size == 0)
		return;
	limits = data[0] & 0x08 ? &narrow : &wide;
	eof = data[0] & 0x40;
	n_sizes = data[0] & 7;
	if (size < 1 + n_sizes)
		return;
	in = (const char *)data + 1 + n_sizes;
	size -= 1 + n_sizes;

	feed_init(&whole, framing, limits);
	feed_init(&pieces, framing, limits);
	feed_all(&whole, in, size, NULL, 0, eof);
	feed_all(&pieces, in, size, data + 1, n_sizes, eof);
	FEED_CHECK(whole.out.len == pieces.out.len);
	FEED_CHECK(whole.out.len == 0 ||
		   memcmp(whole.out.data, pieces.out.data, whole.out.len) == 0);
	FEED_CHECK(framing->in_message(whole.state) == framing->in_message(pieces.state));
	feed_done(&whole);
	feed_done(&pieces);
}
