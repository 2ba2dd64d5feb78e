/*
 * What a button's token stands for. A token is 128 random bits, is used once, and ends with its
 * time; what it means is known only here, so that nothing that comes back is believed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/approval.h"
#include "base/text.h"

enum { TOKEN_LEN = 32, TOKENS_MAX = 512 };

struct token {
	char text[TOKEN_LEN + 1];
	const void *about; /* the message that it stands in */
	enum approval_status decision;
	int64_t until_ms;
	bool used;
};

/* All of one notifier. Zeros are an empty one. */
struct tokens {
	struct token *list;
	unsigned n;
	unsigned room;
};

void tokens_done(struct tokens *t);

/* -ENOBUFS: there are TOKENS_MAX. The text stays valid until the token is forgotten. */
int tokens_add(struct tokens *t, const void *about, enum approval_status decision, int64_t until_ms,
	       char ret_text[TOKEN_LEN + 1]);

enum token_state { TOKEN_GOOD, TOKEN_UNKNOWN, TOKEN_USED, TOKEN_LATE };

/* What it stands for, and whether it counts; it stays as it is. */
enum token_state tokens_see(const struct tokens *t, struct text text, int64_t now_ms,
			    const struct token **ret_token);
/* Uses it, and all others about the same. What it was for is also told of a used or late one. */
enum token_state tokens_use(struct tokens *t, struct text text, int64_t now_ms,
			    const void **ret_about, enum approval_status *ret_decision);
/* Those about it may be used again: the decision could not be kept. */
void tokens_release(struct tokens *t, const void *about);
void tokens_forget(struct tokens *t, const void *about);
