#include "store/history/extract.h"

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/db/rows.h"

static const char *const kind_names[N_EXTRACT_KINDS] = {"open", "ended", "session"};

/* Both kinds of conversations share their marks: an open one may end. */
static struct text mark_name(enum extract_kind kind)
{
	return kind == EXTRACT_SESSION ? TEXT("session") : TEXT("conversation");
}

/* ---- cursors ---- */

int store_extract_begin(struct connection *c, int64_t now_ms)
{
	QUERY sql = {
		"INSERT INTO extract_cursor (kind, since_ms, ms, seq) VALUES (:kind, :now, :now, 0)"
		" ON CONFLICT (kind) DO NOTHING"};
	int r = 0;

	for (unsigned i = 0; r == 0 && i < N_EXTRACT_KINDS; i++)
		r = query_do(c, &sql, BIND(":kind", text_of(kind_names[i])), BIND(":now", now_ms));
	return r;
}

QUERY next_of[N_EXTRACT_KINDS] = {
	[EXTRACT_OPEN] = {"SELECT s.seq, s.id, NULL, s.updated_ms, m.place, k.since_ms"
			  " FROM extract_cursor AS k CROSS JOIN conversation AS s LEFT JOIN "
			  "extract_mark AS m"
			  " ON m.kind = :marks AND m.source = s.seq"
			  " WHERE k.kind = :kind AND s.ended_ms IS NULL"
			  " AND (s.updated_ms, s.seq) > (k.ms, k.seq) AND s.updated_ms <= :idle"
			  " ORDER BY s.updated_ms, s.seq LIMIT 1"},
	[EXTRACT_ENDED] = {"SELECT s.seq, s.id, NULL, s.ended_ms, m.place, k.since_ms"
			   " FROM extract_cursor AS k CROSS JOIN conversation AS s LEFT JOIN "
			   "extract_mark AS m"
			   " ON m.kind = :marks AND m.source = s.seq"
			   " WHERE k.kind = :kind AND s.ended_ms IS NOT NULL"
			   " AND (s.ended_ms, s.seq) > (k.ms, k.seq) AND s.ended_ms <= :idle"
			   " ORDER BY s.ended_ms, s.seq LIMIT 1"},
	[EXTRACT_SESSION] =
		{"SELECT s.seq, s.id, s.working_dir, s.ended_ms, m.place, k.since_ms"
		 " FROM extract_cursor AS k CROSS JOIN session AS s LEFT JOIN extract_mark AS m"
		 " ON m.kind = :marks AND m.source = s.seq"
		 " WHERE k.kind = :kind AND s.ended_ms > 0"
		 " AND (s.ended_ms, s.seq) > (k.ms, k.seq) AND s.ended_ms <= :idle"
		 " ORDER BY s.ended_ms, s.seq LIMIT 1"},
};

int store_extract_next(struct connection *c, enum extract_kind kind, int64_t idle_ms,
		       struct arena *arena, struct store_extract_source *ret, bool *ret_found)
{
	CLEANUP(query_donep)
	struct statement *q =
		query_open(c, &next_of[kind], BIND(":kind", text_of(kind_names[kind])),
			   BIND(":marks", mark_name(kind)), BIND(":idle", idle_ms));
	int r;

	r = query_next(q, ret_found);
	if (r != 0 || !*ret_found)
		return r;
	*ret = (struct store_extract_source) {
		.kind = kind,
		.seq = query_int(q, 0),
		.id = query_text(q, 1),
		.working_dir = query_text(q, 2),
		.time_ms = query_int(q, 3),
		.mark = query_int(q, 4),
		.since_ms = query_int(q, 5),
	};
	r = query_fault(q) ?: rows_copy_text(arena, &ret->id);
	return r ?: rows_copy_text(arena, &ret->working_dir);
}

/* ---- what was said ---- */

/* The roles and states are the numbers of model/chat.h: a user's message is 0, a running turn too. */
#define SAID_IN_CONVERSATION                                                                       \
	"SELECT t.seq, m.role = 0, t.state = 0, m.created_ms, substr(m.text, 1, :chars),"          \
	" t.asker_user, t.asker_chat, t.asker_chat_type FROM message AS m CROSS JOIN turn AS t"    \
	" WHERE t.seq = m.turn AND m.conversation = :source AND m.turn > :mark"                    \
	" AND t.started_ms >= :since AND m.role < 2 ORDER BY m.turn, m.seq"
#define SAID_IN_SESSION(text)                                                                      \
	"SELECT id, coalesce(role, '') = 'user', 0, created_ms, substr(" text ", 1, :chars),"      \
	" NULL, NULL, NULL FROM session_event WHERE session = :source AND id > :mark"              \
	" AND created_ms >= :since AND type = 0 AND content IS NOT NULL ORDER BY id"

#define SAID(kind, field) COLUMN(struct store_said, kind, field)
static const struct member said_members[] = {
	SAID(INT, mark),  SAID(BOOL, by_user), SAID(BOOL, open), SAID(TIME, time_ms),
	SAID(TEXT, text), SAID(TEXT, user),    SAID(TEXT, chat), SAID(TEXT, chat_type),
};
static const struct schema said_schema = SCHEMA(struct store_said, said_members);

int store_extract_read(struct connection *c, const struct store_extract_source *source,
		       unsigned max_chars, size_t max_bytes, struct arena *arena,
		       struct store_said **ret_rows, unsigned *ret_n)
{
	QUERY in_conversation = {SAID_IN_CONVERSATION, .of = &said_schema};
	QUERY in_session = {SAID_IN_SESSION("CAST(content AS TEXT)"),
			    .postgres = SAID_IN_SESSION("koine_text(content)"), .of = &said_schema};
	bool session = source->kind == EXTRACT_SESSION;
	struct row_list list = {.arena = arena, .max_bytes = max_bytes};
	CLEANUP(query_donep)
	struct statement *q =
		query_open(c, session ? &in_session : &in_conversation,
			   BIND(":source", source->seq), BIND(":mark", source->mark),
			   BIND(":since", source->since_ms), BIND(":chars", max_chars));

	return rows_take_all(q, &list, ret_rows, ret_n);
}

/* ---- one host at a time ---- */

/* A claim is a mark of its own, whose place is the life that has it. */
static struct text claim_name(enum extract_kind kind)
{
	return kind == EXTRACT_SESSION ? TEXT("claim session") : TEXT("claim conversation");
}

static int claim(struct connection *c, const struct store_extract_source *source, int64_t epoch,
		 bool *ret_claimed)
{
	QUERY sql = {
		"INSERT INTO extract_mark (kind, source, place) VALUES (:kind, :source, :epoch)"
		" ON CONFLICT (kind, source) DO UPDATE SET place = excluded.place"
		" WHERE extract_mark.place = excluded.place OR NOT EXISTS (SELECT 1 FROM host"
		" WHERE host.epoch = extract_mark.place AND host.state = 0) RETURNING source"};

	return query_find(c, &sql, ret_claimed, BIND(":kind", claim_name(source->kind)),
			  BIND(":source", source->seq), BIND(":epoch", epoch));
}

/* Somebody else may have read on since it was found. */
static int is_as_found(struct connection *c, const struct store_extract_source *source,
		       bool *ret_is)
{
	QUERY sql = {"SELECT k.seq FROM extract_cursor AS k LEFT JOIN extract_mark AS m"
		     " ON m.kind = :marks AND m.source = :source WHERE k.kind = :kind"
		     " AND (k.ms, k.seq) < (:ms, :source) AND coalesce(m.place, 0) = :place"};

	return query_find(c, &sql, ret_is, BIND(":kind", text_of(kind_names[source->kind])),
			  BIND(":marks", mark_name(source->kind)), BIND(":source", source->seq),
			  BIND(":ms", source->time_ms), BIND(":place", source->mark));
}

int store_extract_claim(struct connection *c, const struct store_extract_source *source,
			int64_t epoch, bool *ret_claimed)
{
	bool claimed = false, is = false, had;
	int r = claim(c, source, epoch, &claimed);

	if (r == 0 && claimed)
		r = is_as_found(c, source, &is);
	if (r == 0 && claimed && !is)
		r = store_extract_release(c, source, epoch, &had);
	if (r == 0)
		*ret_claimed = is;
	return r;
}

int store_extract_release(struct connection *c, const struct store_extract_source *source,
			  int64_t epoch, bool *ret_had)
{
	QUERY sql = {"DELETE FROM extract_mark WHERE kind = :kind"
		     " AND source = :source AND place = :epoch"
		     " RETURNING source"};

	return query_find(c, &sql, ret_had, BIND(":kind", claim_name(source->kind)),
			  BIND(":source", source->seq), BIND(":epoch", epoch));
}

/* ---- how far ---- */

static int set_mark(struct connection *c, const struct store_extract_source *source, int64_t mark)
{
	QUERY sql = {
		"INSERT INTO extract_mark (kind, source, place) VALUES (:kind, :source, :place)"
		" ON CONFLICT (kind, source) DO UPDATE SET place = excluded.place"};

	return query_do(c, &sql, BIND(":kind", mark_name(source->kind)),
			BIND(":source", source->seq), BIND(":place", mark));
}

/* What has ended is not read again. */
static int drop_mark(struct connection *c, const struct store_extract_source *source)
{
	QUERY sql = {"DELETE FROM extract_mark WHERE kind = :kind AND source = :source"};

	return query_do(c, &sql, BIND(":kind", mark_name(source->kind)),
			BIND(":source", source->seq));
}

static int set_cursor(struct connection *c, const struct store_extract_source *source)
{
	QUERY sql = {"UPDATE extract_cursor SET ms = :ms, seq = :seq WHERE kind = :kind"};

	return query_do(c, &sql, BIND(":kind", text_of(kind_names[source->kind])),
			BIND(":ms", source->time_ms), BIND(":seq", source->seq));
}

int store_extract_mark(struct connection *c, const struct store_extract_source *source,
		       int64_t mark, bool done)
{
	bool ended = source->kind != EXTRACT_OPEN;
	int r = done && ended ? drop_mark(c, source) : set_mark(c, source, mark);

	return r != 0 || !done ? r : set_cursor(c, source);
}
