/*
 * The order of memories within their chat.
 *
 * Each memory knows the one before and the one after it in time, which is all that a search
 * needs. Memories mostly arrive in order. For those that do not (imports of old ones) the chat
 * is cut into runs of at most RUN_MAX: a binary search finds the run, and a short walk the
 * position.
 */

#include "base/error.h"
#include "search/index_inner.h"
#include "search/mix.h"

enum { RUN_MAX = 128 };

static bool is_before(const struct search_index *ix, uint32_t a, uint32_t b)
{
	if (ix->times[a] != ix->times[b])
		return ix->times[a] < ix->times[b];
	return ix->keys[a] < ix->keys[b];
}

static uint32_t *chat_slot(uint32_t *slots, uint32_t n_slots, const struct index_chat *chats,
			   uint64_t id)
{
	uint32_t at = (uint32_t)mix_u64(id) & (n_slots - 1);

	while (slots[at] && chats[slots[at] - 1].id != id)
		at = (at + 1) & (n_slots - 1);
	return &slots[at];
}

static int chat_slots_grow(struct search_index *ix)
{
	uint32_t n = ix->n_chat_slots ? ix->n_chat_slots * 2 : 8;
	uint32_t *slots = NULL;
	int r;

	if ((uint64_t)ix->n_chats * 4 < (uint64_t)ix->n_chat_slots * 3)
		return 0;
	r = index_resize(ix, &slots, 0, n * sizeof(*slots));
	if (r != 0)
		return r;
	memset(slots, 0, n * sizeof(*slots));
	for (uint32_t i = 0; i < ix->n_chats; i++)
		*chat_slot(slots, n, ix->chats, ix->chats[i].id) = i + 1;
	index_resize(ix, &ix->chat_slots, ix->n_chat_slots * sizeof(*slots), 0);
	ix->chat_slots = slots;
	ix->n_chat_slots = n;
	return 0;
}

int chat_get(struct search_index *ix, uint64_t id, uint32_t *ret_chat)
{
	size_t cap = ix->cap_chats;
	uint32_t *slot;
	int r;

	r = chat_slots_grow(ix);
	if (r != 0)
		return r;
	slot = chat_slot(ix->chat_slots, ix->n_chat_slots, ix->chats, id);
	if (!*slot) {
		r = index_grow(ix, &ix->chats, sizeof(*ix->chats), (size_t)ix->n_chats + 1, &cap);
		if (r != 0)
			return r;
		ix->cap_chats = (uint32_t)cap;
		ix->chats[ix->n_chats++] = (struct index_chat) {.id = id, .last = NO_DOC};
		*slot = ix->n_chats;
	}
	*ret_chat = *slot - 1;
	return 0;
}

/* The last run that does not start after doc; the first if all do. */
static uint32_t run_of(const struct search_index *ix, const struct index_chat *chat, uint32_t doc)
{
	uint32_t low = 0;
	uint32_t high = chat->n_runs;

	while (low + 1 < high) {
		uint32_t mid = low + (high - low) / 2;

		if (is_before(ix, doc, chat->runs[mid].first))
			high = mid;
		else
			low = mid;
	}
	return low;
}

static int run_insert(struct search_index *ix, struct index_chat *chat, uint32_t at,
		      struct posting_run run)
{
	size_t cap = chat->cap_runs;
	int r;

	r = index_grow(ix, &chat->runs, sizeof(*chat->runs), (size_t)chat->n_runs + 1, &cap);
	if (r != 0)
		return r;
	chat->cap_runs = (uint32_t)cap;
	memmove(chat->runs + at + 1, chat->runs + at, (chat->n_runs - at) * sizeof(*chat->runs));
	chat->runs[at] = run;
	chat->n_runs++;
	return 0;
}

/* A full run becomes two. One that grew at the end stays nearly full, since more will follow. */
static int run_split(struct search_index *ix, struct index_chat *chat, uint32_t at, bool at_end)
{
	uint32_t keep = at_end ? RUN_MAX - 1 : RUN_MAX / 2;
	uint32_t doc = chat->runs[at].first;
	int r;

	for (uint32_t i = 0; i < keep; i++)
		doc = ix->links[doc].next;
	r = run_insert(ix, chat, at + 1, (struct posting_run) {doc, chat->runs[at].n - keep});
	if (r == 0)
		chat->runs[at].n = keep;
	return r;
}

static void link_after(struct search_index *ix, struct index_chat *chat, uint32_t prev,
		       uint32_t doc)
{
	uint32_t next = prev == NO_DOC ? chat->runs[0].first : ix->links[prev].next;

	ix->links[doc] = (struct links) {prev, next};
	if (prev != NO_DOC)
		ix->links[prev].next = doc;
	if (next != NO_DOC)
		ix->links[next].prev = doc;
	else
		chat->last = doc;
}

static uint32_t chain_place_of(const struct search_index *ix, const struct index_chat *chat,
			       uint32_t run, uint32_t doc)
{
	uint32_t prev = ix->links[chat->runs[run].first].prev;

	for (uint32_t at = chat->runs[run].first; at != NO_DOC && is_before(ix, at, doc);
	     at = ix->links[at].next)
		prev = at;
	return prev;
}

int chain_insert(struct search_index *ix, uint32_t doc)
{
	struct index_chat *chat;
	uint32_t run;
	uint32_t prev;
	bool at_end;
	int r;

	ix->links[doc] = (struct links) {NO_DOC, NO_DOC};
	if (ix->doc_chats[doc] == 0)
		return 0;
	chat = &ix->chats[ix->doc_chats[doc] - 1];
	if (chat->n_runs == 0) {
		r = run_insert(ix, chat, 0, (struct posting_run) {doc, 1});
		if (r == 0)
			chat->last = doc;
		return r;
	}
	at_end = is_before(ix, chat->last, doc);
	run = at_end ? chat->n_runs - 1 : run_of(ix, chat, doc);
	if (chat->runs[run].n >= RUN_MAX) {
		r = run_split(ix, chat, run, at_end);
		if (r != 0)
			return r;
		run = at_end ? chat->n_runs - 1 : run_of(ix, chat, doc);
	}
	prev = at_end ? chat->last : chain_place_of(ix, chat, run, doc);
	link_after(ix, chat, prev, doc);
	if (is_before(ix, doc, chat->runs[run].first))
		chat->runs[run].first = doc;
	chat->runs[run].n++;
	return 0;
}

void chain_remove(struct search_index *ix, uint32_t doc)
{
	struct links links = ix->links[doc];
	struct index_chat *chat;
	uint32_t at;

	if (ix->doc_chats[doc] == 0)
		return;
	chat = &ix->chats[ix->doc_chats[doc] - 1];
	at = run_of(ix, chat, doc);
	chat->runs[at].n--;
	if (chat->runs[at].first == doc)
		chat->runs[at].first = links.next;
	if (chat->runs[at].n == 0) {
		chat->n_runs--;
		memmove(chat->runs + at, chat->runs + at + 1,
			(chat->n_runs - at) * sizeof(*chat->runs));
	}
	if (links.prev != NO_DOC)
		ix->links[links.prev].next = links.next;
	if (links.next != NO_DOC)
		ix->links[links.next].prev = links.prev;
	else
		chat->last = links.prev;
	ix->links[doc] = (struct links) {NO_DOC, NO_DOC};
}
