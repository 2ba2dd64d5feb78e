/* koine memory edit: a memory's content, through the user's editor. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/memory/memory.h"

enum { CONTENT_MAX = 16 << 20 };

static const char *find_editor(void)
{
	const char *visual = getenv("VISUAL");
	const char *editor = getenv("EDITOR");

	if (visual && visual[0])
		return visual;
	return editor && editor[0] ? editor : "vi";
}

/* mkstemp makes it 0600: memories are private. On 0 the caller removes *path. */
static int write_file(char *path, size_t size, const char *content, size_t len)
{
	const char *folder = getenv("TMPDIR");
	int fd;
	int r;

	snprintf(path, size, "%s/koine-memory-XXXXXX", folder && folder[0] ? folder : "/tmp");
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0) {
		complain("cannot make %s: %s", path, strerror(errno));
		return EX_CANTCREAT;
	}
	r = file_write_all(fd, content, len);
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
	ssize_t n = fd < 0 ? -1 : 1;

	while (n > 0 && buf_reserve(out, 65536) == 0) {
		n = read(fd, out->data + out->len, 65536);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n > 0)
			out->len += (size_t)n;
	}
	if (n == 0)
		return 0;
	complain("cannot read %s: %s", path, strerror(out->err ? -out->err : errno));
	return EX_NOINPUT;
}

/* A plain name is run as it is, so that no shell is needed; anything else is the
 * shell's to take apart. */
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
	complain("the editor did not end well; nothing was changed");
	return EX_SOFTWARE;
}

static int get_memory(struct cli *cli, struct koine_answer **ret_answer)
{
	struct memory_call c;
	int r = memory_begin(&c, cli, "memory.get");

	if (r != 0)
		return r;
	memory_add_text(&c, "memory_id", cli->args[0]);
	memory_add_who(&c);
	r = memory_send(&c, ret_answer);
	memory_done(&c);
	return r;
}

static int update_memory(struct cli *cli, struct text id, const struct buf *content)
{
	struct koine_answer *a = NULL;
	struct memory_call c;
	int r = memory_begin(&c, cli, "memory.update");

	if (r != 0)
		return r;
	koine_json_key(c.params, "memory_id");
	koine_json_text_n(c.params, id.data, id.len);
	koine_json_key(c.params, "content");
	koine_json_text_n(c.params, content->data, content->len);
	memory_add_who(&c);
	r = memory_send(&c, &a);
	memory_done(&c);
	if (r == 0 && cli->options.json) {
		print_json_compact(stdout, koine_answer_result(a));
	} else if (r == 0) {
		fputs("Memory changed: ", stdout);
		print_cut(stdout, id.data, id.len, 8, 0);
		fputc('\n', stdout);
	}
	koine_answer_free(a);
	return r;
}

static int nothing_changed(void)
{
	complain("nothing was changed");
	return EX_OK;
}

/* Editors end the last line, which the content may not have done. */
static void drop_added_newline(struct buf *edited, struct text before)
{
	bool had = before.len > 0 && before.data[before.len - 1] == '\n';

	if (!had && edited->len > 0 && edited->data[edited->len - 1] == '\n')
		edited->len--;
}

/* A text that was typed is never thrown away: the file stays when it cannot be sent. */
static int send_edited(struct cli *cli, const char *path, struct text id, struct text before)
{
	struct buf edited;
	int r;

	buf_init(&edited, CONTENT_MAX);
	r = read_file(path, &edited);
	if (r == 0)
		drop_added_newline(&edited, before);
	if (r == 0 && text_equal(before, (struct text) {.data = edited.data, .len = edited.len}))
		r = nothing_changed();
	else if (r == 0)
		r = update_memory(cli, id, &edited);
	buf_done(&edited);
	if (r == 0)
		unlink(path);
	else
		complain("your text is in %s", path);
	return r;
}

static int edit(struct cli *cli, const struct koine_value *memory)
{
	char path[4096];
	struct text id;
	struct text content;
	int r;

	id.data = koine_value_text(koine_value_get(memory, "id"), &id.len);
	content.data = koine_value_text(koine_value_get(memory, "content"), &content.len);
	if (!id.data || !content.data) {
		complain("the answer is no memory");
		return EX_PROTOCOL;
	}
	r = write_file(path, sizeof(path), content.data, content.len);
	if (r != 0)
		return r;
	r = run_editor(find_editor(), path);
	if (r != 0) {
		unlink(path);
		return r;
	}
	return send_edited(cli, path, id, content);
}

int cmd_memory_edit(struct cli *cli)
{
	struct koine_answer *a = NULL;
	int r;

	if (cli->n_args != 1) {
		complain("memory edit wants one ID");
		return EX_USAGE;
	}
	r = memory_target(cli, NEEDS_KOINE);
	if (r == 0)
		r = get_memory(cli, &a);
	if (r == 0)
		r = edit(cli, koine_answer_result(a));
	koine_answer_free(a);
	return r;
}
