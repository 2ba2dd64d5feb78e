/* koine status: daemon.status for people. */
#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/daemon/daemon.h"
#include "cli/kit/call.h"
#include "cli/kit/list.h"
#include "cli/kit/show.h"
#include "cli/kit/value.h"

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

	if (!text.data)
		return;
	fputs(before, stdout);
	print_text(stdout, text);
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
		puts("none; conversations have no agent");
		return;
	}
	print_member("", agent, "name");
	if (member_is(agent, "kind", "recall")) {
		puts(", which only quotes memories; no model is configured");
		return;
	}
	print_member(" (", agent, "kind");
	puts(")");
}

/* A line for each; most machines have none. */
static void show_servers(const struct show *s, const struct show_row *row)
{
	const struct koine_value *server = member_first(s->thing, row->member);

	for (; server; server = koine_value_next(server)) {
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

int cmd_status(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r;

	if (cli->n_args > 0) {
		complain("status takes no arguments");
		return EX_USAGE;
	}
	r = call_plain(cli, "daemon.status", NULL, &a);
	return r != 0 ? r : call_print_result(cli, a, NULL, print_status);
}

const struct command status_commands[] = {
	{"status", "", "Show the state of koined and its listeners",
	 "Works only with koine's own socket, not with the socket of another dialect.\n",
	 cmd_status, .examples = {"koine status", "koine status --json"}},
	{NULL},
};
