/* koine connect: puts koine into an agent's own settings, and takes it out again. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/connect/change.h"
#include "cli/connect/plan.h"
#include "cli/child/child.h"
#include "cli/kit/call.h"
#include "cli/kit/command.h"
#include "cli/kit/list.h"
#include "cli/kit/place.h"
#include "cli/kit/talk.h"

struct connect_options {
	const char *project; /* "": none was given */
	bool yes;
	bool dry_run;
	bool undo;
	bool gate;
	bool http;
};

/* ---- bare koine connect: which agents there are, and what is connected ---- */

enum { ROWS_MAX = 16 };

/* What is there of koine. */
enum state { STATE_NO, STATE_PARTLY, STATE_YES, STATE_UNREADABLE };

static const struct {
	const char *word;
	enum color color;
} states[] = {
	[STATE_NO] = {"no", COLOR_NONE},
	[STATE_PARTLY] = {"partly", COLOR_YELLOW},
	[STATE_YES] = {"yes", COLOR_GREEN},
	[STATE_UNREADABLE] = {"unreadable", COLOR_RED},
};

struct connect_commands_seen {
	const struct connect_agent *agent;
	bool has_folder;
	enum state state;
	char reason[256]; /* if it is unreadable */
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

static enum state state_of(const struct connect_plan *p)
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
static enum state look_for_posts(struct cli *cli, const struct connect_agent *agent)
{
	struct connect_plan p = {.agent = agent};
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

static void connect_commands_look(struct cli *cli, const char *project,
				  struct connect_commands_seen *s)
{
	struct connect_plan p = {.agent = s->agent, .project = project};
	char path[PATH_MAX];
	char base[PATH_MAX];

	s->has_folder = place_path(s->agent->folder, path, base) && access(path, F_OK) == 0;
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

static bool find_program(const struct connect_agent *a, char path[PATH_MAX])
{
	for (unsigned i = 0; i < AGENT_PROGRAMS_MAX && a->programs[i]; i++) {
		if (program_find(a->programs[i], path))
			return true;
	}
	return false;
}

/* ---- showing ---- */

static int print_table(const struct cli *cli, const struct connect_commands_seen *seen,
		       const struct probe *probes, unsigned n)
{
	CLEANUP(table_freep) struct cli_table *t = table_new("lllll");
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
		table_cell_color(t, text_of(states[seen[i].state].word),
				 states[seen[i].state].color);
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

static void write_row(struct koine_json *j, const struct connect_commands_seen *s,
		      const struct probe *p)
{
	koine_json_begin_object(j);
	params_add(j, "agent", s->agent->name);
	params_add(j, "title", s->agent->title);
	params_add(j, "program", p->program[0] ? p->program : NULL);
	params_add(j, "version", p->version[0] ? p->version : NULL);
	params_add_bool(j, "folder", s->has_folder);
	params_add(j, "connected", states[s->state].word);
	params_add_bool(j, "measured", s->agent->measured);
	koine_json_end_object(j);
}

static int print_list_json(const struct connect_commands_seen *seen, const struct probe *probes,
			   unsigned n)
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

static int connect_list(struct cli *cli, const char *project)
{
	CLEANUP(freep) struct connect_commands_seen *seen = calloc(ROWS_MAX, sizeof(*seen));
	CLEANUP(freep) struct probe *probes = calloc(ROWS_MAX, sizeof(*probes));
	unsigned n = 0;

	if (!seen || !probes)
		return out_of_memory();
	for (; n < ROWS_MAX && agents[n].name; n++) {
		seen[n].agent = &agents[n];
		(void)find_program(&agents[n], probes[n].program);
		connect_commands_look(cli, project, &seen[n]);
	}
	probe_ask(probes, n);
	return cli->options.json ? print_list_json(seen, probes, n)
				 : print_table(cli, seen, probes, n);
}

/* ---- what is asked for ---- */

/* The project's folder, links followed; project is NULL without --project. 0 or an exit code. */
static int connect_project(const struct connect_options *o, char folder[PATH_MAX], const char **ret)
{
	char home[PATH_MAX];
	struct stat st;

	*ret = NULL;
	if (!o->project)
		return 0;
	if (!realpath(o->project, folder) || stat(folder, &st) != 0 || !S_ISDIR(st.st_mode))
		return fail_with(EX_NOINPUT, "--project %s: %s", o->project,
				 errno != 0 ? strerror(errno) : "not a folder");
	if (getenv("HOME") && realpath(getenv("HOME"), home) && strcmp(home, folder) == 0)
		return fail_with(EX_USAGE,
				 "--project %s is your home directory; omit --project to apply to "
				 "all projects",
				 o->project);
	*ret = folder;
	return 0;
}

static const struct connect_agent *need_agent(const char *name)
{
	const struct connect_agent *a = agent_find(name);
	struct nearest near;

	if (a)
		return a;
	nearest_init(&near, name);
	for (a = agents; a->name; a++)
		nearest_offer(&near, text_of(a->name));
	nearest_complain(&near, "agent", "koine connect --help lists the supported agents");
	return NULL;
}

/* By its program, or by the folder that it makes when it is first used. */
static int need_installed(const struct connect_agent *a)
{
	char path[PATH_MAX] = "settings folder";
	char base[PATH_MAX], program[PATH_MAX];

	if (find_program(a, program))
		return 0;
	if (place_path(a->folder, path, base) && access(path, F_OK) == 0)
		return 0;
	return fail_with(EX_UNAVAILABLE,
			 "%s is not installed: %s is not in PATH, and there is no %s", a->title,
			 a->programs[0], path);
}

/* ---- what is said ---- */

/* What follows "Bearer " is nobody's to read over a shoulder, or in a log. */
static void hide_tokens(struct text t, struct buf *out)
{
	static const char mark[] = "Bearer ";
	const char *at = t.data;
	const char *end = t.data + t.len;

	for (;;) {
		const char *found =
			at < end ? memmem(at, (size_t)(end - at), mark, sizeof(mark) - 1) : NULL;

		buf_add(out, at, (size_t)((found ? found + sizeof(mark) - 1 : end) - at));
		if (!found)
			return;
		buf_add_str(out, "...");
		at = memchr(found, '"', (size_t)(end - found));
		if (!at)
			return;
	}
}

static void add_shown(const struct plan_file *f, struct text t, struct buf *out)
{
	const struct mask mask = {.by = f->row->by, .edits = f->edits, .n_edits = f->n_edits};
	CLEANUP(buf_donep) struct buf masked;

	buf_init(&masked, 2 * EDIT_FILE_MAX);
	mask_text(&mask, t, &masked);
	hide_tokens(buf_text(&masked), out);
	if (masked.err != 0)
		out->err = masked.err;
}

static void print_change(const struct cli *cli, const struct plan_file *f)
{
	CLEANUP(buf_donep) struct buf before;
	CLEANUP(buf_donep) struct buf after;

	buf_init(&before, 2 * EDIT_FILE_MAX);
	buf_init(&after, 2 * EDIT_FILE_MAX);
	add_shown(f, buf_text(&f->target.text), &before);
	add_shown(f, f->removes ? TEXT("") : buf_text(&f->after), &after);
	if (before.err == 0 && after.err == 0)
		change_print(cli, f->target.path, buf_text(&before), buf_text(&after));
	else
		(void)out_of_memory();
}

static bool adds_hook(const struct plan_file *f, const struct edit *e)
{
	return strncmp(e->path, "hooks/", 6) == 0 && e->kind == EDIT_ELEMENT &&
	       !plan_file_has(f, e, 1, true);
}

/* The events of hooks that are not there yet: "PermissionRequest, Stop" */
static unsigned print_events(const struct plan_file *f, const char *before, unsigned n)
{
	for (unsigned i = 0; i < f->n_wanted; i++) {
		if (adds_hook(f, &f->edits[i]))
			printf("%s%s", n++ == 0 ? before : ", ", f->edits[i].path + 6);
	}
	return n;
}

/* One sentence about what follows. */
static void print_summary(const struct connect_plan *p)
{
	unsigned n = 0;

	if (p->undo) {
		printf("This removes koine from the settings of %s:\n\n", p->agent->title);
		return;
	}
	if (plan_has_ours(p))
		printf("This updates the koine entries in the settings of %s", p->agent->title);
	else
		printf("This adds koine mcp to %s as an MCP server (tools for memory, tasks and "
		       "questions to you)",
		       p->agent->title);
	for (unsigned i = 0; i < p->n; i++)
		n = print_events(&p->files[i],
				 plan_has_ours(p) ? ", and adds koine hook as a hook for "
						  : ", and koine hook as a hook for ",
				 n);
	puts(":\n");
}

static void print_changes(const struct cli *cli, const struct connect_plan *p)
{
	print_summary(p);
	for (unsigned i = 0; i < p->n; i++) {
		const struct plan_file *f = &p->files[i];

		if (f->changes)
			print_change(cli, f);
	}
	if (p->files[0].changes && p->trust == TRUST_GIVEN && !p->undo)
		printf("%s runs only hooks that you trust. Each trusted_hash entry marks one of "
		       "koine's hooks as trusted.\n",
		       p->agent->title);
}

/* An agent that starts before koined has no koine, unless koine mcp starts it. */
static bool koined_runs(struct cli *cli)
{
	char error[TALK_ERROR];
	bool runs = talk_try(cli, &cli->client, error) == 0;

	if (runs)
		talk_hang_up(cli);
	return runs;
}

static void say_whether_koined_runs(struct cli *cli, const struct connect_plan *p)
{
	if (p->undo || koined_runs(cli))
		return;
	if (option_means_own_daemon(cli))
		puts("koined is not running. Start it: koine daemon start");
	else
		printf("koined is not running: no answer at %s.\n", cli->address);
}

/* What is left to do by hand; NULL: nothing. */
static const char *note_of(const struct connect_plan *p, bool hooks)
{
	if (p->undo)
		return NULL;
	return hooks && p->trust == TRUST_UNKNOWN ? p->agent->trust_note : p->agent->note;
}

static void say_what_was_done(const struct connect_plan *p)
{
	bool hooks = false;

	for (unsigned i = 0; i < p->n; i++) {
		const struct plan_file *f = &p->files[i];

		if (!f->changes)
			continue;
		printf("%s %s", f->removes ? "removed" : "wrote", f->target.path);
		if (f->backs_up && f->target.exists)
			printf(" (backup: %s)", f->target.backup);
		putchar('\n');
		hooks |= f->has_hooks;
	}
	if (!p->agent->measured)
		printf("These settings follow the documentation of %s; koine's tests do not cover "
		       "them.\n",
		       p->agent->title);
	if (note_of(p, hooks))
		printf("%s\n", note_of(p, hooks));
}

static void connect_commands_write_file(struct koine_json *j, const struct plan_file *f)
{
	koine_json_begin_object(j);
	params_add(j, "path", f->target.path);
	params_add_bool(j, "changed", f->changes);
	if (f->removes)
		params_add_bool(j, "removed", true);
	params_add(j, "backup", f->backs_up && f->target.exists ? f->target.backup : NULL);
	koine_json_end_object(j);
}

static int print_json(struct cli *cli, const struct connect_plan *p, bool written)
{
	CLEANUP(json_freep) struct koine_json *j = params_new();
	bool hooks = false;

	params_add(j, "agent", p->agent->name);
	params_add_bool(j, "changed", plan_changes(p));
	params_add_bool(j, "written", written);
	params_add_bool(j, "measured", p->agent->measured);
	if (!params_begin_array(j, "files"))
		return out_of_memory();
	for (unsigned i = 0; i < p->n; i++) {
		connect_commands_write_file(j, &p->files[i]);
		hooks |= p->files[i].has_hooks;
	}
	koine_json_end_array(j);
	if (p->trust != TRUST_NOT_NEEDED && !p->undo)
		params_add_bool(j, "trusted", p->trust == TRUST_GIVEN);
	if (!p->undo)
		params_add_bool(j, "koined_runs", koined_runs(cli));
	params_add(j, "note", note_of(p, hooks));
	return params_print(j);
}

/* ---- the command ---- */

static int carry_on(struct cli *cli, const struct connect_options *o, struct connect_plan *p)
{
	bool changes = plan_changes(p);
	int r = 0;

	if (!changes && !cli->options.json)
		printf("%s is %s; there is nothing to change.\n", p->agent->title,
		       o->undo ? "not connected" : "already connected");
	if (changes && !cli->options.json)
		print_changes(cli, p);
	if (changes && !o->dry_run) {
		r = o->yes ? 0 : change_ask(cli);
		if (r == 0)
			r = plan_carry_out(p);
		if (r != 0)
			return r;
	}
	if (cli->options.json)
		return print_json(cli, p, changes && !o->dry_run);
	if (changes && !o->dry_run)
		say_what_was_done(p);
	say_whether_koined_runs(cli, p);
	return EX_OK;
}

/* A project's files are shared, and a token is not. */
static int find_door(struct cli *cli, const struct connect_options *o, struct connect_plan *p,
		     struct door *door)
{
	int r;

	if (!o->http || o->undo)
		return 0;
	if (p->project)
		return fail_with(EX_USAGE, "--http cannot be combined with --project: it writes a "
					   "token, which does not "
					   "belong in a project's files");
	if (!p->agent->posts)
		return fail_with(EX_USAGE, "%s does not support HTTP hooks", p->agent->title);
	r = door_find(cli, false, door);
	if (r == 0 && !door->held) {
		complain("--http requires a systemd socket unit that holds koined's port; "
			 "otherwise, "
			 "another user could answer %s while koined is not running. Use command "
			 "hooks "
			 "(koine connect %s), or add the unit that koine-connect(1) describes",
			 p->agent->title, p->agent->name);
		r = EX_UNAVAILABLE;
	}
	if (r == 0)
		p->door = door;
	return r;
}

static int cmd_connect(struct cli *cli)
{
	const struct connect_options *o = cli->own;
	CLEANUP(freep) struct connect_plan *p = calloc(1, sizeof(*p));
	char folder[PATH_MAX];
	struct door door;
	int r;

	if (!p)
		return out_of_memory();
	r = connect_project(o, folder, &p->project);
	if (r != 0)
		return r;
	if (cli->n_args == 0)
		return connect_list(cli, p->project);
	p->agent = need_agent(cli->args[0]);
	if (!p->agent)
		return EX_USAGE;
	if (!p->project && !o->undo)
		r = need_installed(p->agent);
	if (r == 0)
		r = find_door(cli, o, p, &door);
	if (r != 0)
		return r;
	p->gate = o->gate;
	p->undo = o->undo;
	p->starts = true;
	p->asks = !o->undo;
	r = plan_make(cli, p) ?: carry_on(cli, o, p);
	plan_done(p);
	return r;
}

#define AT(member) OPTION_AT(struct connect_options, member)

static const struct option options[] = {
	{"--project", NULL, "DIR",
	 "change the project settings in DIR (default: the current directory) instead "
	 "of your user settings",
	 option_word, AT(project), .implied = "."},
	{"--yes", "-y", NULL, "write the changes without asking", option_flag, AT(yes)},
	{"--dry-run", "-n", NULL, "show the changes without writing them", option_flag,
	 AT(dry_run)},
	{"--undo", NULL, NULL, "remove koine from the settings", option_flag, AT(undo)},
	{"--gate", NULL, NULL,
	 "require approval before every command and edit, not only when the agent asks",
	 option_flag, AT(gate)},
	{"--http", NULL, NULL, "use HTTP hooks with a token instead of hooks that run koine",
	 option_flag, AT(http)},
	{NULL},
};

static const char *word(int i, const char **ret_said)
{
	*ret_said = agents[i].title;
	return agents[i].name;
}

const struct command connect_commands[] = {
	{"connect", "[AGENT]", "Add koine to an agent's settings",
	 "AGENT is claude, codex, gemini, opencode, copilot, cursor, vscode or zed. Without AGENT, "
	 "the command lists installed agents and whether they are connected. `koine connect` adds "
	 "the MCP "
	 "server (memory, tasks, questions) and hooks (approvals), shows the changes and asks "
	 "before it writes. Other parts of the files stay unchanged.\n",
	 cmd_connect, NULL, options, sizeof(struct connect_options),
	 ARGS(0, 1, "takes at most one AGENT"), .completes = COMPLETES_OWN, .word = word,
	 .examples = {"koine connect", "koine connect claude", "koine connect claude --undo"}},
	{NULL},
};
