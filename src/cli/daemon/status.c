/* koine status: daemon.status for people. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/kit/cli.h"
#include "cli/kit/glyph.h"
#include "cli/task/task.h"

/* The members of a listener, in the order of the table: what may have to be cut stands last. */
static const struct {
	const char *title;
	const char *member;
} columns[] = {
	{"DIALECT", "dialect"}, {"CLIENTS", "connections"}, {"CALLS", "calls"},
	{"ERRORS", "errors"},   {"DROPPED", "dropped"},     {"ADDRESS", "address"},
};

enum { N_COLUMNS = sizeof(columns) / sizeof(columns[0]) };

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

static void print_member(const char *before, const struct koine_value *v)
{
	size_t len;
	const char *text = koine_value_text(v, &len);

	if (!text)
		return;
	fputs(before, stdout);
	print_text(stdout, text, len);
}

static void print_daemon(const struct koine_value *status)
{
	int64_t seconds;

	print_member("koined ", koine_value_get(status, "version"));
	print_member(", pid ", koine_value_get(status, "pid"));
	if (koine_value_int(koine_value_get(status, "uptime_seconds"), &seconds)) {
		fputs(", up ", stdout);
		print_uptime(seconds);
	}
	print_member(", ", koine_value_get(status, "health"));
	fputc('\n', stdout);
}

/* ---- what people ask for ---- */

static int64_t number_of(const struct koine_value *v, const char *member)
{
	int64_t n = 0;

	koine_value_int(koine_value_get(v, member), &n);
	return n;
}

static void print_label(const struct cli *cli, const char *label)
{
	printf("%s%-9s%s  ", cli->color ? "\033[1m" : "", label, cli->color ? "\033[0m" : "");
}

static void print_agent(const struct cli *cli, const struct koine_value *agent)
{
	print_label(cli, "agent");
	if (koine_value_kind(agent) != KOINE_OBJECT) {
		printf("none: conversations are not answered\n");
		return;
	}
	print_member("", koine_value_get(agent, "name"));
	if (value_is(koine_value_get(agent, "kind"), "recall"))
		printf(", which only quotes: no model is configured\n");
	else {
		print_member(" (", koine_value_get(agent, "kind"));
		printf(")\n");
	}
}

static void print_store(const struct cli *cli, const struct koine_value *store)
{
	const struct koine_value *writes = koine_value_get(store, "writes");
	const struct koine_value *check = koine_value_get(store, "check");
	bool failing = koine_value_kind(writes) == KOINE_STRING && !value_is(writes, "ok");

	print_label(cli, "store");
	print_member("", koine_value_get(store, "path"));
	if (failing)
		print_member(": cannot be written: ", writes);
	if (value_is(check, "under way"))
		printf(", being checked");
	else if (!value_is(check, "ok") && !value_is(check, "not needed"))
		print_member(": ", check);
	fputc('\n', stdout);
}

static void print_work(const struct cli *cli, const struct koine_value *status)
{
	const struct koine_value *tasks =
		koine_value_get(koine_value_get(status, "subsystems"), "supervisor");
	int64_t approvals = number_of(status, "approvals_pending");

	print_agent(cli, koine_value_get(status, "agent"));
	print_label(cli, "tasks");
	printf("%lld running, %lld waiting\n", (long long)number_of(tasks, "running"),
	       (long long)number_of(tasks, "queued"));
	print_label(cli, "sessions");
	printf("%lld running\n", (long long)number_of(status, "sessions_running"));
	print_label(cli, "approvals");
	printf("%lld open%s\n", (long long)approvals, approvals > 0 ? ": koine approvals" : "");
	print_store(cli, koine_value_get(status, "store"));
}

/* ---- where it listens ---- */

static int print_listeners(const struct cli *cli, const struct koine_value *listeners)
{
	CLEANUP(table_freep) struct table *t = table_new("lrrrrl");
	const struct koine_value *row = koine_value_first(listeners);

	if (!row)
		return 0;
	if (!t) {
		complain("out of memory");
		return EX_SOFTWARE;
	}
	for (int i = 0; i < N_COLUMNS; i++)
		table_cell_str(t, columns[i].title);
	for (; row; row = koine_value_next(row)) {
		for (int i = 0; i < N_COLUMNS; i++)
			table_cell_value(t, koine_value_get(row, columns[i].member));
	}
	if (cli->terminal)
		table_fit(t, terminal_columns());
	fputc('\n', stdout);
	return table_print(t, stdout, cli->color);
}

int cmd_status(struct cli *cli)
{
	const struct koine_value *status;
	struct koine_answer *a = NULL;
	int r;

	if (cli->n_args > 0) {
		complain("status takes no arguments");
		return EX_USAGE;
	}
	r = talk_once(cli, "daemon.status", NULL, &a);
	if (r != 0)
		return r;
	status = koine_answer_result(a);
	if (cli->options.json) {
		print_json_compact(stdout, status);
	} else {
		print_daemon(status);
		print_work(cli, status);
		r = print_listeners(cli, koine_value_get(status, "listeners"));
	}
	koine_answer_free(a);
	return r;
}
