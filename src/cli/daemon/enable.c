/*
 * koine daemon enable, disable: whether the user's koined starts by itself, and with which PATH.
 *
 * systemd's user manager starts before any shell and knows little; agents are where the user's
 * shell finds them. So the PATH is taken from the shell, once, into a file beside the unit.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "cli/child/child.h"
#include "cli/daemon/daemon.h"
#include "cli/kit/options.h"
#include "cli/kit/place.h"
#include "cli/kit/print.h"
#include "cli/kit/value.h"

/* ---- koined as a unit of systemd's user manager ---- */

enum { LOOK_MS = 10000, DO_MS = 150000, SAYS_MAX = 1 << 20, ARGS_MAX = 12 };

static const char unit[] = "koined.service";
static const char *const sockets[] = {"koined.socket", "koined-ash.socket", "koined-hld.socket",
				      "koined-ocg.socket"};

enum { N_SOCKETS = sizeof(sockets) / sizeof(sockets[0]) };

/* "ActiveState=active" */
static bool says(struct text line, const char *name, const char *values)
{
	struct text key = {0};

	return text_next(&line, '=', &key) && text_is(key, name) && text_among(line, values);
}

static void read_line(struct service *s, struct text line)
{
	long long pid;
	char copy[64];

	snprintf(copy, sizeof(copy), "%.*s", TEXT_ARGS(text_cut(line, sizeof(copy) - 1)));
	s->there |= says(line, "LoadState", "loaded");
	s->active |= says(line, "ActiveState", "active|activating|reloading");
	s->enabled |= says(line, "UnitFileState", "enabled|enabled-runtime");
	if (sscanf(copy, "MainPID=%lld", &pid) == 1)
		s->pid = pid;
}

/* What it prints, which the caller frees. False: it fails, or takes too long. */
static bool daemon_enable_ask(const char *const *argv, struct buf *out)
{
	buf_init(out, SAYS_MAX);
	return child_output(&(struct cli_child_opts) {.argv = argv, .patience_ms = LOOK_MS}, out) ==
	       0;
}

static bool socket_listens(void)
{
	static const char *const argv[] = {"systemctl",   "--user",  "show",          "-p",
					   "ActiveState", "--value", "koined.socket", NULL};
	CLEANUP(buf_donep) struct buf out;

	return daemon_enable_ask(argv, &out) && text_begins(buf_text(&out), TEXT("active"));
}

void service_look(const struct cli *cli, struct service *ret)
{
	static const char *const argv[] = {
		"systemctl", "--user", "show", "-p", "LoadState,ActiveState,UnitFileState,MainPID",
		unit,        NULL};
	CLEANUP(buf_donep) struct buf out;
	struct text rest, line;

	*ret = (struct service) {.there = false};
	buf_init(&out, 0);
	if (cli->options.socket || cli->options.url || !daemon_enable_ask(argv, &out))
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
	status = child_output(
		&(struct cli_child_opts) {.argv = argv, .all = true, .patience_ms = DO_MS}, &out);
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
	if (!daemon_enable_ask(argv, &out))
		return EX_UNAVAILABLE;
	rest = buf_text(&out);
	while (text_next(&rest, '\n', &line))
		PRINT(stdout, line, TEXT("\n"));
	return 0;
}

/* ---- the text of the file ---- */

/* A format, not only words: a file that does not begin with it is left alone. Do not reword it. */
static const char first_line[] = "# Made by koine daemon enable, which makes it anew each time.\n";

/* In systemd's quotes, where '%' begins a specifier. */
static void add_escaped(struct buf *out, struct text t)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < t.len; i++) {
		unsigned char c = (unsigned char)t.data[i];

		if (c < 0x20 || c == 0x7f) {
			buf_add_str(out, "\\x");
			buf_add_char(out, digits[c >> 4]);
			buf_add_char(out, digits[c & 15]);
			continue;
		}
		if (c == '"' || c == '\\' || c == '%')
			buf_add_char(out, c == '%' ? '%' : '\\');
		buf_add_char(out, (char)c);
	}
}

/* Anybody could put a program there, unless only its owner may replace what is there. */
static bool open_to_all(struct text folder)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%.*s", TEXT_ARGS(folder));
	return stat(path, &st) == 0 && (st.st_mode & S_IWOTH);
}

/* Up to where we are. */
static bool came_before(struct text path, const char *at, struct text folder)
{
	struct text rest = {.data = path.data, .len = (size_t)(at - path.data)};
	struct text other;

	while (text_next(&rest, ':', &other)) {
		if (text_equal(other, folder))
			return true;
	}
	return false;
}

/*
 * The file's text for this PATH. Only absolute folders are taken, each once, and none that everybody
 * may write to: programs that koined starts are looked up there. Those that were left out are
 * added to `left`, a line each. 0 or -ENOMEM.
 */
static int path_file_text(struct text path, struct buf *out, struct buf *left)
{
	struct text rest = path;
	struct text folder;
	unsigned n = 0;

	buf_add_str(out, first_line);
	buf_add_str(out, "[Service]\nEnvironment=\"PATH=");
	while (text_next(&rest, ':', &folder)) {
		bool usable = folder.len > 0 && folder.data[0] == '/' && folder.len < PATH_MAX;

		if (usable && came_before(path, folder.data, folder))
			continue;
		if (!usable || open_to_all(folder)) {
			buf_add(left, folder.data, folder.len);
			buf_add_str(left,
				    usable ? ": writable by all users\n" : ": not absolute\n");
			continue;
		}
		if (n++ > 0)
			buf_add(out, ":", 1);
		add_escaped(out, folder);
	}
	buf_add_str(out, "\"\n");
	return out->err != 0 ? out->err : left->err;
}

enum { FILE_MAX = 1 << 20 };

/* ---- the file with its PATH ---- */

static bool find_place(char path[PATH_MAX])
{
	return place_path("{XDG_CONFIG_HOME|~/.config}/systemd/user/koined.service.d/path.conf",
			  path, NULL);
}

/* 1: there is one of ours; 0: there is none; -1: there is another, or it cannot be read. */
static int look_at_place(const char *path)
{
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	CLEANUP(buf_donep) struct buf text;

	buf_init(&text, FILE_MAX);
	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	return file_read_all(fd, &text) == 0 && text_begins(buf_text(&text), text_of(first_line))
		       ? 1
		       : -1;
}

/* As a whole or not at all. */
static int replace(char *path, struct text text)
{
	char above[PATH_MAX];
	int r;

	snprintf(above, sizeof(above), "%s", path);
	r = file_make_parents(above, 0755);
	return r != 0 ? r : file_replace(path, 0644, text.data, text.len);
}

static int write_path(char path[PATH_MAX])
{
	const char *value = option_from_environment("PATH");
	CLEANUP(buf_donep) struct buf text;
	CLEANUP(buf_donep) struct buf left;
	int r;

	buf_init(&text, FILE_MAX);
	buf_init(&left, FILE_MAX);
	if (!find_place(path))
		return fail_with(EX_CANTCREAT, "HOME is not set; cannot store the PATH for koined");
	if (look_at_place(path) < 0) {
		complain("koine did not write %s and leaves it unchanged; koined uses the PATH in "
			 "that file",
			 path);
		return 0;
	}
	if (path_file_text(text_of(value ? value : ""), &text, &left) != 0)
		return out_of_memory();
	r = replace(path, buf_text(&text));
	if (r != 0)
		return fail_with(EX_CANTCREAT, "cannot write %s: %s", path, strerror(-r));
	print_lines(stderr, "koine: omitted from PATH: ", buf_text(&left));
	return 0;
}

/* ---- the commands ---- */

static int refuse_without_manager(const char *verb)
{
	complain("daemon %s: found no systemd user manager with koined.service, so nothing starts "
		 "koined at login. Instead, add a line to your shell's profile (~/.profile) or to "
		 "crontab -e:",
		 verb);
	fputs("  koine daemon start >/dev/null 2>&1\n"
	      "  @reboot koine daemon start\n",
	      stderr);
	return EX_UNAVAILABLE;
}

int cmd_enable(struct cli *cli)
{
	char path[PATH_MAX];
	struct service s;
	int r;

	service_look(cli, &s);
	if (!s.there)
		return refuse_without_manager("enable");
	r = write_path(path)
			?: service_do("daemon-reload", 0)
			?: service_do("enable", SERVICE_UNIT);
	if (r != 0)
		return r;
	printf("koined now starts at login, with the PATH of this shell (%s).\n", path);
	if (s.active)
		puts("The running koined still uses the old PATH. Restart koined: koine daemon "
		     "restart");
	else
		puts("Start koined now: koine daemon start");
	puts("To keep koined running after you log out: loginctl enable-linger");
	return 0;
}

int cmd_disable(struct cli *cli)
{
	char path[PATH_MAX];
	struct service s;
	int r;

	service_look(cli, &s);
	if (!s.there)
		return refuse_without_manager("disable");
	r = service_do("disable", SERVICE_UNIT);
	if (r != 0)
		return r;
	if (find_place(path) && look_at_place(path) == 1 && unlink(path) == 0)
		r = service_do("daemon-reload", 0);
	puts("koined no longer starts at login.");
	if (s.active)
		puts("koined is still running. Stop koined: koine daemon stop");
	return r;
}
