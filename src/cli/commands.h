/* All tables of commands. The nouns' folders define them, and main lists them. */
#pragma once

#include "cli/kit/cli.h"

extern const struct command approval_commands[];
extern const struct command automation_commands[];
extern const struct command chat_commands[];
extern const struct command connect_commands[];
extern const struct command daemon_commands[];
extern const struct command dialect_commands[];
extern const struct command doctor_commands[];
extern const struct command event_commands[];
extern const struct command host_commands[];
extern const struct command mcp_commands[];
extern const struct command memory_commands[];
extern const struct command metrics_commands[];
extern const struct command page_commands[];
extern const struct command notify_commands[];
extern const struct command project_commands[];
extern const struct command server_commands[];
extern const struct command session_commands[];
extern const struct command status_commands[];
extern const struct command task_commands[];
extern const struct command top_commands[];
