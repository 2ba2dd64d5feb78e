/* koine approvals -w on a terminal: its calls and its keys. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "cli/approval/watch.h"

enum {
	LIST_MAX = 200,
	RETRY_MS = 100,
	RETRY_MAX_MS = 2000,
	EVERY_MS = 1000, /* ages are drawn anew */
	STOPPING_CODE = -32008,
};

static void json_freep(struct koine_json **j)
{
	koine_json_free(*j);
}

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

static void note(struct approval_watch *w, const char *words)
{
	snprintf(w->note, sizeof(w->note), "%s", words);
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
	return result == KOINE_ERROR_ANSWER && koine_answer_error_code(a) == STOPPING_CODE;
}

/* True: go on with the answer. Without the list there is nothing to do here. */
static bool took(struct approval_watch *w, const char *method, int result,
		 const struct koine_answer *a)
{
	if (w->leave || result == 0)
		return !w->leave;
	if (result < 0 || is_stopping(result, a)) {
		lost(w);
		return false;
	}
	screen_end(&w->screen);
	w->leave = true;
	w->status = EXIT_ERROR_ANSWER;
	if (a)
		talk_print_error(method, a);
	return false;
}

/* 0, or the connection is lost. */
static int call(struct approval_watch *w, const char *method, struct koine_json *params,
		koine_answer_cb cb)
{
	const char *text = params ? koine_json_text(params, NULL) : NULL;
	int r = text ? koine_client_call_async(w->client, method, text, cb, w, NULL) : -ENOMEM;

	if (r != 0)
		lost(w);
	return r;
}

/* ---- the list ---- */

static bool is_selected(const struct approval_watch *w, struct text id)
{
	return w->selected[0] && text_is(id, w->selected);
}

static void select_row(struct approval_watch *w, size_t at)
{
	struct text id = approval_member(watch_row(w, at), "id");

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
		if (is_selected(w, approval_member(a, "id"))) {
			*ret_at = i;
			return a;
		}
	}
	return NULL;
}

/* Where the selected one stands now. If somebody else took it away, none is: the next key would
 * mean another one than it was pressed for. Who is looking at it, or writing about it, stays. */
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
	struct koine_doc *doc = NULL;
	const char *raw;
	size_t len;

	w->listing = false;
	if (!took(w, "approval.list", result, a))
		return;
	raw = koine_value_raw(koine_answer_result(a), &len);
	if (koine_doc_parse(raw, len, &doc, NULL, 0) != 0)
		return;
	koine_doc_free(w->doc);
	w->doc = doc;
	find_selected(w, was_empty);
	w->changed = true;
}

static void ask_list(struct approval_watch *w)
{
	CLEANUP(json_freep) struct koine_json *j = approval_list_params(w->cli, false, LIST_MAX);

	w->stale = false;
	w->listing = call(w, "approval.list", j, on_list) == 0;
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
	CLEANUP(json_freep) struct koine_json *j = NULL;

	if (koine_json_new(&j) == 0) {
		koine_json_begin_object(j);
		koine_json_key(j, "types");
		koine_json_begin_array(j);
		koine_json_string(j, "approval.*");
		koine_json_end_array(j);
		koine_json_end_object(j);
	}
	w->subscribed = true;
	(void)call(w, "event.subscribe", j, on_subscribed);
}

/* Somebody else decided what we look at: that is worth a word. */
static void on_notification(void *arg, const char *method, size_t len,
			    const struct koine_value *whole)
{
	const struct koine_value *params = koine_value_get(whole, "params");
	const struct koine_value *data = koine_value_get(params, "data");
	struct approval_watch *w = arg;
	char words[400];
	size_t n;

	if (w->leave)
		return;
	w->stale = true;
	if (w->busy || w->step_on ||
	    !text_is(approval_member(params, "type"), "approval.resolved") ||
	    !is_selected(w, approval_member(data, "approval_id")))
		return;
	n = (size_t)snprintf(words, sizeof(words), "%.*s was ",
			     TEXT_ARGS(approval_member(data, "tool_name")));
	if (n < sizeof(words))
		approval_say_end(data, words + n, sizeof(words) - n);
	note(w, words);
}

/* ---- deciding ---- */

static void on_decided(void *arg, int result, const struct koine_answer *a)
{
	struct approval_watch *w = arg;
	const struct koine_value *end = koine_answer_result(a);
	char words[400] = "it is decided already: ";
	size_t n = strlen(words);
	struct text message = {0};

	w->busy = false;
	if (w->leave)
		return;
	w->stale = true;
	if (result < 0 || is_stopping(result, a)) {
		lost(w);
		note(w, "the connection was lost; whether that was decided, the list will tell");
		return;
	}
	if (result == 0) {
		w->step_on = true;
		w->mode = WATCH_LIST;
		n = 0;
	} else {
		end = approval_quicker(a);
	}
	if (end) {
		approval_say_end(end, words + n, sizeof(words) - n);
		note(w, words);
		return;
	}
	message.data = koine_answer_error_message(a, &message.len);
	snprintf(words, sizeof(words), "%.*s", TEXT_ARGS(message));
	note(w, words);
}

static void decide(struct approval_watch *w, const char *decision, struct text comment, bool grant)
{
	const struct approval_choice choice = {
		.id = text_of(w->selected),
		.decision = decision,
		.comment = comment,
		.grant = grant ? "session" : NULL,
	};
	CLEANUP(json_freep) struct koine_json *j = approval_choice_params(&choice);

	w->busy = call(w, "approval.decide", j, on_decided) == 0;
}

static bool is_question(const struct koine_value *a)
{
	return text_is(approval_member(a, "kind"), "human_contact");
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
	if (key == 'r' && is_question(a))
		begin_line(w, "respond");
	else if (key == 'r')
		note(w, "it is no question: a approves, d denies");
	else if (is_question(a))
		note(w, "it is a question: r answers it");
	else if (key == 'd')
		begin_line(w, "deny");
	else if (key == 'g' && approval_member(a, "session_id").len == 0)
		note(w, "it belongs to no session: koine approve --grant always would do");
	else
		decide(w, "approve", none, key == 'g');
}

/* ---- all of one ---- */

static void on_got(void *arg, int result, const struct koine_answer *a)
{
	struct approval_watch *w = arg;

	if (w->leave)
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
	CLEANUP(json_freep) struct koine_json *j = NULL;

	if (!w->selected[0] || !w->subscribed)
		return;
	j = approval_id_params(text_of(w->selected), true);
	(void)call(w, "approval.get", j, on_got);
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

static bool moves(struct approval_watch *w, int key)
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

	if (moves(w, key))
		return;
	if (key == 'a' || key == 'd' || key == 'r' || key == 'g')
		act(w, key);
	else if (viewing && (key == 'q' || key == 'v' || key == '\n' || key == KEY_ESCAPE))
		back_to_list(w);
	else if (key == 'v' || key == '\n' || key == '\r')
		open_view(w);
	else if (key == 'q' || key == 'Q')
		w->leave = true;
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
	/* The rest of what was pasted where the terminal does not mark it. */
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

/* What is pasted is words, never keys: its lines become one, and where none is typed it is
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
	/* What is typed ahead of an answer was not meant for what comes after it. */
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
	int ms = koine_client_timeout_ms(w->client);

	if (w->keys.escape > 0 && w->keys.escape_ms + KEYS_ESCAPE_MS < next)
		next = w->keys.escape_ms + KEYS_ESCAPE_MS;
	if (!w->subscribed && w->retry_ms < next)
		next = w->retry_ms;
	if (next <= now)
		return 0;
	return ms >= 0 && (uint64_t)ms < next - now ? ms : (int)(next - now);
}

static void talk(struct approval_watch *w)
{
	uint64_t now = clock_steady_ms();

	if (w->subscribed && koine_client_step(w->client) != 0 && w->subscribed && !w->leave)
		lost(w);
	if (!w->subscribed && !w->leave && now >= w->retry_ms)
		subscribe(w);
	if (w->subscribed && w->stale && !w->listing && !w->leave)
		ask_list(w);
}

static void turn(struct approval_watch *w)
{
	int fd = w->subscribed ? koine_client_fd(w->client) : -1;
	char byte = 0;

	switch (screen_wait(&w->screen, fd, koine_client_events(w->client), time_left(w), &byte)) {
	case SCREEN_LEAVE:
		w->leave = true;
		break;
	case SCREEN_KEY:
		keys_take(&w->keys, byte, take_key, w);
		break;
	case SCREEN_RESIZED:
		fputs("\033[2J", stdout);
		w->changed = true;
		break;
	case SCREEN_IDLE:
		break;
	}
	if (w->keys.escape > 0 && clock_steady_ms() >= w->keys.escape_ms + KEYS_ESCAPE_MS)
		keys_give_up(&w->keys, take_key, w);
	if (!w->leave)
		talk(w);
	if (!w->leave && (w->changed || clock_steady_ms() >= w->drawn_ms + EVERY_MS))
		watch_draw(w);
}

static int run(struct approval_watch *w)
{
	if (screen_begin(&w->screen) != 0) {
		complain("this needs a terminal");
		return EX_USAGE;
	}
	koine_client_on_notification(w->client, on_notification, w);
	subscribe(w);
	while (!w->leave)
		turn(w);
	if (w->status == 0)
		screen_end(&w->screen);
	return w->status;
}

int approvals_watch(struct cli *cli)
{
	static char frame[64 << 10];
	struct approval_watch w = {.cli = cli, .delay_ms = RETRY_MS};
	int r = talk_dial(cli, NULL, NULL, &w.client);

	if (r != 0)
		return r;
	view_init(&w.view);
	/* A frame is written at once, or it would flicker. */
	setvbuf(stdout, frame, _IOFBF, sizeof(frame));
	r = run(&w);
	w.leave = true;
	koine_client_free(w.client);
	koine_doc_free(w.doc);
	view_done(&w.view);
	return r;
}
