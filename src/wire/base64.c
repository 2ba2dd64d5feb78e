#include "wire/base64.h"

#include <errno.h>
#include <nettle/base64.h>

void base64_add(struct buf *out, struct text bytes)
{
	if (bytes.len == 0 || buf_reserve(out, BASE64_ENCODE_RAW_LENGTH(bytes.len)) != 0)
		return;
	base64_encode_raw(out->data + out->len, bytes.len, (const uint8_t *)bytes.data);
	out->len += BASE64_ENCODE_RAW_LENGTH(bytes.len);
}

/* The library skips white space, and forgives bits that no encoder sets. */
static bool reads_back(struct arena *a, struct text in, struct text bytes)
{
	char *again = arena_alloc(a, BASE64_ENCODE_RAW_LENGTH(bytes.len) + 1);

	if (!again || BASE64_ENCODE_RAW_LENGTH(bytes.len) != in.len)
		return false;
	base64_encode_raw(again, bytes.len, (const uint8_t *)bytes.data);
	return memcmp(again, in.data, in.len) == 0;
}

int base64_read(struct arena *a, struct text in, struct text *ret_bytes)
{
	size_t len = BASE64_DECODE_LENGTH(in.len) + 3;
	uint8_t *out = arena_alloc(a, len);
	struct base64_decode_ctx ctx;
	struct text bytes;

	if (!out)
		return -ENOMEM;
	base64_decode_init(&ctx);
	if (in.len > 0 &&
	    (!base64_decode_update(&ctx, &len, out, in.len, in.data) || !base64_decode_final(&ctx)))
		return -EINVAL;
	bytes = (struct text) {.data = (const char *)out, .len = in.len > 0 ? len : 0};
	if (in.len > 0 && !reads_back(a, in, bytes))
		return -EINVAL;
	*ret_bytes = bytes;
	return 0;
}
