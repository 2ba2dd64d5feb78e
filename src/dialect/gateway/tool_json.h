/* Our tools (engine/program/tool.h) as they are described to models, and their answers as models
 * read them. */
#pragma once

#include "engine/chat/chat.h"
#include "engine/program/tool.h"

/* Describes the tools of the bits (1 << enum tool_id). ret_tools must have room for N_TOOLS. */
unsigned tool_json_offer(unsigned bits, struct agent_tool *ret_tools);

/* {"result":…,"tool":NAME,"success":true}, or {"error":…,"tool":NAME,"success":false}. */
void tool_json_result(struct buf *out, struct text tool, const struct tool_result *got);
void tool_json_error(struct buf *out, struct text tool, const char *words);
