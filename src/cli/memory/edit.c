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
#include "cli/kit/call.h"
#include "cli/kit/lines.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"
#include "cli/memory/memory.h"

enum { CONTENT_MAX = 16 << 20 };

static const char *find_editor(void)
{
	const char *visual = option_from_environment("VISUAL");
	const char *editor = option_from_environment("EDITOR");

	if (visual)
		return visual;
	return editor ? editor : "vi";
}

/* mkstemp makes it 0600: memories are private. On 0 the caller removes *path. */
static int write_file(char *path, size_t size, struct text content)
{
	const char *folder = option_from_environment("TMPDIR");
	int fd;
	int r;

	snprintf(path, size, "%s/koine-memory-XXXXXX", folder ? folder : "/tmp");
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0) {
		complain("cannot make %s: %s", path, strerror(errno));
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
	complain("the editor did not end well; nothing was changed");
	return EX_SOFTWARE;
}

static int update_memory(struct cli *cli, const char *method, struct text id, struct text content)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_json *j = memory_id_params(cli, id);
	int r;

	params_add_text(j, "content", content);
	r = call_send(cli, method, j, &a);
	if (r == 0 && cli->options.json)
		print_json_compact(stdout, koine_answer_result(a));
	else if (r == 0)
		memory_say(stdout, "Memory changed", id);
	return r;
}

/* Editors terminate the last line, even if the content did not. */
static void drop_added_newline(struct buf *edited, struct text before)
{
	bool had = before.len > 0 && before.data[before.len - 1] == '\n';

	if (!had && edited->len > 0 && edited->data[edited->len - 1] == '\n')
		edited->len--;
}

static int send_edited(struct cli *cli, const char *method, struct text id, struct text before,
		       const char *path)
{
	CLEANUP(buf_donep) struct buf edited;
	int r;

	buf_init(&edited, CONTENT_MAX);
	r = read_file(path, &edited);
	if (r != 0)
		return r;
	drop_added_newline(&edited, before);
	if (!text_equal(before, buf_text(&edited)))
		return update_memory(cli, method, id, buf_text(&edited));
	complain("nothing was changed");
	return EX_OK;
}

/* Text that was typed is never thrown away: the file stays if it cannot be sent. */
int memory_edit(struct cli *cli, const char *method, const struct koine_value *memory)
{
	struct text id = member_text(memory, "id");
	struct text content = member_text(memory, "content");
	char path[4096];
	int r;

	if (!id.data || !content.data)
		return memory_refuse_answer();
	r = write_file(path, sizeof(path), content);
	if (r != 0)
		return r;
	r = run_editor(find_editor(), path);
	if (r != 0) {
		unlink(path);
		return r;
	}
	r = send_edited(cli, method, id, content, path);
	if (r == 0)
		unlink(path);
	else
		complain("your text is in %s", path);
	return r;
}

int cmd_memory_edit(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = memory_find_server(cli, NEEDS_KOINE);

	if (r == 0)
		r = call_send(cli, "memory.get", memory_id_params(cli, text_of(cli->args[0])), &a);
	if (r != 0)
		return r;
	/* An editor may take longer than a server keeps an idle connection. */
	talk_hang_up(cli);
	return memory_edit(cli, "memory.update", koine_answer_result(a));
}
