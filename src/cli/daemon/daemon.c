/* koine status, daemon, backup, store and metrics. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "cli/child/child.h"
#include "cli/commands.h"
#include "cli/daemon/daemon.h"
#include "cli/kit/args.h"
#include "cli/kit/call.h"
#include "cli/kit/list.h"
#include "cli/kit/show.h"
#include "cli/kit/talk.h"

/* ---- status ---- */

static void print_uptime(int64_t seconds)
{
	long long days = seconds / 86400;
	long long hours = seconds / 3600 % 24;
	long long minutes = seconds / 60 % 60;

	if (days > 0)
		printf("%lld d %lld h", days, hours);
	else if (hours > 0)
		printf("%lld h %lld min", hours, minutes);
	else if (minutes > 0)
		printf("%lld min %lld s", minutes, (long long)seconds % 60);
	else
		printf("%lld s", (long long)seconds);
}

static void print_member(const char *before, const struct koine_value *v, const char *key)
{
	struct text text = member_text(v, key);

	if (text.data)
		PRINT(stdout, text_of(before), text);
}

static void print_daemon(const struct koine_value *status)
{
	int64_t seconds;

	print_member("koined ", status, "version");
	print_member(", pid ", status, "pid");
	if (koine_value_int(koine_value_get(status, "uptime_seconds"), &seconds)) {
		fputs(", up ", stdout);
		print_uptime(seconds);
	}
	print_member(", ", status, "health");
	fputc('\n', stdout);
}

/* ---- what people ask for ---- */

static void show_agent(const struct show *s, const struct show_row *row)
{
	const struct koine_value *agent = koine_value_get(s->thing, row->member);

	show_label(s, row->label);
	if (koine_value_kind(agent) != KOINE_OBJECT) {
		puts("none (conversations get no responses)");
		return;
	}
	print_member("", agent, "name");
	if (member_is(agent, "kind", "recall")) {
		puts(", which only quotes memories (no model is configured)");
		return;
	}
	print_member(" (", agent, "kind");
	puts(")");
}

/* A line for each; most machines have none. */
static void show_servers(const struct show *s, const struct show_row *row)
{
	for (EACH(server, member_first(s->thing, row->member))) {
		show_label(s, row->label);
		print_member("", server, "name");
		print_member(", ", server, "state");
		if (member_text(server, "text").len > 0)
			print_member(": ", server, "text");
		fputc('\n', stdout);
	}
}

static const char *say_paused(const struct koine_value *tasks)
{
	if (member_flag(tasks, "draining"))
		return ", draining before shutdown";
	if (member_flag(tasks, "paused"))
		return ", paused (resume: koine task resume)";
	return member_first(tasks, "paused_groups")
		       ? ", some groups paused (see: koine task groups)"
		       : "";
}

static void show_tasks(const struct show *s, const struct show_row *row)
{
	const struct koine_value *tasks =
		koine_value_get(koine_value_get(s->thing, row->member), "supervisor");

	show_label(s, row->label);
	printf("%lld running, %lld waiting%s\n", (long long)member_number(tasks, "running"),
	       (long long)member_number(tasks, "queued"),
	       say_paused(koine_value_get(s->thing, "tasks")));
}

static void show_sessions(const struct show *s, const struct show_row *row)
{
	show_label(s, row->label);
	printf("%lld running\n", (long long)member_number(s->thing, row->member));
}

static void show_rules(const struct show *s, const struct show_row *row)
{
	int64_t n = member_number(s->thing, row->member);

	if (n == 0)
		return;
	show_label(s, row->label);
	printf("%lld invalid (see: koine doctor)\n", (long long)n);
}

static void show_approvals(const struct show *s, const struct show_row *row)
{
	int64_t n = member_number(s->thing, row->member);

	show_label(s, row->label);
	printf("%lld pending%s\n", (long long)n, n > 0 ? " (see: koine approvals)" : "");
}

static void show_store(const struct show *s, const struct show_row *row)
{
	const struct koine_value *store = koine_value_get(s->thing, row->member);
	struct text writes = member_string(store, "writes");

	show_label(s, row->label);
	print_member("", store, "path");
	if (member_string(store, "host").data) {
		print_member(", host ", store, "host");
		printf(" of %lld", (long long)member_number(store, "hosts"));
	}
	if (member_string(store, "answers").data && !member_is(store, "answers", "ok"))
		print_member(": no response: ", store, "answers");
	else if (member_string(store, "host").data && !member_flag(store, "lease"))
		printf(": this host has lost its lease");
	if (writes.data && !text_is(writes, "ok"))
		print_member(": not writable: ", store, "writes");
	if (member_is(store, "check", "under way"))
		printf(", check in progress");
	else if (!member_is(store, "check", "ok") && !member_is(store, "check", "not needed"))
		print_member(": ", store, "check");
	fputc('\n', stdout);
}

/* ---- where it listens ---- */

/* The address comes last, since it may have to be cut. */
static int print_listeners(const struct cli *cli, const struct koine_value *listeners)
{
	static const struct column columns[] = {
		{"DIALECT", "dialect"},
		{"CLIENTS", "connections", NULL, 'r'},
		{"CALLS", "calls", NULL, 'r'},
		{"ERRORS", "errors", NULL, 'r'},
		{"DROPPED", "dropped", NULL, 'r'},
		{"ADDRESS", "address"},
		{NULL},
	};

	if (!koine_value_first(listeners))
		return 0;
	fputc('\n', stdout);
	return list_print(cli, columns, listeners);
}

static int print_status(const struct cli *cli, const struct koine_value *status)
{
	static const struct show_row rows[] = {
		{"agent", "agent", show_agent},
		{"server", "agent_servers", show_servers},
		{"tasks", "subsystems", show_tasks},
		{"sessions", "sessions_running", show_sessions},
		{"rules", "rules_invalid", show_rules},
		{"approvals", "approvals_pending", show_approvals},
		{"store", "store", show_store},
		{NULL},
	};
	static const struct show_form form = {.rows = rows, .width = 9, .bold = true};

	print_daemon(status);
	show_print(cli, &form, status);
	return print_listeners(cli, koine_value_get(status, "listeners"));
}

/* ---- log: what the daemon has logged; of one that does not run, what is left of it ---- */

enum { FOLLOW_MS = 300, LINES = 50, LINES_MAX = 1000 };

static void daemon_print_line(const struct cli *cli, const struct koine_value *line)
{
	char shown[TIME_SHOWN];

	if (print_if_json(cli, line))
		return;
	format_time(koine_value_get(line, "time"), shown);
	printf("%s  %-5.*s  ", shown, TEXT_ARGS(member_text(line, "level")));
	PRINT(stdout, member_text(line, "text"), TEXT("\n"));
}

/* Prints the lines after number *last, and advances it. */
static int print_page(struct cli *cli, int64_t limit, int64_t *last)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_json *j = params_new();
	int r;

	params_add_int(j, "after", *last);
	params_add_int(j, "limit", limit);
	r = call_send(cli, "daemon.log", j, &a);
	if (r != 0)
		return r;
	for (EACH(line, member_first(koine_answer_result(a), "lines"))) {
		koine_value_int(koine_value_get(line, "number"), last);
		daemon_print_line(cli, line);
	}
	return fflush(stdout) == 0 ? 0 : EX_IOERR;
}

/* A log that somebody else has kept, for the user's own daemon only. */
static bool print_kept(const struct cli *cli, int64_t lines)
{
	struct service s;

	if (cli->options.socket || cli->options.url)
		return false;
	service_look(cli, &s);
	if (s.there && service_print_log(lines) == 0)
		return true;
	return background_print_log(cli, lines);
}

static int cmd_log(struct cli *cli)
{
	const struct timespec pause = {.tv_nsec = FOLLOW_MS * 1000000L};
	const struct daemon_options *o = cli->own;
	int64_t limit = o->limit ? o->limit : LINES;
	char error[TALK_ERROR];
	int64_t last = 0;
	int r = talk_try(cli, &cli->client, error);

	limit = limit < LINES_MAX ? limit : LINES_MAX;
	if (r == EX_UNAVAILABLE && print_kept(cli, limit))
		return 0;
	if (r != 0) {
		complain("%s", error);
		return r;
	}
	r = print_page(cli, limit, &last);
	while (r == 0 && o->follow) {
		nanosleep(&pause, NULL);
		r = print_page(cli, LINES_MAX, &last);
	}
	return r;
}

/* ---- metrics ---- */

struct metrics_options {
	const char *textfile; /* NULL: stdout */
};

/* The exporter is somebody else, and never finds half of a file. */
static int daemon_write_file(const char *path, struct text text)
{
	int r = file_replace(path, 0644, text.data, text.len);

	if (r == 0)
		return 0;
	return fail_with(EX_CANTCREAT, "cannot write %s: %s", path, strerror(-r));
}

static int print_all(struct text text)
{
	if (fwrite(text.data, 1, text.len, stdout) != text.len || fflush(stdout) != 0)
		return EX_IOERR;
	return 0;
}

static int cmd_metrics(struct cli *cli)
{
	const struct metrics_options *o = cli->own;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *result;
	struct text text;
	int r = request_send(cli, request_begin(cli, NULL), &a);

	if (r != 0)
		return r;
	result = koine_answer_result(a);
	if (cli->options.json && !o->textfile)
		return call_print_result(cli, a, NULL, NULL);
	text = member_string(result, "text");
	if (!text.data)
		return fail_with(EX_PROTOCOL, "the response contains no metrics");
	return o->textfile ? daemon_write_file(o->textfile, text) : print_all(text);
}

static const struct option metrics_options[] = {
	{"--openmetrics", NULL, NULL, "use the OpenMetrics format instead of the Prometheus format",
	 option_flag, .param = "format", .json = {"\"openmetrics\"", "\"prometheus\""}},
	{"--textfile", NULL, "FILE", "write to FILE, replacing it atomically (mode 0644)",
	 option_text, OPTION_AT(struct metrics_options, textfile)},
	{NULL},
};

const struct command metrics_commands[] = {
	{"metrics", "", "Print metrics for Prometheus",
	 "GET /metrics returns the same metrics. Use --textfile for the "
	 "textfile collector of node_exporter.\n",
	 cmd_metrics, NULL, metrics_options, sizeof(struct metrics_options), NO_ARGS,
	 .request = {"daemon.metrics"},
	 .examples = {"koine metrics",
		      "koine metrics --textfile /var/lib/prometheus/node-exporter/koine.prom"}},
	{NULL},
};

/* ---- backup and store: koined runs them, since it has the database ---- */

enum { HOUR_MS = 60 * 60 * 1000 };

/* Its absolute path: the daemon has another working directory. 0 or an exit code; *ret_fits: it is
 * not too long. */
static int make_absolute(const char *file, char path[PATH_MAX], bool *ret_fits)
{
	char folder[PATH_MAX] = "";

	if (file[0] != '/' && !getcwd(folder, sizeof(folder)))
		return fail_with(EX_OSERR, "cannot determine the current directory: %s",
				 strerror(errno));
	*ret_fits =
		snprintf(path, PATH_MAX, "%s%s%s", folder, folder[0] ? "/" : "", file) < PATH_MAX;
	return 0;
}

/* ---- backup ---- */

static int print_backup(const struct cli *cli, const struct koine_value *result)
{
	char path[PATH_MAX];
	bool fits;
	int r = make_absolute(cli->args[0], path, &fits);

	PRINT(stdout, TEXT("Store copied to "), text_of(path), TEXT("\n"));
	return r;
}

static int cmd_backup(struct cli *cli)
{
	struct koine_json *j;
	char path[PATH_MAX];
	bool fits = false;
	int r = make_absolute(cli->args[0], path, &fits);

	if (r != 0)
		return r;
	if (!fits || cli->args[0][0] == '\0')
		return fail_with(EX_USAGE, "invalid path '%s': empty or too long", cli->args[0]);
	/* A large store takes a while. */
	if (cli->options.timeout_ms == 0)
		cli->options.timeout_ms = HOUR_MS;
	j = params_new();
	params_add(j, "path", path);
	return call_print(cli, "store.backup", j, NULL, print_backup);
}

/* ---- adopting one ---- */

/* Returns only if koined cannot be run. */
static int become_koined(const char *const *argv)
{
	char program[PATH_MAX];

	fflush(stdout);
	errno = ENOENT;
	if (koined_find(program))
		execv(program, (char *const *)argv);
	return fail_with(EX_UNAVAILABLE, "cannot run koined: %s", strerror(errno));
}

static int cmd_adopt(struct cli *cli)
{
	char url[PATH_MAX + 8], path[PATH_MAX] = "";
	const char *file = cli->n_args == 1 ? cli->args[0] : NULL;
	const char *argv[] = {"koined", "--adopt", file ? "--store" : NULL, url, NULL};
	bool is_database = file && strncmp(file, "postgresql:", 11) == 0;
	bool fits = true;
	int r = 0;

	if (file)
		r = !file[0]      ? args_refuse(cli)
		    : is_database ? 0
				  : make_absolute(file, path, &fits);
	if (r != 0)
		return r;
	if (!fits)
		return fail_with(EX_USAGE, "invalid path '%s': too long", file);
	snprintf(url, sizeof(url), "%s%s", is_database ? "" : "sqlite:", is_database ? file : path);
	return become_koined(argv);
}

/* ---- moving one ---- */

static int cmd_move(struct cli *cli)
{
	const char *argv[] = {"koined", "--move", cli->args[0], "--", cli->args[1], NULL};

	return become_koined(argv);
}

static const struct command store_subs[] = {
	{"adopt", "[FILE|URL]", "Take over a store that another user created",
	 "koined does not open a store file that another user owns, because its "
	 "queued tasks would run as you. `koine store adopt` copies the file to one "
	 "that you own. In the copy, tasks are held until `koine task release`, "
	 "schedules are off, and there are no grants or trusted projects. koine "
	 "renames the old file to FILE.theirs. FILE defaults to koined's store. Stop "
	 "koined first.\n\nkoined also does not open a PostgreSQL database in which "
	 "another role owns the schema koine. `koine store adopt URL` accepts that "
	 "role for this database on this machine, and holds the queued tasks. That "
	 "role can then run commands as you. Before you adopt a database, stop every "
	 "koined that uses it.\n",
	 cmd_adopt, ARGS(0, 1, "takes at most one FILE or URL"),
	 .examples = {"koine store adopt", "koine store adopt postgresql://anna@db/koine"}},
	{"backup", "FILE", "Back up the store to a new file",
	 "koined writes the file under its own user account, does not overwrite an "
	 "existing file, and keeps serving clients meanwhile.\n",
	 cmd_backup, ARGS(1, 1, "requires one FILE"),
	 .examples = {"koine store backup ~/koine-backup.db",
		      "koine store backup \"koine-$(date +%F).db\""}},
	{"move", "FROM TO", "Copy a store to another database",
	 "FROM and TO are sqlite:PATH or postgresql://..., as for koined --store. TO must be "
	 "empty: a new file, or a database without a store. Stop every koined that uses either "
	 "store first. "
	 "All rows are copied, read back and compared before the copy is used. FROM stays "
	 "unchanged. Run the command again to continue an interrupted move.\n",
	 cmd_move, ARGS(2, 2, "requires FROM and TO"),
	 .examples = {"koine store move sqlite:koine.db postgresql:///koine",
		      "koine store move postgresql:///koine sqlite:copy.db"}},
	{NULL},
};

/* "applied: group.build.parallel (koine.conf:7)" */
static void print_reloaded(const struct koine_value *row)
{
	FILE *out = member_is(row, "state", "invalid") ? stderr : stdout;
	struct text reason = member_text(row, "reason");

	PRINT(out, member_text(row, "state"), TEXT(": "), member_text(row, "key"));
	if (member_number(row, "line") > 0)
		PRINT(out, TEXT(" ("), member_text(row, "file"), TEXT(":"),
		      member_text(row, "line"), TEXT(")"));
	PRINT(out, reason.len > 0 ? TEXT(": ") : TEXT(""), reason, TEXT("\n"));
}

static int cmd_reload(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = call_plain(cli, "daemon.reload", NULL, &a);

	if (r != 0)
		return r;
	call_say(cli, a, TEXT("koined"), "has reloaded its settings");
	for (EACH(row, member_first(koine_answer_result(a), "settings"))) {
		if (!cli->options.json)
			print_reloaded(row);
		if (member_is(row, "state", "invalid"))
			r = EX_CONFIG;
	}
	return r;
}

#define AT(member) OPTION_AT(struct daemon_options, member)

static const struct option log_options[] = {
	{"--lines", "-n", "N", "show the last N lines, at most 1000 (default: 50)", option_number,
	 AT(limit), .min = 1},
	{"--follow", "-f", NULL, "keep printing new lines", option_flag, AT(follow)},
	{NULL},
};

#define DRAIN                                                                                      \
	{                                                                                          \
		"--drain", NULL, "TIME",                                                           \
			"first wait up to TIME until running tasks, sessions and rules have "      \
			"ended (default: no limit)",                                               \
			option_span, AT(drain_ms), .min = 1, .implied = "3650d"                    \
	}

static const struct option restart_options[] = {
	DRAIN,
	{NULL},
};

static const struct option stop_options[] = {
	DRAIN,
	{"--force", NULL, NULL, "do not wait until running tasks, sessions and rules have ended",
	 option_flag, AT(force)},
	{NULL},
};

static const struct command subs[] = {
	{"disable", "", "Stop starting koined at login",
	 "This reverses `koine daemon enable`. A running koined keeps running.\n", cmd_disable,
	 NO_ARGS,
	 .examples = {"koine daemon disable", "koine daemon disable && koine daemon stop"}},
	{"enable", "", "Start koined at login, with this shell's PATH",
	 "The command uses systemd's user manager, and saves this shell's PATH, in "
	 "which koined looks for agents such as claude; run it again after you change "
	 "PATH. Without a user manager, the command prints instructions and exits "
	 "with status 69.\n",
	 cmd_enable, NO_ARGS,
	 .examples = {"koine daemon enable", "PATH=~/bin:$PATH koine daemon enable"}},
	{"log", "", "Show the log of koined",
	 "koined keeps the last thousand lines in memory, and writes all lines to "
	 "stderr: the terminal, the journal (`journalctl --user -u koined`) or "
	 "koined.log in the store's folder. If koined is not running, the command "
	 "shows the end of the journal or koined.log.\n",
	 cmd_log, NULL, log_options, NO_ARGS,
	 .examples = {"koine daemon log -n 200", "koine daemon log -f"}},
	{"reload", "", "Reload the settings",
	 "Changes to agents, rules, policies, notifiers and limits apply at once; changes to "
	 "listeners, the store and other settings apply at the next start. The command prints the "
	 "state of each setting that has changed, or that a flag or the environment overrides. If "
	 "a rule is invalid, koined keeps the previous version of the rule, and the command exits "
	 "with status 78. If any other setting is invalid, no setting changes. Responses in "
	 "progress continue with the agent that started them.\n",
	 cmd_reload, NO_ARGS, .examples = {"koine daemon reload", "koine daemon reload --json"}},
	{"restart", "", "Restart koined",
	 "Listening sockets stay open, and browsers stay signed in to the page. "
	 "koined starts with this shell's environment, unless systemd starts it. With "
	 "--drain, koined first waits until running tasks, sessions and rule commands "
	 "have ended.\n",
	 cmd_restart, NULL, restart_options, NO_ARGS,
	 .examples = {"koine daemon restart", "koine daemon restart --drain=10m"}},
	{"start", "", "Start koined in the background and wait until it is ready",
	 "systemd's user manager starts koined. Without a user manager, koined runs "
	 "as a plain process and logs to koined.log in the store's folder. --timeout "
	 "limits the wait (default 60 s). If koined is already running, the command "
	 "does nothing.\n",
	 cmd_start, NO_ARGS, .examples = {"koine daemon start", "koine daemon start --timeout 10"}},
	{"status", "", "Show the state of koined and its listeners",
	 "The command requires koine's own socket; sockets of other dialects do not "
	 "support it.\n",
	 NO_ARGS, .request = {"daemon.status", .print = print_status},
	 .examples = {"koine daemon status", "koine daemon status --json"}},
	{"stop", "", "Stop koined and wait until it has exited",
	 "With --drain, koined first waits until running tasks, sessions and rule "
	 "commands have ended. --timeout limits the wait (default 60 s).\n",
	 cmd_stop, NULL, stop_options, NO_ARGS,
	 .examples = {"koine daemon stop", "koine daemon stop --drain=10m"}},
	{NULL},
};

const struct command daemon_commands[] = {
	{"daemon", "COMMAND", "Start, stop and configure koined", NULL, NULL, subs, NULL,
	 sizeof(struct daemon_options), .examples = {"koine daemon start", "koine daemon log -f"}},
	{"store", "COMMAND", "Back up, take over or move a store", NULL, NULL, store_subs,
	 .examples = {"koine store backup ~/koine-backup.db", "koine store adopt",
		      "koine store move sqlite:koine.db postgresql:///koine"}},
	{NULL},
};
