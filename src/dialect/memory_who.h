/* Who is asking: two fields that ash's memory methods share with those that koine adds. */
#pragma once

#include "call/method.h"

/* For a struct `in` with who.user_id and who.chat_id. */
#define MEMORY_WHO(in)                                                                             \
	{.name = "user_id",                                                                        \
	 .type = FIELD_STRING,                                                                     \
	 .doc = "Whose memories; without user and chat, everybody's",                              \
	 .offset = offsetof(in, who.user_id)},                                                     \
	{                                                                                          \
		.name = "chat_id", .type = FIELD_STRING,                                           \
		.doc = "The chat whose memories count, too", .offset = offsetof(in, who.chat_id)   \
	}
