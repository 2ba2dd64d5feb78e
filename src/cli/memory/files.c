/*
 * koine memory edit, review, export and import: a memory in the user's editor, facts that an agent
 * extracted, one after another or for scripts, and all memories as lines of JSON.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/child/child.h"
#include "cli/kit/call.h"
#include "cli/kit/duration.h"
#include "cli/kit/glyph.h"
#include "cli/kit/lines.h"
#include "cli/kit/list.h"
#include "cli/kit/signals.h"
#include "cli/kit/talk.h"
#include "cli/memory/memory.h"

/* ---- editing ---- */

enum { CONTENT_MAX = 16 << 20 };

struct update {
	struct cli *cli;
	const char *method;
	struct text id;
};

static int send_content(void *arg, struct text content)
{
	const struct update *u = arg;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_json *j = memory_id_params(u->cli, u->id);
	int r;

	params_add_text(j, "content", content);
	r = call_send(u->cli, u->method, j, &a);
	if (r == 0 && !print_if_json(u->cli, koine_answer_result(a)))
		memory_say(stdout, "Memory changed", u->id);
	return r;
}

/* Opens a memory's content in the editor, and sends what was changed as `content` of the method. */
static int memory_edit(struct cli *cli, const char *method, const struct koine_value *memory)
{
	struct update u = {.cli = cli, .method = method, .id = member_text(memory, "id")};
	struct text content = member_text(memory, "content");

	if (!u.id.data || !content.data)
		return memory_refuse_answer();
	return editor_change(&(struct edited_text) {.name = "memory",
						    .before = content,
						    .max = CONTENT_MAX,
						    .send = send_content,
						    .arg = &u});
}

int cmd_memory_edit(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct text id = text_of(cli->args[0]);
	int r = memory_check_id(cli, id)
			?: call_send(cli, "memory.get", memory_id_params(cli, id), &a);

	if (r != 0)
		return r;
	/* An editor may take longer than a server keeps an idle connection. */
	talk_hang_up(cli);
	return memory_edit(cli, "memory.update", koine_answer_result(a));
}

/* ---- reviewing ---- */

enum { REVIEWED = 20 };

static int accept_one(struct cli *cli, struct text id)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = call_send(cli, "memory.accept", memory_id_params(cli, id), &a);

	if (r == 0)
		memory_say(stdout, "Memory accepted", id);
	return r;
}

static int reject_one(struct cli *cli, struct text id)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = call_send(cli, "memory.delete", memory_id_params(cli, id), &a);

	if (r != 0)
		return r;
	if (member_flag(koine_answer_result(a), "deleted")) {
		memory_say(stdout, "Memory rejected", id);
		return 0;
	}
	memory_say(stderr, "Memory not found or not owned by you", id);
	return EXIT_ERROR_ANSWER;
}

static int check_ids(const struct cli *cli, const struct option_list *ids)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < ids->n; i++)
		r = memory_check_id(cli, text_of(ids->values[i]));
	return r;
}

static int each(struct cli *cli, const struct option_list *ids,
		int (*act)(struct cli *cli, struct text id))
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < ids->n; i++)
		r = act(cli, text_of(ids->values[i]));
	return r;
}

/* ---- one after another ---- */

static void memory_files_show(const struct koine_value *memory)
{
	fputc('\n', stdout);
	print_wrapped(stdout, member_text(memory, "content"), NULL, terminal_columns(), 0, 0);
	PRINT(stdout, TEXT("  from "), member_text(memory, "origin"), TEXT(", "));
	memory_print_cut(stdout, member_text(memory, "created_at"), 10, 0);
	fputc('\n', stdout);
}

/* 'q' at the end of the input. */
static char memory_files_ask(void)
{
	char line[64];

	fputs("Accept this fact? [y]es, [n]o, [e]dit, [s]kip, [q]uit: ", stdout);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 'q';
	return line[0];
}

/* Asks until it gets an answer. *ret_end: enough. */
static int decide(struct cli *cli, const struct koine_value *memory, bool *ret_end)
{
	struct text id = member_text(memory, "id");

	memory_files_show(memory);
	for (;;) {
		switch (memory_files_ask()) {
		case 'y':
			return accept_one(cli, id);
		case 'n':
			return reject_one(cli, id);
		case 'e':
			return memory_edit(cli, "memory.accept", memory);
		case 's':
			return 0;
		case 'q':
			*ret_end = true;
			return 0;
		default:
			break;
		}
	}
}

static int review(struct cli *cli, const struct koine_value *rows, int64_t limit)
{
	const struct koine_value *row = koine_value_first(rows);
	bool end = false;
	int r = 0;

	if (!row)
		puts("Nothing to review.");
	for (; r == 0 && row && !end && limit-- > 0; row = koine_value_next(row))
		r = decide(cli, row, &end);
	if (r == 0 && row && !end)
		puts("More facts are waiting for review.");
	return r;
}

static int list(const struct cli *cli, const struct koine_value *rows, int64_t limit)
{
	static const struct column columns[] = {
		{"ID", "id", cell_short_id},
		{"ORIGIN", "origin"},
		{"MEMORY", "content"},
		{NULL},
	};
	const struct cli_list list = {.columns = columns, .most = limit, .says_more = true};

	if (koine_value_first(rows))
		return list_print_as(cli, &list, rows);
	puts("Nothing to review.");
	return 0;
}

/* Asks for one more than it shows, to know whether there is one. */
int cmd_memory_review(struct cli *cli)
{
	const struct memory_options *o = cli->own;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int64_t limit = o->limit != 0 ? o->limit : REVIEWED;
	struct koine_json *j;
	int r = check_ids(cli, &o->accept) ?: check_ids(cli, &o->reject);

	if (r != 0)
		return r;
	if (o->accept.n > 0 || o->reject.n > 0)
		return each(cli, &o->accept, accept_one) ?: each(cli, &o->reject, reject_one);
	j = params_new();
	params_add_int(j, "limit", limit + !cli->options.json);
	r = request_send(cli, j, &a);
	if (r != 0)
		return r;
	if (print_if_json(cli, koine_answer_result(a)))
		return 0;
	if (o->list || !cli->terminal || !isatty(STDIN_FILENO))
		return list(cli, koine_answer_result(a), limit);
	return review(cli, koine_answer_result(a), limit);
}

/* ---- export: every memory in full, one per line, page by page ---- */

enum { PAGE = 500 };

/* Where the export goes. A file is written under another name first, so that nobody ever finds
 * half of one. */
struct memory_files_target {
	FILE *out;
	char path[PATH_MAX];
	char draft[PATH_MAX + 16]; /* "": written directly */
};

static int cannot_write(const char *path)
{
	return fail_with(EX_CANTCREAT, "cannot write %s: %s", path, strerror(errno));
}

/* Anything but a regular file (/dev/null, a pipe) must not be replaced by one. */
static int target_open(struct memory_files_target *t, const char *path)
{
	struct stat st;
	int fd;

	*t = (struct memory_files_target) {.out = stdout};
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
static int target_close(struct memory_files_target *t, int r)
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
	struct memory_files_target *target;
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

	if (koine_value_kind(entries) != KOINE_ARRAY || cursor.len >= sizeof(e->cursor))
		return fail_with(EX_PROTOCOL, "the response is not a valid list of memories");
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

static int export_all(struct cli *cli, struct memory_files_target *target, size_t *ret_n)
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
	struct memory_files_target target;
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

/*
 * koine memory import: lines of JSON, sent in batches.
 *
 * A batch is stored completely or not at all. When a line is bad, those before it are sent,
 * and nothing after it, so that the user can continue from that line.
 */

/* ---- a bar on stderr that shows how far a file has been read, if stderr is a terminal ---- */

enum { BAR = 30, PAUSE_MS = 100 };

struct progress {
	bool shown;
	int64_t size;      /* of the whole; 0: unknown */
	uint64_t begin_ms; /* when it began */
	uint64_t last_ms;  /* when it was last drawn */
};

static void progress_init(struct progress *p, int64_t size)
{
	*p = (struct progress) {
		.shown = isatty(STDERR_FILENO), .size = size, .begin_ms = clock_steady_ms()};
}

/* "12345 imported, 5200/s, 40s left" behind the bar. The time left is unknown at first. */
static void progress_print_rate(const struct progress *p, int64_t done, int64_t count, uint64_t ms)
{
	char left[SPAN_SHOWN] = "";

	if (p->size > done && done > 0)
		duration_format((int64_t)((double)ms * (double)(p->size - done) / (double)done),
				left);
	fprintf(stderr, "%lld imported, %lld/s%s%s%s\033[K", (long long)count,
		(long long)((double)count * 1000 / (double)(ms > 0 ? ms : 1)), left[0] ? ", " : "",
		left, left[0] ? " left" : "");
}

/* Draws it, unless it was drawn a moment ago. */
static void progress_set(struct progress *p, int64_t done, int64_t count)
{
	static const char full[] = "##############################";
	uint64_t now = clock_steady_ms();
	int part = done >= p->size ? BAR : (int)(done * BAR / p->size);

	if (!p->shown || now - p->last_ms < PAUSE_MS)
		return;
	p->last_ms = now;
	fputc('\r', stderr);
	if (p->size > 0)
		fprintf(stderr, "[%-*.*s] %3d%%  ", BAR, part, full,
			done >= p->size ? 100 : (int)(done * 100 / p->size));
	progress_print_rate(p, done, count, now - p->begin_ms);
	fflush(stderr);
}

/* Removes it. */
static void progress_done(struct progress *p)
{
	if (p->shown && p->last_ms != 0)
		fputs("\r\033[K", stderr);
	p->last_ms = 0;
}

enum {
	ENTRIES_MAX = 500,
	BYTES_MAX = 1 << 20,
	LINE_MAX_BYTES = 15 << 20, /* alone in a message of 16 MiB */
};

struct importer {
	struct cli *cli;
	const char *name; /* of the file */
	struct lines in;
	int64_t read;   /* bytes */
	long long line; /* the number of the last one read */
	/* The batch: its entries in sequence, and where each ends. */
	struct buf batch;
	size_t ends[ENTRIES_MAX];
	long long lines[ENTRIES_MAX];
	unsigned n;
	int64_t n_imported;
	struct progress progress;
};

static size_t begin_of(const struct importer *m, unsigned i)
{
	return i == 0 ? 0 : m->ends[i - 1];
}

/* 0, or an exit code after saying why; *ret_line is {NULL, 0} when none was left. */
static int read_line(struct importer *m, struct text *ret_line)
{
	int r = lines_next(&m->in, ret_line);

	if (r == 0 && ret_line->len > LINE_MAX_BYTES)
		r = -EMSGSIZE;
	m->line += r == -EMSGSIZE || (r == 0 && ret_line->data);
	if (r == 0) {
		m->read += (int64_t)ret_line->len + 1;
		return 0;
	}
	if (r == -EMSGSIZE)
		return fail_with(EX_DATAERR, "%s:%lld: the line is longer than %d bytes", m->name,
				 m->line, LINE_MAX_BYTES);
	complain("cannot read %s: %s", m->name, strerror(-r));
	return r == -ENOMEM ? EX_SOFTWARE : EX_NOINPUT;
}

/* Without the mark that some editors put at the start of a file, and without surrounding spaces. */
static struct text trimmed(const struct importer *m, struct text t)
{
	static const struct text mark = TEXT("\xef\xbb\xbf");

	if (m->line == 1 && text_begins(t, mark))
		t = text_skip(t, mark.len);
	return text_trim(t, " \t\r");
}

static int check_line(const struct importer *m, struct text t)
{
	struct koine_doc *doc = NULL;
	char error[256];
	int r = koine_doc_parse(t.data, t.len, &doc, error, sizeof(error));
	enum koine_kind kind = r == 0 ? koine_value_kind(koine_doc_root(doc)) : KOINE_NULL;

	koine_doc_free(doc);
	if (r < 0)
		return out_of_memory();
	if (r == 0 && kind == KOINE_OBJECT)
		return 0;
	return fail_with(EX_DATAERR, "%s:%lld: %s%s", m->name, m->line,
			 r == 0 ? "expected a JSON object" : "invalid JSON: ", r == 0 ? "" : error);
}

/* "entry N" in the refusal says which one it was; -1 if it does not. */
static long find_culprit(const struct koine_answer *a, unsigned n)
{
	struct text message = talk_error(a);
	CLEANUP(freep) char *copy = message.data ? strndup(message.data, message.len) : NULL;
	const char *at = copy ? strstr(copy, "entry ") : NULL;
	long i = -1;

	if (koine_answer_error_code(a) != CODE_BAD_PARAMS || !at ||
	    sscanf(at, "entry %ld", &i) != 1)
		return -1;
	return i >= 0 && i < (long)n ? i : -1;
}

static void blame_line(const struct importer *m, long i, const struct koine_answer *a)
{
	struct text message = talk_error(a);

	fprintf(stderr, "koine: %s:%lld: ", m->name, m->lines[i]);
	print_text(stderr, message.data ? message : TEXT("refused"));
	fputc('\n', stderr);
}

static int send_batch(struct importer *m, unsigned n, struct koine_answer **ret_answer)
{
	struct koine_json *j = params_new();

	if (!params_begin_array(j, "entries"))
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		koine_json_raw(j, m->batch.data + begin_of(m, i), m->ends[i] - begin_of(m, i));
	koine_json_end_array(j);
	memory_scope(m->cli, j);
	return call_ask(m->cli, "memory.import", j, ret_answer);
}

/* Sends the first n of the batch. When one is bad, only those before it are sent, and the import
 * ends. */
static int send_first(struct importer *m, unsigned n)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	long culprit;
	int r = n > 0 ? send_batch(m, n, &a) : 0;

	if (r == 0) {
		m->n_imported += member_number(koine_answer_result(a), "imported");
		signals_say_on_interrupt(
			"\nkoine: stopped; the first %lld memories stay imported\n",
			(long long)m->n_imported);
		return 0;
	}
	progress_done(&m->progress);
	culprit = r == KOINE_ERROR_ANSWER ? find_culprit(a, n) : -1;
	if (culprit < 0)
		return talk_failed(m->cli->client, "memory.import", r, a);
	blame_line(m, culprit, a);
	r = send_first(m, (unsigned)culprit);
	return r != 0 ? r : EX_DATAERR;
}

static int flush_batch(struct importer *m)
{
	int r = send_first(m, m->n);

	m->n = 0;
	buf_clear(&m->batch);
	if (r == 0)
		progress_set(&m->progress, m->read, m->n_imported);
	return r;
}

static int add_to_batch(struct importer *m, struct text t)
{
	int r = 0;

	if (m->n == ENTRIES_MAX || (m->n > 0 && m->batch.len + t.len > BYTES_MAX))
		r = flush_batch(m);
	if (r != 0)
		return r;
	buf_add(&m->batch, t.data, t.len);
	if (m->batch.err != 0)
		return out_of_memory();
	m->lines[m->n] = m->line;
	m->ends[m->n++] = m->batch.len;
	return 0;
}

static int import_lines(struct importer *m)
{
	struct text line;
	int after;
	int r = read_line(m, &line);

	while (r == 0 && line.data) {
		line = trimmed(m, line);
		if (line.len > 0)
			r = check_line(m, line);
		if (r == 0 && line.len > 0) {
			r = add_to_batch(m, line);
			if (r != 0)
				return r;
		}
		if (r == 0)
			r = read_line(m, &line);
	}
	after = flush_batch(m);
	return r != 0 ? r : after;
}

static int open_file(struct importer *m, const char *path)
{
	struct stat st;
	bool is_stdin = strcmp(path, "-") == 0;

	m->name = is_stdin ? "stdin" : path;
	m->in.fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (m->in.fd < 0 || fstat(m->in.fd, &st) != 0 || S_ISDIR(st.st_mode))
		return fail_with(EX_NOINPUT, "cannot read %s: %s", path,
				 strerror(m->in.fd >= 0 ? EISDIR : errno));
	progress_init(&m->progress, S_ISREG(st.st_mode) ? st.st_size : 0);
	return 0;
}

static int import_file(struct importer *m, const char *path)
{
	int r = open_file(m, path) ?: talk_connect(m->cli);

	if (r != 0)
		return r;
	r = import_lines(m);
	progress_done(&m->progress);
	printf(m->cli->options.json ? "{\"imported\":%lld}\n" : "Memories imported: %lld\n",
	       (long long)m->n_imported);
	return r;
}

int cmd_memory_import(struct cli *cli)
{
	struct importer m = {.cli = cli};
	int r;

	lines_init(&m.in, -1, LINE_MAX_BYTES + (1 << 20));
	buf_init(&m.batch, LINE_MAX_BYTES);
	r = import_file(&m, cli->args[0]);
	if (m.in.fd > STDIN_FILENO)
		close(m.in.fd);
	lines_done(&m.in);
	buf_done(&m.batch);
	return r;
}
