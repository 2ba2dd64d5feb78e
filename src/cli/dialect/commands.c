/* koine dialects: where each dialect listens, and whether it does where its own clients look. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/connect/change.h"
#include "cli/connect/edit.h"
#include "cli/connect/target.h"
#include "cli/daemon/daemon.h"
#include "cli/dialect/ini_edit.h"
#include "cli/dialect/places.h"
#include "cli/kit/call.h"
#include "cli/kit/nearest.h"
#include "cli/kit/options.h"
#include "cli/kit/print.h"
#include "cli/kit/value.h"
#include "cli/task/task.h"

struct dialect_options {
	struct daemon_options daemon; /* a restart has none of its own, but looks at them */
	bool yes;
	bool dry_run;
	bool restart;
};

/* A change to the settings file, on its way. */
struct change {
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
	d = member_first(koine_doc_root(p->doc), "dialects");
	for (; d; d = koine_value_next(d))
		nearest_offer(&near, member_text(d, "name"));
	if (near.name[0])
		complain("unknown dialect '%s'; did you mean %s?", name, near.name);
	else
		complain("unknown dialect '%s'; koine dialects lists them", name);
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
	if (!task_project_above(".", project)) {
		complain("%.*s listens in a project folder, but neither this folder nor a parent "
			 "contains .aiwg",
			 TEXT_ARGS(member_text(d, "name")));
		return EX_NOINPUT;
	}
	n = snprintf(value, PATH_MAX, "unix:%s/%.*s", project, TEXT_ARGS(socket));
	return n < PATH_MAX ? 0 : EX_DATAERR;
}

/* ---- one dialect ---- */

static int failed(const struct change *c, int r, const struct why *why)
{
	if (r < 0)
		return out_of_memory();
	complain("%s: %s. The file is unchanged", c->target.path, why->text);
	return r == REFUSE_FORBIDDEN ? EX_NOPERM : EX_DATAERR;
}

static void take_over(struct change *c, struct buf *out)
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
	complain("%s already listens for %.*s; run koine dialects disable %s first, or serve "
		 "several "
		 "projects with koined --project",
		 name, TEXT_ARGS(now), name);
	return EX_DATAERR;
}

static int put(struct change *c, const char *name, const char *value)
{
	CLEANUP(buf_donep) struct buf out;
	struct why why;
	int r;

	buf_init(&out, EDIT_FILE_MAX);
	r = ini_put(buf_text(&c->now), key_of(name), value, &out, &why);
	if (r != 0)
		return failed(c, r, &why);
	if (!text_is(ini_get(buf_text(&out), key_of(name)), value)) {
		complain("cannot write the setting %s = %s", name, value);
		return EX_DATAERR;
	}
	take_over(c, &out);
	return 0;
}

static int enable_one(struct change *c, const char *name)
{
	const struct koine_value *d = need_dialect(&c->places, name);
	char value[PATH_MAX];
	int r;

	if (!d)
		return EX_USAGE;
	if (!member_string(d, "original").data) {
		complain("%s is always enabled, at its only address", name);
		return EX_USAGE;
	}
	r = value_for(d, value);
	if (r == 0)
		r = check_free(ini_get(buf_text(&c->now), key_of(name)), name, value);
	return r == 0 ? put(c, name, value) : r;
}

/* What enable did is undone; what still listens then is off. */
static int disable_one(struct change *c, const char *name)
{
	const struct koine_value *d = need_dialect(&c->places, name);
	CLEANUP(buf_donep) struct buf out;
	struct why why;
	bool undone;
	int r;

	buf_init(&out, EDIT_FILE_MAX);
	if (!d)
		return EX_USAGE;
	if (!member_string(d, "original").data) {
		complain("cannot disable %s: koine requires it to control koined", name);
		return EX_USAGE;
	}
	r = ini_take(buf_text(&c->now), key_of(name), &out, &undone, &why);
	if (r != 0)
		return failed(c, r, &why);
	if (undone && !text_is(ini_get(buf_text(&c->now), key_of(name)), "off"))
		take_over(c, &out);
	else if (places_listens(&c->places, d))
		return put(c, name, "off");
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

static int open_file(struct change *c)
{
	char path[PATH_MAX], base[PATH_MAX];
	struct why why;
	int r;

	snprintf(path, sizeof(path), "%.*s", TEXT_ARGS(places_config(&c->places)));
	find_base(path, base);
	r = target_open(&c->target, path, base, &why);
	if (r != 0)
		return failed(c, r, &why);
	buf_add(&c->now, c->target.text.data, c->target.text.len);
	return c->now.err != 0 ? out_of_memory() : 0;
}

/* As it was before the first change; what was made by us alone needs none. */
static bool backs_up(const struct change *c)
{
	return c->target.exists && !c->target.has_backup &&
	       ini_has_others(buf_text(&c->target.text));
}

static int write_file(const struct change *c)
{
	struct text now = buf_text(&c->now);
	struct why why;
	int r = 0;

	if (backs_up(c))
		r = target_back_up(&c->target, &why);
	if (r == 0)
		r = now.len == 0 ? target_remove(&c->target, &why)
				 : target_write(&c->target, now, &why);
	return r == 0 ? 0 : failed(c, r, &why);
}

static void say_written(const struct change *c)
{
	printf("%s %s", c->now.len == 0 ? "removed" : "wrote", c->target.path);
	if (backs_up(c))
		printf(" (backup: %s)", c->target.backup);
	putchar('\n');
}

/* ---- the commands ---- */

static int apply(struct cli *cli, const struct change *c)
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
	r = places_look(cli, &after);
	if (r == 0)
		r = places_print(cli, &after);
	places_done(&after);
	return r;
}

static int carry_on(struct cli *cli, const struct change *c)
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
		r = write_file(c);
	if (r != 0)
		return r;
	say_written(c);
	return apply(cli, c);
}

static int change_all(struct cli *cli, int (*one)(struct change *c, const char *name))
{
	struct change c = {.target = {.exists = false}};
	int r;

	buf_init(&c.now, EDIT_FILE_MAX);
	buf_init(&c.target.text, EDIT_FILE_MAX);
	buf_init(&c.target.before, EDIT_FILE_MAX);
	r = places_look(cli, &c.places);
	if (r == 0)
		r = open_file(&c);
	for (int i = 0; r == 0 && i < cli->n_args; i++)
		r = one(&c, cli->args[i]);
	if (r == 0)
		r = carry_on(cli, &c);
	places_done(&c.places);
	target_close(&c.target);
	buf_done(&c.now);
	return r;
}

static int cmd_enable_dialects(struct cli *cli)
{
	return change_all(cli, enable_one);
}

static int cmd_disable_dialects(struct cli *cli)
{
	return change_all(cli, disable_one);
}

static int cmd_dialects(struct cli *cli)
{
	struct places p;
	int r = places_look(cli, &p);

	if (r == 0)
		r = places_print(cli, &p);
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
	{"disable", "DIALECT...", "Stop listening for a protocol",
	 "Removes the line that `koine dialects enable` wrote. If the dialect still listens in the "
	 "runtime folder or at another address in koine.conf, run the command again to turn it "
	 "off.\n",
	 cmd_disable_dialects, NULL, options, ARGS(1, 16, "requires at least one DIALECT"),
	 .examples = {"koine dialects disable nexus",
		      "koine dialects disable hld ocg --yes --restart"}},
	{"enable", "DIALECT...", "Listen for a protocol at its usual address",
	 "Shows the change, asks for confirmation, and writes DIALECT = on into [listen] of your "
	 "koine.conf. If another program listens at the usual address, koined uses a free port or "
	 "only its own socket. For aiwg, run the command in a project folder with .aiwg.\n",
	 cmd_enable_dialects, NULL, options, ARGS(1, 16, "requires at least one DIALECT"),
	 .examples = {"koine dialects enable nexus",
		      "koine dialects enable hld ocg --yes --restart"}},
	{NULL},
};

const struct command dialect_commands[] = {
	{"dialects", "[COMMAND]", "List protocols and their addresses",
	 "STATE is on (at the usual address), own (in the runtime folder), elsewhere (at an "
	 "address in koine.conf), moved (another program uses the usual address) or off.\n",
	 cmd_dialects, subs, NULL, sizeof(struct dialect_options),
	 .examples = {"koine dialects", "koine dialects enable nexus"}},
	{NULL},
};
