/*
 * What opencode's server sends: any event and any list. The first byte says which. What is asked has
 * an id that may stand in a path, a session, a tool, and parts that are objects.
 */
#include <ctype.h>

#include "../feed.h"

#include "agent/server/inner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_asked(void *arg, const struct agent_server_ask *ask)
{
	FEED_CHECK(ask->id.len > 3 && ask->id.len <= AGENT_SERVER_ID_MAX);
	for (size_t i = 0; i < ask->id.len; i++)
		FEED_CHECK(isalnum((unsigned char)ask->id.data[i]) || ask->id.data[i] == '_' ||
			   ask->id.data[i] == '-');
	FEED_CHECK(ask->session.len > 0 && ask->tool.len > 0);
	FEED_CHECK(ask->n_parts > 0 && ask->n_parts <= AGENT_SERVER_PARTS_MAX);
	for (unsigned i = 0; i < ask->n_parts; i++) {
		unsigned n = 0;

		FEED_CHECK(ask->parts[i].input->kind == VALUE_OBJECT);
		value_each (v, ask->parts[i].input)
			n += v->key != NULL;
		FEED_CHECK(n == ask->parts[i].input->len);
	}
}

static void on_text(void *arg, struct text t)
{
	FEED_CHECK(t.len == 0 || t.data);
}

static void on_noted(void *arg, const struct agent_server_note *n)
{
	FEED_CHECK(n->session.len > 0 && n->what.len > 0);
}

static const struct agent_server_fns fns = {
	.asked = on_asked, .answered = on_text, .idle = on_text, .noted = on_noted};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct agent_server_sink sink = {.fns = &fns};
	struct text text, folder;
	struct arena arena;
	struct error error;
	char *exact;

	if (size == 0)
		return 0;
	exact = malloc(size);
	FEED_CHECK(exact);
	memcpy(exact, data + 1, size - 1);
	text = (struct text) {.data = exact, .len = size - 1};
	arena_init(&arena, 16 << 20);
	if (data[0] == 'e')
		(void)opencode_server.read_event(&arena, text, &sink, &error);
	else if (data[0] == 'h')
		(void)opencode_server.read_home(&arena, text, &folder, &error);
	else
		(void)opencode_server.read_list(&arena, data[0] & 1, text, TEXT("/p"), &sink,
						&error);
	arena_done(&arena);
	free(exact);
	return 0;
}
