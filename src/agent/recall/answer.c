/*
 * What the recall agent says; see recall.h.
 *
 * Its sources are what the user said, what tools answered, and the notes from memory, sentence
 * by sentence. Not what the agent itself said: that would quote quotes. Not questions either,
 * since they hold no answer; a request is a source only where there is no statement.
 */
#include "agent/recall/recall.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum {
	QUOTES_MAX = 3,
	RANKED_MAX = 12, /* more than are quoted, since some may say the same */
	QUESTION_MAX = 4096,
	SOURCES_MAX = 8192,
	SOURCE_BYTES_MAX = 1 << 20, /* of the conversation, the newest */
	NOTES_BYTES_MAX = 64 * 1024,
};

static const char about[] =
	"I am koine's offline responder, not a language model: I only quote this conversation and "
	"stored memories. To talk to a model, add a section [agent NAME] with kind = openai, url = "
	"http://127.0.0.1:11434 and model = MODEL to koine.conf, then start koined --agent NAME; "
	"see koine.conf(5).";

/* A sentence that may be quoted. */
struct recall_answer_source {
	struct text text;
	enum sentence_kind kind;
	const struct agent_note *note; /* or else it comes from a message */
	unsigned message;
	bool repeated; /* it is said again later, or a later note has it */
};

struct composer {
	const struct recall_opts *opts;
	const struct agent_ask *ask;
	unsigned last; /* the user's last message */
	bool asks;
	bool greets;
	struct buf question;
	struct recall_answer_source *sources; /* the newest last */
	unsigned n_sources;
	struct text *ranked; /* what is handed to rank, and which source each one is */
	unsigned *ranked_source;
	const struct recall_answer_source *quotes[QUOTES_MAX];
	unsigned n_quotes;
};

static void composer_done(struct composer *c)
{
	buf_done(&c->question);
	free(c->sources);
	free(c->ranked);
	free(c->ranked_source);
}

/* ---- the question ---- */

static unsigned last_of_user(const struct agent_ask *ask)
{
	for (unsigned i = ask->n_messages; i-- > 0;) {
		if (ask->messages[i].role == MESSAGE_USER)
			return i;
	}
	return ask->n_messages > 0 ? ask->n_messages - 1 : 0;
}

/* The end of a long one: whoever pastes a page asks below it. */
static struct text tail(struct text t, size_t max)
{
	size_t over = t.len > max ? t.len - max : 0;

	if (over == 0)
		return t;
	while (over < t.len && ((unsigned char)t.data[over] & 0xc0) == 0x80)
		over++;
	return (struct text) {t.data + over, t.len - over};
}

/* Only the questions, if there are any: the rest of the message is a source like others. */
static int read_question(struct composer *c)
{
	struct text whole = tail(c->ask->messages[c->last].text, QUESTION_MAX);
	struct text rest = whole;
	struct text s;
	unsigned n_greetings = 0;
	unsigned n = 0;

	buf_init(&c->question, QUESTION_MAX * 2);
	for (; sentence_next(&rest, &s); n++) {
		enum sentence_kind kind = sentence_kind(s);

		n_greetings += kind == SENTENCE_GREETS;
		if (kind != SENTENCE_ASKS && kind != SENTENCE_WANTS)
			continue;
		c->asks = true;
		buf_add(&c->question, s.data, s.len);
		buf_add_char(&c->question, ' ');
	}
	c->greets = n > 0 && n == n_greetings;
	if (!c->asks)
		buf_add(&c->question, whole.data, whole.len);
	return c->question.err;
}

/* ---- the sources ---- */

static bool may_quote(const struct composer *c, const struct recall_answer_source *s)
{
	if (s->kind == SENTENCE_ASKS || s->kind == SENTENCE_GREETS)
		return false;
	if (!s->note && s->message == c->last)
		return c->asks && s->kind == SENTENCE_SAYS;
	return true;
}

/* Full: the older half has to go. */
static void recall_answer_make_room(struct composer *c)
{
	if (c->n_sources < SOURCES_MAX)
		return;
	memmove(c->sources, c->sources + SOURCES_MAX / 2,
		(SOURCES_MAX - SOURCES_MAX / 2) * sizeof(*c->sources));
	c->n_sources = SOURCES_MAX - SOURCES_MAX / 2;
}

static void add_sources(struct composer *c, struct text text, const struct agent_note *note,
			unsigned message)
{
	struct text s;

	while (sentence_next(&text, &s)) {
		struct recall_answer_source source = {
			.text = s,
			.kind = sentence_kind(s),
			.note = note,
			.message = message,
		};

		if (!may_quote(c, &source))
			continue;
		recall_answer_make_room(c);
		c->sources[c->n_sources++] = source;
	}
}

/* They come best first, and of equals the last is preferred. */
static void add_notes(struct composer *c)
{
	size_t left = NOTES_BYTES_MAX;
	unsigned n = 0;

	while (n < c->ask->n_notes && c->ask->notes[n].text.len <= left)
		left -= c->ask->notes[n++].text.len;
	while (n-- > 0)
		add_sources(c, c->ask->notes[n].text, &c->ask->notes[n], 0);
}

static bool is_source(const struct message *m)
{
	return m->role == MESSAGE_USER || m->role == MESSAGE_TOOL;
}

static void add_messages(struct composer *c)
{
	const struct message *m = c->ask->messages;
	size_t left = SOURCE_BYTES_MAX;
	unsigned first = c->ask->n_messages;

	while (first > 0 && left > 0) {
		first--;
		if (is_source(&m[first]))
			left -= m[first].text.len < left ? m[first].text.len : left;
	}
	for (unsigned i = first; i < c->ask->n_messages; i++) {
		if (is_source(&m[i]))
			add_sources(c, tail(m[i].text, SOURCE_BYTES_MAX), NULL, i);
	}
}

/* ---- the quotes ---- */

static bool is_quoted(const struct composer *c, struct text t)
{
	for (unsigned i = 0; i < c->n_quotes; i++) {
		if (sentence_same(c->quotes[i]->text, t))
			return true;
	}
	return false;
}

/* What is said twice counts once, the last time. */
static int mark_repeated(struct composer *c)
{
	enum { SLOTS = 2 * SOURCES_MAX };
	CLEANUP(freep) unsigned *slots = calloc(SLOTS, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (unsigned i = c->n_sources; i-- > 0;) {
		struct recall_answer_source *s = &c->sources[i];
		unsigned at = text_hash(TEXT_HASH, s->text) % SLOTS;

		while (slots[at] != 0 && !text_equal(c->sources[slots[at] - 1].text, s->text))
			at = (at + 1) % SLOTS;
		s->repeated = slots[at] != 0;
		if (!s->repeated)
			slots[at] = i + 1;
	}
	return 0;
}

/* The best of one kind. */
static int choose(struct composer *c, enum sentence_kind kind)
{
	struct text question = {c->question.data, c->question.len};
	unsigned best[RANKED_MAX];
	unsigned n_best = 0;
	unsigned n = 0;
	int r;

	for (unsigned i = 0; i < c->n_sources; i++) {
		if (c->sources[i].kind != kind || c->sources[i].repeated)
			continue;
		c->ranked_source[n] = i;
		c->ranked[n++] = c->sources[i].text;
	}
	if (n == 0 || !c->opts->rank)
		return 0;
	r = c->opts->rank(c->opts->arg, c->ranked, n, question, best, RANKED_MAX, &n_best);
	if (r != 0)
		return r;
	for (unsigned i = 0; i < n_best && c->n_quotes < QUOTES_MAX; i++) {
		const struct recall_answer_source *s = &c->sources[c->ranked_source[best[i]]];

		if (!is_quoted(c, s->text) && !sentence_same(s->text, question))
			c->quotes[c->n_quotes++] = s;
	}
	return 0;
}

static int find_quotes(struct composer *c)
{
	int r;

	c->sources = malloc(SOURCES_MAX * sizeof(*c->sources));
	c->ranked = malloc(SOURCES_MAX * sizeof(*c->ranked));
	c->ranked_source = malloc(SOURCES_MAX * sizeof(*c->ranked_source));
	if (!c->sources || !c->ranked || !c->ranked_source)
		return -ENOMEM;
	add_notes(c);
	add_messages(c);
	r = mark_repeated(c) ?: choose(c, SENTENCE_SAYS);
	if (r == 0 && c->n_quotes == 0 && c->asks)
		r = choose(c, SENTENCE_WANTS);
	return r;
}

/* ---- the wording ---- */

static void write_note_origin(struct buf *out, const struct agent_note *note)
{
	char date[ISO_LEN + 1];

	buf_add_str(out, "From memory");
	if (note->created_ms != 0) {
		clock_format_iso(note->created_ms, date);
		buf_printf(out, ", learnt %.10s", date);
	}
	if (note->source.len > 0) {
		buf_add_str(out, " (");
		buf_add(out, note->source.data, note->source.len);
		buf_add_char(out, ')');
	}
}

static void write_quote(struct buf *out, const struct composer *c,
			const struct recall_answer_source *s)
{
	if (s->note)
		write_note_origin(out, s->note);
	else if (c->ask->messages[s->message].role == MESSAGE_TOOL)
		buf_printf(out, "A tool returned (message %u)", s->message + 1);
	else
		buf_printf(out, "You said (message %u)", s->message + 1);
	buf_add_str(out, ": \"");
	buf_add(out, s->text.data, s->text.len);
	buf_add_char(out, '"');
}

static void write_quotes(struct buf *out, const struct composer *c)
{
	for (unsigned i = 0; i < c->n_quotes; i++) {
		if (i > 0)
			buf_add_char(out, '\n');
		write_quote(out, c, c->quotes[i]);
	}
}

static void write_nothing(struct buf *out, const struct composer *c)
{
	buf_printf(out,
		   "I found nothing about your message in this conversation (%u message%s) or in "
		   "stored memories.",
		   c->ask->n_messages, c->ask->n_messages == 1 ? "" : "s");
	if (!c->ask->first)
		buf_printf(out, " %s", about);
}

static void write_acknowledgement(struct buf *out, const struct composer *c)
{
	buf_add_str(out, c->greets ? "Hello. Tell me something, or ask me about what you told me."
				   : "Noted. I keep it in this conversation and can quote it when "
				     "you ask.");
	if (c->n_quotes == 0)
		return;
	buf_add_str(out, " This may be related:\n");
	write_quotes(out, c);
}

int recall_answer(const struct recall_opts *opts, const struct agent_ask *ask, struct buf *out)
{
	CLEANUP(composer_done)
	struct composer c = {.opts = opts, .ask = ask, .last = last_of_user(ask)};
	int r = read_question(&c) ?: find_quotes(&c);

	if (r != 0)
		return r;
	if (ask->first)
		buf_printf(out, "%s\n\n", about);
	if (!c.asks)
		write_acknowledgement(out, &c);
	else if (c.n_quotes > 0)
		write_quotes(out, &c);
	else
		write_nothing(out, &c);
	return out->err;
}
