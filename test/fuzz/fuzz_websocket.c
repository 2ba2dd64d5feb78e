/*
 * A WebSocket's bytes, whole and in pieces. The input's first byte steers: its low three bits are
 * the number of sizes that follow, 0x08 asks for a small limit.
 */
#include <stdint.h>
#include <stdio.h>

#include "../websocket_feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What we send must be frames: unmasked, none cut, and nothing behind a close. */
static void check_reply(const struct buf *reply, size_t len)
{
	const unsigned char *p = (const unsigned char *)reply->data;
	bool closed = false;

	/* No answer is longer than what brought it, but for the reason of one close. */
	if (reply->len > len + 2 + WEBSOCKET_CONTROL_MAX)
		abort();
	for (size_t at = 0; at < reply->len;) {
		if (closed || reply->len - at < 2 || p[at + 1] > WEBSOCKET_CONTROL_MAX ||
		    (p[at] != 0x8a && p[at] != 0x88))
			abort();
		closed = p[at] == 0x88;
		at += 2 + (size_t)p[at + 1];
		if (at > reply->len)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct websocket_feed whole;
	struct websocket_feed pieces;
	size_t n_sizes;
	size_t max;
	const char *in;

	if (size == 0)
		return 0;
	n_sizes = data[0] & 7;
	max = data[0] & 0x08 ? 12 : 1 << 20;
	if (size < 1 + n_sizes)
		return 0;
	in = (const char *)data + 1 + n_sizes;
	size -= 1 + n_sizes;
	websocket_feed_init(&whole, max);
	websocket_feed_init(&pieces, max);
	websocket_feed_all(&whole, in, size, NULL, 0);
	websocket_feed_all(&pieces, in, size, data + 1, n_sizes);
	if (whole.out.len != pieces.out.len ||
	    (whole.out.len > 0 && memcmp(whole.out.data, pieces.out.data, whole.out.len) != 0)) {
		fprintf(stderr, "whole:  %.*s\npieces: %.*s\n", (int)whole.out.len, whole.out.data,
			(int)pieces.out.len, pieces.out.data);
		abort();
	}
	check_reply(&whole.reply, size);
	check_reply(&pieces.reply, size);
	websocket_feed_done(&whole);
	websocket_feed_done(&pieces);
	return 0;
}
