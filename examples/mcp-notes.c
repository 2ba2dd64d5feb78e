/*
 * An MCP server of one's own: two tools and a resource.
 *
 *	cc mcp-notes.c -o mcp-notes $(pkg-config --cflags --libs koine)
 *	claude mcp add notes ./mcp-notes
 */
#include <stdio.h>
#include <string.h>

#include <koine/koine.h>

enum { NOTES = 100, NOTE = 500 };

static char notes[NOTES][NOTE];
static size_t n_notes;

static void add_note(struct koine_call *call, void *arg)
{
	size_t len;
	const char *text = koine_value_text(koine_call_param(call, "text"), &len);

	if (n_notes == NOTES || len >= NOTE) {
		koine_mcp_refuse(call, "There is no room for it: make it shorter, or forget one.");
		return;
	}
	memcpy(notes[n_notes++], text, len);
	koine_mcp_updated(arg, "notes://all");
	koine_mcp_text(call, "Noted.");
	koine_call_reply(call);
}

static void show_notes(struct koine_call *call, void *arg)
{
	(void)arg;
	for (size_t i = 0; i < n_notes; i++)
		koine_mcp_text(call, notes[i]);
	koine_call_reply(call);
}

int main(void)
{
	const struct koine_mcp_info info = {"notes",           "1.0", "Notes", "Short notes.",
					    KOINE_MCP_UPDATES, 0,     0,       NULL};
	const struct koine_field fields[] = {{"text", KOINE_TYPE_STRING, true, "What to remember"}};
	struct koine_server *server;
	struct koine_mcp *mcp;
	int r = koine_server_new(&server);

	if (r != 0 || koine_mcp_new(server, &info, &mcp) != 0)
		return 1;
	const struct koine_tool add = {"add_note", add_note, mcp, fields, 1, "Remembers a note"};
	const struct koine_tool list = {"list_notes", show_notes, NULL, NULL, 0, "Shows all notes"};
	const struct koine_resource all = {"notes://all", show_notes, NULL, "all", "All notes"};

	r = koine_mcp_add_tool(mcp, &add) || koine_mcp_add_tool(mcp, &list) ||
	    koine_mcp_add_resource(mcp, &all) || koine_mcp_stdio(mcp, 0, 1);
	if (r == 0)
		koine_server_run(server);
	else
		fprintf(stderr, "notes: %s\n", koine_server_error(server));
	koine_server_free(server);
	return r;
}
