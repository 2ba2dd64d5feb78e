/*
 * ash's signed context: three base64url parts like a JSON Web Token, HS256, type ASH_CONTEXT.
 * It says whom a sandbox acts for.
 */
#pragma once

#include "base/arena.h"
#include "base/text.h"
#include "base/error.h"

struct context_claims {
	struct text user; /* "sub" */
	struct text chat; /* "chat_id"; {NULL, 0} without */
	struct text chat_type;
};

enum { CONTEXT_LEEWAY_S = 30 };

/*
 * A secret as people write it: hex, base64url or plain text. Hex or base64url may be meant as
 * plain text, too, so a token signed by any reading of it is valid; whoever knows one reading
 * knows them all.
 */
struct context_secret {
	struct text readings[3];
	unsigned n; /* 0: no tokens */
};

/* Surrounding white space does not count; nothing but white space has no reading. */
int context_secret_read(struct arena *a, struct text written, struct context_secret *ret_secret);

/*
 * Refuses with REFUSE_FORBIDDEN and the words of the original:
 * "Invalid context token (CODE): …", CODE one of missing, format, decode, header,
 * signature, claims.
 */
int context_token_check(struct arena *a, struct text token, const struct context_secret *secret,
			int64_t now_s, struct context_claims *ret_claims, struct error *error);
