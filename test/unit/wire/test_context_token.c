/* ash's signed context, against tokens that another implementation has made. */
#include "check.h"

#include <errno.h>

#include "wire/context_token.h"

/* Made with Python's hmac, secret "0102…20" in hex, sub ann, chat_id c1, iat 1000, exp 1900. */
#define HEADER "eyJhbGciOiJIUzI1NiIsInR5cCI6IkFTSF9DT05URVhUIiwidmVyIjoxfQ"
#define VALID                                                                                      \
	"eyJhbGciOiJIUzI1NiIsInR5cCI6IkFTSF9DT05URVhUIiwidmVyIjoxfQ.eyJjaGF0X2lkIjoiY"             \
	"zEiLCJleHAiOjE5MDAsImlhdCI6MTAwMCwic3ViIjoiYW5uIn0.NsCHU9Xe5AVgT_3zGFyQTuaS0"             \
	"gwXqqO0n5u1Dbz4k5k"
#define PADDED                                                                                     \
	"eyJhbGciOiJIUzI1NiIsInR5cCI6IkFTSF9DT05URVhUIiwidmVyIjoxfQ==.eyJjaGF0X2lkIjo"             \
	"iYzEiLCJleHAiOjE5MDAsImlhdCI6MTAwMCwic3ViIjoiYW5uIn0=.ipdFjcbGwP8UaveYTjN6RT"             \
	"aZjShz85d5IBGNlUdpDOY="
#define NO_CHAT                                                                                    \
	"eyJhbGciOiJIUzI1NiIsInR5cCI6IkFTSF9DT05URVhUIiwidmVyIjoxfQ.eyJleHAiOjE5MDAsI"             \
	"mlhdCI6MTAwMCwic3ViIjoiYW5uIiwiY2hhdF9pZCI6bnVsbH0.johXyNvgUx0HckdaVZBGmC6ss"             \
	"zBJVrx_hMMsMMn5rHk"
#define NO_USER                                                                                    \
	"eyJhbGciOiJIUzI1NiIsInR5cCI6IkFTSF9DT05URVhUIiwidmVyIjoxfQ.eyJjaGF0X2lkIjoiY"             \
	"zEiLCJleHAiOjE5MDAsImlhdCI6MTAwMCwic3ViIjoiIn0.VlENH3jIPp7KSOPnCZ96N30QmU911"             \
	"Pn5_8aDAQ4khDI"
#define NO_END                                                                                     \
	"eyJhbGciOiJIUzI1NiIsInR5cCI6IkFTSF9DT05URVhUIiwidmVyIjoxfQ.eyJjaGF0X2lkIjoiY"             \
	"zEiLCJpYXQiOjEwMDAsInN1YiI6ImFubiJ9.lka8-_vHWbhbFY9F3rUkEp9_l28Vf8vK3pz8slvZ"             \
	"dXg"

static const char HEX[] = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";

struct fixture {
	struct arena arena;
	struct context_secret secret;
	struct context_claims claims;
	struct error error;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	arena_init(&f->arena, 1 << 20);
	*state = f;
	return context_secret_read(&f->arena, text_of(HEX), &f->secret);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	arena_done(&f->arena);
	free(f);
	return 0;
}

FIXTURE(setup, teardown);

static int check_at(struct fixture *f, const char *token, int64_t now_s)
{
	f->error = (struct error) {0};
	return context_token_check(&f->arena, text_of(token), &f->secret, now_s, &f->claims,
				   &f->error);
}

static void refused(struct fixture *f, const char *token, int64_t now_s, const char *code)
{
	char start[80];

	snprintf(start, sizeof(start), "Invalid context token (%s): ", code);
	assert_int_equal(check_at(f, token, now_s), REFUSE_FORBIDDEN);
	if (strncmp(f->error.text, start, strlen(start)) != 0)
		fail_msg("'%s' does not begin with '%s'", f->error.text, start);
}

TEST(a_valid_token_tells_who)
{
	struct fixture *f = *state;

	assert_int_equal(check_at(f, VALID, 1000), 0);
	assert_true(text_is(f->claims.user, "ann"));
	assert_true(text_is(f->claims.chat, "c1"));
	assert_int_equal(check_at(f, PADDED, 1000), 0);
	assert_int_equal(check_at(f, NO_CHAT, 1000), 0);
	assert_null(f->claims.chat.data);
}

TEST(time_has_a_leeway_of_thirty_seconds)
{
	struct fixture *f = *state;

	assert_int_equal(check_at(f, VALID, 970), 0);
	refused(f, VALID, 969, "claims");
	assert_int_equal(check_at(f, VALID, 1930), 0);
	refused(f, VALID, 1931, "claims");
}

TEST(every_changed_byte_is_noticed)
{
	struct fixture *f = *state;
	char token[sizeof(VALID)];

	for (size_t i = 0; i < sizeof(VALID) - 1; i++) {
		memcpy(token, VALID, sizeof(VALID));
		token[i] = token[i] == 'A' ? 'B' : 'A';
		/* The last character has two bits that belong to no byte. */
		if (i == sizeof(VALID) - 2)
			token[i] = token[i] == 'A' ? 'z' : 'A';
		assert_int_equal(check_at(f, token, 1000), REFUSE_FORBIDDEN);
	}
	for (size_t n = 0; n < sizeof(VALID) - 1; n++) {
		memcpy(token, VALID, sizeof(VALID));
		token[n] = '\0';
		assert_int_equal(check_at(f, token, 1000), REFUSE_FORBIDDEN);
	}
}

TEST(what_is_wrong_has_a_code)
{
	struct fixture *f = *state;

	refused(f, NULL, 1000, "missing");
	refused(f, "", 1000, "missing");
	refused(f, "abc", 1000, "format");
	refused(f, "a.b", 1000, "format");
	refused(f, "a.b.", 1000, "format");
	refused(f, "...", 1000, "format");
	refused(f, VALID ".x", 1000, "format");
	refused(f, "a.b.c", 1000, "decode");
	refused(f, HEADER ".!!!!.AAAA", 1000, "decode");
	refused(f, HEADER ".e30.A A A A", 1000, "decode");
	refused(f, "e30.e30.AAAA", 1000, "header");
	refused(f, HEADER ".e30.AAAA", 1000, "signature");
	refused(f, NO_USER, 1000, "claims");
	refused(f, NO_END, 1000, "claims");
}

static void check_readings(struct fixture *f, const char *written, unsigned n)
{
	struct context_secret s;

	assert_int_equal(context_secret_read(&f->arena, text_of(written), &s), 0);
	assert_int_equal(s.n, n);
}

TEST(a_secret_has_every_reading_that_it_can_have)
{
	struct fixture *f = *state;
	struct context_secret s;

	check_readings(f, "", 0);
	check_readings(f, " \t\n", 0);
	check_readings(f, "=", 1);
	check_readings(f, "two words", 1);
	check_readings(f, "text", 2);
	check_readings(f, "cafe", 3);
	check_readings(f, "cafe1", 1);
	assert_int_equal(context_secret_read(&f->arena, TEXT(" cafe\n"), &s), 0);
	assert_int_equal(s.readings[0].len, 2);
	assert_memory_equal(s.readings[0].data, "\xca\xfe", 2);
	assert_int_equal(s.readings[1].len, 3);
	assert_memory_equal(s.readings[1].data, "\x71\xa7\xde", 3);
	assert_true(text_is(s.readings[2], "cafe"));
}

TEST(without_memory_it_is_a_fault)
{
	struct fixture *f = *state;
	struct arena none;
	int r;

	/* With so little room at first, and more each time, until it is enough. */
	for (size_t max = 0;; max += 16) {
		arena_init(&none, max);
		r = context_token_check(&none, text_of(VALID), &f->secret, 1000, &f->claims,
					&f->error);
		arena_done(&none);
		if (r == 0)
			break;
		assert_int_equal(r, -ENOMEM);
		assert_true(max < 100000);
	}
}
