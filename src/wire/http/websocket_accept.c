/* How a WebSocket begins: the key of a request, and the answer that proves we have read it. */
#include <nettle/base64.h>
#include <nettle/sha1.h>

#include "wire/http/http1.h"
#include "wire/http/websocket.h"

enum { KEY_LEN = 24, KEY_BYTES = 16 };

static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

static bool is_key(struct text t)
{
	struct base64_decode_ctx ctx;
	uint8_t bytes[BASE64_DECODE_LENGTH(KEY_LEN)];
	size_t n = sizeof(bytes);

	if (t.len != KEY_LEN)
		return false;
	/* The library would skip white space. */
	for (size_t i = 0; i < t.len; i++) {
		if (t.data[i] <= ' ')
			return false;
	}
	base64_decode_init(&ctx);
	return base64_decode_update(&ctx, &n, bytes, t.len, t.data) && base64_decode_final(&ctx) &&
	       n == KEY_BYTES;
}

int websocket_accept(const struct http_request *r, char ret_accept[WEBSOCKET_ACCEPT_LEN + 1],
		     struct why *why)
{
	struct text key = http_header_find(r, "Sec-WebSocket-Key");
	uint8_t digest[SHA1_DIGEST_SIZE];
	struct sha1_ctx sha;

	if (http_header_count(r, "Sec-WebSocket-Version") != 1 ||
	    !text_is(http_header_find(r, "Sec-WebSocket-Version"), "13"))
		return refuse(why, REFUSE_METHOD, "Sec-WebSocket-Version must be 13");
	if (http_header_count(r, "Sec-WebSocket-Key") != 1 || !is_key(key))
		return refuse(why, REFUSE_REQUEST,
			      "expected one Sec-WebSocket-Key with 16 bytes in base64");
	sha1_init(&sha);
	sha1_update(&sha, key.len, (const uint8_t *)key.data);
	sha1_update(&sha, sizeof(guid) - 1, (const uint8_t *)guid);
	sha1_digest(&sha, sizeof(digest), digest);
	_Static_assert(BASE64_ENCODE_RAW_LENGTH(SHA1_DIGEST_SIZE) == WEBSOCKET_ACCEPT_LEN, "");
	base64_encode_raw(ret_accept, sizeof(digest), digest);
	ret_accept[WEBSOCKET_ACCEPT_LEN] = '\0';
	return 0;
}
