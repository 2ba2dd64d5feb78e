#include "wire/context_token.h"

#include <errno.h>
#include <nettle/base64.h>
#include <nettle/hmac.h>

#include "wire/json.h"

static int context_token_bad(struct error *error, const char *code, const char *text)
{
	return refuse(error, REFUSE_FORBIDDEN, "Invalid context token (%s): %s", code, text);
}

static bool context_token_is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool has_space(struct text t)
{
	for (size_t i = 0; i < t.len; i++) {
		if (context_token_is_space(t.data[i]))
			return true;
	}
	return false;
}

/* base64url with or without padding. -EINVAL for anything else. */
static int decode64(struct arena *a, struct text in, struct text *ret)
{
	struct base64_decode_ctx ctx;
	uint8_t *out = arena_alloc(a, BASE64_DECODE_LENGTH(in.len) + 3);
	size_t len = BASE64_DECODE_LENGTH(in.len) + 3;

	if (!out)
		return -ENOMEM;
	while (in.len > 0 && in.data[in.len - 1] == '=')
		in.len--;
	base64url_decode_init(&ctx);
	/* The library would skip white space. */
	if (in.len % 4 == 1 || has_space(in) ||
	    !base64_decode_update(&ctx, &len, out, in.len, in.data))
		return -EINVAL;
	*ret = (struct text) {.data = (const char *)out, .len = len};
	return 0;
}

static int decode_hex(struct arena *a, struct text in, struct text *ret)
{
	char *out = arena_alloc(a, in.len / 2 + 1);

	if (!out)
		return -ENOMEM;
	if (in.len == 0 || in.len % 2 != 0)
		return -EINVAL;
	for (size_t i = 0; i < in.len; i += 2) {
		int high = hex_digit(in.data[i]);
		int low = hex_digit(in.data[i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		out[i / 2] = (char)(high << 4 | low);
	}
	*ret = (struct text) {.data = out, .len = in.len / 2};
	return 0;
}

int context_secret_read(struct arena *a, struct text written, struct context_secret *ret_secret)
{
	int (*const decoders[])(struct arena *, struct text, struct text *) = {decode_hex,
									       decode64};
	struct context_secret secret = {.n = 0};

	written = text_trim(written, TEXT_SPACE);
	for (unsigned i = 0; i < 2; i++) {
		struct text *reading = &secret.readings[secret.n];
		int r = decoders[i](a, written, reading);

		if (r == -ENOMEM)
			return r;
		if (r == 0 && reading->len > 0)
			secret.n++;
	}
	if (written.len > 0) {
		const char *copy = arena_copy(a, written.data, written.len);

		if (!copy)
			return -ENOMEM;
		secret.readings[secret.n++] = (struct text) {.data = copy, .len = written.len};
	}
	*ret_secret = secret;
	return 0;
}

static bool signed_with(struct text key, struct text what, struct text signature)
{
	struct hmac_sha256_ctx ctx;
	uint8_t digest[SHA256_DIGEST_SIZE];

	hmac_sha256_set_key(&ctx, key.len, (const uint8_t *)key.data);
	hmac_sha256_update(&ctx, what.len, (const uint8_t *)what.data);
	hmac_sha256_digest(&ctx, sizeof(digest), digest);
	return text_equal_secret(
		signature, (struct text) {.data = (const char *)digest, .len = sizeof(digest)});
}

static bool signed_by(const struct context_secret *secret, struct text what, struct text signature)
{
	for (unsigned i = 0; i < secret->n; i++) {
		if (signed_with(secret->readings[i], what, signature))
			return true;
	}
	return false;
}

/* Takes the part before the next dot. */
static bool cut_part(struct text *rest, struct text *ret)
{
	const char *dot = rest->len ? memchr(rest->data, '.', rest->len) : NULL;
	size_t n = dot ? (size_t)(dot - rest->data) : rest->len;

	*ret = (struct text) {.data = rest->data, .len = n};
	rest->data += dot ? n + 1 : n;
	rest->len -= dot ? n + 1 : n;
	return dot != NULL;
}

struct parts {
	struct text header;
	struct text claims;
	struct text signature;
	struct text signed_text; /* header and claims as received */
};

static bool context_token_split(struct text token, struct parts *p)
{
	struct text rest = token;

	if (!cut_part(&rest, &p->header) || !cut_part(&rest, &p->claims))
		return false;
	p->signature = rest;
	p->signed_text = (struct text) {.data = token.data, .len = token.len - rest.len - 1};
	return rest.len > 0 && !memchr(rest.data, '.', rest.len);
}

static int read_part(struct arena *a, struct text part, struct value **ret)
{
	struct text json;
	int r = decode64(a, part, &json)
			?: json_read(a, json.data, json.len, &json_default_limits, ret, NULL);

	return r == -ENOMEM ? r : r != 0 || (*ret)->kind != VALUE_OBJECT ? -EINVAL : 0;
}

static int check_claims(const struct value *v, int64_t now_s, struct context_claims *ret,
			struct error *error)
{
	double expires;
	double issued;

	ret->user = value_text(value_find(v, "sub"));
	ret->chat = value_text(value_find(v, "chat_id"));
	ret->chat_type = value_text(value_find(v, "chat_type"));
	if (ret->user.len == 0)
		return context_token_bad(error, "claims", "sub is missing");
	if (!value_double(value_find(v, "exp"), &expires))
		return context_token_bad(error, "claims", "exp is missing");
	if (expires + CONTEXT_LEEWAY_S < (double)now_s)
		return context_token_bad(error, "claims", "token has expired");
	if (value_double(value_find(v, "iat"), &issued) &&
	    issued - CONTEXT_LEEWAY_S > (double)now_s)
		return context_token_bad(error, "claims", "token was issued in the future");
	return 0;
}

int context_token_check(struct arena *a, struct text token, const struct context_secret *secret,
			int64_t now_s, struct context_claims *ret_claims, struct error *error)
{
	struct value *header;
	struct value *claims;
	struct text signature;
	struct parts p;
	int r;

	if (token.len == 0)
		return context_token_bad(error, "missing", "context_token is required");
	if (!context_token_split(token, &p))
		return context_token_bad(error, "format", "token must have three parts");
	r = read_part(a, p.header, &header)
			?: read_part(a, p.claims, &claims)
			?: decode64(a, p.signature, &signature);
	if (r != 0)
		return r == -ENOMEM
			       ? r
			       : context_token_bad(error, "decode", "a part is not base64url JSON");
	if (!text_is(value_text(value_find(header, "alg")), "HS256") ||
	    !text_is(value_text(value_find(header, "typ")), "ASH_CONTEXT"))
		return context_token_bad(error, "header", "alg must be HS256 and typ ASH_CONTEXT");
	if (!signed_by(secret, p.signed_text, signature))
		return context_token_bad(error, "signature", "signature does not match");
	return check_claims(claims, now_s, ret_claims, error);
}
