/*
 * Browsers stay signed in over a restart: what is known of them is in a sealed file in memory, which only
 * the next koined gets, together with the page's sockets. No other user can have had its port meanwhile.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/uuid.h"
#include "call/server.h"
#include "dialect/page/page.h"
#include "engine/engine.h"
#include "engine/page_session/page_session.h"

enum { LINE_LEN = 512, FILE_MAX = VISITORS_MAX * LINE_LEN };

static int write_sessions(const struct server *s)
{
	const struct engine *engine = s->opts.engine;
	const struct endpoint *e = page_listener(s);
	const struct page_session *rows;
	unsigned n = page_sessions_list(engine ? engine->page_sessions : NULL, &rows);
	int fd;

	if (!e || n == 0)
		return -1;
	fd = memfd_create("page sessions", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -1;
	dprintf(fd, "%s\n", e->address);
	for (unsigned i = 0; i < n; i++)
		dprintf(fd, "%.*s %.*s %" PRId64 " %d %" PRId64 " %" PRId64 " %.*s\n",
			TEXT_ARGS(rows[i].id), TEXT_ARGS(rows[i].digest), rows[i].uid,
			rows[i].behind, rows[i].entered_ms, rows[i].seen_ms,
			TEXT_ARGS(rows[i].program));
	(void)lseek(fd, 0, SEEK_SET);
	(void)fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
	return fd;
}

void page_hand_over(const struct server *s, struct page_handover *ret)
{
	ret->sessions = write_sessions(s);
	ret->held = page_held();
}

static void page_handover_take(struct page_sessions *v, struct text line)
{
	char text[LINE_LEN], id[UUID_LEN + 1], digest[PAGE_SESSION_DIGEST_LEN + 1];
	struct page_session row = {.behind = false};
	int behind, at = 0;

	snprintf(text, sizeof(text), "%.*s", TEXT_ARGS(line));
	if (sscanf(text, "%36s %64s %" SCNd64 " %d %" SCNd64 " %" SCNd64 "%n", id, digest, &row.uid,
		   &behind, &row.entered_ms, &row.seen_ms, &at) != 6 ||
	    text[at] != ' ')
		return;
	row.id = text_of(id);
	row.digest = text_of(digest);
	row.behind = behind != 0;
	row.program = text_of(text + at + 1);
	(void)page_session_add(v, &row);
}

/* False: the page cannot go on where it was. */
static bool take_sessions(const struct server *s, int fd)
{
	const struct server_opts *opts = &s->opts;
	CLEANUP(buf_donep) struct buf found;
	struct error error = {.text = ""};
	struct text rest, line;

	buf_init(&found, FILE_MAX);
	if (fd < 0 || file_read_all(fd, &found) != 0)
		return false;
	rest = (struct text) {.data = found.data, .len = found.len};
	/* It may listen only since a client asked for a link. */
	if (!page_listener(s))
		(void)opts->on_listen_asked(opts->arg, &page_dialect, &error);
	/* At another address, browsers would send the cookies to the program that listens at the old one. */
	if (!page_listener(s) || !text_next(&rest, '\n', &line) ||
	    !text_is(line, page_listener(s)->address)) {
		log_info("page sessions ended", "reason=\"the page's address has changed\"");
		return false;
	}
	while (rest.len > 0 && text_next(&rest, '\n', &line))
		page_handover_take(opts->engine->page_sessions, line);
	return true;
}

void page_take_over(const struct server *s, const struct page_handover *from)
{
	bool goes_on = take_sessions(s, from->sessions);

	closep(&from->sessions);
	if (goes_on)
		page_take_held(page_listener(s), from->held);
	else
		closep(&from->held);
}
