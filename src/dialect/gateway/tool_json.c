#include "dialect/gateway/tool_json.h"

#include "wire/json.h"

#define STRING(doc)  "{\"type\":\"string\",\"description\":\"" doc "\"}"
#define INTEGER(doc) "{\"type\":\"integer\",\"description\":\"" doc "\"}"
#define NUMBER(doc)  "{\"type\":\"number\",\"description\":\"" doc "\"}"
#define BOOLEAN(doc) "{\"type\":\"boolean\",\"description\":\"" doc "\"}"
#define OBJECT(members, required)                                                                  \
	"{\"type\":\"object\",\"properties\":{" members "},\"required\":[" required "]}"

static const struct {
	const char *description;
	const char *schema;
} words[N_TOOLS] = {
	[TOOL_MEMORY_SEARCH] =
		{"Search what is remembered, across all conversations. Best first.",
		 OBJECT("\"query\":" STRING("What to look for") ",\"category\":" STRING(
				"Only "
				"preferenc"
				"e, "
				"decision,"
				" fact, "
				"entity "
				"or other") ",\"limit\":" INTEGER("At most so many; 5") ",\"minScor"
											"e\""
											":" NUMBER(
												"Le"
												"as"
												"t "
												"si"
												"mi"
												"la"
												"ri"
												"ty"
												", "
												"0 "
												"to"
												" 1"
												"; "
												"0."
												"7"),
			"\"query\"")},
	[TOOL_MEMORY_GET] = {"One memory in full.",
			     OBJECT("\"path\":" STRING("The memory's id"), "\"path\"")},
	[TOOL_MEMORY_STORE] =
		{"Remember something for later conversations.",
		 OBJECT("\"text\":" STRING(
				"What to remember, in a sentence") ",\"category\""
								   ":" STRING(
									   "preferen"
									   "ce, "
									   "decision"
									   ", fact, "
									   "entity "
									   "or "
									   "other") ",\"importance"
										    "\":" NUMBER(
											    "0"
											    " "
											    "t"
											    "o"
											    " "
											    "1"
											    ";"
											    " "
											    "0"
											    "."
											    "7"),
			"\"text\"")},
	[TOOL_EXEC] =
		{"Run a command by /bin/sh in the working folder.",
		 OBJECT("\"command\":" STRING("The command") ",\"timeout\":" INTEGER(
				"Seconds that it may take; 30, at most 300") ",\"workdir\""
									     ":" STRING("A folder "
											"below "
											"the "
											"working "
											"folder"),
			"\"command\"")},
	[TOOL_READ] =
		{"Read a file of the working folder, up to 50 KB.",
		 OBJECT("\"path\":" STRING("The file") ",\"offset\":" INTEGER(
				"The first line, counted from 1") ",\"limit\":" INTEGER("At most "
											"so many "
											"lines"),
			"\"path\"")},
	[TOOL_WRITE] =
		{"Write a file of the working folder, and the folders that lead to it.",
		 OBJECT("\"path\":" STRING("The file") ",\"content\":" STRING(
				"All that it shall hold") ",\"append\":" BOOLEAN("Add at its end "
										 "instead"),
			"\"path\",\"content\"")},
	[TOOL_EDIT] = {"Replace a piece of a file, which must occur in it exactly once.",
		       OBJECT("\"path\":" STRING("The file") ",\"oldText\":" STRING(
				      "What stands there") ",\"newText\":" STRING("What shall "
										  "stand there"),
			      "\"path\",\"oldText\",\"newText\"")},
};

unsigned tool_json_offer(unsigned bits, struct agent_tool *ret_tools)
{
	unsigned n = 0;

	for (unsigned i = 0; i < N_TOOLS; i++) {
		if (bits & 1U << i)
			ret_tools[n++] = (struct agent_tool) {
				.name = text_of(tool_name((enum tool_id)i)),
				.description = text_of(words[i].description),
				.schema = text_of(words[i].schema),
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
