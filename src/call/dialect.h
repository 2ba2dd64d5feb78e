/*
 * A dialect is const data: how its clients frame and shape messages, which
 * methods they know, and the words for every refusal. Dialects translate,
 * services decide.
 */
#pragma once

#include "call/method.h"
#include "wire/framing.h"
#include "wire/jsonrpc.h"

enum framing_choice {
	SPEAKS_ANY, /* recognised from the first bytes of each connection */
	SPEAKS_LINE,
	SPEAKS_LENGTH,
	SPEAKS_HTTP,
};

/* How an error's message is made of the table's words and the refusal's sentence. */
enum wording {
	WORDS_TEXT, /* the sentence alone; the words where there is none */
	WORDS_ONLY,
	WORDS_BOTH, /* "words: sentence" */
};

struct error_row {
	int64_t code;
	const char *words;
	enum wording wording;
	int http_status; /* 0: 200 */
};

struct dialect {
	const char *name;
	enum framing_choice framing;
	size_t message_max;
	bool concurrent; /* calls of one connection side by side, answered as they finish */
	struct jsonrpc_rules rules;
	const struct error_row *errors; /* indexed by enum refusal */
	bool plain_errors;              /* errors never carry data */
	/* Words a parameter that is missing (v is NULL) or of another type. May be NULL. */
	int (*explain_field)(const struct field *f, const struct value *v, struct why *why);
	/* In place of call_decode, where parameters are read by rules of their own. May be NULL. */
	int (*decode)(struct call *c);

	const struct method *methods;
	unsigned n_methods;

	/* HTTP: the paths that take calls, NULL-ended, where a last '*' stands for any name
	 * (the call's `place`); what answers a notification; what answers a request that does
	 * not come in time (0: 408); and the body of an error outside JSON-RPC (NULL: a
	 * JSON-RPC error). */
	const char *const *http_paths;
	int http_silent_status;
	int http_timeout_status;
	void (*http_error)(struct buf *body, int status, const char *text);
};
