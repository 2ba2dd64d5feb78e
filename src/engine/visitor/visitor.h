/*
 * Who may look at the page: browsers that came by a link. A link is made for somebody at the
 * machine, works once and not for long; the browser that brings it becomes a visitor, and shows a
 * secret of its own from then on. Only their digests are held, and in memory: while koined is away
 * another user can listen at the page's port, so a stop ends all of them. Only a restart that keeps
 * the port hands them to the next koined.
 *
 * Everything belongs to the loop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/visitor.h"
#include "base/why.h"

struct visitors;

enum {
	VISITORS_MAX = 64,
	VISITOR_LINKS_MAX = 16, /* unused ones; the oldest gives way */
	VISITOR_LINK_MS = 5 * 60 * 1000,
	VISITOR_DIGEST_LEN = 64,
	VISITOR_PROGRAM_MAX = 200, /* bytes of what a browser says of itself */
};

int visitors_new(struct visitors **ret_visitors);
void visitors_free(struct visitors *v); /* accepts NULL */

/* From now on the link with this digest lets one browser in, or that with the other one ("": none). */
void visitor_invite(struct visitors *v, struct text digest, struct text other, int64_t now_ms);
/* True once for each link, if it is not too late. */
bool visitor_take_link(struct visitors *v, struct text digest, int64_t now_ms);

/* The visitor with this secret, who is seen now; NULL: there is none, or it is another user's, or it
 * came in more than keep_ms ago. */
const struct visitor *visitor_find(struct visitors *v, struct text digest, int64_t uid,
				   int64_t now_ms, int64_t keep_ms);

/* Valid until the next pass of the loop; those that came longest ago first. */
unsigned visitors_list(const struct visitors *v, const struct visitor **ret_rows);
/* By its id, or a beginning that only one has. REFUSE_NOT_FOUND. */
int visitor_get(const struct visitors *v, struct text id, const struct visitor **ret_visitor,
		struct why *why);

/* Whom the next one replaces if there are too many already; NULL: nobody. */
const struct visitor *visitor_in_the_way(const struct visitors *v);

int visitor_add(struct visitors *v, const struct visitor *fresh);
void visitor_remove(struct visitors *v, struct text id);
