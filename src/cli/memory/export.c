/* koine memory export: every memory in full, one per line, page by page. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/kit/call.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"
#include "cli/memory/memory.h"

enum { PAGE = 500 };

/* Where the export goes. A file is written under another name first, so that nobody ever finds
 * half of one. */
struct target {
	FILE *out;
	char path[PATH_MAX];
	char draft[PATH_MAX + 16]; /* "": written directly */
};

static int cannot_write(const char *path)
{
	complain("cannot write %s: %s", path, strerror(errno));
	return EX_CANTCREAT;
}

/* Anything but a regular file (/dev/null, a pipe) must not be replaced by one. */
static int target_open(struct target *t, const char *path)
{
	struct stat st;
	int fd;

	*t = (struct target) {.out = stdout};
	if (!path || strcmp(path, "-") == 0)
		return 0;
	/* A link is followed: the user means the file behind it. */
	if (!realpath(path, t->path))
		snprintf(t->path, sizeof(t->path), "%s", path);
	if (stat(t->path, &st) == 0 && !S_ISREG(st.st_mode)) {
		t->out = fopen(t->path, "we");
		return t->out ? 0 : cannot_write(path);
	}
	snprintf(t->draft, sizeof(t->draft), "%s.XXXXXX", t->path);
	fd = mkostemp(t->draft, O_CLOEXEC);
	t->out = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (t->out)
		return 0;
	if (fd >= 0)
		close(fd);
	t->draft[0] = '\0';
	return cannot_write(path);
}

/* Keeps the file if the export succeeded (`r` is 0), otherwise removes it. */
static int target_close(struct target *t, int r)
{
	bool good;

	if (!t->out || t->out == stdout)
		return r;
	good = fflush(t->out) == 0 && !ferror(t->out);
	if (good && t->draft[0])
		good = fsync(fileno(t->out)) == 0;
	if (!good && r == 0) {
		complain("cannot write %s: %s", t->path, strerror(errno));
		r = EX_IOERR;
	}
	fclose(t->out);
	if (r == 0 && t->draft[0] && rename(t->draft, t->path) != 0)
		r = cannot_write(t->path);
	if (r != 0 && t->draft[0])
		unlink(t->draft);
	return r;
}

struct exporter {
	struct cli *cli;
	struct target *target;
	char cursor[256]; /* "": from the newest */
	int64_t limit;
	size_t n_done;
	bool ended;
};

static int write_page(struct exporter *e, const struct koine_value *page)
{
	const struct koine_value *entries = koine_value_get(page, "entries");
	const struct koine_value *entry = koine_value_first(entries);
	struct text cursor = member_text(page, "cursor");

	if (koine_value_kind(entries) != KOINE_ARRAY || cursor.len >= sizeof(e->cursor)) {
		complain("the response is not a page of memories");
		return EX_PROTOCOL;
	}
	e->ended = !entry || !cursor.data;
	if (cursor.data)
		member_copy(page, "cursor", e->cursor, sizeof(e->cursor));
	for (; entry; entry = koine_value_next(entry)) {
		print_json_compact(e->target->out, entry);
		e->n_done++;
	}
	return ferror(e->target->out) ? EX_IOERR : 0;
}

/* Memories may be long: when a page is too large, request a smaller one. */
static int export_page(struct exporter *e)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_json *j = params_new();
	int r;

	params_add(j, "cursor", e->cursor[0] ? e->cursor : NULL);
	params_add_int(j, "limit", e->limit);
	memory_scope(e->cli, j);
	r = call_ask(e->cli, "memory.export", j, &a);
	if (r == KOINE_ERROR_ANSWER && koine_answer_error_code(a) == CODE_TOO_LARGE &&
	    e->limit > 1) {
		e->limit /= 2;
		return 0;
	}
	if (r != 0)
		return talk_failed(e->cli->client, "memory.export", r, a);
	return write_page(e, koine_answer_result(a));
}

static int export_all(struct cli *cli, struct target *target, size_t *ret_n)
{
	struct exporter e = {.cli = cli, .target = target, .limit = PAGE};
	int r = talk_connect(cli);

	while (r == 0 && !e.ended)
		r = export_page(&e);
	*ret_n = e.n_done;
	return r;
}

int cmd_memory_export(struct cli *cli)
{
	const char *path = cli->n_args > 0 ? cli->args[0] : NULL;
	struct target target;
	size_t n = 0;
	int r = target_open(&target, path);

	if (r != 0)
		return r;
	r = export_all(cli, &target, &n);
	r = target_close(&target, r);
	if (r == 0 && target.out != stdout)
		printf(cli->options.json ? "{\"exported\":%zu}\n" : "Memories exported: %zu\n", n);
	return r;
}
