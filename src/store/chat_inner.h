/* Shared by the files about conversations in this folder. */
#pragma once

#include "store/chat.h"
#include "store/db/query.h"
#include "store/db/rows.h"
#include "store/db/schema_tally.h"
#include "store/tally.h"

/* What is counted of a kind, but for what came after the mark. */
#define TALLIED(kind, name)                                                                        \
	"coalesce((SELECT sum(n) FROM {tally} WHERE kind = '" kind "' AND name = " name            \
	" AND part = '' AND model = '' AND number = 0), 0)"

#define TALLIED_OPEN     TALLIED("talk", "''")
#define TALLIED_MESSAGES TALLIED("said", "''")
#define TALLIED_CALLS    TALLIED("call", "''")
#define TALLIED_ENDED    TALLIED("ended", "''")
#define TALLIED_ENDED_AS TALLIED("ended_as", ":id")
#define TALLIED_CHILDREN TALLIED("child", "c.id")

#define CONVERSATION_MARK TALLY_MARK("conversation")
#define CALL_MARK         TALLY_MARK("message_call")

/* Those after the mark; how they ended follows. The + keeps to them: an index by the end would
 * be walked whole. */
#define NEWEST " FROM conversation WHERE seq > " CONVERSATION_MARK " AND +ended_ms"

/* Columns of conversation AS c. After the members come its children that have not been ended,
 * and whether a turn runs. */
#define CONVERSATION_COLUMNS                                                                       \
	"{columns}, " TALLIED_CHILDREN " + (SELECT count(*) FROM conversation AS k WHERE"          \
	" k.seq > " CONVERSATION_MARK " AND k.parent = c.id AND k.parent IS NOT NULL"              \
	" AND k.ended_ms IS NULL), EXISTS (SELECT 1 FROM turn"                                     \
	" WHERE conversation = c.seq AND state = 0)"

/* Texts that may be long only say whether there is one. */
#define CONVERSATION_SHORT                                                                         \
	OF_CONVERSATION, .special = CONVERSATION_LONG, .as = "CASE WHEN % IS NOT NULL THEN '' END"
#define OF_CONVERSATION .of = &conversation_portrait, .beside = store_conversation_beside

int store_conversation_beside(struct statement *q, void *row);
