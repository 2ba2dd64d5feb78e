#include "dialect/ocg/ocg.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "wire/json.h"

enum {
	QUOTED_BYTES = 50,
	LINE_BYTES = 64, /* of a hit's line in the sentence, beside its texts */
	REST_BYTES = 256 /* of an answer, beside the question and the hits */
};

/* In local time, which people expect. */
static void ocg_memory_answer_write_time(struct json *j, const char *key, int64_t ms,
					 const char *format)
{
	time_t seconds = (time_t)(ms / 1000);
	char text[64] = "";
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(text, sizeof(text), format, &tm);
	json_member_str(j, key, text);
}

static void write_importance(struct json *j, const struct memory *m)
{
	json_key(j, "importance");
	json_double(j, m->importance);
}

/* ---- search ---- */

static void write_hit(struct json *j, const struct memory *m)
{
	char score[32];

	snprintf(score, sizeof(score), "%.4f", m->similarity);
	json_begin_object(j);
	json_member_text(j, "id", m->id);
	json_member_text(j, "text", m->content);
	json_member_text(j, "category", m->category);
	write_importance(j, m);
	json_member_str(j, "score", score);
	json_member_bool(j, "matched", true);
	json_member_text(j, "source", m->source);
	ocg_memory_answer_write_time(j, "createdAt", m->created_ms, "%Y-%m-%d %H:%M");
	ocg_memory_answer_write_time(j, "updatedAt", m->updated_ms, "%Y-%m-%d %H:%M");
	json_end_object(j);
}

/* The hits that the answer contains. */
struct ocg_memory_answer_told {
	const struct memory *hits[MEMORY_LIMIT_MAX];
	unsigned n;
};

/* Writes the same hits again as text for people. */
static void write_sentence(struct json *j, const struct ocg_memory_answer_told *told)
{
	struct buf text;

	buf_init(&text, j->out->max);
	buf_printf(&text, "Found %u related memories (similarity):\n\n", told->n);
	for (unsigned i = 0; i < told->n; i++) {
		const struct memory *m = told->hits[i];

		buf_printf(&text, "%u. [%.*s] ", i + 1, TEXT_ARGS(m->category));
		buf_add(&text, m->content.data, m->content.len);
		buf_printf(&text, " (similarity %.0f%%)\n", m->similarity * 100);
	}
	if (text.err != 0 && j->out->err == 0)
		j->out->err = text.err;
	json_member_text(j, "result", (struct text) {.data = text.data, .len = text.len});
	buf_done(&text);
}

/* Reserves room for a hit in both forms. Returns false if there is none. */
static bool take_room(struct buf *room, const struct memory *m)
{
	const size_t len = room->len;
	struct json j = json_writer(room);

	json_begin_array(&j);
	write_hit(&j, m);
	json_text(&j, m->category);
	json_text(&j, m->content);
	json_end_array(&j);
	buf_printf(room, "%*s", LINE_BYTES, "");
	if (room->err != -EMSGSIZE)
		return room->err == 0;
	room->len = len;
	room->err = 0;
	return false;
}

/* Chooses hits in their order. A hit that is too long is skipped for those behind it. */
static int choose(size_t max, struct text query, const struct memory *hits, unsigned n,
		  struct ocg_memory_answer_told *told)
{
	struct buf room;
	struct json j = json_writer(&room);
	int r;

	told->n = 0;
	buf_init(&room, max);
	json_text(&j, query);
	buf_printf(&room, "%*s", REST_BYTES, "");
	for (unsigned i = 0; i < n && room.err == 0; i++) {
		if (take_room(&room, &hits[i]))
			told->hits[told->n++] = &hits[i];
	}
	r = room.err;
	buf_done(&room);
	return r == 0 && n > 0 && told->n == 0 ? -EMSGSIZE : r;
}

void ocg_answer_found(struct buf *out, struct text query, const struct memory *hits, unsigned n)
{
	struct json j = json_writer(out);
	struct ocg_memory_answer_told told;

	out->err = choose(out->max, query, hits, n, &told);
	json_begin_object(&j);
	json_member_text(&j, "query", query);
	json_member_int(&j, "count", told.n);
	if (told.n > 0) {
		json_member_array(&j, "items");
		for (unsigned i = 0; i < told.n; i++)
			write_hit(&j, told.hits[i]);
		json_end_array(&j);
		write_sentence(&j, &told);
	} else {
		json_member_str(&j, "result", "No relevant memories found.");
	}
	json_end_object(&j);
}

/* ---- get ---- */

void ocg_answer_entry(struct buf *out, const struct memory *m)
{
	struct json j = json_writer(out);

	json_begin_object(&j);
	json_member_text(&j, "id", m->id);
	json_member_text(&j, "text", m->content);
	json_member_text(&j, "category", m->category);
	write_importance(&j, m);
	json_member_text(&j, "source", m->source);
	ocg_memory_answer_write_time(&j, "createdAt", m->created_ms, "%Y-%m-%d %H:%M:%S");
	ocg_memory_answer_write_time(&j, "updatedAt", m->updated_ms, "%Y-%m-%d %H:%M:%S");
	json_end_object(&j);
}

/* ---- store ---- */

void ocg_answer_stored(struct buf *out, const struct memory *m)
{
	struct text start = text_cut(m->content, QUOTED_BYTES);
	struct json j = json_writer(out);
	char room[QUOTED_BYTES + 64];
	struct buf text = {.data = room, .cap = sizeof(room), .max = sizeof(room)};

	buf_add_str(&text, "Stored: ");
	buf_add(&text, start.data, start.len);
	if (start.len < m->content.len)
		buf_add_str(&text, "...\n(content truncated)");
	json_begin_object(&j);
	json_member_str(&j, "action", "created");
	json_member_text(&j, "id", m->id);
	json_member_text(&j, "result", (struct text) {.data = text.data, .len = text.len});
	json_end_object(&j);
}

void ocg_answer_duplicate(struct buf *out, const struct memory *m)
{
	struct json j = json_writer(out);

	json_begin_object(&j);
	json_member_str(&j, "action", "duplicate");
	json_member_text(&j, "id", m->id);
	json_member_str(&j, "result", "Similar memory already exists");
	json_end_object(&j);
}
