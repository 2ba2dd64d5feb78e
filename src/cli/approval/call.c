/* Calls about approvals: finding one, deciding it, and how somebody else has. */
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "cli/approval/approval.h"

enum { NOT_FOUND_CODE = -32001, CONFLICT_CODE = -32002 };

struct text approval_member(const struct koine_value *approval, const char *key)
{
	const struct koine_value *v = koine_value_get(approval, key);
	struct text t = {0};

	if (koine_value_kind(v) == KOINE_STRING)
		t.data = koine_value_text(v, &t.len);
	return t;
}

static void add_text(struct koine_json *j, const char *key, struct text t)
{
	if (!t.data)
		return;
	koine_json_key(j, key);
	koine_json_text_n(j, t.data, t.len);
}

static struct koine_json *begin(void)
{
	struct koine_json *j = NULL;

	if (koine_json_new(&j) != 0)
		return NULL;
	koine_json_begin_object(j);
	return j;
}

static struct koine_json *finish(struct koine_json *j)
{
	koine_json_end_object(j);
	if (koine_json_text(j, NULL))
		return j;
	koine_json_free(j);
	return NULL;
}

/* ---- finding ---- */

static void found_freep(struct koine_answer **a)
{
	koine_answer_free(*a);
}

struct koine_json *approval_id_params(struct text id, bool exact)
{
	struct koine_json *j = begin();

	if (!j)
		return NULL;
	add_text(j, "id", id);
	if (exact) {
		koine_json_key(j, "exact");
		koine_json_bool(j, true);
	}
	return finish(j);
}

static int call_id(struct koine_client *c, const char *method, const char *id, bool exact,
		   struct koine_answer **ret_answer)
{
	struct koine_json *j = approval_id_params(text_of(id), exact);
	int r = j ? koine_client_call(c, method, koine_json_text(j, NULL), ret_answer) : -1;

	koine_json_free(j);
	return r;
}

/* Ids that koined makes begin with a word that is not shown. */
static const char *const id_words[] = {"local-", "rule-"};

enum { N_ID_WORDS = sizeof(id_words) / sizeof(id_words[0]) };

struct text approval_bare_id(const struct koine_value *approval)
{
	struct text id = approval_member(approval, "id");

	for (size_t i = 0; i < N_ID_WORDS; i++) {
		size_t n = strlen(id_words[i]);

		if (id.len > n && memcmp(id.data, id_words[i], n) == 0)
			return (struct text) {.data = id.data + n, .len = id.len - n};
	}
	return id;
}

int approval_find(struct koine_client *c, const char *typed, bool exact,
		  struct koine_answer **ret_answer)
{
	struct koine_answer *a = NULL;
	int r = call_id(c, "approval.get", typed, exact, &a);

	if (r != 0)
		return talk_failed(c, "approval.get", r, a);
	*ret_answer = a;
	return 0;
}

/* A session that koined has not started has any id, and is not known there. */
int approval_find_session(struct cli *cli, struct koine_client *c)
{
	static char whole[APPROVAL_ID_SIZE];
	const char *typed = cli->options.approval.session;
	CLEANUP(found_freep) struct koine_answer *a = NULL;
	struct text id;
	int r = typed ? call_id(c, "session.get", typed, false, &a) : 0;

	if (r == KOINE_ERROR_ANSWER && koine_answer_error_code(a) != NOT_FOUND_CODE)
		return talk_failed(c, "session.get", r, TAKE(a));
	id = approval_member(koine_answer_result(a), "id");
	if (!typed || r != 0 || id.len == 0 || id.len >= sizeof(whole))
		return 0;
	snprintf(whole, sizeof(whole), "%.*s", TEXT_ARGS(id));
	cli->options.approval.session = whole;
	return 0;
}

struct koine_json *approval_list_params(const struct cli *cli, bool all, int64_t limit)
{
	struct koine_json *j = begin();

	if (!j)
		return NULL;
	add_text(j, "status", text_of(all ? "any" : "pending"));
	add_text(j, "session_id", text_of(cli->options.approval.session));
	koine_json_key(j, "limit");
	koine_json_int(j, limit);
	return finish(j);
}

/* ---- deciding ---- */

struct koine_json *approval_choice_params(const struct approval_choice *choice)
{
	struct koine_json *j = begin();

	if (!j)
		return NULL;
	add_text(j, "id", choice->id);
	koine_json_key(j, "exact");
	koine_json_bool(j, true);
	add_text(j, "decision", text_of(choice->decision));
	add_text(j, "comment", choice->comment);
	if (choice->grant) {
		koine_json_key(j, "grant");
		koine_json_begin_object(j);
		add_text(j, "scope", text_of(choice->grant));
		if (choice->for_ms > 0) {
			koine_json_key(j, "for");
			koine_json_double(j, (double)choice->for_ms / 1000);
		}
		if (choice->uses > 0) {
			koine_json_key(j, "uses");
			koine_json_int(j, choice->uses);
		}
		koine_json_end_object(j);
	}
	return finish(j);
}

const struct koine_value *approval_quicker(const struct koine_answer *error)
{
	if (koine_answer_error_code(error) != CONFLICT_CODE)
		return NULL;
	return koine_value_get(koine_answer_error_data(error), "approval");
}

void approval_say_end(const struct koine_value *approval, char *out, size_t size)
{
	struct text status = approval_member(approval, "status");
	struct text by = approval_member(approval, "decided_by");
	struct text comment = approval_member(approval, "comment");
	int n;

	/* Events call it so, whatever the decision was. */
	if (!comment.data)
		comment = approval_member(approval, "response_text");
	n = snprintf(out, size, "%.*s%s%.*s%s%.*s", TEXT_ARGS(status), by.len > 0 ? " by " : "",
		     TEXT_ARGS(by), comment.len > 0 ? ": " : "", TEXT_ARGS(comment));
	/* No half character at the end. */
	if (n > 0 && (size_t)n >= size)
		out[utf8_whole(out, size - 1)] = '\0';
}
