/*
 * koine ask: a question from a script, whose exit status is the answer.
 *
 *	koine ask "Deploy to production?" && deploy
 *
 * Without --choices it is a request that is approved or denied, otherwise a question that is
 * answered with one of the choices.
 */
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "cli/approval/approval.h"
#include "cli/approval/asking.h"
#include "cli/kit/args.h"
#include "cli/kit/call.h"
#include "cli/kit/glyph.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"

enum { QUESTION_MAX = 64 << 10, CHOICES_MAX = 64 };

struct question {
	struct asking asking;
	struct text text;
	struct text choices[CHOICES_MAX];
	unsigned n; /* 0: it is approved or denied */
};

/* ---- what is asked ---- */

static struct text trim(struct text t)
{
	while (t.len > 0 && strchr(" \t\r\n", t.data[t.len - 1]))
		t.len--;
	while (t.len > 0 && strchr(" \t\r\n", t.data[0])) {
		t.data++;
		t.len--;
	}
	return t;
}

/* "blue,green" */
static int read_choices(struct question *q, const char *list)
{
	const char *at = list;

	while (at) {
		const char *comma = strchr(at, ',');
		struct text choice = {at, comma ? (size_t)(comma - at) : strlen(at)};

		choice = trim(choice);
		if (choice.len == 0 || q->n == CHOICES_MAX) {
			complain("invalid --choices '%s': use 1 to %d answers, separated by commas",
				 list, CHOICES_MAX);
			return EX_USAGE;
		}
		q->choices[q->n++] = choice;
		at = comma ? comma + 1 : NULL;
	}
	return 0;
}

static int read_question(const struct cli *cli, struct question *q, struct buf *text)
{
	const struct approval_options *o = cli->own;
	int r = o->choices ? read_choices(q, o->choices) : 0;

	if (r == 0)
		r = args_text(cli, text);
	if (r != 0)
		return r;
	if (text->err != 0 || text->len > QUESTION_MAX || trim(buf_text(text)).len == 0) {
		complain("the question must be 1 to %d bytes long", QUESTION_MAX);
		return EX_DATAERR;
	}
	return 0;
}

/* The inbox shows a question's {"msg", "choices"}. */
static void add_question(const struct asking *a, struct koine_json *j)
{
	const struct question *q = list_entry(a, struct question, asking);
	const struct approval_options *o = a->cli->own;

	params_add(j, "kind", q->n > 0 ? "human_contact" : "function_call");
	params_add(j, "tool", "ask");
	params_add(j, "agent", o->agent);
	if (!j)
		return;
	koine_json_key(j, "input");
	koine_json_begin_object(j);
	params_add_text(j, q->n > 0 ? "msg" : "question", q->text);
	if (q->n > 0) {
		koine_json_key(j, "choices");
		koine_json_begin_array(j);
		for (unsigned i = 0; i < q->n; i++)
			koine_json_text_n(j, q->choices[i].data, q->choices[i].len);
		koine_json_end_array(j);
	}
	koine_json_end_object(j);
}

/* ---- what came of it ---- */

static bool equals(struct text a, struct text b)
{
	return a.len == b.len && strncasecmp(a.data, b.data, a.len) == 0;
}

static const struct text *find_choice(const struct question *q, struct text answer)
{
	for (unsigned i = 0; i < q->n; i++) {
		if (text_equal(q->choices[i], answer))
			return &q->choices[i];
	}
	for (unsigned i = 0; i < q->n; i++) {
		if (equals(q->choices[i], answer))
			return &q->choices[i];
	}
	return NULL;
}

static int take_choice(const struct cli *cli, const struct question *q, struct text answer)
{
	const struct text *choice = find_choice(q, trim(answer));

	if (choice) {
		if (!cli->options.json)
			printf("%.*s\n", TEXT_ARGS(*choice));
		return EX_OK;
	}
	fputs("koine: declined: ", stderr);
	print_exact(stderr, answer);
	fputc('\n', stderr);
	return EXIT_ERROR_ANSWER;
}

static int take_decision(const struct cli *cli, const struct question *q,
			 const struct koine_value *answer)
{
	struct text status = member_string(answer, "status");
	struct text comment = member_string(answer, "comment");
	char said[APPROVAL_COMMENT_SIZE];

	if (cli->options.json)
		print_json_compact(stdout, answer);
	if (text_is(status, "responded"))
		return take_choice(cli, q, comment);
	if (text_is(status, "approved") && comment.len == 0)
		return EX_OK;
	approval_say_end(answer, said, sizeof(said));
	fputs("koine: ", stderr);
	print_exact(stderr, text_of(said));
	fputc('\n', stderr);
	if (text_is(status, "approved"))
		return EX_OK;
	return text_is(status, "denied") ? EXIT_ERROR_ANSWER : EX_TEMPFAIL;
}

static int take_end(const struct asking *a, const struct question *q, enum asking_end end)
{
	switch (end) {
	case ASKING_DECIDED:
		return take_decision(a->cli, q, koine_doc_root(a->answer));
	case ASKING_LATE:
		complain("timeout: no answer arrived in time");
		return EX_TEMPFAIL;
	case ASKING_GONE:
		return EXIT_INTERRUPTED;
	case ASKING_NONE:
	case ASKING_UNAVAILABLE:
		complain("koined is not running (try: koine daemon start)");
		return EX_UNAVAILABLE;
	case ASKING_REFUSED: /* it has been printed */
		break;
	}
	return EX_UNAVAILABLE;
}

/* ---- the command ---- */

static int ask(struct cli *cli, struct question *q)
{
	const struct approval_options *o = cli->own;
	struct asking *a = &q->asking;
	enum asking_end end;
	int r;

	*a = (struct asking) {
		.cli = cli,
		.method = "approval.request",
		.add = add_question,
		.hint = q->n > 0 ? "waiting for an answer: koine respond"
				 : "waiting for approval: koine approve",
	};
	asking_set_deadline(a, o->wait_ms);
	if (uuid4(a->id) != 0)
		return EX_OSERR;
	r = talk_connect(cli);
	if (r != 0)
		return r;
	asking_catch_signals(a);
	end = asking_wait(a);
	if (end == ASKING_GONE || end == ASKING_LATE)
		asking_withdraw(a);
	r = take_end(a, q, end);
	talk_hang_up(cli);
	koine_doc_free(a->answer);
	if (end == ASKING_GONE && !asking_interrupted())
		asking_end_by_signal(a);
	return r;
}

int cmd_ask(struct cli *cli)
{
	CLEANUP(buf_donep) struct buf text;
	struct question q = {.n = 0};
	int r;

	buf_init(&text, 4 * QUESTION_MAX);
	r = read_question(cli, &q, &text);
	q.text = trim(buf_text(&text));
	return r != 0 ? r : ask(cli, &q);
}
