/*
 * Tokens that nobody signed: whatever comes is refused in words, and a secret of
 * any bytes has at least itself as a reading. What stands before the first line end
 * is a secret, too; the rest, or all without one, is the token.
 */
#include "../feed.h"

#include "wire/context_token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_token(struct arena *a, struct text token, const struct context_secret *secret)
{
	struct context_claims claims;
	struct error error = {.text = ""};
	int r = context_token_check(a, token, secret, 1000, &claims, &error);

	FEED_CHECK(r == REFUSE_FORBIDDEN);
	FEED_CHECK(strncmp(error.text, "Invalid context token (", 23) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *exact = malloc(size ? size : 1);
	const char *newline;
	struct context_secret secret = {0};
	struct text token = {.len = size};
	struct arena a;

	FEED_CHECK(exact);
	if (size > 0)
		memcpy(exact, data, size);
	arena_init(&a, 16 << 20);
	token.data = exact;
	newline = size > 0 ? memchr(exact, '\n', size) : NULL;
	if (newline) {
		struct text written = {.data = exact, .len = (size_t)(newline - exact)};

		FEED_CHECK(context_secret_read(&a, written, &secret) == 0);
		FEED_CHECK(secret.n <= 3);
		token = (struct text) {.data = newline + 1, .len = size - written.len - 1};
	}
	/* Nobody guesses a signature. */
	check_token(&a, token, &secret);
	arena_done(&a);
	free(exact);
	return 0;
}
