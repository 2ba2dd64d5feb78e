/* How things are put for hld's clients: times, states, events. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/pack.h"
#include "dialect/hld/hld.h"

enum { TREE_MAX = 256 << 20 }; /* bytes; each byte of packed data may become a value */

/* ---- members ---- */

void hld_write_time(struct json *j, const char *key, int64_t ms)
{
	char text[ISO_LEN + 1];
	size_t n = ISO_LEN - 1;

	clock_format_iso(ms, text);
	while (text[n - 1] == '0')
		n--;
	if (text[n - 1] == '.')
		n--;
	text[n++] = 'Z';
	json_member_text(j, key, (struct text) {.data = text, .len = n});
}

void hld_write_seconds(struct json *j, const char *key, int64_t ms)
{
	enum { WHOLE = 19 };
	char text[ISO_LEN + 1];

	clock_format_iso(ms, text);
	text[WHOLE] = 'Z';
	json_member_text(j, key, (struct text) {.data = text, .len = WHOLE + 1});
}

void hld_write_some(struct json *j, const char *key, struct text t)
{
	if (t.len > 0)
		json_member_text(j, key, t);
}

void hld_write_text(struct json *j, const char *key, struct text t)
{
	json_member_text(j, key, t.data ? t : TEXT(""));
}

/* ---- events ---- */

static const struct told {
	const char *type; /* in the log */
	const char *hld;
} told[HLD_N_TOLD] = {
	{"session.status", "session_status_changed"},
	{"session.event", "conversation_updated"},
	{"approval.requested", "new_approval"},
	{"approval.resolved", "approval_resolved"},
};

const char *hld_told(unsigned i)
{
	return told[i].type;
}

unsigned hld_kind(struct text type)
{
	for (unsigned i = 0; i < HLD_N_TOLD; i++) {
		if (text_is(type, told[i].hld))
			return 1U << i;
	}
	return 0;
}

static const char *hld_type(struct text type)
{
	for (unsigned i = 0; i < HLD_N_TOLD; i++) {
		if (text_is(type, told[i].type))
			return told[i].hld;
	}
	return NULL;
}

static int by_key(const void *a, const void *b)
{
	const struct value *x = *(const struct value *const *)a;
	const struct value *y = *(const struct value *const *)b;
	size_t n = x->key_len < y->key_len ? x->key_len : y->key_len;
	int r = memcmp(x->key, y->key, n);

	return r != 0 ? r : (x->key_len > y->key_len) - (x->key_len < y->key_len);
}

static struct text key_of(const struct value *v)
{
	return (struct text) {.data = v->key, .len = v->key_len};
}

/* Writes the status of an approval with the same words as in lists. */
static void write_status(struct json *j, const struct value *v)
{
	enum approval_status status;

	if (approval_status_parse(value_text(v), &status))
		json_str(j, hld_approval_status(status));
	else
		json_value(j, v);
}

/* Nulls are left out, and members that clients do not know. */
static bool is_left_out(const struct value *member)
{
	return member->kind == VALUE_NULL || text_is(key_of(member), "decided_from");
}

static void write_sorted(struct json *j, const struct value *v);

/* In an event some members are left out, and a status is that of an approval. */
static void write_members(struct json *j, const struct value *v, bool is_event)
{
	const struct value **members = malloc((v->len + 1) * sizeof(*members));
	unsigned n = 0;

	if (!members) {
		j->out->err = -ENOMEM;
		return;
	}
	value_each (member, v) {
		if (!is_event || !is_left_out(member))
			members[n++] = member;
	}
	qsort(members, n, sizeof(*members), by_key);
	json_begin_object(j);
	for (unsigned i = 0; i < n; i++) {
		json_key_text(j, key_of(members[i]));
		if (is_event && text_is(key_of(members[i]), "status"))
			write_status(j, members[i]);
		else
			write_sorted(j, members[i]);
	}
	json_end_object(j);
	free(members);
}

/* The recursion is as deep as the unpacker allowed the tree to be. */
static void write_sorted(struct json *j, const struct value *v)
{
	if (v->kind == VALUE_OBJECT) {
		write_members(j, v, false);
	} else if (v->kind == VALUE_ARRAY) {
		json_begin_array(j);
		value_each (child, v)
			write_sorted(j, child);
		json_end_array(j);
	} else {
		json_value(j, v);
	}
}

/* Sorting the names needs the whole tree. */
void hld_write_sorted(struct json *j, struct text packed)
{
	struct arena a;
	struct value *v;
	int r;

	arena_init(&a, TREE_MAX);
	r = value_unpack(&a, packed, &v);
	if (r == 0)
		write_sorted(j, v);
	else
		j->out->err = r;
	arena_done(&a);
}

static void write_data(struct json *j, const struct event *e)
{
	struct arena a;
	struct value *v;
	int r;

	arena_init(&a, TREE_MAX);
	r = event_unpack(&a, e, &v);
	if (r == 0)
		write_members(j, v, true);
	else
		j->out->err = r;
	arena_done(&a);
}

/* A line that nobody understood is not told as an event. */
static bool is_told(const struct event *e)
{
	struct text type = packed_text(packed_find(e->data, "event_type"));

	return hld_type(e->type) && !text_is(type, session_event_type_name(SESSION_RAW));
}

void hld_word_event(struct buf *out, const struct event *e)
{
	struct json j = json_writer(out);

	if (!is_told(e))
		return;
	json_begin_object(&j);
	json_member_str(&j, "jsonrpc", "2.0");
	json_member_object(&j, "result");
	json_member_object(&j, "event");
	json_member_str(&j, "type", hld_type(e->type));
	hld_write_time(&j, "timestamp", e->time_ms);
	json_key(&j, "data");
	write_data(&j, e);
	json_end_object(&j);
	json_end_object(&j);
	json_end_object(&j);
	json_escape_html(out);
}

/* ---- refusals about sessions ---- */

/* Bytes of a path shown in a refusal, so that the reason behind it still fits. */
enum { PATH_SHOWN = 90 };

static void word_failure(struct buf *out, int status, int signal, struct text said)
{
	char end[64];

	buf_add_str(out, "claude process failed: ");
	if (said.len > 0) {
		buf_add_str(out, "claude error: ");
		buf_add(out, said.data, said.len);
		return;
	}
	if (signal > 0)
		snprintf(end, sizeof(end), "signal: %s", strsignal(signal));
	else
		snprintf(end, sizeof(end), "exit status %d", status);
	buf_add_str(out, end);
}

static int refuse_folder(struct error *error, struct text folder, int fault)
{
	struct text shown = text_cut(folder, PATH_SHOWN);

	return refuse(error, REFUSE_UNAVAILABLE, "chdir %.*s%s: %s", TEXT_ARGS(shown),
		      shown.len < folder.len ? "..." : "",
		      fault == ENOENT    ? "no such file or directory"
		      : fault == ENOTDIR ? "not a directory"
		      : fault == EACCES  ? "permission denied"
					 : strerror(fault));
}

static int refuse_program(struct error *error, const char *name)
{
	return refuse(error, REFUSE_UNAVAILABLE,
		      "exec: \"%.*s\": executable file not found in $PATH", PATH_SHOWN, name);
}

static int refuse_resume(struct error *error)
{
	return refuse(error, REFUSE_CONFLICT,
		      "parent session missing claude_session_id (cannot resume)");
}

const struct session_wording hld_session_wording = {
	.run_variable = "HUMANLAYER_RUN_ID",
	.session_variable = "HUMANLAYER_SESSION_ID",
	.socket_variable = "HUMANLAYER_DAEMON_SOCKET",
	.failed = word_failure,
	.no_folder = refuse_folder,
	.no_program = refuse_program,
	.no_agent_session = refuse_resume,
};
