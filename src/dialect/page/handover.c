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
#include "engine/visitor/visitor.h"
#include "io/listener.h"

enum { LINE_MAX = 512, FILE_MAX = VISITORS_MAX * LINE_MAX };

static const char name[] = "page sessions";

void page_hand_over(const struct server *s)
{
	const struct engine *engine = s->opts.engine;
	const struct endpoint *e = page_listener(s);
	const struct visitor *rows;
	unsigned n = visitors_list(engine ? engine->visitors : NULL, &rows);
	CLEANUP(closep) int fd = -1;

	if (!e || n == 0)
		return;
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return;
	dprintf(fd, "%s\n", e->address);
	for (unsigned i = 0; i < n; i++)
		dprintf(fd, "%.*s %.*s %" PRId64 " %d %" PRId64 " %" PRId64 " %.*s\n",
			TEXT_ARGS(rows[i].id), TEXT_ARGS(rows[i].digest), rows[i].uid,
			rows[i].behind, rows[i].entered_ms, rows[i].seen_ms,
			TEXT_ARGS(rows[i].program));
	(void)lseek(fd, 0, SEEK_SET);
	(void)fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
	listeners_keep_other(name, fd);
	page_keep_held();
}

static void take(struct visitors *v, struct text line)
{
	char text[LINE_MAX], id[UUID_LEN + 1], digest[VISITOR_DIGEST_LEN + 1];
	struct visitor row = {.behind = false};
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
	(void)visitor_add(v, &row);
}

void page_take_over(const struct server *s)
{
	CLEANUP(closep) int fd = listeners_take_other(name);
	const struct server_opts *opts = &s->opts;
	CLEANUP(buf_donep) struct buf found;
	struct why why = {.text = ""};
	struct text rest, line;

	buf_init(&found, FILE_MAX);
	if (fd < 0 || file_read_all(fd, &found) != 0)
		return;
	rest = (struct text) {.data = found.data, .len = found.len};
	/* It may have listened only since somebody asked for a link. */
	if (!page_listener(s))
		(void)opts->on_listen_asked(opts->arg, &page_dialect, &why);
	/* At another address the cookies would be sent to whoever has the old one. */
	if (!page_listener(s) || !text_next(&rest, '\n', &line) ||
	    !text_is(line, page_listener(s)->address)) {
		log_info("page sessions ended", "reason=\"the page has another address\"");
		return;
	}
	page_take_held(page_listener(s));
	while (rest.len > 0 && text_next(&rest, '\n', &line))
		take(opts->engine->visitors, line);
}
