/* Shared by the files about conversations in this folder. */
#pragma once

#include "store/chat.h"
#include "store/db/query.h"
#include "store/db/rows.h"

/* Columns of conversation AS c. After the members come its children that have not been ended,
 * and whether a turn runs. */
#define CONVERSATION_COLUMNS                                                                       \
	"{columns}, (SELECT count(*) FROM conversation AS k WHERE k.parent = c.id AND"             \
	" k.parent IS NOT NULL AND k.ended_ms IS NULL), EXISTS (SELECT 1 FROM turn"                \
	" WHERE conversation = c.seq AND state = 0)"

/* Texts that may be long only say whether there is one. */
#define CONVERSATION_SHORT                                                                         \
	.of = &conversation_portrait, .special = CONVERSATION_LONG,                                \
	.as = "CASE WHEN % IS NOT NULL THEN '' END"

extern const struct row_kind store_conversation_kind;

/* Runs a change of one row that returns what it changed; -ENOENT when there is no such row. */
int store_chat_change(struct statement *q);
