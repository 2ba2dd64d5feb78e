/* koine memory export: every memory in full, one in a line, page by page. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/memory/memory.h"

enum { PAGE = 500, TOO_LARGE = -32004 };

/* Where it goes. A file is written beside its name and takes it at the end, so that
 * nobody ever finds half of one. */
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

/* What is no plain file (/dev/null, a pipe) must not be replaced by one. */
static int target_open(struct target *t, const char *path)
{
	struct stat st;
	int fd;

	*t = (struct target) {.out = stdout};
	if (!path || strcmp(path, "-") == 0)
		return 0;
	/* A link is followed: the file behind it is the one that was meant. */
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

/* `r` is how the export went: only a whole one is kept. */
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

struct export
{
	struct cli *cli;
	struct koine_client *client;
	struct target *target;
	char cursor[256]; /* "": from the newest */
	int64_t limit;
	size_t n_done;
	bool ended;
};

static int write_page(struct export *e, const struct koine_value *page)
{
	const struct koine_value *entries = koine_value_get(page, "entries");
	const struct koine_value *entry = koine_value_first(entries);
	size_t len = 0;
	const char *cursor = koine_value_text(koine_value_get(page, "cursor"), &len);

	if (koine_value_kind(entries) != KOINE_ARRAY || len >= sizeof(e->cursor)) {
		complain("the answer is no page of memories");
		return EX_PROTOCOL;
	}
	e->ended = !entry || !cursor;
	if (cursor) {
		memcpy(e->cursor, cursor, len);
		e->cursor[len] = '\0';
	}
	for (; entry; entry = koine_value_next(entry)) {
		print_json_compact(e->target->out, entry);
		e->n_done++;
	}
	return ferror(e->target->out) ? EX_IOERR : 0;
}

/* Memories may be long: a page that would be too large is asked for again, smaller. */
static int get_page(struct export *e, const char *method, const char *params)
{
	struct koine_answer *a = NULL;
	int r = koine_client_call(e->client, method, params, &a);

	if (r == KOINE_ERROR_ANSWER && koine_answer_error_code(a) == TOO_LARGE && e->limit > 1) {
		e->limit /= 2;
		koine_answer_free(a);
		return 0;
	}
	if (r != 0)
		return talk_failed(e->client, method, r, a);
	r = write_page(e, koine_answer_result(a));
	koine_answer_free(a);
	return r;
}

static int export_page(struct export *e)
{
	struct memory_call c;
	const char *params;
	int r = memory_begin(&c, e->cli, "memory.export");

	if (r != 0)
		return r;
	memory_add_text(&c, "cursor", e->cursor[0] ? e->cursor : NULL);
	koine_json_key(c.params, "limit");
	koine_json_int(c.params, e->limit);
	memory_add_who(&c);
	params = memory_params(&c);
	r = params ? get_page(e, c.method, params) : EX_SOFTWARE;
	memory_done(&c);
	return r;
}

static int export_all(struct cli *cli, struct target *target, size_t *ret_n)
{
	struct export e = {.cli = cli, .target = target, .limit = PAGE};
	int r = talk_dial(cli, NULL, NULL, &e.client);

	while (r == 0 && !e.ended)
		r = export_page(&e);
	koine_client_free(e.client);
	*ret_n = e.n_done;
	return r;
}

int cmd_memory_export(struct cli *cli)
{
	const char *path = cli->n_args > 0 ? cli->args[0] : NULL;
	struct target target;
	size_t n = 0;
	int r;

	if (cli->n_args > 1) {
		complain("memory export takes one FILE at most");
		return EX_USAGE;
	}
	r = memory_target(cli, NEEDS_KOINE);
	if (r == 0)
		r = target_open(&target, path);
	if (r != 0)
		return r;
	r = export_all(cli, &target, &n);
	r = target_close(&target, r);
	if (r == 0 && target.out != stdout)
		printf(cli->options.json ? "{\"exported\":%zu}\n" : "Memories exported: %zu\n", n);
	return r;
}
