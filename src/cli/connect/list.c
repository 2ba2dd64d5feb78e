#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/connect/plan.h"
#include "cli/connect/probe.h"
#include "cli/kit/call.h"
#include "cli/kit/print.h"
#include "cli/kit/table.h"
#include "cli/kit/value.h"

enum { ROWS_MAX = 16 };

/* What is there of koine. */
enum state { STATE_NO, STATE_PARTLY, STATE_YES, STATE_UNREADABLE };

static const char *const state_words[] = {
	[STATE_NO] = "no",
	[STATE_PARTLY] = "partly",
	[STATE_YES] = "yes",
	[STATE_UNREADABLE] = "unreadable",
};

struct seen {
	const struct agent *agent;
	bool has_folder;
	enum state state;
	char why[256]; /* if it is unreadable */
};

/* ---- looking ---- */

static enum state state_of_file(const struct plan_file *f)
{
	if (f->n_wanted == 0)
		return f->has_ours ? STATE_YES : STATE_NO;
	if (!f->changes)
		return STATE_YES;
	return f->has_ours ? STATE_PARTLY : STATE_NO;
}

static enum state state_of(const struct plan *p)
{
	unsigned yes = 0;
	unsigned no = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < p->n; i++) {
		/* Its file is only for --gate. */
		if (p->files[i].n_wanted == 0)
			continue;
		n++;
		yes += state_of_file(&p->files[i]) == STATE_YES;
		no += state_of_file(&p->files[i]) == STATE_NO;
	}
	return yes == n ? STATE_YES : no == n ? STATE_NO : STATE_PARTLY;
}

/* Its hooks may go to koined's port, instead of being commands. */
static enum state look_for_posts(struct cli *cli, const struct agent *agent)
{
	struct plan p = {.agent = agent};
	enum state state = STATE_PARTLY;
	struct door door;

	if (!agent->posts || door_find(cli, true, &door) != 0)
		return state;
	p.door = &door;
	if (plan_make(cli, &p) == 0)
		state = state_of(&p);
	plan_done(&p);
	return state;
}

static void look(struct cli *cli, const char *project, struct seen *s)
{
	struct plan p = {.agent = s->agent, .project = project};
	char path[PATH_MAX];
	char base[PATH_MAX];

	s->has_folder = plan_path(s->agent->folder, path, base) && access(path, F_OK) == 0;
	if (project && !s->agent->files[0].project)
		s->state = STATE_NO;
	else if (plan_make(cli, &p) == 0)
		s->state = state_of(&p);
	else
		s->state = STATE_UNREADABLE;
	plan_done(&p);
	if (s->state == STATE_PARTLY && !project)
		s->state = look_for_posts(cli, s->agent);
}

static void find_program(const struct agent *a, struct probe *p)
{
	for (unsigned i = 0; i < AGENT_PROGRAMS_MAX && a->programs[i]; i++) {
		if (probe_find(p, a->programs[i]))
			return;
	}
}

/* ---- showing ---- */

static enum color state_color(enum state s)
{
	static const enum color colors[] = {
		[STATE_NO] = COLOR_NONE,
		[STATE_PARTLY] = COLOR_YELLOW,
		[STATE_YES] = COLOR_GREEN,
		[STATE_UNREADABLE] = COLOR_RED,
	};

	return colors[s];
}

static int print_table(const struct cli *cli, const struct seen *seen, const struct probe *probes,
		       unsigned n)
{
	CLEANUP(table_freep) struct table *t = table_new("lllll");
	unsigned found = 0;

	for (unsigned i = 0; i < 5; i++)
		table_cell_str(t, (const char *[]) {"AGENT", "NAME", "CONNECTED", "BASED ON",
						    "VERSION"}[i]);
	for (unsigned i = 0; i < n; i++) {
		if (!probes[i].program[0] && !seen[i].has_folder && seen[i].state == STATE_NO)
			continue;
		found++;
		table_cell_str(t, seen[i].agent->name);
		table_cell_str(t, seen[i].agent->title);
		table_cell_color(t, text_of(state_words[seen[i].state]),
				 state_color(seen[i].state));
		table_cell_str(t, seen[i].agent->measured ? "tests" : "documentation");
		table_cell_str(t, probes[i].version[0]   ? probes[i].version
				  : probes[i].program[0] ? "(unknown)"
							 : "(not in PATH)");
	}
	if (found > 0)
		return table_print(t, stdout, cli->color);
	puts("No supported agents found.");
	return EX_OK;
}

static void write_row(struct koine_json *j, const struct seen *s, const struct probe *p)
{
	koine_json_begin_object(j);
	params_add(j, "agent", s->agent->name);
	params_add(j, "title", s->agent->title);
	params_add(j, "program", p->program[0] ? p->program : NULL);
	params_add(j, "version", p->version[0] ? p->version : NULL);
	params_add_bool(j, "folder", s->has_folder);
	params_add(j, "connected", state_words[s->state]);
	params_add_bool(j, "measured", s->agent->measured);
	koine_json_end_object(j);
}

static int print_json(const struct seen *seen, const struct probe *probes, unsigned n)
{
	CLEANUP(json_freep) struct koine_json *j = NULL;
	const char *text;

	if (koine_json_new(&j) != 0)
		return out_of_memory();
	koine_json_begin_array(j);
	for (unsigned i = 0; i < n; i++)
		write_row(j, &seen[i], &probes[i]);
	koine_json_end_array(j);
	text = koine_json_text(j, NULL);
	return text ? (puts(text), EX_OK) : out_of_memory();
}

int connect_list(struct cli *cli, const char *project)
{
	CLEANUP(freep) struct seen *seen = calloc(ROWS_MAX, sizeof(*seen));
	CLEANUP(freep) struct probe *probes = calloc(ROWS_MAX, sizeof(*probes));
	unsigned n = 0;

	if (!seen || !probes)
		return out_of_memory();
	for (; n < ROWS_MAX && agents[n].name; n++) {
		seen[n].agent = &agents[n];
		find_program(&agents[n], &probes[n]);
		look(cli, project, &seen[n]);
	}
	probe_ask(probes, n);
	return cli->options.json ? print_json(seen, probes, n) : print_table(cli, seen, probes, n);
}
