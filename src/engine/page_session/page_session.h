/*
 * Who may look at the page: browsers that came by a link. A link is made for somebody at the
 * machine, works once and not for long; the browser that brings it becomes a page session, and shows a
 * secret of its own from then on. Only their digests are held, and in memory: while koined is away
 * another user can listen at the page's port, so a stop ends all of them. Only a restart that keeps
 * the port hands them to the next koined.
 *
 * Everything belongs to the loop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/page_session.h"
#include "base/error.h"

struct page_sessions;

enum {
	VISITORS_MAX = 64,
	PAGE_SESSION_LINKS_MAX = 16, /* unused ones; the oldest gives way */
	PAGE_SESSION_LINK_MS = 5 * 60 * 1000,
	PAGE_SESSION_DIGEST_LEN = 64,
	PAGE_SESSION_PROGRAM_MAX = 200, /* bytes of what a browser says of itself */
};

int page_sessions_new(struct page_sessions **ret_page_sessions);
void page_sessions_free(struct page_sessions *v); /* accepts NULL */

/* From now on the link with this digest lets one browser in, or that with the other one ("": none). */
void page_session_invite(struct page_sessions *v, struct text digest, struct text other,
			 int64_t now_ms);
/* True once for each link, if it is not too late. */
bool page_session_take_link(struct page_sessions *v, struct text digest, int64_t now_ms);

/* The page session with this secret, who is seen now; NULL: there is none, or it is another user's, or it
 * came in more than keep_ms ago. */
const struct page_session *page_session_find(struct page_sessions *v, struct text digest,
					     int64_t uid, int64_t now_ms, int64_t keep_ms);

/* Valid until the next pass of the loop; those that came longest ago first. */
unsigned page_sessions_list(const struct page_sessions *v, const struct page_session **ret_rows);
/* By its id, or a beginning that only one has. REFUSE_NOT_FOUND. */
int page_session_get(const struct page_sessions *v, struct text id,
		     const struct page_session **ret_page_session, struct error *error);

/* Whom the next one replaces if there are too many already; NULL: nobody. */
const struct page_session *page_session_in_the_way(const struct page_sessions *v);

int page_session_add(struct page_sessions *v, const struct page_session *fresh);
void page_session_remove(struct page_sessions *v, struct text id);
