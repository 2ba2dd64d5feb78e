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
		"Search what is remembered, across all conversations. Best first.",
		OBJECT("\"query\"",
			FIELD("query", "string", "What to look for") ","
			FIELD("category", "string", "Only preference, decision, fact, entity or other") ","
			FIELD("limit", "integer", "At most so many; 5") ","
			FIELD("minScore", "number", "Least similarity, 0 to 1; 0.7"))},
	[TOOL_MEMORY_GET] = {
		"One memory in full.",
		OBJECT("\"path\"", FIELD("path", "string", "The memory's id"))},
	[TOOL_MEMORY_STORE] = {
		"Remember something for later conversations.",
		OBJECT("\"text\"",
			FIELD("text", "string", "What to remember, in a sentence") ","
			FIELD("category", "string", "Category: preference, decision, fact, entity or other") ","
			FIELD("importance", "number", "0 to 1; 0.7"))},
	[TOOL_EXEC] = {
		"Run a command by /bin/sh in the working folder.",
		OBJECT("\"command\"",
			FIELD("command", "string", "The command") ","
			FIELD("timeout", "integer", "Seconds that it may take; 30, at most 300") ","
			FIELD("workdir", "string", "A folder below the working folder"))},
	[TOOL_READ] = {
		"Read a file of the working folder, up to 50 KB.",
		OBJECT("\"path\"",
			FIELD("path", "string", "The file") ","
			FIELD("offset", "integer", "The first line, counted from 1") ","
			FIELD("limit", "integer", "At most so many lines"))},
	[TOOL_WRITE] = {
		"Write a file of the working folder, and the folders that lead to it.",
		OBJECT("\"path\",\"content\"",
			FIELD("path", "string", "The file") ","
			FIELD("content", "string", "All that it shall hold") ","
			FIELD("append", "boolean", "Add at its end instead"))},
	[TOOL_EDIT] = {
		"Replace a piece of a file, which must occur in it exactly once.",
		OBJECT("\"path\",\"oldText\",\"newText\"",
			FIELD("path", "string", "The file") ","
			FIELD("oldText", "string", "What stands there") ","
			FIELD("newText", "string", "What shall stand there"))},
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
