#include "wire/crypto.h"

#include <errno.h>
#include <nettle/base16.h>
#include <nettle/base64.h>
#include <nettle/hmac.h>
#include <nettle/sha2.h>
#include <sys/random.h>

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

void digest_hex(struct text text, char out[DIGEST_HEX_LEN + 1])
{
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx sha;

	sha256_init(&sha);
	sha256_update(&sha, text.len, (const uint8_t *)text.data);
	sha256_digest(&sha, sizeof(digest), digest);
	base16_encode_update(out, sizeof(digest), digest);
	out[DIGEST_HEX_LEN] = '\0';
}

void sign_hex(struct text key, struct text stamp, struct text body, char out[SIGN_HEX_LEN + 1])
{
	uint8_t mac[SHA256_DIGEST_SIZE];
	struct hmac_sha256_ctx ctx;

	hmac_sha256_set_key(&ctx, key.len, (const uint8_t *)key.data);
	hmac_sha256_update(&ctx, stamp.len, (const uint8_t *)stamp.data);
	hmac_sha256_update(&ctx, 1, (const uint8_t *)".");
	hmac_sha256_update(&ctx, body.len, (const uint8_t *)body.data);
	hmac_sha256_digest(&ctx, sizeof(mac), mac);
	base16_encode_update(out, sizeof(mac), mac);
	out[SIGN_HEX_LEN] = '\0';
}

enum { MAC = SHA256_DIGEST_SIZE };

int seal_key_new(uint8_t key[SEAL_KEY])
{
	ssize_t n = getrandom(key, SEAL_KEY, 0);

	return n == SEAL_KEY ? 0 : n < 0 ? -errno : -EIO;
}

/* The lengths keep two pairs apart that would be the same one after the other. */
static void sign(const uint8_t key[SEAL_KEY], struct text what, struct text about, uint8_t mac[MAC])
{
	const uint64_t lengths[2] = {what.len, about.len};
	struct hmac_sha256_ctx ctx;

	hmac_sha256_set_key(&ctx, SEAL_KEY, key);
	hmac_sha256_update(&ctx, sizeof(lengths), (const uint8_t *)lengths);
	hmac_sha256_update(&ctx, what.len, (const uint8_t *)what.data);
	hmac_sha256_update(&ctx, about.len, (const uint8_t *)about.data);
	hmac_sha256_digest(&ctx, MAC, mac);
}

static void add64(struct buf *out, const void *data, size_t len)
{
	struct base64_encode_ctx ctx;
	char *to;
	size_t n;

	if (buf_reserve(out, BASE64_ENCODE_LENGTH(len) + BASE64_ENCODE_FINAL_LENGTH) != 0)
		return;
	to = out->data + out->len;
	base64url_encode_init(&ctx);
	n = base64_encode_update(&ctx, to, len, data);
	n += base64_encode_final(&ctx, to + n);
	/* Without padding it needs no quoting anywhere. */
	while (n > 0 && to[n - 1] == '=')
		n--;
	out->len += n;
}

void seal_add(struct buf *out, const uint8_t key[SEAL_KEY], struct text what, struct text about)
{
	uint8_t mac[MAC];

	sign(key, what, about, mac);
	add64(out, mac, MAC);
	buf_add_char(out, '.');
	if (what.len > 0)
		add64(out, what.data, what.len);
}

static int read64(struct arena *a, struct text in, struct text *ret)
{
	size_t len = BASE64_DECODE_LENGTH(in.len) + 3;
	uint8_t *out = arena_alloc(a, len);
	struct base64_decode_ctx ctx;

	if (!out)
		return -ENOMEM;
	base64url_decode_init(&ctx);
	if (in.len % 4 == 1 || !base64_decode_update(&ctx, &len, out, in.len, in.data))
		return -EBADMSG;
	*ret = (struct text) {.data = (const char *)out, .len = in.len > 0 ? len : 0};
	return 0;
}

int seal_open(struct arena *a, const uint8_t key[SEAL_KEY], struct text sealed, struct text about,
	      struct text *ret_what)
{
	const char *dot = sealed.len > 0 ? memchr(sealed.data, '.', sealed.len) : NULL;
	size_t before = dot ? (size_t)(dot - sealed.data) : 0;
	struct text given;
	struct text what;
	uint8_t mac[MAC];
	int r;

	if (!dot)
		return -EBADMSG;
	r = read64(a, (struct text) {.data = sealed.data, .len = before}, &given);
	if (r == 0)
		r = read64(a, (struct text) {.data = dot + 1, .len = sealed.len - before - 1},
			   &what);
	if (r != 0)
		return r;
	sign(key, what, about, mac);
	if (!text_equal_secret(given, (struct text) {.data = (const char *)mac, .len = MAC}))
		return -EBADMSG;
	*ret_what = what;
	return 0;
}
