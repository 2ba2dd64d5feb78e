/* The parameters of chat.stream, and how they become a question to the service. */
#pragma once

#include "call/method.h"
#include "engine/chat/chat.h"

struct chat_in {
	struct text content;
	struct text conversation;
	const struct value *request_id;
	struct text agent;
	const struct value *tools;
	const struct value *tool_results;
	struct {
		struct text user_id;
		struct text chat_id;
	} who;
};

enum { N_CHAT_IN_FIELDS = 8 };
extern const struct field chat_in_fields[N_CHAT_IN_FIELDS];

/* Refuses a bad shape, naming the field. The ask points into `in` and the arena. */
int chat_in_read(const struct chat_in *in, struct arena *a, struct chat_ask *ret_ask,
		 struct why *why);
