#include "cli/connect/plan.h"

#define CONFIG          "{XDG_CONFIG_HOME|~/.config}"
#define VSCODE_SETTINGS CONFIG "/Code/User/settings.json"

/* Claude Code, Codex and Gemini CLI have the same groups of hooks. */
#define GROUP(matcher, more)                                                                       \
	"{" matcher "\"hooks\":[{\"type\":\"command\"," more "\"command\":%h,\"timeout\":%t}]}"

#define TOLD "{\"hooks\":[{\"type\":\"command\",\"command\":%n,\"timeout\":%s}]}"

/* Claude Code's hooks by HTTP. The variables are those of a session that koined has started. */
#define POSTED(matcher, headers, time)                                                             \
	"{" matcher "\"hooks\":[{\"type\":\"http\",\"url\":%u,\"headers\":" headers                \
	",\"allowedEnvVars\":[\"KOINE_SESSION_ID\",\"KOINE_RUN_ID\"],\"timeout\":" time "}]}"
#define ASKED(event, match, more)                                                                  \
	{                                                                                          \
		"hooks/" event, GROUP(match, ""), EDIT_ELEMENT, .http = POSTED(match, "%w", "%t"), \
								more                               \
	}
#define NOTED(event)                                                                               \
	{                                                                                          \
		"hooks/" event, TOLD, EDIT_ELEMENT, .http = POSTED("", "%x", "%s")                 \
	}

const struct connect_agent agents[] = {
	{
		.name = "claude",
		.title = "Claude Code",
		.programs = {"claude"},
		.folder = "{CLAUDE_CONFIG_DIR|~/.claude}",
		.measured = true,
		.posts = true,
		.ticks = 1,
		.files = {{.user = "{CLAUDE_CONFIG_DIR|~}/.claude.json",
			   .project = ".mcp.json",
			   .by = &json_editor,
			   .edits = {{"mcpServers/koine",
				      "{\"type\":\"stdio\",\"command\":%c,\"args\":%a}"}},
			   .off = {{"projects/*/disabledMcpServers", "koine", "koine's tools"}}},
			  {.user = "{CLAUDE_CONFIG_DIR|~/.claude}/settings.json",
			   .project = ".claude/settings.json",
			   .by = &json_editor,
			   .edits = {{"permissions/allow", "\"mcp__koine\"", EDIT_ELEMENT},
				     ASKED("PermissionRequest", "\"matcher\":\"*\",",
					   .gate = false),
				     /* Claude Code gives this one to commands alone. */
				     {"hooks/SessionStart", TOLD, EDIT_ELEMENT},
				     NOTED("UserPromptSubmit"),
				     NOTED("PostToolUse"),
				     NOTED("PostToolUseFailure"),
				     NOTED("Stop"),
				     NOTED("SessionEnd"),
				     ASKED("PreToolUse",
					   "\"matcher\":\"Bash|Edit|Write|NotebookEdit|WebFetch\",",
					   .gate = true),
				     ASKED("Elicitation", "", .gate = true)},
			   .off = {{"disableAllHooks", "true", "all hooks"},
				   {"permissions/deny", "mcp__koine", "koine's tools"},
				   {"permissions/deny", "mcp__koine__*", "koine's tools"}}}},
	},
	{
		.name = "codex",
		.title = "Codex",
		.programs = {"codex"},
		.folder = "{CODEX_HOME|~/.codex}",
		.measured = true,
		.cuts_environment = true,
		.ticks = 1,
		.trust = "hooks/state",
		.trust_note =
			"Codex runs a new hook only after you trust it. Start codex, open /hooks, "
			"and trust koine's hooks.",
		.files = {{.user = "{CODEX_HOME|~/.codex}/config.toml",
			   .project = ".codex/config.toml",
			   .by = &toml_editor,
			   .edits = {{"mcp_servers/koine",
				      "{\"command\":%c,\"args\":%a,\"env_vars\":["
				      "\"KOINE_SESSION_ID\",\"KOINE_RUN_ID\",\"KOINE_SOCKET\","
				      "\"XDG_RUNTIME_DIR\"],"
				      "\"default_tools_approval_mode\":\"approve\"}"}},
			   .off = {{"mcp_servers/koine/enabled", "false", "koine's tools"},
				   {"mcp_servers/koine/enabled_tools", "[]", "koine's tools"},
				   {"features/hooks", "false", "all hooks"},
				   {"features/codex_hooks", "false", "all hooks"}}},
			  {.user = "{CODEX_HOME|~/.codex}/hooks.json",
			   .project = ".codex/hooks.json",
			   .by = &json_editor,
			   .edits = {{"hooks/PermissionRequest", GROUP("", ""), EDIT_ELEMENT},
				     {"hooks/PreToolUse",
				      GROUP("\"matcher\":\"Bash|apply_patch\",", ""), EDIT_ELEMENT,
				      .gate = true}}}},
	},
	{
		.name = "gemini",
		.title = "Gemini CLI",
		.programs = {"gemini"},
		.folder = "~/.gemini",
		.measured = true,
		.ticks = 1000,
		.files = {{.user = "~/.gemini/settings.json",
			   .project = ".gemini/settings.json",
			   .by = &jsonc_editor,
			   .edits = {{"mcpServers/koine",
				      "{\"command\":%c,\"args\":%a,\"trust\":true}"},
				     {"hooks/BeforeTool",
				      GROUP("\"matcher\":\"run_shell_command|write_file|replace\",",
					    "\"name\":\"koine\","),
				      EDIT_ELEMENT, .gate = true}},
			   .off = {{"mcp/excluded", "koine", "koine's tools"},
				   {"mcp/allowed", "koine", "koine's tools", .allows = true},
				   {"koine/enabled", "false", "koine's tools",
				    .file = "~/.gemini/mcp-server-enablement.json"},
				   {"hooksConfig/enabled", "false", "all hooks"},
				   {"hooksConfig/disabled", "koine", "koine's hook"}}}},
	},
	{
		.name = "opencode",
		.title = "opencode",
		.programs = {"opencode"},
		.folder = CONFIG "/opencode",
		.measured = true,
		.ticks = 1,
		.note = "koined receives approval requests through opencode's HTTP port. Run "
			"opencode --port 4096, or opencode serve --port 4096. Then add "
			"[agent-server opencode] with url = http://127.0.0.1:4096 to koine.conf(5) "
			"and run koine daemon reload.",
		.files = {{.user = CONFIG "/opencode/opencode.json",
			   .other = CONFIG "/opencode/opencode.jsonc",
			   .project = "opencode.json",
			   .project_other = "opencode.jsonc",
			   .by = &jsonc_editor,
			   .edits = {{"mcp/koine",
				      "{\"type\":\"local\",\"command\":%l,\"enabled\":true}"}},
			   .off = {{"mcp/koine/enabled", "false", "koine's tools"},
				   {"tools/koine*", "false", "koine's tools"},
				   {"tools/koine_*", "false", "koine's tools"},
				   {"permission/koine*", "\"deny\"", "koine's tools"},
				   {"permission/koine_*", "\"deny\"", "koine's tools"}}}},
	},
	{
		.name = "copilot",
		.title = "GitHub Copilot CLI",
		.programs = {"copilot"},
		.folder = "{COPILOT_HOME|~/.copilot}",
		.measured = true,
		.ticks = 1,
		.files = {{.user = "{COPILOT_HOME|~/.copilot}/mcp-config.json",
			   .by = &json_editor,
			   .edits = {{"mcpServers/koine",
				      "{\"type\":\"local\",\"command\":%c,\"args\":%a,"
				      "\"tools\":[\"*\"]}"}},
			   .off = {{"mcpServers/koine/tools", "[]", "koine's tools"},
				   {"mcpServers/koine/disabled", "true", "koine's tools"}}},
			  {.user = "{COPILOT_HOME|~/.copilot}/settings.json",
			   .by = &jsonc_editor,
			   .edits = {{"hooks/preToolUse",
				      "{\"type\":\"command\","
				      "\"matcher\":\"bash|write_bash|create|edit|apply_patch\","
				      "\"bash\":%h,\"timeoutSec\":%t}",
				      EDIT_ELEMENT, .gate = true}},
			   .off = {{"disableAllHooks", "true", "all hooks"},
				   {"disabledMcpServers", "koine", "koine's tools"}}}},
	},
	{
		.name = "cursor",
		.title = "Cursor",
		.programs = {"cursor", "cursor-agent"},
		.folder = "~/.cursor",
		.ticks = 1,
		.files = {{.user = "~/.cursor/mcp.json",
			   .project = ".cursor/mcp.json",
			   .by = &json_editor,
			   .edits = {{"mcpServers/koine", "{\"command\":%c,\"args\":%a}"}}},
			  {.user = "~/.cursor/hooks.json",
			   .project = ".cursor/hooks.json",
			   .by = &json_editor,
			   .edits = {{"version", "1", .gate = true, .stays = true},
				     {"hooks/beforeShellExecution",
				      "{\"command\":%h,\"timeout\":%t}", EDIT_ELEMENT,
				      .gate = true}}}},
	},
	{
		.name = "vscode",
		.title = "Visual Studio Code",
		.programs = {"code"},
		.folder = CONFIG "/Code",
		.ticks = 1,
		.files = {{.user = CONFIG "/Code/User/mcp.json",
			   .project = ".vscode/mcp.json",
			   .by = &jsonc_editor,
			   .edits = {{"servers/koine",
				      "{\"type\":\"stdio\",\"command\":%c,\"args\":%a}"}},
			   .off = {{"chat.disableAIFeatures", "true", "all agents",
				    .file = VSCODE_SETTINGS},
				   {"chat.mcp.access", "\"none\"", "all MCP servers",
				    .file = VSCODE_SETTINGS},
				   {"chat.mcp.enabled", "false", "all MCP servers",
				    .file = VSCODE_SETTINGS}}}},
	},
	{
		.name = "zed",
		.title = "Zed",
		.programs = {"zed", "zeditor"},
		.folder = CONFIG "/zed",
		.ticks = 1,
		.files = {{.user = CONFIG "/zed/settings.json",
			   .by = &jsonc_editor,
			   .edits = {{"context_servers/koine",
				      "{\"command\":%c,\"args\":%a,\"env\":{}}"}},
			   .off = {{"context_servers/koine/enabled", "false", "koine's tools"},
				   {"disable_ai", "true", "all agents"}}}},
	},
	{NULL},
};

const struct connect_agent *agent_find(const char *name)
{
	for (const struct connect_agent *a = agents; a->name; a++) {
		if (strcmp(a->name, name) == 0)
			return a;
	}
	return NULL;
}
