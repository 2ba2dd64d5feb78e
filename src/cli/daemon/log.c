/* koine daemon log: what the daemon has logged; of one that does not run, what is left of it. */
#include <time.h>

#include "base/cleanup.h"
#include "cli/daemon/daemon.h"
#include "cli/kit/call.h"
#include "cli/kit/print.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"

enum { FOLLOW_MS = 300, LINES = 50, LINES_MAX = 1000 };

static void print_line(const struct cli *cli, const struct koine_value *line)
{
	char shown[TIME_SHOWN];

	if (cli->options.json) {
		print_json_compact(stdout, line);
		return;
	}
	format_time(koine_value_get(line, "time"), shown);
	printf("%s  %-5.*s  ", shown, TEXT_ARGS(member_text(line, "level")));
	print_text(stdout, member_text(line, "text"));
	fputc('\n', stdout);
}

/* Prints the lines after number *last, and advances it. */
static int print_page(struct cli *cli, int64_t limit, int64_t *last)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *line;
	struct koine_json *j = params_new();
	int r;

	params_add_int(j, "after", *last);
	params_add_int(j, "limit", limit);
	r = call_send(cli, "daemon.log", j, &a);
	if (r != 0)
		return r;
	line = member_first(koine_answer_result(a), "lines");
	for (; line; line = koine_value_next(line)) {
		koine_value_int(koine_value_get(line, "number"), last);
		print_line(cli, line);
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

int cmd_log(struct cli *cli)
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
