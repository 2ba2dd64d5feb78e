#include "cli/daemon/daemon.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/child/child.h"
#include "cli/kit/print.h"
#include "cli/kit/value.h"

enum { LOOK_MS = 10000, DO_MS = 150000, SAYS_MAX = 1 << 20, ARGS_MAX = 12 };

static const char unit[] = "koined.service";
static const char *const sockets[] = {"koined.socket", "koined-ash.socket", "koined-hld.socket",
				      "koined-ocg.socket"};

enum { N_SOCKETS = sizeof(sockets) / sizeof(sockets[0]) };

/* "ActiveState=active" */
static bool says(struct text line, const char *name, const char *const *values)
{
	size_t n = strlen(name);

	if (!text_begins(line, text_of(name)) || line.len <= n || line.data[n] != '=')
		return false;
	line = text_skip(line, n + 1);
	for (; *values; values++) {
		if (text_is(line, *values))
			return true;
	}
	return false;
}

#define ANY_OF(...)                                                                                \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static void read_line(struct service *s, struct text line)
{
	long long pid;
	char copy[64];

	snprintf(copy, sizeof(copy), "%.*s", TEXT_ARGS(text_cut(line, sizeof(copy) - 1)));
	s->there |= says(line, "LoadState", ANY_OF("loaded"));
	s->active |= says(line, "ActiveState", ANY_OF("active", "activating", "reloading"));
	s->enabled |= says(line, "UnitFileState", ANY_OF("enabled", "enabled-runtime"));
	if (sscanf(copy, "MainPID=%lld", &pid) == 1)
		s->pid = pid;
}

static bool socket_listens(void)
{
	static const char *const argv[] = {"systemctl",   "--user",  "show",          "-p",
					   "ActiveState", "--value", "koined.socket", NULL};
	CLEANUP(buf_donep) struct buf out;

	buf_init(&out, SAYS_MAX);
	return child_output(argv, false, LOOK_MS, &out) == 0 &&
	       text_begins(buf_text(&out), TEXT("active"));
}

void service_look(const struct cli *cli, struct service *ret)
{
	static const char *const argv[] = {
		"systemctl", "--user", "show", "-p", "LoadState,ActiveState,UnitFileState,MainPID",
		unit,        NULL};
	CLEANUP(buf_donep) struct buf out;
	struct text rest, line;

	*ret = (struct service) {.there = false};
	buf_init(&out, SAYS_MAX);
	if (cli->options.socket || cli->options.url ||
	    child_output(argv, false, LOOK_MS, &out) != 0)
		return;
	rest = buf_text(&out);
	while (text_next(&rest, '\n', &line))
		read_line(ret, line);
	ret->listens = ret->there && socket_listens();
}

int service_do(const char *verb, unsigned units)
{
	const char *argv[ARGS_MAX] = {"systemctl", "--user", verb};
	CLEANUP(buf_donep) struct buf out;
	unsigned n = 3;
	int status;

	for (unsigned i = 0; (units & SERVICE_SOCKETS) && i < N_SOCKETS; i++)
		argv[n++] = sockets[i];
	if (units & SERVICE_UNIT)
		argv[n++] = unit;
	buf_init(&out, SAYS_MAX);
	status = child_output(argv, true, DO_MS, &out);
	if (status == 0)
		return 0;
	complain("systemctl --user %s failed:", verb);
	print_lines(stderr, "  ", buf_text(&out));
	return EX_UNAVAILABLE;
}

int service_print_log(int64_t lines)
{
	char count[32];
	const char *argv[] = {"journalctl", "--user", "--no-pager", "-q", "-u",
			      unit,         "-n",     count,        NULL};
	CLEANUP(buf_donep) struct buf out;
	struct text rest, line;

	snprintf(count, sizeof(count), "%lld", (long long)lines);
	buf_init(&out, SAYS_MAX);
	if (child_output(argv, false, LOOK_MS, &out) != 0)
		return EX_UNAVAILABLE;
	rest = buf_text(&out);
	while (rest.len > 0 && text_next(&rest, '\n', &line)) {
		print_text(stdout, line);
		putchar('\n');
	}
	return 0;
}
