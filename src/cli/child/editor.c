#include "cli/child/editor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "cli/kit/lines.h"
#include "cli/kit/options.h"
#include "cli/kit/print.h"
#include "cli/kit/value.h"

static const char *find_editor(void)
{
	const char *visual = option_from_environment("VISUAL");
	const char *editor = option_from_environment("EDITOR");

	if (visual)
		return visual;
	return editor ? editor : "vi";
}

/* mkstemp makes it 0600: what is edited is private. On 0 the caller removes *path. */
static int write_file(char *path, size_t size, const char *name, struct text content)
{
	const char *folder = option_from_environment("TMPDIR");
	int fd;
	int r;

	snprintf(path, size, "%s/koine-%s-XXXXXX", folder ? folder : "/tmp", name);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0) {
		complain("cannot create %s: %s", path, strerror(errno));
		return EX_CANTCREAT;
	}
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
	complain("cannot read %s: %s", path, strerror(-r));
	return EX_NOINPUT;
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
	complain("the editor failed; no changes made");
	return EX_SOFTWARE;
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
	complain("no changes made");
	return EX_OK;
}

int editor_change(const struct edited_text *t)
{
	char path[4096];
	int r = write_file(path, sizeof(path), t->name, t->before);

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
