#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "cli/child/child.h"
#include "cli/commands.h"
#include "cli/doctor/exam.h"
#include "cli/kit/call.h"
#include "cli/kit/glyph.h"
#include "cli/kit/print.h"

unsigned exam_patience(const struct exam *e, unsigned ms)
{
	return e->cli->options.timeout_ms ? e->cli->options.timeout_ms : ms;
}

/* ---- findings ---- */

void exam_find(struct exam *e, enum mark mark, const char *format, ...)
{
	struct finding *f = &e->findings[e->n];
	va_list args;

	if (e->n == FINDINGS_MAX)
		return;
	e->n++;
	*f = (struct finding) {.check = e->check, .mark = mark};
	va_start(args, format);
	vsnprintf(f->text, sizeof(f->text), format, args);
	va_end(args);
}

/* The path of the program that a shell would need; NULL if its name is enough. */
static const char *path_of(const struct exam *e, const char *name, char path[PATH_MAX])
{
	const char *own = e->koined;
	struct stat a, b;
	struct probe found;
	if (strcmp(name, "koine") == 0) {
		(void)program_of(0, path);
		own = path;
	}
	if (!own[0] || stat(own, &a) != 0)
		return NULL;
	return program_find(name, found.program) && stat(found.program, &b) == 0 &&
			       a.st_ino == b.st_ino && a.st_dev == b.st_dev
		       ? NULL
		       : own;
}

/* With the socket that was asked about, and with a path where a shell finds no such program, or
 * another. */
static void complete(const struct exam *e, const char *line, char out[MEND_MAX])
{
	const char *socket = e->cli->options.socket;
	const char *rest = strchr(line, ' ') ?: "";
	char name[16];
	char path[PATH_MAX];
	char word[WORD_MAX];
	char before[WORD_MAX + 16] = "";
	const char *program;

	snprintf(name, sizeof(name), "%.*s", (int)(rest - line), line);
	if (strcmp(name, "koine") != 0 && strcmp(name, "koined") != 0) {
		snprintf(out, MEND_MAX, "%s", line);
		return;
	}
	program = path_of(e, name, path);
	if (socket && !strstr(line, " --socket "))
		snprintf(before, sizeof(before), "KOINE_SOCKET=%s ", exam_word(socket, word));
	snprintf(out, MEND_MAX, "%s%s%s", before, program ? exam_word(program, word) : name, rest);
}

void exam_command(struct exam *e, const char *format, ...)
{
	char line[MEND_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	complete(e, line, e->findings[e->n - 1].command);
}

void exam_advise(struct exam *e, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(e->findings[e->n - 1].advice, MEND_MAX, format, args);
	va_end(args);
}

void exam_daemon_command(struct exam *e, const char *verb)
{
	if (option_means_own_daemon(e->cli))
		exam_command(e, "koine daemon %s", verb);
	else
		exam_advise(
			e,
			"%c%s the koined that listens at %s, in the way in which you started it.",
			verb[0] - 'a' + 'A', verb + 1, e->cli->address);
}

static bool exam_is_well(const struct exam *e)
{
	for (unsigned i = 0; i < e->n; i++) {
		if (e->findings[i].mark == MARK_BAD)
			return false;
	}
	return true;
}

/* ---- commands ---- */

const char *exam_word(const char *word, char out[WORD_MAX])
{
	size_t n = 0;

	out[n++] = '\'';
	for (; *word && n < WORD_MAX - 6; word++) {
		if (*word == '\'') {
			memcpy(out + n, "'\\''", 4);
			n += 4;
		} else {
			out[n++] = *word;
		}
	}
	out[n++] = '\'';
	out[n] = '\0';
	return out;
}

/* ---- what koined --check has said ---- */

bool exam_next_line(const struct exam *e, struct text *rest, struct text *ret_line)
{
	if (!rest->data)
		*rest = buf_text(&e->said);
	return text_next(rest, '\n', ret_line) && ret_line->len > 0;
}

/* ---- what is asked once ---- */

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
static void exam_ask_daemon(struct exam *e)
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
	int r;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	r = fd >= 0 ? file_read_all(fd, out) : -errno;
	buf_add_char(out, '\0');
	return r == 0 && out->len > 1 && out->err == 0;
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
	return program_of(pid, path) && text_is(text_base_name(text_of(path)), "koined") &&
	       access(path, X_OK) == 0;
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

static void exam_ask_koined(struct exam *e)
{
	CLEANUP(freep) char **words = calloc(WORDS_MAX, 2 * sizeof(*words));
	CLEANUP(buf_donep) struct buf line;
	CLEANUP(buf_donep) struct buf environment;
	char folder[64];
	struct cli_child_opts opts = {.all = true, .patience_ms = exam_patience(e, CHECK_MS)};
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
	e->exit_code = child_output(&opts, &e->said);
	note_settings(e);
}

/* ---- what is shown ---- */

enum { NAME_WIDTH = 10, INDENT = 18, COLUMNS_MAX = 80, COLUMNS_MIN = 40 };

static const struct {
	const char *word;  /* for people */
	const char *state; /* for programs */
	enum color color;
} marks[] = {
	[MARK_OK] = {"ok", "ok", COLOR_GREEN},
	[MARK_WARN] = {"warn", "warning", COLOR_YELLOW},
	[MARK_BAD] = {"BAD", "bad", COLOR_RED},
	[MARK_SKIPPED] = {"-", "skipped", COLOR_GREY},
};

static size_t columns(void)
{
	size_t n = terminal_columns();

	return n > COLUMNS_MAX ? COLUMNS_MAX : n < COLUMNS_MIN ? COLUMNS_MIN : n;
}

static void print_below(const char *before, const char *text)
{
	size_t left = columns() - INDENT - strlen(before);

	if (!text[0])
		return;
	printf("%*s%s", INDENT, "", before);
	print_wrapped(stdout, text_of(text), NULL, left, INDENT + (unsigned)strlen(before), 0);
}

/* A line for a shell stays on one line, so that it can be copied. */
static void print_command(const struct cli *cli, const char *command)
{
	if (!command[0])
		return;
	printf("%*sfix: ", INDENT, "");
	print_styled(cli, style_bold, text_of(command));
	putchar('\n');
}

static void print_finding(const struct cli *cli, const struct finding *f, const char *name)
{
	print_style(cli, color_begin(marks[f->mark].color));
	printf("%-4s", marks[f->mark].word);
	print_plain(cli);
	printf("  %-*s  ", NAME_WIDTH, name);
	print_wrapped(stdout, text_of(f->text), NULL, columns() - INDENT, INDENT, 0);
	if (f->mark != MARK_OK && f->mark != MARK_SKIPPED) {
		print_command(cli, f->command);
		print_below(f->command[0] ? "" : "fix: ", f->advice);
	}
}

static unsigned count(const struct exam *e, enum mark mark)
{
	unsigned n = 0;

	for (unsigned i = 0; i < e->n; i++)
		n += e->findings[i].mark == mark;
	return n;
}

static int exam_print(const struct exam *e)
{
	const char *last = "";
	unsigned bad = count(e, MARK_BAD);
	unsigned warn = count(e, MARK_WARN);

	for (unsigned i = 0; i < e->n; i++) {
		const struct finding *f = &e->findings[i];

		print_finding(e->cli, f, strcmp(last, f->check) == 0 ? "" : f->check);
		last = f->check;
	}
	putchar('\n');
	if (bad > 0)
		printf("%u problem%s to fix", bad, bad == 1 ? "" : "s");
	else
		printf("No problems found");
	if (warn > 0)
		printf(", %u warning%s", warn, warn == 1 ? "" : "s");
	puts(".");
	return EX_OK;
}

static int exam_print_json(const struct exam *e)
{
	CLEANUP(json_freep) struct koine_json *j = params_new();

	params_add_bool(j, "ok", exam_is_well(e));
	if (!params_begin_array(j, "findings"))
		return out_of_memory();
	for (unsigned i = 0; i < e->n; i++) {
		const struct finding *f = &e->findings[i];

		koine_json_begin_object(j);
		params_add(j, "check", f->check);
		params_add(j, "state", marks[f->mark].state);
		params_add(j, "text", f->text);
		params_add(j, "command", f->command[0] ? f->command : NULL);
		params_add(j, "advice", f->advice[0] ? f->advice : NULL);
		koine_json_end_object(j);
	}
	koine_json_end_array(j);
	return params_print(j);
}

/* ---- the command ---- */

enum { SAID_MAX = 4 << 20 };

struct check {
	const char *name;
	void (*run)(struct exam *e);
	bool needs_daemon;
};

static const struct check checks[] = {
	{"daemon", check_daemon},
	{"version", check_version, .needs_daemon = true},
	{"settings", check_settings},
	{"socket", check_socket},
	{"ports", check_ports},
	{"access", check_access},
	{"store", check_store},
	{"agents", check_agents, .needs_daemon = true},
	{"servers", check_servers, .needs_daemon = true},
	{"sessions", check_sessions, .needs_daemon = true},
	{"connected", check_connected},
	{"mcp", check_mcp, .needs_daemon = true},
	{NULL},
};

static int cmd_doctor(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *answer = NULL;
	CLEANUP(freep) struct finding *findings = calloc(FINDINGS_MAX, sizeof(*findings));
	CLEANUP(freep) struct exam *e = calloc(1, sizeof(*e));
	int r;

	if (!e || !findings)
		return out_of_memory();
	e->cli = cli;
	e->findings = findings;
	buf_init(&e->said, SAID_MAX);
	exam_ask_daemon(e);
	answer = e->answer;
	exam_ask_koined(e);
	e->file = e->settings[0] ? e->settings : "koine.conf";
	for (const struct check *c = checks; c->name; c++) {
		e->check = c->name;
		if (c->needs_daemon && !e->status)
			exam_find(e, MARK_SKIPPED, "not checked: koined is not running");
		else
			c->run(e);
	}
	buf_done(&e->said);
	r = cli->options.json ? exam_print_json(e) : exam_print(e);
	return r != 0 ? r : exam_is_well(e) ? EX_OK : EXIT_ERROR_ANSWER;
}

const struct command doctor_commands[] = {
	{"doctor", "", "Check your setup and explain how to fix problems",
	 "The command checks the daemon and its version, settings, socket, ports, "
	 "tokens, store, agents and agent servers; the program that runs sessions; "
	 "the entries of `koine connect` in agents' files, and whether Codex trusts "
	 "koine's hooks; and a connection through `koine mcp`. Each check takes a few "
	 "seconds at most. doctor changes nothing.\n\nThe exit status is 1 if there "
	 "is a problem, and 0 otherwise. Warnings do not count as problems.\n",
	 cmd_doctor, NO_ARGS, .examples = {"koine doctor", "koine doctor --json"}},
	{NULL},
};
