/* Who is asking: two fields that ash's memory methods share with those that koine adds. */
#pragma once

#include "call/method.h"

/* For a struct `in` with who.user_id and who.chat_id. */
#define MEMORY_WHO(in)                                                                             \
	{.name = "user_id",                                                                        \
	 .type = FIELD_STRING,                                                                     \
	 .doc = "User that owns the memories; a call without user, chat and project reads all "    \
		"memories",                                                                        \
	 .offset = offsetof(in, who.user_id)},                                                     \
	{                                                                                          \
		.name = "chat_id", .type = FIELD_STRING, .doc = "Include memories of this chat",   \
		.offset = offsetof(in, who.chat_id)                                                \
	}
