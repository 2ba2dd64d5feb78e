/* For the files about conversations in this room. */
#pragma once

#include "store/chat.h"
#include "store/db/query.h"
#include "store/db/rows.h"

/* As store_conversation_kind reads them; what may be long is said by the caller. */
#define CONVERSATION_COLUMNS(system, summary)                                                      \
	"c.seq, c.id, c.agent, " system ", c.created_ms, c.updated_ms, " summary ","               \
	" c.summary_tokens, c.summary_turn, c.parent, c.cwd, c.preset, c.write_paths,"             \
	" c.disabled_tools, c.wants_end, c.n_messages, (SELECT count(*) FROM conversation AS k"    \
	" WHERE k.parent = c.id AND k.parent IS NOT NULL AND k.ended_ms IS NULL),"                 \
	" coalesce(c.ended_ms, 0), EXISTS (SELECT 1 FROM turn WHERE conversation = c.seq AND"      \
	" state = 0)"

/* Of what may be long, whether there is one. */
#define CONVERSATION_COLUMNS_SHORT                                                                 \
	CONVERSATION_COLUMNS("CASE WHEN c.system IS NOT NULL THEN '' END",                         \
			     "CASE WHEN c.summary IS NOT NULL THEN '' END")

extern const struct row_kind store_conversation_kind;

/* Runs a change of one row that returns what it changed; -ENOENT when there was none. */
int store_chat_change(struct statement *q);

/* For a column that always has a text. */
static inline struct text store_chat_text(struct text t)
{
	return t.data ? t : TEXT("");
}
