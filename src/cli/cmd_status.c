/* koine status: daemon.status for people. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"

/* The members of a listener, in the order of the table. */
static const struct {
	const char *title;
	const char *member;
} columns[] = {
	{"DIALECT", "dialect"},     {"ADDRESS", "address"}, {"CONNECTIONS", "connections"},
	{"CALLS", "calls"},         {"ERRORS", "errors"},   {"BYTES IN", "bytes_in"},
	{"BYTES OUT", "bytes_out"}, {"DROPPED", "dropped"},
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

static int print_listeners(const struct cli *cli, const struct koine_value *listeners)
{
	CLEANUP(table_freep) struct table *t = table_new("llrrrrrr");
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
		r = print_listeners(cli, koine_value_get(status, "listeners"));
	}
	koine_answer_free(a);
	return r;
}
