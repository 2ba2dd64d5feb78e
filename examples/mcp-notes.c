/*
 * An MCP server in 60 lines: two tools and a resource.
 *
 *	cc mcp-notes.c -o mcp-notes $(pkg-config --cflags --libs koine)
 *	claude mcp add notes -- "$PWD/mcp-notes"
 */
#include <stdio.h>
#include <string.h>

#include <koine/koine.h>

static char notes[100][500];
static size_t n_notes;

static void add_note(struct koine_call *call, void *mcp)
{
	size_t len;
	const char *text = koine_value_text(koine_call_param(call, "text"), &len);

	if (n_notes == 100 || len >= 500) {
		koine_mcp_refuse(call,
				 "Cannot store this note: it is too long, or 100 notes exist.");
		return;
	}
	memcpy(notes[n_notes++], text, len);
	koine_mcp_updated((struct koine_mcp *)mcp, "notes://all");
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
	const struct koine_mcp_info info = {"notes",           "1.0", NULL, NULL,
					    KOINE_MCP_UPDATES, 0,     0,    NULL};
	const struct koine_field text = {"text", KOINE_TYPE_STRING, true, "Text of the note"};
	struct koine_tool add = {"add_note", add_note, NULL, &text, 1, "Add a note", 0, 0, 0, 0};
	struct koine_tool list = {"list_notes",     show_notes, NULL, NULL, 0,
				  "List all notes", 0,          0,    0,    0};
	struct koine_resource all = {"notes://all", show_notes, NULL, "all", NULL, NULL, NULL};
	struct koine_server *server = NULL;
	struct koine_mcp *mcp = NULL;
	int r = koine_server_new(&server) || koine_mcp_new(server, &info, &mcp);

	add.arg = mcp;
	list.hints = KOINE_TOOL_READ_ONLY;
	r = r || koine_mcp_add_tool(mcp, &add) || koine_mcp_add_tool(mcp, &list) ||
	    koine_mcp_add_resource(mcp, &all) || koine_mcp_stdio(mcp, 0, 1) ||
	    koine_server_run(server);
	if (r && server)
		fprintf(stderr, "notes: %s\n", koine_server_error(server));
	koine_server_free(server);
	return r;
}
