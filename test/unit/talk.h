/* A server, a client of it, and what they say to each other. In their texts ' stands for ", and ` for '. */
#pragma once

#include "check.h"

#include "../call_world.h"

struct fixture {
	struct world world;
	struct dialer client;
	bool stopped;
};

/* With ' for ", and ` for '. Valid until the next-but-one. */
static inline const char *quoted(const char *text)
{
	static char both[2][8192];
	static unsigned turn;
	char *out = both[turn++ % 2];

	assert_true(strlen(text) < sizeof(both[0]));
	for (size_t i = 0; i <= strlen(text); i++)
		out[i] = text[i] == '\'' ? '"' : text[i] == '`' ? '\'' : text[i];
	return out;
}

static inline void say_to(struct fixture *f, struct dialer *c, const char *text)
{
	const char *bytes = quoted(text);

	if (!dialer_send_n(c, &f->world, bytes, strlen(bytes)))
		fail_msg("the server does not take: %s", text);
}

static inline void hear_from(struct fixture *f, struct dialer *c, const char *expected)
{
	const char *bytes = quoted(expected);
	size_t n = strlen(bytes);

	if (!dialer_wait(c, &f->world, n) || memcmp(c->in.data, bytes, n) != 0)
		fail_msg("expected %s\n     got %.*s", bytes,
			 (int)(c->in.len < 600 ? c->in.len : 600), c->in.data ? c->in.data : "");
	buf_consume(&c->in, n);
}

static inline void say(struct fixture *f, const char *text)
{
	say_to(f, &f->client, text);
}

static inline void hear(struct fixture *f, const char *expected)
{
	hear_from(f, &f->client, expected);
}

static inline void hear_nothing(struct fixture *f, struct dialer *c)
{
	world_settle(&f->world);
	dialer_read(c);
	assert_int_equal(c->in.len, 0);
	assert_false(c->eof);
}

static inline void hear_end(struct fixture *f)
{
	assert_true(dialer_wait_eof(&f->client, &f->world));
	assert_int_equal(f->client.in.len, 0);
}
