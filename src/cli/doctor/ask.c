/* What is asked once: the daemon at its socket, and koined whether it could start. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "cli/child/child.h"
#include "cli/child/koined.h"
#include "cli/doctor/exam.h"

enum { STATUS_MS = 3000, CHECK_MS = 10000, WORDS_MAX = 4096, PROC_MAX = 4 << 20 };

/* ---- the daemon ---- */

static void look_at_peer(struct exam *e)
{
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);

	if (getsockopt(koine_client_fd(e->cli->client), SOL_SOCKET, SO_PEERCRED, &peer, &len) ==
	    0) {
		e->pid = peer.pid;
		e->uid = peer.uid;
	}
}

/* Whoever serves there is asked no more than koined tells any user that it lets in. */
void exam_ask_daemon(struct exam *e)
{
	struct koine_dial_opts opts = KOINE_DIAL_OPTS;
	struct cli *cli = e->cli;

	if (strncmp(cli->address, "unix:", 5) == 0)
		e->socket = cli->address + 5;
	opts.server_uid = cli->options.server_uid;
	opts.timeout_ms = exam_patience(e, STATUS_MS);
	opts.framing = cli->options.framing;
	opts.error = e->no_answer;
	opts.error_size = sizeof(e->no_answer);
	e->dialled = koine_dial(cli->address, &opts, &cli->client);
	if (e->dialled != 0)
		return;
	if (e->socket)
		look_at_peer(e);
	e->asked = koine_client_call(cli->client, "daemon.status", NULL, &e->answer);
	if (e->asked == 0 && member_text(koine_answer_result(e->answer), "version").data)
		e->status = koine_answer_result(e->answer);
	else
		snprintf(e->no_answer, sizeof(e->no_answer), "%s",
			 e->asked < 0 ? koine_client_error(cli->client) : "");
}

/* ---- koined --check ---- */

static bool read_proc(pid_t pid, const char *name, struct buf *out)
{
	char path[64];
	CLEANUP(closep) int fd = -1;
	ssize_t n = 1;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && n > 0 && buf_reserve(out, 4096) == 0) {
		n = read(fd, out->data + out->len, 4096);
		out->len += n > 0 ? (size_t)n : 0;
	}
	buf_add_char(out, '\0');
	return fd >= 0 && n == 0 && out->len > 1 && out->err == 0;
}

/* What belongs to the daemon's own process and not to how it was started. */
static bool is_for_one_process(const char *word)
{
	static const char *const names[] = {"LISTEN_", "NOTIFY_SOCKET=", "WATCHDOG_"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strncmp(word, names[i], strlen(names[i])) == 0)
			return true;
	}
	return false;
}

/* NUL-ended words, behind those that are already there. */
static unsigned split(struct buf *b, char *words[WORDS_MAX], unsigned n)
{
	for (char *at = b->data; at < b->data + b->len - 1 && n < WORDS_MAX - 2;
	     at += strlen(at) + 1) {
		if (!is_for_one_process(at))
			words[n++] = at;
	}
	words[n] = NULL;
	return n;
}

/* The file that runs, if it is koined and still there. */
static bool is_koined(pid_t pid, char path[PATH_MAX])
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	n = readlink(link, path, PATH_MAX - 1);
	path[n > 0 ? n : 0] = '\0';
	return text_is(text_base_name(text_of(path)), "koined") && access(path, X_OK) == 0;
}

static void hear(struct exam *e, const struct child_opts *opts)
{
	struct child c;
	struct text line;

	if (!child_start(&c, opts))
		return;
	while (child_hear(&c, &line)) {
		buf_add(&e->said, line.data, line.len);
		buf_add_char(&e->said, '\n');
	}
	e->exit_code = child_wait(&c);
	child_end(&c);
}

static void note_settings(struct exam *e)
{
	static const struct text title = TEXT("settings file ");
	struct text rest = {0};
	struct text line;

	if (!exam_next_line(e, &rest, &line) || !text_begins(line, title))
		return;
	line = text_skip(line, title.len);
	if (!text_is(line, "(none)"))
		snprintf(e->settings, sizeof(e->settings), "%.*s", TEXT_ARGS(line));
}

void exam_ask_koined(struct exam *e)
{
	CLEANUP(freep) char **words = calloc(WORDS_MAX, 2 * sizeof(*words));
	CLEANUP(buf_donep) struct buf line;
	CLEANUP(buf_donep) struct buf environment;
	char folder[64];
	struct child_opts opts = {.all = true, .patience_ms = exam_patience(e, CHECK_MS)};
	bool runs = e->status && e->pid == member_number(e->status, "pid") &&
		    is_koined(e->pid, e->koined);
	unsigned n = 1;

	buf_init(&line, PROC_MAX);
	buf_init(&environment, PROC_MAX);
	e->exit_code = -1;
	if (!words || (!runs && !koined_find(e->koined))) {
		e->koined[0] = '\0';
		return;
	}
	if (runs && read_proc(e->pid, "cmdline", &line) &&
	    read_proc(e->pid, "environ", &environment)) {
		n = split(&line, words, 0);
		split(&environment, words + WORDS_MAX, 0);
		opts.env = words + WORDS_MAX;
		snprintf(folder, sizeof(folder), "/proc/%d/cwd", (int)e->pid);
		opts.folder = folder;
	}
	words[0] = e->koined;
	words[n] = (char[]) {"--check"};
	opts.argv = (const char *const *)words;
	hear(e, &opts);
	note_settings(e);
}
