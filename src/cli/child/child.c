#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/child/child.h"
#include "cli/kit/lines.h"
#include "cli/kit/options.h"
#include "cli/kit/print.h"
#include "cli/kit/value.h"

enum { PROBE_MS = 2000 };

/* ---- starting ---- */

static void run(const struct cli_child_opts *o, int in, int out)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setpgid(0, 0);
	signal(SIGPIPE, SIG_DFL);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(o->all ? out : null, STDERR_FILENO);
	if (o->env)
		environ = (char **)o->env;
	if (o->variable.name)
		setenv(o->variable.name, o->variable.value, 1);
	if (!o->folder || chdir(o->folder) == 0)
		execvp(o->argv[0], (char *const *)o->argv);
	_exit(127);
}

bool child_start(struct cli_child *c, const struct cli_child_opts *opts)
{
	int in[2];
	int out[2];

	*c = (struct cli_child) {.pid = -1, .in = -1, .out = -1};
	buf_init(&c->said, CHILD_SAYS_MAX);
	/* A socket can be told something without a signal, if nobody reads it any more. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) != 0)
		return false;
	if (pipe2(out, O_CLOEXEC) != 0) {
		close(in[0]);
		close(in[1]);
		return false;
	}
	c->pid = fork();
	if (c->pid == 0)
		run(opts, in[0], out[1]);
	close(in[0]);
	close(out[1]);
	c->in = in[1];
	c->out = out[0];
	c->until_ms = clock_steady_ms() + opts->patience_ms;
	if (c->pid > 0)
		return true;
	child_end(c);
	return false;
}

/* ---- talking ---- */

static int left_ms(const struct cli_child *c)
{
	uint64_t now = clock_steady_ms();

	return now < c->until_ms ? (int)(c->until_ms - now) : 0;
}

static bool wait_for(const struct cli_child *c, int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};
	int r;

	do
		r = poll(&p, 1, left_ms(c));
	while (r < 0 && errno == EINTR);
	return r > 0;
}

bool child_tell(struct cli_child *c, struct text line)
{
	while (line.len > 0) {
		ssize_t n;

		if (c->in < 0 || !wait_for(c, c->in, POLLOUT))
			return false;
		n = send(c->in, line.data, line.len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		line.data += n > 0 ? n : 0;
		line.len -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

static bool hear_more(struct cli_child *c)
{
	ssize_t n;

	if (c->out < 0 || buf_reserve(&c->said, 4096) != 0 || !wait_for(c, c->out, POLLIN))
		return false;
	n = read(c->out, c->said.data + c->said.len, 4096);
	if (n <= 0)
		return n < 0 && errno == EINTR;
	c->said.len += (size_t)n;
	return true;
}

/* The next line, without its end, until the next call. False: there is none in time, or too much
 * was said. */
static bool child_hear(struct cli_child *c, struct text *ret_line)
{
	size_t seen = c->at;
	const char *end = NULL;

	for (;;) {
		if (c->said.len > seen)
			end = memchr(c->said.data + seen, '\n', c->said.len - seen);
		if (end)
			break;
		seen = c->said.len;
		if (hear_more(c))
			continue;
		/* The last line may have no end. */
		if (c->said.err != 0 || c->said.len == c->at || left_ms(c) == 0)
			return false;
		end = c->said.data + c->said.len;
		break;
	}
	*ret_line = (struct text) {.data = c->said.data + c->at,
				   .len = (size_t)(end - c->said.data) - c->at};
	c->at += ret_line->len + (c->at + ret_line->len < c->said.len);
	return true;
}

bool child_ask(struct cli_child *c, struct text request, int64_t id, struct koine_doc **ret_doc)
{
	struct text line;

	if (!child_tell(c, request))
		return false;
	while (child_hear(c, &line)) {
		struct koine_doc *doc = NULL;
		int64_t answered;

		if (koine_doc_parse(line.data, line.len, &doc, NULL, 0) != 0)
			continue;
		if (koine_value_int(koine_value_get(koine_doc_root(doc), "id"), &answered) &&
		    answered == id && !koine_value_get(koine_doc_root(doc), "method")) {
			*ret_doc = doc;
			return true;
		}
		koine_doc_free(doc);
	}
	return false;
}

/* ---- ending ---- */

static void close_both(struct cli_child *c)
{
	if (c->in >= 0)
		close(c->in);
	if (c->out >= 0)
		close(c->out);
	c->in = -1;
	c->out = -1;
}

/* Closes its standard input, and waits for its end. The exit code; -1: it has none in time. */
static int child_wait(struct cli_child *c)
{
	int process = (int)syscall(SYS_pidfd_open, c->pid, 0);
	int status = 0;
	bool ended;

	close_both(c);
	ended = process >= 0 && wait_for(c, process, POLLIN);
	if (process >= 0)
		close(process);
	if (!ended)
		return -1;
	/* Until it is waited for, nobody else can have its number. */
	kill(-c->pid, SIGKILL);
	if (waitpid(c->pid, &status, 0) != c->pid)
		return -1;
	c->pid = -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void child_end(struct cli_child *c)
{
	close_both(c);
	if (c->pid > 0) {
		kill(-c->pid, SIGKILL);
		kill(c->pid, SIGKILL);
		while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	c->pid = -1;
	buf_done(&c->said);
}

/* ---- only for what it prints ---- */

int child_output(const struct cli_child_opts *opts, struct buf *out)
{
	struct cli_child c;
	struct text line;
	int status;

	if (!child_start(&c, opts))
		return -1;
	while (child_hear(&c, &line)) {
		buf_add(out, line.data, line.len);
		buf_add_char(out, '\n');
	}
	status = out->err == 0 ? child_wait(&c) : -1;
	child_end(&c);
	return status;
}

/* ---- for nobody ---- */

static void run_detached(const char *const *argv)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	if (fork() != 0)
		_exit(0);
	signal(SIGPIPE, SIG_DFL);
	for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	execvp(argv[0], (char *const *)argv);
	_exit(127);
}

bool child_detach(const char *const *argv)
{
	pid_t pid = fork();

	if (pid == 0)
		run_detached(argv);
	return pid > 0 && waitpid(pid, NULL, 0) == pid;
}

/* ---- what is installed ---- */

bool program_find(const char *name, char path[PATH_MAX])
{
	struct text rest = text_of(getenv("PATH"));
	struct text folder;
	struct stat st;

	while (rest.data && text_next(&rest, ':', &folder)) {
		int n = snprintf(path, PATH_MAX, "%.*s/%s", TEXT_ARGS(folder), name);

		/* A relative folder is whoever's folder we happen to be in. */
		if (folder.len > 0 && folder.data[0] == '/' && n < PATH_MAX &&
		    stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0)
			return true;
	}
	path[0] = '\0';
	return false;
}

bool program_of(int64_t pid, char path[PATH_MAX])
{
	char link[64] = "/proc/self/exe";
	ssize_t n;

	if (pid > 0)
		snprintf(link, sizeof(link), "/proc/%lld/exe", (long long)pid);
	n = readlink(link, path, PATH_MAX - 1);
	path[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static void probe_start(struct probe *p)
{
	const char *const argv[] = {p->program, "--version", NULL};

	p->child.pid = -1;
	if (!p->program[0] ||
	    !child_start(&p->child,
			 &(struct cli_child_opts) {.argv = argv, .patience_ms = PROBE_MS}))
		return;
	close(p->child.in);
	p->child.in = -1;
}

void probe_ask(struct probe *probes, unsigned n)
{
	struct text first;

	for (unsigned i = 0; i < n; i++)
		probe_start(&probes[i]);
	for (unsigned i = 0; i < n; i++) {
		struct probe *p = &probes[i];

		if (p->child.pid <= 0)
			continue;
		if (child_hear(&p->child, &first))
			snprintf(p->version, sizeof(p->version), "%.*s",
				 TEXT_ARGS(text_cut(first, sizeof(p->version) - 1)));
		child_end(&p->child);
	}
}

/* ---- the daemon's program ---- */

static bool find_beside(char path[PATH_MAX])
{
	char *slash = program_of(0, path) ? strrchr(path, '/') : NULL;
	if (!slash || (size_t)(slash - path) + sizeof("/koined") > PATH_MAX)
		return false;
	strcpy(slash, "/koined");
	return access(path, X_OK) == 0;
}

bool koined_find(char path[PATH_MAX])
{
	return find_beside(path) || program_find("koined", path);
}

bool koined_dialects(const char *program, unsigned patience_ms, struct buf *said,
		     struct koine_doc **ret_doc)
{
	const char *const argv[] = {program, "--service", "--dialects", NULL};
	const struct cli_child_opts opts = {.argv = argv, .all = true, .patience_ms = patience_ms};

	return child_output(&opts, said) == 0 &&
	       koine_doc_parse(said->data, said->len, ret_doc, NULL, 0) == 0;
}

/* ---- the user's editor ---- */

static const char *find_editor(void)
{
	const char *visual = option_from_environment("VISUAL");
	const char *editor = option_from_environment("EDITOR");

	if (visual)
		return visual;
	return editor ? editor : "vi";
}

/* mkstemp makes it 0600: what is edited is private. On 0 the caller removes *path. */
static int child_write_file(char *path, size_t size, const char *name, struct text content)
{
	const char *folder = option_from_environment("TMPDIR");
	int fd;
	int r;

	snprintf(path, size, "%s/koine-%s-XXXXXX", folder ? folder : "/tmp", name);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return fail_with(EX_CANTCREAT, "cannot create %s: %s", path, strerror(errno));
	r = file_write_all(fd, content.data, content.len);
	if (close(fd) != 0 && r == 0)
		r = -errno;
	if (r == 0)
		return 0;
	complain("cannot write %s: %s", path, strerror(-r));
	unlink(path);
	return EX_IOERR;
}

static int read_file(const char *path, struct buf *out)
{
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int r = fd < 0 ? -errno : lines_read_all(fd, out);

	if (r == 0)
		return 0;
	return fail_with(EX_NOINPUT, "cannot read %s: %s", path, strerror(-r));
}

/* A plain name is run without a shell; anything else is left to the shell to parse. */
static void become_editor(const char *editor, const char *path)
{
	char command[4096];

	if (!strpbrk(editor, " \t\n|&;<>()$`\\\"'*?[#~=%")) {
		execlp(editor, editor, path, (char *)NULL);
	} else if (snprintf(command, sizeof(command), "%s \"$@\"", editor) < (int)sizeof(command)) {
		execl("/bin/sh", "sh", "-c", command, editor, path, (char *)NULL);
	}
	complain("cannot run the editor '%s': %s", editor, strerror(errno));
	_exit(127);
}

/* Ctrl-C is the editor's business while it runs. */
static int run_editor(const char *editor, const char *path)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction interrupt;
	struct sigaction quit;
	int status = -1;
	pid_t pid;

	sigaction(SIGINT, &ignore, &interrupt);
	sigaction(SIGQUIT, &ignore, &quit);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		sigaction(SIGINT, &interrupt, NULL);
		sigaction(SIGQUIT, &quit, NULL);
		become_editor(editor, path);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGQUIT, &quit, NULL);
	if (status == 0)
		return 0;
	return fail_with(EX_SOFTWARE, "the editor failed; no changes made");
}

/* Editors terminate the last line, even if the content did not. */
static void drop_added_newline(struct buf *edited, struct text before)
{
	bool had = before.len > 0 && before.data[before.len - 1] == '\n';

	if (!had && edited->len > 0 && edited->data[edited->len - 1] == '\n')
		edited->len--;
}

static int send_edited(const struct edited_text *t, const char *path)
{
	CLEANUP(buf_donep) struct buf edited;
	int r;

	buf_init(&edited, t->max);
	r = read_file(path, &edited);
	if (r != 0)
		return r;
	drop_added_newline(&edited, t->before);
	if (!text_equal(t->before, buf_text(&edited)))
		return t->send(t->arg, buf_text(&edited));
	return fail_with(EX_OK, "no changes made");
}

int editor_change(const struct edited_text *t)
{
	char path[4096];
	int r = child_write_file(path, sizeof(path), t->name, t->before);

	if (r != 0)
		return r;
	r = run_editor(find_editor(), path);
	if (r != 0) {
		unlink(path);
		return r;
	}
	r = send_edited(t, path);
	if (r == 0)
		unlink(path);
	else
		complain("your text is saved in %s", path);
	return r;
}
