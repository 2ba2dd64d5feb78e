/* What agents do in their servers, logged as hooks of other agents log it. */
#include <stdlib.h>

#include "base/arena.h"
#include "engine/bridge/inner.h"
#include "engine/session/note.h"

struct note {
	struct work work;
	struct bridges *all;
	struct arena arena;
	struct hook_note in;
};

static int note_run(struct work *w, int lane)
{
	struct note *n = list_entry(w, struct note, work);
	struct error error;

	return agent_note_add(n->all->opts.events, &n->in, &error);
}

/* It is only a line in the log of events: what cannot be stored is not tried again. */
static void note_finished(struct work *w, int result)
{
	struct note *n = list_entry(w, struct note, work);

	n->all->n_notes--;
	arena_done(&n->arena);
	free(n);
}

static int copy(struct note *n, struct text agent, const struct agent_server_note *from)
{
	const struct {
		struct text from;
		struct text *to;
		size_t max;
	} texts[] = {
		{agent, &n->in.agent, AGENT_NOTE_NAME_MAX},
		{from->what, &n->in.what, AGENT_NOTE_NAME_MAX},
		{from->session, &n->in.session, AGENT_NOTE_NAME_MAX},
		{from->folder, &n->in.folder, AGENT_NOTE_FOLDER_MAX},
		{from->tool, &n->in.tool, AGENT_NOTE_NAME_MAX},
		{from->tool_use_id, &n->in.tool_use_id, AGENT_NOTE_NAME_MAX},
		{from->text, &n->in.text, AGENT_NOTE_TEXT_MAX},
	};
	int r = 0;

	for (unsigned i = 0; r == 0 && i < sizeof(texts) / sizeof(texts[0]); i++)
		r = arena_copy_text(&n->arena, text_cut(texts[i].from, texts[i].max), texts[i].to);
	return r;
}

void bridge_note(struct bridge *m, const struct agent_server_note *note)
{
	struct bridges *all = m->all;
	struct note *n;

	if (all->n_notes == BRIDGE_NOTES_MAX || all->stopping)
		return;
	n = calloc(1, sizeof(*n));
	if (!n)
		return;
	all->n_notes++;
	n->all = all;
	n->work = (struct work) {.run = note_run, .finished = note_finished};
	arena_init(&n->arena, 32 << 10);
	if (copy(n, text_of(m->name), note) != 0)
		note_finished(&n->work, 0);
	else
		workers_start(all->opts.workers, &n->work, true);
}
