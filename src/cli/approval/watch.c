/* koine approvals -w on a terminal: its calls and its keys. */
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli/approval/watch.h"
#include "cli/kit/call.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"

enum {
	LIST_MAX = 200,
	RETRY_MS = 100,
	RETRY_MAX_MS = 2000,
	EVERY_MS = 1000, /* how often ages are redrawn */
};

const struct koine_value *watch_list(const struct approval_watch *w)
{
	return koine_value_get(koine_doc_root(w->doc), "approvals");
}

const struct koine_value *watch_row(const struct approval_watch *w, size_t at)
{
	const struct koine_value *a = koine_value_first(watch_list(w));

	while (a && at-- > 0)
		a = koine_value_next(a);
	return a;
}

static void note(struct approval_watch *w, const char *text)
{
	snprintf(w->note, sizeof(w->note), "%s", text);
	w->note[utf8_whole(w->note, strlen(w->note))] = '\0';
	w->changed = true;
}

/* ---- the connection ---- */

static void lost(struct approval_watch *w)
{
	w->subscribed = w->listing = w->busy = false;
	w->stale = true;
	w->retry_ms = clock_steady_ms() + w->delay_ms;
	w->delay_ms = 2 * w->delay_ms < RETRY_MAX_MS ? 2 * w->delay_ms : RETRY_MAX_MS;
	w->changed = true;
}

static bool is_stopping(int result, const struct koine_answer *a)
{
	return result == KOINE_ERROR_ANSWER && koine_answer_error_code(a) == CODE_STOPPING;
}

/* Whether to continue with the answer. A lost connection is retried; an error ends the program,
 * since without its list there is nothing to do. */
static bool took(struct approval_watch *w, const char *method, int result,
		 const struct koine_answer *a)
{
	if (w->screen.leave || result == 0)
		return !w->screen.leave;
	if (result < 0 || is_stopping(result, a)) {
		lost(w);
		return false;
	}
	screen_fail(&w->screen, EXIT_ERROR_ANSWER);
	if (a)
		talk_print_error(method, a);
	return false;
}

/* False: the connection is lost. Takes the params. */
static bool call(struct approval_watch *w, const char *method, struct koine_json *params,
		 koine_answer_cb cb)
{
	if (call_async(w->cli->client, method, params, cb, w, NULL) == 0)
		return true;
	lost(w);
	return false;
}

/* ---- the list ---- */

static bool is_selected(const struct approval_watch *w, struct text id)
{
	return w->selected[0] && text_is(id, w->selected);
}

static void select_row(struct approval_watch *w, size_t at)
{
	struct text id = member_string(watch_row(w, at), "id");

	w->at = at;
	w->selected[0] = '\0';
	if (id.len > 0 && id.len < sizeof(w->selected))
		snprintf(w->selected, sizeof(w->selected), "%.*s", TEXT_ARGS(id));
	w->changed = true;
}

static const struct koine_value *selected_row(const struct approval_watch *w, size_t *ret_at)
{
	const struct koine_value *a = koine_value_first(watch_list(w));

	for (size_t i = 0; a; a = koine_value_next(a), i++) {
		if (is_selected(w, member_string(a, "id"))) {
			*ret_at = i;
			return a;
		}
	}
	return NULL;
}

/* Finds the row of the selected one again. If somebody else decided it, none is selected:
 * otherwise the next key would act on a different one than it was pressed for. A view of it, or
 * a comment being typed, stays. */
static void find_selected(struct approval_watch *w, bool was_empty)
{
	size_t n = koine_value_count(watch_list(w));

	if (selected_row(w, &w->at))
		return;
	if (w->at >= n)
		w->at = n > 0 ? n - 1 : 0;
	if (w->mode != WATCH_LIST)
		return;
	w->selected[0] = '\0';
	if (n > 0 && (was_empty || w->step_on))
		select_row(w, w->at);
	w->step_on = false;
}

static void back_to_list(struct approval_watch *w)
{
	w->mode = WATCH_LIST;
	find_selected(w, false);
}

static void on_list(void *arg, int result, const struct koine_answer *a)
{
	struct approval_watch *w = arg;
	bool was_empty = !koine_value_first(watch_list(w));
	struct koine_doc *doc;

	w->listing = false;
	if (!took(w, "approval.list", result, a))
		return;
	doc = doc_of_value(koine_answer_result(a));
	if (!doc)
		return;
	koine_doc_free(w->doc);
	w->doc = doc;
	find_selected(w, was_empty);
	w->changed = true;
}

static void ask_list(struct approval_watch *w)
{
	w->stale = false;
	w->listing =
		call(w, "approval.list", approval_list_params(w->cli, false, LIST_MAX), on_list);
}

static void on_subscribed(void *arg, int result, const struct koine_answer *a)
{
	struct approval_watch *w = arg;

	if (!took(w, "event.subscribe", result, a))
		return;
	w->stale = true;
	w->delay_ms = RETRY_MS;
	w->changed = true;
}

static void subscribe(struct approval_watch *w)
{
	w->subscribed = true;
	(void)call(w, "event.subscribe", approval_event_params(NULL, -1), on_subscribed);
}

/* If somebody else decided the selected one, a note says so. */
static void on_notification(void *arg, const char *method, size_t len,
			    const struct koine_value *whole)
{
	const struct koine_value *params = koine_value_get(whole, "params");
	const struct koine_value *data = koine_value_get(params, "data");
	struct approval_watch *w = arg;
	char said[400];
	size_t n;

	if (w->screen.leave)
		return;
	w->stale = true;
	if (w->busy || w->step_on || !text_is(member_string(params, "type"), "approval.resolved") ||
	    !is_selected(w, member_string(data, "approval_id")))
		return;
	n = (size_t)snprintf(said, sizeof(said), "%.*s was ",
			     TEXT_ARGS(member_string(data, "tool_name")));
	if (n < sizeof(said))
		approval_say_end(data, said + n, sizeof(said) - n);
	note(w, said);
}

/* ---- deciding ---- */

static void note_end(struct approval_watch *w, const char *before, const struct koine_value *end)
{
	char said[400];
	int n = snprintf(said, sizeof(said), "%s", before);

	approval_say_end(end, said + n, sizeof(said) - (size_t)n);
	note(w, said);
}

static void on_decided(void *arg, int result, const struct koine_answer *a)
{
	struct approval_watch *w = arg;
	char said[400];

	w->busy = false;
	if (w->screen.leave)
		return;
	w->stale = true;
	if (result < 0 || is_stopping(result, a)) {
		lost(w);
		note(w, "the connection was lost; whether that was decided, the list will tell");
	} else if (result == 0) {
		w->step_on = true;
		w->mode = WATCH_LIST;
		note_end(w, "", koine_answer_result(a));
	} else if (approval_quicker(a)) {
		note_end(w, "it is decided already: ", approval_quicker(a));
	} else {
		snprintf(said, sizeof(said), "%.*s", TEXT_ARGS(talk_error(a)));
		note(w, said);
	}
}

static void decide(struct approval_watch *w, const char *decision, struct text comment, bool grant)
{
	const struct approval_choice choice = {
		.id = text_of(w->selected),
		.decision = decision,
		.comment = comment,
		.grant = grant ? "session" : NULL,
	};

	w->busy = call(w, "approval.decide", approval_choice_params(&choice), on_decided);
}

static void begin_line(struct approval_watch *w, const char *decision)
{
	w->decision = decision;
	w->line_len = 0;
	w->mode_before = w->mode;
	w->mode = WATCH_LINE;
}

static void act(struct approval_watch *w, int key)
{
	const struct text none = {0};
	size_t at;
	const struct koine_value *a = selected_row(w, &at);

	if (!a) {
		note(w, w->mode == WATCH_VIEW              ? "it is decided already"
			: koine_value_first(watch_list(w)) ? "none is selected: j or k selects one"
							   : "there is none");
		return;
	}
	if (!w->subscribed) {
		note(w, "koined is away");
		return;
	}
	if (key == 'r' && approval_is_question(a))
		begin_line(w, "respond");
	else if (key == 'r')
		note(w, "it is no question: a approves, d denies");
	else if (approval_is_question(a))
		note(w, "it is a question: r answers it");
	else if (key == 'd')
		begin_line(w, "deny");
	else if (key == 'g' && member_string(a, "session_id").len == 0)
		note(w, "it belongs to no session: koine approve --grant always would do");
	else
		decide(w, "approve", none, key == 'g');
}

/* ---- all of one ---- */

static void on_got(void *arg, int result, const struct koine_answer *a)
{
	struct approval_watch *w = arg;

	if (w->screen.leave)
		return;
	if (result != 0) {
		note(w, "it is gone");
		w->stale = true;
		return;
	}
	if (view_fill(&w->view, koine_answer_result(a)) != 0) {
		note(w, "it is too large to be shown");
		return;
	}
	w->view_columns = 0;
	w->view_top = 0;
	w->mode = WATCH_VIEW;
	w->changed = true;
}

static void open_view(struct approval_watch *w)
{
	if (w->selected[0] && w->subscribed)
		(void)call(w, "approval.get", approval_id_params(text_of(w->selected), true),
			   on_got);
}

/* ---- keys ---- */

static void move(struct approval_watch *w, int by)
{
	size_t n = koine_value_count(watch_list(w));

	if (n == 0)
		return;
	if (!w->selected[0])
		select_row(w, w->at);
	else if (by < 0)
		select_row(w, w->at >= (size_t)-by ? w->at - (size_t)-by : 0);
	else
		select_row(w, w->at + (size_t)by < n ? w->at + (size_t)by : n - 1);
}

static void scroll(struct approval_watch *w, int by)
{
	if (by < 0)
		w->view_top = w->view_top >= (size_t)-by ? w->view_top - (size_t)-by : 0;
	else
		w->view_top += (size_t)by; /* drawing knows where the end is */
}

static bool move_by_key(struct approval_watch *w, int key)
{
	void (*go)(struct approval_watch *, int) = w->mode == WATCH_VIEW ? scroll : move;
	unsigned columns;
	unsigned rows;

	screen_size(&columns, &rows);
	if (key == 'j' || key == KEY_DOWN)
		go(w, 1);
	else if (key == 'k' || key == KEY_UP)
		go(w, -1);
	else if (key == KEY_PAGE_DOWN || key == ' ')
		go(w, rows > 3 ? (int)rows - 3 : 1);
	else if (key == KEY_PAGE_UP || key == 'b')
		go(w, rows > 3 ? 3 - (int)rows : -1);
	else if (key == KEY_HOME)
		go(w, -(1 << 30));
	else if (key == KEY_END)
		go(w, 1 << 30);
	else
		return false;
	return true;
}

static void plain_key(struct approval_watch *w, int key)
{
	bool viewing = w->mode == WATCH_VIEW;

	if (move_by_key(w, key))
		return;
	if (key == 'a' || key == 'd' || key == 'r' || key == 'g')
		act(w, key);
	else if (viewing && (key == 'q' || key == 'v' || key == '\n' || key == KEY_ESCAPE))
		back_to_list(w);
	else if (key == 'v' || key == '\n' || key == '\r')
		open_view(w);
	else if (key == 'q' || key == 'Q')
		w->screen.leave = true;
}

static void end_line(struct approval_watch *w)
{
	struct text typed = {.data = w->line, .len = w->line_len};

	w->mode = w->mode_before;
	if (typed.len == 0)
		note(w, "without words it stays as it is");
	else if (!w->subscribed)
		note(w, "koined is away");
	else
		decide(w, w->decision, typed, false);
	/* A terminal that does not mark pasted text may have more of it waiting. */
	screen_forget_keys();
}

static void add_byte(struct approval_watch *w, int byte)
{
	if (w->line_len < sizeof(w->line) - 1)
		w->line[w->line_len++] = (char)byte;
}

static void line_key(struct approval_watch *w, int key)
{
	if (key == '\n' || key == '\r') {
		end_line(w);
	} else if (key == KEY_ESCAPE) {
		w->mode = w->mode_before;
		find_selected(w, false);
	} else if (key == 0x7f || key == '\b') {
		while (w->line_len > 0 && ((unsigned char)w->line[--w->line_len] & 0xc0) == 0x80)
			;
	} else if (key == ('U' & 0x1f)) {
		w->line_len = 0;
	} else if (key >= 0x20 && key < 0x100) {
		add_byte(w, key);
	}
}

/* Pasted text never acts as keys. Its lines become one line; where no line is being typed it is
 * dropped. */
static void take_pasted(struct approval_watch *w, int byte)
{
	if (w->mode != WATCH_LINE || w->busy)
		return;
	if (byte == '\n' || byte == '\r' || byte == '\t')
		byte = ' ';
	if (byte >= 0x20 && byte != 0x7f)
		add_byte(w, byte);
	w->changed = true;
}

static void take_key(void *arg, int key)
{
	struct approval_watch *w = arg;

	if (key & KEY_PASTED) {
		take_pasted(w, key & 0xff);
		return;
	}
	w->changed = true;
	/* Keys pressed before a decision is answered were not meant for the next one. */
	if (w->busy && key != 'q')
		return;
	w->note[0] = '\0';
	if (w->mode == WATCH_LINE)
		line_key(w, key);
	else
		plain_key(w, key);
}

/* ---- the round ---- */

static int time_left(const struct approval_watch *w)
{
	uint64_t now = clock_steady_ms();
	uint64_t next = w->drawn_ms + EVERY_MS;

	if (w->keys.escape > 0 && w->keys.escape_ms + KEYS_ESCAPE_MS < next)
		next = w->keys.escape_ms + KEYS_ESCAPE_MS;
	if (!w->subscribed && w->retry_ms < next)
		next = w->retry_ms;
	return next <= now ? 0 : (int)(next - now);
}

static void talk(struct approval_watch *w)
{
	uint64_t now = clock_steady_ms();

	if (w->subscribed && koine_client_step(w->cli->client) != 0 && w->subscribed &&
	    !w->screen.leave)
		lost(w);
	if (!w->subscribed && !w->screen.leave && now >= w->retry_ms)
		subscribe(w);
	if (w->subscribed && w->stale && !w->listing && !w->screen.leave)
		ask_list(w);
}

static void on_byte(void *arg, char byte)
{
	struct approval_watch *w = arg;

	keys_take(&w->keys, byte, take_key, w);
}

static void on_redraw(void *arg)
{
	struct approval_watch *w = arg;

	w->changed = true;
}

static void go_on(void *arg)
{
	struct approval_watch *w = arg;

	screen_wait(&w->screen, w->subscribed ? w->cli->client : NULL, time_left(w));
	if (w->keys.escape > 0 && clock_steady_ms() >= w->keys.escape_ms + KEYS_ESCAPE_MS)
		keys_give_up(&w->keys, take_key, w);
	if (!w->screen.leave)
		talk(w);
	if (!w->screen.leave && (w->changed || clock_steady_ms() >= w->drawn_ms + EVERY_MS))
		watch_draw(w);
}

int approvals_watch(struct cli *cli)
{
	struct approval_watch w = {
		.cli = cli,
		.delay_ms = RETRY_MS,
		.screen = {.arg = &w, .key = on_byte, .redraw = on_redraw, .round = go_on},
	};
	int r = talk_connect(cli);

	if (r != 0)
		return r;
	view_init(&w.view);
	koine_client_on_notification(cli->client, on_notification, &w);
	r = screen_run(&w.screen);
	talk_hang_up(cli);
	koine_doc_free(w.doc);
	view_done(&w.view);
	return r;
}
