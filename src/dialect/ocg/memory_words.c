#include "dialect/ocg/memory_words.h"

#include <stdio.h>
#include <time.h>

#include "wire/json.h"

enum { QUOTED_BYTES = 50 };

/* Local time, as its people see it. */
static void write_time(struct json *j, const char *key, int64_t ms, const char *format)
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

static void write_source(struct json *j, const struct memory *m)
{
	json_member_text(j, "source", m->source.data ? m->source : TEXT(""));
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
	write_source(j, m);
	write_time(j, "createdAt", m->created_ms, "%Y-%m-%d %H:%M");
	write_time(j, "updatedAt", m->updated_ms, "%Y-%m-%d %H:%M");
	json_end_object(j);
}

/* The same once more, for people. */
static void write_sentence(struct json *j, const struct memory *hits, unsigned n)
{
	struct buf text;

	buf_init(&text, j->out->max);
	buf_printf(&text, "Found %u related memories (similarity):\n\n", n);
	for (unsigned i = 0; i < n; i++) {
		buf_printf(&text, "%u. [%.*s] ", i + 1, TEXT_ARGS(hits[i].category));
		buf_add(&text, hits[i].content.data, hits[i].content.len);
		buf_printf(&text, " (similarity %.0f%%)\n", hits[i].similarity * 100);
	}
	if (text.err != 0 && j->out->err == 0)
		j->out->err = text.err;
	json_member_text(j, "result", (struct text) {.data = text.data, .len = text.len});
	buf_done(&text);
}

void ocg_words_found(struct buf *out, struct text query, const struct memory *hits, unsigned n)
{
	struct json j = json_writer(out);

	json_begin_object(&j);
	json_member_text(&j, "query", query);
	json_member_int(&j, "count", n);
	if (n > 0) {
		json_key(&j, "items");
		json_begin_array(&j);
		for (unsigned i = 0; i < n; i++)
			write_hit(&j, &hits[i]);
		json_end_array(&j);
		write_sentence(&j, hits, n);
	} else {
		json_member_str(&j, "result", "No relevant memories found.");
	}
	json_end_object(&j);
}

/* ---- get ---- */

void ocg_words_entry(struct buf *out, const struct memory *m)
{
	struct json j = json_writer(out);

	json_begin_object(&j);
	json_member_text(&j, "id", m->id);
	json_member_text(&j, "text", m->content);
	json_member_text(&j, "category", m->category);
	write_importance(&j, m);
	write_source(&j, m);
	write_time(&j, "createdAt", m->created_ms, "%Y-%m-%d %H:%M:%S");
	write_time(&j, "updatedAt", m->updated_ms, "%Y-%m-%d %H:%M:%S");
	json_end_object(&j);
}

/* ---- store ---- */

void ocg_words_stored(struct buf *out, const struct memory *m)
{
	struct text start = text_cut(m->content, QUOTED_BYTES);
	struct json j = json_writer(out);
	char words[QUOTED_BYTES + 64];
	int n = snprintf(words, sizeof(words), "Stored: ");

	memcpy(words + n, start.data, start.len);
	snprintf(words + n + start.len, sizeof(words) - (size_t)n - start.len, "%s",
		 start.len < m->content.len ? "...\n(content truncated)" : "");
	json_begin_object(&j);
	json_member_str(&j, "action", "created");
	json_member_text(&j, "id", m->id);
	json_member_str(&j, "result", words);
	json_end_object(&j);
}

void ocg_words_duplicate(struct buf *out, const struct memory *m)
{
	struct json j = json_writer(out);

	json_begin_object(&j);
	json_member_str(&j, "action", "duplicate");
	json_member_text(&j, "id", m->id);
	json_member_str(&j, "result", "Similar memory already exists");
	json_end_object(&j);
}
