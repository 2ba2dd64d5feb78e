/* koine dialects: where each dialect listens, and whether it does where its own clients look. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/child/child.h"
#include "cli/commands.h"
#include "cli/connect/change.h"
#include "cli/connect/target.h"
#include "cli/daemon/daemon.h"
#include "cli/dialect/ini_edit.h"
#include "cli/kit/call.h"
#include "cli/kit/command.h"
#include "cli/kit/talk.h"
#include "cli/task/task.h"

/* ---- where each dialect listens, where its clients look, and who is there ---- */

/* As koined tells it, by koined --dialects, and by daemon.status if one runs. */
struct places {
	struct koine_doc *doc;       /* of koined --dialects */
	struct koine_answer *status; /* of the daemon that runs; NULL: none does */
};

enum { LOOK_MS = 20000, SAYS_MAX = 1 << 20, WHO_MAX = 160 };

/* ---- looking ---- */

static int ask_koined(struct places *p)
{
	char program[PATH_MAX];
	CLEANUP(buf_donep) struct buf out;

	buf_init(&out, SAYS_MAX);
	if (!koined_find(program))
		return fail_with(EX_UNAVAILABLE, "koined not found in koine's folder or in PATH");
	if (koined_dialects(program, LOOK_MS, &out, &p->doc))
		return 0;
	/* It has said what is wrong with the settings. */
	PRINT(stderr, text_without_newlines(buf_text(&out)), TEXT("\n"));
	return EX_CONFIG;
}

static void ask_running(struct cli *cli, struct places *p)
{
	char error[TALK_ERROR];

	if (talk_try(cli, &cli->client, error) != 0)
		return;
	if (koine_client_call(cli->client, "daemon.status", NULL, &p->status) != 0) {
		koine_answer_free(p->status);
		p->status = NULL;
	}
	talk_hang_up(cli);
}

/* 0 or an exit code; it has complained then. Call places_done in any case. */
static int places_look(struct cli *cli, struct places *p)
{
	int r;

	*p = (struct places) {.doc = NULL};
	r = ask_koined(p);
	if (r == 0)
		ask_running(cli, p);
	return r;
}

static void places_done(struct places *p)
{
	koine_doc_free(p->doc);
	koine_answer_free(p->status);
}

/* The file with the settings, which may not exist. */
static struct text places_config(const struct places *p)
{
	return member_string(koine_doc_root(p->doc), "config");
}

/* A dialect, as koined tells it; NULL: there is none. */
static const struct koine_value *places_find(const struct places *p, const char *dialect)
{
	return member_find(member_first(koine_doc_root(p->doc), "dialects"), "name", dialect);
}

/* ---- one dialect ---- */

/* Addresses where it listens; or would, if none runs. */
struct dialect_commands_walk {
	const struct koine_value *at;
	struct text dialect; /* of the rows of daemon.status; {NULL, 0}: `at` are addresses */
};

static struct dialect_commands_walk walk_begin(const struct places *p, const struct koine_value *d)
{
	if (!p->status)
		return (struct dialect_commands_walk) {.at = member_first(d, "listen")};
	return (struct dialect_commands_walk) {
		.at = member_first(koine_answer_result(p->status), "listeners"),
		.dialect = member_text(d, "name")};
}

static bool walk_next(struct dialect_commands_walk *w, struct text *ret_address)
{
	for (; w->at; w->at = koine_value_next(w->at)) {
		if (w->dialect.data && !text_equal(member_text(w->at, "dialect"), w->dialect))
			continue;
		*ret_address =
			w->dialect.data ? member_text(w->at, "address") : text_of_value(w->at);
		w->at = koine_value_next(w->at);
		return true;
	}
	return false;
}

/* Whether it listens, or would if none runs. */
static bool places_listens(const struct places *p, const struct koine_value *d)
{
	struct dialect_commands_walk w = walk_begin(p, d);
	struct text unused;

	return walk_next(&w, &unused);
}

/* In a project, the end of the path is what its clients know. */
static bool is_original(const struct koine_value *d, struct text address)
{
	struct text place = member_string(d, "original");

	if (!member_flag(d, "in_project"))
		return place.data && text_equal(place, address);
	return address.len > place.len && text_ends(address, place);
}

/*
 * on: where its clients look; own: at a place of ours; elsewhere: where the settings say; moved:
 * it should be where its clients look, but somebody else is there; off.
 */
static const char *state_of(const struct places *p, const struct koine_value *d)
{
	struct text setting = member_string(d, "setting");
	struct dialect_commands_walk w = walk_begin(p, d);
	struct text address;
	bool listens = false;

	while (walk_next(&w, &address)) {
		listens = true;
		if (is_original(d, address))
			return "on";
	}
	if (!listens)
		return "off";
	if (setting.data && text_is(setting, "on") && member_string(d, "original").data)
		return "moved";
	/* One that was switched off may still listen until a restart. */
	if (setting.data && !text_is(setting, "on") && !text_is(setting, "off"))
		return "elsewhere";
	return "own";
}

/* Who is at the place where its clients look. */
static void who_is_there(const struct places *p, const struct koine_value *d, char out[WHO_MAX])
{
	const struct koine_value *o = koine_value_get(d, "occupant");
	int64_t pid = p->status ? member_number(koine_answer_result(p->status), "pid") : 0;

	if (koine_value_kind(o) != KOINE_OBJECT)
		snprintf(out, WHO_MAX, "-");
	else if (pid > 0 && member_number(o, "pid") == pid)
		snprintf(out, WHO_MAX, "this koined");
	else
		member_copy(o, "text", out, WHO_MAX);
}

/* ---- showing ---- */

static enum color state_color(const char *state)
{
	if (strcmp(state, "off") == 0)
		return COLOR_GREY;
	return strcmp(state, "moved") == 0 ? COLOR_YELLOW : COLOR_GREEN;
}

static void add_row(struct cli_table *t, const struct koine_value *d, const char *state,
		    const char *who)
{
	struct text original = member_string(d, "original");

	table_cell(t, member_text(d, "name"));
	table_cell_color(t, text_of(state), state_color(state));
	table_cell(t, original.data ? original : TEXT("-"));
	table_cell_str(t, who);
}

/* A line for each address; what is said of the dialect stands in the first. */
static void add_dialect(struct cli_table *t, const struct places *p, const struct koine_value *d)
{
	struct dialect_commands_walk w = walk_begin(p, d);
	struct text address;
	char who[WHO_MAX];
	unsigned n = 0;

	who_is_there(p, d, who);
	while (walk_next(&w, &address)) {
		if (n++ == 0)
			add_row(t, d, state_of(p, d), who);
		else
			for (unsigned i = 0; i < 4; i++)
				table_cell_str(t, "");
		table_cell(t, address);
	}
	if (n == 0) {
		add_row(t, d, state_of(p, d), who);
		table_cell_str(t, "-");
	}
}

static int print_table(const struct cli *cli, const struct places *p)
{
	static const char *const titles[] = {"DIALECT", "STATE", "USUAL ADDRESS", "USED BY",
					     "LISTENS AT"};
	CLEANUP(table_freep) struct cli_table *t = table_new("lllll");

	for (unsigned i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		table_cell_str(t, titles[i]);
	for (EACH(d, member_first(koine_doc_root(p->doc), "dialects")))
		add_dialect(t, p, d);
	if (!p->status)
		fputs("koined is not running; as a service, it would listen at:\n", stderr);
	return table_print(t, stdout, cli->color);
}

static void write_dialect(struct koine_json *j, const struct places *p, const struct koine_value *d)
{
	struct dialect_commands_walk w = walk_begin(p, d);
	struct text address;
	char who[WHO_MAX];

	who_is_there(p, d, who);
	koine_json_begin_object(j);
	params_add_text(j, "dialect", member_text(d, "name"));
	params_add(j, "state", state_of(p, d));
	params_add_text(j, "setting", member_string(d, "setting"));
	params_add_text(j, "original", member_string(d, "original"));
	params_add(j, "there", strcmp(who, "-") == 0 ? NULL : who);
	(void)params_begin_array(j, "listens");
	while (walk_next(&w, &address))
		koine_json_text_n(j, address.data, address.len);
	koine_json_end_array(j);
	koine_json_end_object(j);
}

static int print_json(const struct places *p)
{
	CLEANUP(json_freep) struct koine_json *j = NULL;
	const char *text;

	if (koine_json_new(&j) != 0)
		return out_of_memory();
	koine_json_begin_array(j);
	for (EACH(d, member_first(koine_doc_root(p->doc), "dialects")))
		write_dialect(j, p, d);
	koine_json_end_array(j);
	text = koine_json_text(j, NULL);
	return text ? (puts(text), 0) : out_of_memory();
}

/* The table, or the same as JSON. An exit code. */
static int places_print(const struct cli *cli, const struct places *p)
{
	return cli->options.json ? print_json(p) : print_table(cli, p);
}

struct dialect_options {
	struct daemon_options daemon; /* a restart has none of its own, but looks at them */
	bool yes;
	bool dry_run;
	bool restart;
};

/* A change to the settings file, on its way. */
struct dialect_commands_change {
	struct places places;
	struct target target;
	struct buf now; /* what the file will hold */
};

/* ---- what is asked for ---- */

static const struct koine_value *need_dialect(const struct places *p, const char *name)
{
	const struct koine_value *d = places_find(p, name);
	struct nearest near;

	if (d)
		return d;
	nearest_init(&near, name);
	for (EACH(other, member_first(koine_doc_root(p->doc), "dialects")))
		nearest_offer(&near, member_text(other, "name"));
	nearest_complain(&near, "dialect", "koine dialects lists them");
	return NULL;
}

static struct ini_key key_of(const char *dialect)
{
	return (struct ini_key) {.section = "listen", .key = dialect};
}

/* "on"; for a dialect of projects, where the socket of the one that we are in is. */
static int value_for(const struct koine_value *d, char value[PATH_MAX])
{
	char project[PATH_MAX];
	struct text socket = member_string(d, "original");
	int n;

	snprintf(value, PATH_MAX, "on");
	if (!member_flag(d, "in_project"))
		return 0;
	if (!task_project_above(".", project))
		return fail_with(
			EX_NOINPUT,
			"%.*s uses a socket in a project folder, but neither this folder nor a "
			"parent contains .aiwg",
			TEXT_ARGS(member_text(d, "name")));
	n = snprintf(value, PATH_MAX, "unix:%s/%.*s", project, TEXT_ARGS(socket));
	return n < PATH_MAX ? 0 : EX_DATAERR;
}

/* ---- one dialect ---- */

static void take_over(struct dialect_commands_change *c, struct buf *out)
{
	buf_done(&c->now);
	c->now = *out;
	buf_init(out, EDIT_FILE_MAX);
}

/* Another project's socket would be given up. */
static int check_free(struct text now, const char *name, const char *value)
{
	if (!now.data || value[0] == 'o' || text_is(now, value) || text_is(now, "off"))
		return 0;
	return fail_with(
		EX_DATAERR,
		"%s already listens for %.*s; run koine dialect disable %s first, or serve "
		"several "
		"projects with koined --project",
		name, TEXT_ARGS(now), name);
}

static int dialect_commands_put(struct dialect_commands_change *c, const char *name,
				const char *value)
{
	CLEANUP(buf_donep) struct buf out;
	struct error error;
	int r;

	buf_init(&out, EDIT_FILE_MAX);
	r = ini_put(buf_text(&c->now), key_of(name), value, &out, &error);
	if (r != 0)
		return target_complain(&c->target, r, &error);
	if (!text_is(ini_get(buf_text(&out), key_of(name)), value))
		return fail_with(EX_DATAERR, "cannot write the setting %s = %s", name, value);
	take_over(c, &out);
	return 0;
}

static int enable_one(struct dialect_commands_change *c, const char *name)
{
	const struct koine_value *d = need_dialect(&c->places, name);
	char value[PATH_MAX];
	int r;

	if (!d)
		return EX_USAGE;
	if (!member_string(d, "original").data)
		return fail_with(
			EX_USAGE,
			"cannot enable %s: this dialect is always on, and has only one address",
			name);
	r = value_for(d, value)
		    ?: check_free(ini_get(buf_text(&c->now), key_of(name)), name, value);
	return r == 0 ? dialect_commands_put(c, name, value) : r;
}

/* What enable did is undone; what still listens then is off. */
static int disable_one(struct dialect_commands_change *c, const char *name)
{
	const struct koine_value *d = need_dialect(&c->places, name);
	CLEANUP(buf_donep) struct buf out;
	struct error error;
	bool undone;
	int r;

	buf_init(&out, EDIT_FILE_MAX);
	if (!d)
		return EX_USAGE;
	if (!member_string(d, "original").data)
		return fail_with(EX_USAGE, "cannot disable %s: koine requires it to control koined",
				 name);
	r = ini_take(buf_text(&c->now), key_of(name), &out, &undone, &error);
	if (r != 0)
		return target_complain(&c->target, r, &error);
	if (undone && !text_is(ini_get(buf_text(&c->now), key_of(name)), "off"))
		take_over(c, &out);
	else if (places_listens(&c->places, d))
		return dialect_commands_put(c, name, "off");
	return 0;
}

/* ---- the file ---- */

/* The home, or else the deepest folder that is there. */
static void find_base(const char *path, char base[PATH_MAX])
{
	const char *home = option_from_environment("HOME");
	size_t n = home ? strlen(home) : 0;
	struct stat st;
	char *slash;

	if (n > 1 && strncmp(path, home, n) == 0 && path[n] == '/') {
		snprintf(base, PATH_MAX, "%s", home);
		return;
	}
	snprintf(base, PATH_MAX, "%s", path);
	while ((slash = strrchr(base, '/')) && slash != base) {
		*slash = '\0';
		if (stat(base, &st) == 0)
			return;
	}
	snprintf(base, PATH_MAX, "/");
}

static int open_file(struct dialect_commands_change *c)
{
	char path[PATH_MAX], base[PATH_MAX];
	struct error error;
	int r;

	snprintf(path, sizeof(path), "%.*s", TEXT_ARGS(places_config(&c->places)));
	find_base(path, base);
	r = target_open(&c->target, path, base, &error);
	if (r != 0)
		return target_complain(&c->target, r, &error);
	buf_add(&c->now, c->target.text.data, c->target.text.len);
	return c->now.err != 0 ? out_of_memory() : 0;
}

/* As it was before the first change; what was made by us alone needs none. */
static bool backs_up(const struct dialect_commands_change *c)
{
	return c->target.exists && !c->target.has_backup &&
	       ini_has_others(buf_text(&c->target.text));
}

static int dialect_commands_write_file(const struct dialect_commands_change *c)
{
	struct text now = buf_text(&c->now);
	struct error error;
	int r = 0;

	if (backs_up(c))
		r = target_back_up(&c->target, &error);
	if (r == 0)
		r = now.len == 0 ? target_remove(&c->target, &error)
				 : target_write(&c->target, now, &error);
	return r == 0 ? 0 : target_complain(&c->target, r, &error);
}

static void say_written(const struct dialect_commands_change *c)
{
	printf("%s %s", c->now.len == 0 ? "removed" : "wrote", c->target.path);
	if (backs_up(c))
		printf(" (backup: %s)", c->target.backup);
	putchar('\n');
}

/* ---- the commands ---- */

static int apply(struct cli *cli, const struct dialect_commands_change *c)
{
	const struct dialect_options *o = cli->own;
	struct places after;
	int r;

	if (o->restart)
		return cmd_restart(cli);
	if (c->places.status) {
		puts("Restart koined to apply the change: koine daemon restart");
		return 0;
	}
	r = places_look(cli, &after) ?: places_print(cli, &after);
	places_done(&after);
	return r;
}

static int carry_on(struct cli *cli, const struct dialect_commands_change *c)
{
	const struct dialect_options *o = cli->own;
	int r = 0;

	if (text_equal(buf_text(&c->now), buf_text(&c->target.text))) {
		puts("Nothing to change.");
		return 0;
	}
	change_print(cli, c->target.path, buf_text(&c->target.text), buf_text(&c->now));
	if (o->dry_run)
		return 0;
	r = o->yes ? 0 : change_ask(cli);
	if (r == 0)
		r = dialect_commands_write_file(c);
	if (r != 0)
		return r;
	say_written(c);
	return apply(cli, c);
}

static int change_all(struct cli *cli,
		      int (*one)(struct dialect_commands_change *c, const char *name))
{
	struct dialect_commands_change c = {.target = {.exists = false}};
	int r;

	buf_init(&c.now, EDIT_FILE_MAX);
	buf_init(&c.target.text, EDIT_FILE_MAX);
	buf_init(&c.target.before, EDIT_FILE_MAX);
	r = places_look(cli, &c.places) ?: open_file(&c);
	for (int i = 0; r == 0 && i < cli->n_args; i++)
		r = one(&c, cli->args[i]);
	if (r == 0)
		r = carry_on(cli, &c);
	places_done(&c.places);
	target_close(&c.target);
	buf_done(&c.now);
	return r;
}

static int cmd_dialect_enable(struct cli *cli)
{
	return change_all(cli, enable_one);
}

static int cmd_dialect_disable(struct cli *cli)
{
	return change_all(cli, disable_one);
}

static int cmd_dialect_list(struct cli *cli)
{
	struct places p;
	int r = places_look(cli, &p) ?: places_print(cli, &p);

	places_done(&p);
	return r;
}

#define AT(member) OPTION_AT(struct dialect_options, member)

static const struct option options[] = {
	{"--yes", "-y", NULL, "write the changes without asking", option_flag, AT(yes)},
	{"--dry-run", "-n", NULL, "show the changes without writing them", option_flag,
	 AT(dry_run)},
	{"--restart", NULL, NULL, "restart koined to apply the change", option_flag, AT(restart)},
	{NULL},
};

static const struct command subs[] = {
	{"disable", "DIALECT...", "Stop serving a protocol",
	 "The command removes the line that `koine dialect enable` wrote. If the "
	 "dialect still listens in the runtime directory or at another address in "
	 "koine.conf, run the command again to turn it off.\n",
	 cmd_dialect_disable, NULL, options, ARGS(1, 16, "requires at least one DIALECT"),
	 .examples = {"koine dialect disable nexus",
		      "koine dialect disable hld ocg --yes --restart"}},
	{"enable", "DIALECT...", "Serve a protocol at its usual address",
	 "The command shows the change, asks for confirmation, and sets DIALECT = on "
	 "in the [listen] section of your koine.conf. If another program listens at "
	 "the usual address, koined uses a free port or only its own socket. For "
	 "aiwg, run the command in a project folder with .aiwg.\n",
	 cmd_dialect_enable, NULL, options, ARGS(1, 16, "requires at least one DIALECT"),
	 .examples = {"koine dialect enable nexus",
		      "koine dialect enable hld ocg --yes --restart"}},
	{"list", "", "List protocols and their addresses",
	 "STATE is on (at the usual address), own (in the runtime directory), elsewhere (at an "
	 "address in koine.conf), moved (another program uses the usual address) or off.\n",
	 cmd_dialect_list, NO_ARGS,
	 .examples = {"koine dialect list", "koine dialect list --json"}},
	{NULL},
};

const struct command dialect_commands[] = {
	{"dialect", "COMMAND [DIALECT]...", "List protocols, and enable or disable them", NULL,
	 NULL, subs, NULL, sizeof(struct dialect_options),
	 .examples = {"koine dialect list", "koine dialect enable nexus"}},
	{NULL},
};
