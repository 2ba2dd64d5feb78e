/* For the files about conversations in this room. */
#pragma once

#include "store/chat.h"
#include "store/query.h"

/* Runs a change of one row that returns what it changed; -ENOENT when there was none. */
int store_chat_change(struct statement *q);

/* For a column that always has a text. */
static inline struct text store_chat_text(struct text t)
{
	return t.data ? t : TEXT("");
}
