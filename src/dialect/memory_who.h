/* Who is asking: two fields that ash's memory methods share with those that koine adds. */
#pragma once

#include "call/method.h"

/* For a struct `in` with who.user_id and who.chat_id. */
#define MEMORY_WHO(in)                                                                             \
	FIELD_AS("user_id", STRING, in, who.user_id,                                               \
		 "Owner of the memories; calls without user, chat and project read all memories"), \
		FIELD_AS("chat_id", STRING, in, who.chat_id, "Include memories of this chat")
