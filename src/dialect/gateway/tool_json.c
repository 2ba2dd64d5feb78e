#include "dialect/gateway/tool_json.h"

#include "wire/json.h"

/* clang-format off */
#define FIELD(name, type, doc) "\"" name "\":{\"type\":\"" type "\",\"description\":\"" doc "\"}"
#define OBJECT(required, fields) \
	"{\"type\":\"object\",\"properties\":{" fields "},\"required\":[" required "]}"

static const struct {
	const char *description;
	const char *schema;
} offers[N_TOOLS] = {
	[TOOL_MEMORY_SEARCH] = {
		"Search memories of all conversations, best match first.",
		OBJECT("\"query\"",
			FIELD("query", "string", "Search query; a full question works best") ","
			FIELD("category", "string", "Category: preference, decision, fact, entity or other") ","
			FIELD("limit", "integer", "Maximum number of memories; default 5") ","
			FIELD("minScore", "number", "Minimum similarity, 0 to 1; default 0.7"))},
	[TOOL_MEMORY_GET] = {
		"Return one memory in full.",
		OBJECT("\"path\"", FIELD("path", "string", "Id of the memory"))},
	[TOOL_MEMORY_STORE] = {
		"Store a memory for later conversations.",
		OBJECT("\"text\"",
			FIELD("text", "string", "Content: one sentence") ","
			FIELD("category", "string", "Category: preference, decision, fact, entity or other") ","
			FIELD("importance", "number", "0 to 1; 0.7"))},
	[TOOL_EXEC] = {
		"Run a command with /bin/sh in the working directory.",
		OBJECT("\"command\"",
			FIELD("command", "string", "Command line") ","
			FIELD("timeout", "integer", "Timeout in seconds, up to 300; default 30") ","
			FIELD("workdir", "string", "Folder to run the command in, inside the working directory"))},
	[TOOL_READ] = {
		"Read a file in the working directory, up to 50 KB.",
		OBJECT("\"path\"",
			FIELD("path", "string", "Path of the file") ","
			FIELD("offset", "integer", "Number of the first line, starting at 1") ","
			FIELD("limit", "integer", "Maximum number of lines"))},
	[TOOL_WRITE] = {
		"Write a file in the working directory; create missing folders.",
		OBJECT("\"path\",\"content\"",
			FIELD("path", "string", "Path of the file") ","
			FIELD("content", "string", "Content of the file") ","
			FIELD("append", "boolean", "Append to the file instead of replacing it"))},
	[TOOL_EDIT] = {
		"Replace a string in a file; the string must occur exactly once.",
		OBJECT("\"path\",\"oldText\",\"newText\"",
			FIELD("path", "string", "Path of the file") ","
			FIELD("oldText", "string", "Text to replace") ","
			FIELD("newText", "string", "New text"))},
};
/* clang-format on */

unsigned tool_json_offer(unsigned bits, struct agent_tool *ret_tools)
{
	unsigned n = 0;

	for (unsigned i = 0; i < N_TOOLS; i++) {
		if (bits & 1U << i)
			ret_tools[n++] = (struct agent_tool) {
				.name = text_of(tool_name((enum tool_id)i)),
				.description = text_of(offers[i].description),
				.schema = text_of(offers[i].schema),
			};
	}
	return n;
}

void tool_json_result(struct buf *out, struct text tool, const struct tool_result *got)
{
	struct json j = json_writer(out);

	json_begin_object(&j);
	json_key(&j, "result");
	if (got->value)
		json_value(&j, got->value);
	else
		json_raw(&j, got->text.data, got->text.len);
	json_member_text(&j, "tool", tool);
	json_member_bool(&j, "success", true);
	json_end_object(&j);
}

void tool_json_error(struct buf *out, struct text tool, const char *text)
{
	struct json j = json_writer(out);

	json_begin_object(&j);
	json_member_str(&j, "error", text);
	json_member_text(&j, "tool", tool);
	json_member_bool(&j, "success", false);
	json_end_object(&j);
}
