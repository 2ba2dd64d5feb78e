/*
 * What a notice says of an approval: every member of the input, each under its name and in full.
 * What an agent brought is only ever text: characters that change how a text is shown are written
 * out, and the lines of a value are indented, so that no value looks like another member.
 */
#include <stdio.h>
#include <string.h>

#include "agent/notify/notifier.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "engine/notify/inner.h"

enum {
	SHOWN_MAX = 3000, /* bytes of the input; the rest of NOTICE_TEXT_MAX is about who asks */
	RENDER_MAX = 16 << 20,
	NAME_SHOWN = 80, /* bytes as they are shown: no name makes a message too long to be sent */
};

static uint32_t code_point(const char *at, size_t n)
{
	const unsigned char *p = (const unsigned char *)at;
	uint32_t c = n == 2 ? p[0] & 0x1f : n == 3 ? p[0] & 0x0f : p[0] & 0x07;

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

/* A picture, as far as that can be told by where it stands. */
static bool is_sign(uint32_t c)
{
	return ((c >= 0x203c && c < 0x2e80) || c >= 0x1f000) && !char_is_invisible(c);
}

/* Joiners stay behind a sign: they make one of several. */
static bool is_trick(uint32_t before, uint32_t c)
{
	if (c == 0xfe0f && is_sign(before))
		return false;
	if (c == 0x200d && (is_sign(before) || before == 0xfe0f))
		return false;
	return char_is_invisible(c);
}

static void add_plain(struct buf *out, struct text t, const char *after_newline)
{
	const char *at = t.data, *end = t.len > 0 ? t.data + t.len : t.data;
	uint32_t before = 0;

	while (at < end) {
		unsigned char byte = (unsigned char)*at;
		size_t n = byte < 0x80 ? 1 : utf8_sequence(at, end);
		uint32_t c = n > 1 ? code_point(at, n) : byte;

		if (byte == '\n') {
			buf_add_char(out, '\n');
			buf_add_str(out, after_newline);
		} else if (n == 0 || (c < 0x80 && c != '\t' && char_is_invisible(c))) {
			buf_printf(out, "\\x%02x", byte);
		} else if (n > 1 && is_trick(before, c)) {
			buf_printf(out, "\\u{%x}", c);
		} else {
			buf_add(out, at, n);
		}
		before = c;
		at += n > 0 ? n : 1;
	}
}

static int notify_words_keep(struct arena *a, struct buf *out, struct text *ret)
{
	int r = out->err;

	if (r == 0)
		r = arena_copy_text(a, (struct text) {out->data ? out->data : "", out->len}, ret);
	buf_done(out);
	return r;
}

int words_plain(struct arena *a, struct text from, size_t max, struct text *ret)
{
	struct text cut = text_cut(from, max);
	struct buf out;

	buf_init(&out, RENDER_MAX);
	add_plain(&out, cut, "");
	if (cut.len < from.len)
		buf_printf(&out, "… (%zu bytes)", from.len);
	return notify_words_keep(a, &out, ret);
}

/* What is cut ends with a mark. */
static void add_name(struct buf *out, struct text t)
{
	struct text shown;
	struct buf plain;

	buf_init(&plain, RENDER_MAX);
	add_plain(&plain, t, " ");
	shown = text_cut((struct text) {.data = plain.data, .len = plain.len}, NAME_SHOWN);
	buf_add(out, shown.data, shown.len);
	if (shown.len < plain.len)
		buf_add_str(out, "…");
	if (plain.err != 0 && out->err == 0)
		out->err = plain.err;
	buf_done(&plain);
}

static int add_member(struct buf *out, struct arena *a, const struct value *v,
		      int (*to_json)(struct arena *, const struct value *, struct text *))
{
	struct text text = value_text(v);
	int r = text.data ? 0 : to_json(a, v, &text);

	if (r != 0)
		return r;
	if (out->len > 0)
		buf_add_char(out, '\n');
	add_plain(out, (struct text) {.data = v->key, .len = v->key_len}, " ");
	buf_add_str(out, text_find(text, '\n') ? ":\n    " : ": ");
	add_plain(out, text, "    ");
	return 0;
}

/* What stands below what is asked: who asks, and where. */
static void add_asker(struct buf *out, const struct approval *row, struct text host)
{
	buf_add_str(out, "\n\n");
	add_name(out, row->agent.len > 0 ? row->agent : TEXT("an agent"));
	if (row->origin.len > 0) {
		buf_add_str(out, ", ");
		add_name(out, row->origin);
	}
	if (host.len > 0) {
		buf_add_str(out, ", on ");
		add_name(out, host);
	}
	if (row->session.len > 0) {
		buf_add_str(out, ", session ");
		add_plain(out, text_cut(row->session, 8), " ");
	}
}

static int write_input(struct buf *out, struct arena *a, const struct approval *row,
		       int (*to_json)(struct arena *, const struct value *, struct text *))
{
	int r = 0;

	if (!row->input.value || row->input.value->kind != VALUE_OBJECT)
		return 0;
	value_each (member, row->input.value) {
		r = add_member(out, a, member, to_json);
		if (r != 0)
			return r;
	}
	return out->err;
}

int words_of_approval(struct arena *a, const struct approval *row, const char *host,
		      int (*to_json)(struct arena *a, const struct value *v, struct text *ret),
		      struct text *ret_title, struct text *ret_text)
{
	struct buf title, input, text;
	struct text cut;
	int r;

	buf_init(&title, RENDER_MAX);
	add_name(&title, row->agent.len > 0 ? row->agent : TEXT("An agent"));
	buf_add_str(&title, row->kind == APPROVAL_CONTACT ? " asks" : " wants to use ");
	if (row->kind != APPROVAL_CONTACT)
		add_name(&title, row->tool);
	r = notify_words_keep(a, &title, ret_title);
	buf_init(&input, RENDER_MAX);
	buf_init(&text, RENDER_MAX);
	if (r == 0)
		r = write_input(&input, a, row, to_json);
	cut = text_cut((struct text) {.data = input.data, .len = input.len}, SHOWN_MAX);
	buf_add(&text, cut.data, cut.len);
	/* What is cut says so, and how much there is. */
	if (cut.len < input.len)
		buf_printf(&text,
			   "…\n\nTRUNCATED: this message shows the first %zu of %zu bytes. To read "
			   "the full request before you approve it, run `koine approvals`.",
			   cut.len, input.len);
	add_asker(&text, row, row->host.len > 0 ? row->host : text_of(host));
	buf_done(&input);
	if (r == 0)
		return notify_words_keep(a, &text, ret_text);
	buf_done(&text);
	return r;
}

void words_of_outcome(enum approval_status status, struct text by, struct text comment, char *out,
		      size_t size)
{
	static const char *const words[N_APPROVAL_STATUSES] = {
		[APPROVAL_PENDING] = "Pending",
		[APPROVAL_APPROVED] = "✓ Approved",
		[APPROVAL_DENIED] = "✗ Denied",
		[APPROVAL_RESPONDED] = "✓ Answered",
		[APPROVAL_EXPIRED] = "Timed out",
		[APPROVAL_SUPERSEDED] = "Withdrawn; no answer needed",
	};
	struct buf plain;
	bool says = status != APPROVAL_EXPIRED && status != APPROVAL_SUPERSEDED;

	buf_init(&plain, 4096);
	buf_add_str(&plain, words[status]);
	if (says && by.len > 0) {
		buf_add_str(&plain, " by ");
		add_name(&plain, by);
	}
	if (says && comment.len > 0) {
		buf_add_str(&plain, ": ");
		add_name(&plain, comment);
	}
	snprintf(out, size, "%.*s", (int)utf8_whole(plain.data ? plain.data : "", plain.len),
		 plain.data ? plain.data : "");
	buf_done(&plain);
}
