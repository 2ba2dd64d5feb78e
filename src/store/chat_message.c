/* Messages of conversations: adding to them, and walking along them. */
#include <errno.h>

#include "base/cleanup.h"
#include "store/chat.h"
#include "store/db/query.h"
#include "store/db/rows.h"
#include "store/tally.h"

/* ---- calls ---- */

/* For a column that is never NULL. */
static struct text whole_text(struct text t)
{
	return t.data ? t : TEXT("");
}

static int add_call(struct connection *c, int64_t message, const struct tool_call *call)
{
	QUERY sql = {"INSERT INTO message_call (message, id, name, arguments)"
		     " VALUES (:message, :id, :name, :arguments)",
		     .key = "seq"};
	int64_t seq;
	int r = query_insert(c, &sql, &seq, BIND(":message", message),
			     BIND(":id", whole_text(call->id)),
			     BIND(":name", whole_text(call->name)),
			     BIND(":arguments", whole_text(call->arguments)));

	return r ?: tally_added(c, TALLY_CALL, seq);
}

static int add_calls(struct connection *c, int64_t message, const struct message *row)
{
	int r = 0;

	for (unsigned i = 0; i < row->n_calls && r == 0; i++)
		r = add_call(c, message, &row->calls[i]);
	return r;
}

/* Reads the calls of row->seq; there are at most row->n_calls. */
static int find_calls(struct connection *c, struct arena *arena, struct message *row)
{
	QUERY sql = {"SELECT id, name, arguments FROM message_call WHERE message = :message"
		     " ORDER BY seq LIMIT :limit"};
	CLEANUP(query_donep)
	struct statement *q =
		query_open(c, &sql, BIND(":message", row->seq), BIND(":limit", row->n_calls));
	struct tool_call *calls;
	unsigned n = 0;
	bool more;
	int r;

	calls = arena_alloc(arena, row->n_calls * sizeof(*calls));
	if (!calls)
		return -ENOMEM;
	while ((r = query_next(q, &more)) == 0 && more) {
		calls[n] =
			(struct tool_call) {query_text(q, 0), query_text(q, 1), query_text(q, 2)};
		r = query_fault(q) ?: tool_call_copy(arena, &calls[n++]);
		if (r != 0)
			return r;
	}
	row->calls = calls;
	row->n_calls = n;
	return r;
}

/* ---- changes ---- */

/* Updates what the conversation keeps about its messages. */
static int count_in(struct connection *c, const struct message *row)
{
	QUERY sql = {"UPDATE conversation SET n_messages = n_messages + 1,"
		     " answered = CASE WHEN :answer THEN 1 ELSE answered END"
		     " WHERE seq = (SELECT conversation FROM turn WHERE seq = :turn)"};

	return query_do(c, &sql, BIND(":answer", row->role == MESSAGE_ASSISTANT),
			BIND(":turn", row->turn));
}

static int chat_message_insert(struct connection *c, const struct message *row, int64_t *ret_seq)
{
	QUERY sql = {
		"INSERT INTO message ({columns}, n_calls, conversation) VALUES ({values}, :n_calls,"
		" (SELECT conversation FROM turn WHERE seq = :turn))",
		.of = &message_schema, .members = {.without = MEMBER_MADE}, .key = "seq"};

	return query_insert(c, &sql, ret_seq, BIND_NOUN(row), BIND(":n_calls", row->n_calls));
}

int store_message_add(struct connection *c, const struct message *row, int64_t *ret_seq)
{
	int64_t seq;
	int r;

	r = chat_message_insert(c, row, &seq) ?: add_calls(c, seq, row) ?: count_in(c, row);
	if (r == 0)
		*ret_seq = seq;
	return r;
}

int store_message_append(struct connection *c, int64_t seq, struct text more, int64_t tokens)
{
	QUERY sql = {"UPDATE message SET tokens = :tokens, text = text || :more WHERE seq = :seq"
		     " RETURNING seq"};

	return query_change(c, &sql, BIND(":seq", seq), BIND(":tokens", tokens),
			    BIND(":more", whole_text(more)));
}

static int set_tokens(struct connection *c, int64_t seq, int64_t tokens, unsigned n_more_calls)
{
	QUERY sql = {
		"UPDATE message SET tokens = :tokens, n_calls = n_calls + :more WHERE seq = :seq"
		" RETURNING seq"};

	return query_change(c, &sql, BIND(":seq", seq), BIND(":tokens", tokens),
			    BIND(":more", n_more_calls));
}

int store_message_finish(struct connection *c, const struct message *row)
{
	int r = set_tokens(c, row->seq, row->tokens, row->n_calls);

	return r != 0 ? r : add_calls(c, row->seq, row);
}

int store_message_set_tokens(struct connection *c, int64_t seq, int64_t tokens)
{
	return set_tokens(c, seq, tokens, 0);
}

/* ---- walks ---- */

int store_message_count(struct connection *c, int64_t conversation, int64_t *ret_n,
			bool *ret_answered)
{
	QUERY sql = {"SELECT n_messages, answered FROM conversation WHERE seq = :seq"};
	int64_t found[2];
	int r = query_find_ints(c, &sql, found, 2, NULL, BIND(":seq", conversation));

	if (r != 0)
		return r;
	*ret_n = found[0];
	*ret_answered = found[1] != 0;
	return 0;
}

static void turn_around(struct turn_weight *weights, unsigned n)
{
	for (unsigned i = 0; i < n / 2; i++) {
		struct turn_weight w = weights[i];

		weights[i] = weights[n - 1 - i];
		weights[n - 1 - i] = w;
	}
}

static bool belongs(const struct turn_weight *newer, unsigned n, int64_t tokens)
{
	return n == 0 || (newer[n - 1].continues && tokens <= TURN_CHAIN_TOKENS);
}

/* Walks from the newest, and reads no further than what fits. */
int store_turn_weights(struct connection *c, int64_t conversation, int64_t after_turn,
		       int64_t max_tokens, struct arena *arena, struct turn_weight **ret_weights,
		       unsigned *ret_n)
{
	QUERY sql = {
		"SELECT turn, sum(tokens), count(*), sum(CASE role WHEN :tool THEN 1 ELSE 0 END)"
		" FROM message WHERE conversation = :conversation AND turn > :after"
		" GROUP BY turn ORDER BY turn DESC"};
	CLEANUP(query_donep)
	struct statement *q = query_open(c, &sql, BIND(":conversation", conversation),
					 BIND(":after", after_turn), BIND(":tool", MESSAGE_TOOL));
	struct turn_weight *weights = NULL;
	unsigned n = 0, cap = 0;
	int64_t total = 0;
	bool chain = true;
	bool more;
	int r;

	while ((r = query_next(q, &more)) == 0 && more) {
		int64_t tokens = query_int(q, 1);

		chain = chain && belongs(weights, n, total + tokens);
		if (!chain && tokens > max_tokens - total)
			break;
		total += tokens;
		weights = rows_grow(arena, weights, n, &cap, sizeof(*weights));
		if (!weights)
			return -ENOMEM;
		weights[n++] = (struct turn_weight) {query_int(q, 0), tokens, query_int(q, 2),
						     query_int(q, 3) > 0};
	}
	if (r != 0)
		return r;
	turn_around(weights, n);
	*ret_weights = weights;
	*ret_n = n;
	return 0;
}

/* Columns of message AS m. After the members come how many calls it has, and its turn's state. */
#define COLUMNS "{columns}, n_calls, (SELECT state FROM turn WHERE seq = m.turn)"

static int read_beside(struct statement *q, void *ret)
{
	struct message *row = ret;
	int column = query_beside(q);

	row->n_calls = (unsigned)query_int(q, column);
	row->turn_state = (enum turn_state)query_enum(q, column + 1, N_TURN_STATES);
	return query_fault(q);
}

#define OF_MESSAGE .of = &message_schema, .beside = read_beside

struct message_list {
	struct row_list rows;
	struct connection *c;
};

static int take_calls(struct row_list *list, void *message)
{
	struct message *row = message;
	int r = row->n_calls > 0 ? find_calls(((struct message_list *)list)->c, list->arena, row)
				 : 0;

	for (unsigned i = 0; r == 0 && i < row->n_calls; i++)
		list->bytes +=
			row->calls[i].id.len + row->calls[i].name.len + row->calls[i].arguments.len;
	return r;
}

static int find_window(struct connection *c, int64_t conversation, int64_t from_turn,
		       int64_t to_turn, struct message_list *list)
{
	QUERY sql = {"SELECT " COLUMNS " FROM message AS m WHERE m.conversation = :conversation"
		     " AND m.turn >= :from AND m.turn <= :to ORDER BY m.turn, m.seq",
		     OF_MESSAGE};
	CLEANUP(query_donep)
	struct statement *q = query_open(c, &sql, BIND(":conversation", conversation),
					 BIND(":from", from_turn), BIND(":to", to_turn));

	return rows_take(q, &list->rows);
}

/* The first row is looked up in the index alone, so that the rows before it are not read. */
static int find_page(struct connection *c, int64_t conversation, int64_t offset, unsigned limit,
		     struct message_list *list)
{
	QUERY sql = {
		"SELECT " COLUMNS " FROM message AS m WHERE m.conversation = :conversation"
		" AND (m.turn, m.seq) >= (SELECT turn, seq FROM message"
		" WHERE conversation = :conversation ORDER BY turn, seq LIMIT 1 OFFSET :offset)"
		" ORDER BY m.turn, m.seq LIMIT :limit",
		OF_MESSAGE};
	CLEANUP(query_donep)
	struct statement *q = query_open(c, &sql, BIND(":conversation", conversation),
					 BIND(":offset", offset), BIND(":limit", limit));

	return rows_take(q, &list->rows);
}

int store_message_window(struct connection *c, int64_t conversation, int64_t from_turn,
			 int64_t to_turn, struct arena *arena, struct message **ret_rows,
			 unsigned *ret_n)
{
	struct message_list a = {.rows = {.arena = arena, .taken = take_calls}, .c = c};
	CLEANUP(query_end_reads) struct reads reads;
	int r = query_begin_reads(c, &reads)
			?: find_window(c, conversation, from_turn, to_turn, &a);

	return rows_give(r, &a.rows, ret_rows, ret_n);
}

int store_message_list(struct connection *c, int64_t conversation, int64_t offset, unsigned limit,
		       size_t max_bytes, struct arena *arena, struct message **ret_rows,
		       unsigned *ret_n, int64_t *ret_total)
{
	struct message_list a = {
		.rows = {.arena = arena, .max_bytes = max_bytes, .taken = take_calls}, .c = c};
	CLEANUP(query_end_reads) struct reads reads;
	bool answered;
	int r = query_begin_reads(c, &reads)
			?: store_message_count(c, conversation, ret_total, &answered)
			?: find_page(c, conversation, offset, limit, &a);

	return rows_give(r, &a.rows, ret_rows, ret_n);
}
