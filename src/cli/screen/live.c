#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"
#include "cli/screen/live.h"

enum {
	RETRY_MS = 100,
	RETRY_MAX_MS = 2000,
	EVERY_MS = 1000, /* how often ages are redrawn */
	FRAME_MS = 40,   /* a burst of events is not a burst of frames */
	ESCAPE_MS = 50,  /* an Escape that nothing follows is a key */
};

/* ---- keys ---- */

enum { PASTE_BEGIN = 200, PASTE_END = 201 }; /* ESC [ 200 ~ */

static int by_letter(char last)
{
	switch (last) {
	case 'A':
		return KEY_UP;
	case 'B':
		return KEY_DOWN;
	case 'H':
		return KEY_HOME;
	case 'F':
		return KEY_END;
	default:
		return 0;
	}
}

/* Home and End are 1 and 4 in tmux and on the console, 7 and 8 in rxvt. */
static int by_number(unsigned number)
{
	static const int keys[] = {
		[1] = KEY_HOME,      [4] = KEY_END,  [5] = KEY_PAGE_UP,
		[6] = KEY_PAGE_DOWN, [7] = KEY_HOME, [8] = KEY_END,
	};

	return number < sizeof(keys) / sizeof(keys[0]) ? keys[number] : 0;
}

/* ESC [ A, ESC O A, ESC [ 5 ~: numbers continue up to a letter or ~. */
static void take_escaped(struct live_view *l, char byte)
{
	struct keys *k = &l->keys;
	bool digit = byte >= '0' && byte <= '9';
	int key = 0;

	if (digit || byte == ';') {
		if (digit && k->number < 1000)
			k->number = 10 * k->number + (unsigned)(byte - '0');
		k->escape = 3;
		return;
	}
	if (byte == '~' && (k->number == PASTE_BEGIN || k->number == PASTE_END))
		k->pasting = k->number == PASTE_BEGIN;
	else
		key = byte == '~' ? by_number(k->number) : k->escape == 2 ? by_letter(byte) : 0;
	k->escape = 0;
	if (key && !k->pasting)
		l->key(l->arg, key);
}

static void give_up_escape(struct live_view *l)
{
	bool alone = l->keys.escape == 1 && !l->keys.pasting;

	l->keys.escape = 0;
	if (alone)
		l->key(l->arg, KEY_ESCAPE);
}

static void take_byte(struct live_view *l, char byte)
{
	struct keys *k = &l->keys;

	if (k->escape == 1 && byte != '[' && byte != 'O')
		give_up_escape(l);
	if (k->escape == 0 && byte == '\033') {
		k->escape = 1;
		k->number = 0;
		k->escape_ms = clock_steady_ms();
	} else if (k->escape == 0) {
		l->key(l->arg, (k->pasting ? KEY_PASTED : 0) | (unsigned char)byte);
	} else if (k->escape == 1) {
		k->escape = 2;
	} else {
		take_escaped(l, byte);
	}
}

/* ---- a frame ---- */

void canvas_row(struct canvas *c, unsigned row)
{
	c->room = c->columns;
	c->terminal->row(row);
}

void canvas_style(struct canvas *c, unsigned style)
{
	c->terminal->style(c->color ? style : style & (STYLE_BOLD | STYLE_REVERSE));
}

static void put_all(struct canvas *c, struct text t)
{
	struct glyph g;

	for (size_t i = 0; i < t.len; i += g.used) {
		c->read(&g, t.data + i, t.data + t.len);
		c->terminal->put(&g);
	}
}

/* Returns the columns used. */
static unsigned print_in(struct canvas *c, struct text t, unsigned columns)
{
	static const struct glyph mark = {.shown = "…", .len = 3, .width = 1};
	size_t n = text_fitting_by(t, columns, c->read);
	bool cut = n < t.len && columns > 0;

	t.len = cut ? text_fitting_by(t, columns - 1, c->read) : n;
	put_all(c, t);
	if (cut)
		c->terminal->put(&mark);
	return (unsigned)text_columns_by(t, c->read) + cut;
}

void canvas_print(struct canvas *c, struct text t)
{
	c->room -= print_in(c, t, c->room);
}

void canvas_print_str(struct canvas *c, const char *text)
{
	canvas_print(c, text_of(text));
}

void canvas_put(struct canvas *c, struct text t, unsigned width)
{
	static const struct glyph space = {.shown = " ", .len = 1, .width = 1};
	unsigned most = width < c->room ? width : c->room;
	unsigned used;

	if (most == 0)
		return;
	used = print_in(c, t, most);
	c->room -= most;
	if (c->room > 0) {
		most++;
		c->room--;
	}
	for (; used < most; used++)
		c->terminal->put(&space);
}

/* ---- rows ---- */

enum { ID_WIDTH = 9, STATE_WIDTH = 9, SPAN_WIDTH = 6 };

bool rows_begin(struct rows *r)
{
	if (r->at >= r->end)
		return false;
	canvas_row(r->canvas, r->at++);
	return true;
}

void rows_below(struct rows *r, struct text t)
{
	if (t.len == 0 || !rows_begin(r))
		return;
	canvas_put(r->canvas, TEXT(""), 3);
	canvas_style(r->canvas, STYLE_COLOR(COLOR_GREY));
	canvas_print(r->canvas, t);
}

bool rows_work(struct rows *r, const struct live_work *w)
{
	if (!rows_begin(r))
		return false;
	canvas_put(r->canvas, w->id, ID_WIDTH);
	canvas_style(r->canvas, STYLE_COLOR(w->color));
	canvas_put(r->canvas, w->state, STATE_WIDTH);
	canvas_style(r->canvas, STYLE_PLAIN);
	canvas_put(r->canvas, text_of(w->span), SPAN_WIDTH);
	canvas_put(r->canvas, w->where, w->where_width);
	canvas_print(r->canvas, w->title);
	return true;
}

/* ---- the terminal ---- */

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP, SIGCONT};

static volatile sig_atomic_t wants_leave;
static volatile sig_atomic_t wants_stop;
static volatile sig_atomic_t has_changed;

static void on_signal(int number)
{
	if (number == SIGWINCH || number == SIGCONT)
		has_changed = 1;
	else if (number == SIGTSTP)
		wants_stop = 1;
	else
		wants_leave = 1;
}

static void enter(struct live_view *l)
{
	struct termios raw = l->before;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	if (l->terminal && l->terminal->enter())
		return;
	l->terminal = &terminal_plain;
	l->terminal->enter();
}

static void leave(const struct live_view *l)
{
	l->terminal->leave();
	tcsetattr(STDIN_FILENO, TCSADRAIN, &l->before);
}

static void screen_live_end(const struct live_view *l)
{
	leave(l);
	signals_restore(&l->signals);
}

void live_forget_keys(void)
{
	(void)tcflush(STDIN_FILENO, TCIFLUSH);
}

void live_size(unsigned *ret_columns, unsigned *ret_rows)
{
	struct winsize size = {0};

	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	*ret_columns = size.ws_col > 0 ? size.ws_col : 80;
	*ret_rows = size.ws_row > 0 ? size.ws_row : 24;
	if (*ret_columns > TERMINAL_COLUMNS_MAX)
		*ret_columns = TERMINAL_COLUMNS_MAX;
	if (*ret_rows > TERMINAL_ROWS_MAX)
		*ret_rows = TERMINAL_ROWS_MAX;
}

static void take_key(struct live_view *l)
{
	char byte;
	ssize_t n = read(STDIN_FILENO, &byte, 1);

	if (n == 1)
		take_byte(l, byte);
	else if (n == 0 || errno != EINTR)
		l->leave = true;
}

static int shorter(int a, int b)
{
	return a >= 0 && a < b ? a : b;
}

/* Waits for a key, a signal, what the client waits for (NULL: nothing), or so many milliseconds.
 * Ctrl-C, or a terminal that is gone, ends the view. */
static void wait_once(struct live_view *l, const struct koine_client *c, int ms)
{
	struct pollfd p[] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = c ? koine_client_fd(c) : -1, .events = c ? koine_client_events(c) : 0},
	};
	int n = signals_poll(&l->signals, p, 2, c ? shorter(koine_client_timeout_ms(c), ms) : ms);

	if (wants_leave) {
		l->leave = true;
		return;
	}
	if (!wants_stop && !has_changed) {
		if (n > 0 && p[0].revents)
			take_key(l);
		return;
	}
	if (wants_stop) {
		/* Ctrl-Z: the shell gets its own screen back until we continue. */
		leave(l);
		raise(SIGSTOP);
		enter(l);
	} else {
		has_changed = 0;
	}
	wants_stop = 0;
	l->terminal->forget();
	l->changed = true;
}

static void draw(struct live_view *l)
{
	struct canvas c = {
		.terminal = l->terminal, .color = l->cli->color, .read = glyph_read_exact};

	l->changed = false;
	live_size(&c.columns, &c.rows);
	l->terminal->begin(c.columns, c.rows);
	l->draw(l->arg, &c);
	l->terminal->end(c.cursor);
	l->drawn_ms = clock_steady_ms();
}

/* ---- the connection ---- */

void live_lost(struct live_view *l)
{
	bool was_here = l->here;

	l->here = l->subscribing = false;
	l->retry_ms = clock_steady_ms() + l->delay_ms;
	l->delay_ms = 2 * l->delay_ms < RETRY_MAX_MS ? 2 * l->delay_ms : RETRY_MAX_MS;
	l->changed = true;
	for (unsigned i = 0; i < l->n_parts; i++)
		l->parts[i].open = false;
	if (was_here && l->away)
		l->away(l->arg);
}

const char *live_away_words(const struct live_view *l)
{
	return l->was_here ? "lost connection to koined; reconnecting" : "connecting to koined";
}

bool live_is_loss(int result, const struct koine_answer *a)
{
	return result < 0 ||
	       (result == KOINE_ERROR_ANSWER && koine_answer_error_code(a) == CODE_STOPPING);
}

bool live_took(struct live_view *l, const char *method, int result, const struct koine_answer *a)
{
	if (l->leave || result == 0)
		return !l->leave;
	if (live_is_loss(result, a)) {
		live_lost(l);
		return false;
	}
	/* The terminal is restored at once, so that the error can be printed. */
	screen_live_end(l);
	l->leave = true;
	l->status = EXIT_ERROR_ANSWER;
	if (a)
		talk_print_error(method, a);
	return false;
}

bool live_call(struct live_view *l, const char *method, struct koine_json *params,
	       koine_answer_cb cb, void *arg)
{
	int r;

	l->n_calls++;
	r = call_async(l->cli->client, method, params, cb, arg, NULL);
	if (r != 0)
		live_lost(l);
	return r == 0;
}

static void on_subscribed(void *arg, int result, const struct koine_answer *a)
{
	struct live_view *l = arg;

	if (!live_took(l, "event.subscribe", result, a))
		return;
	l->subscribing = false;
	l->here = l->was_here = l->changed = true;
	l->delay_ms = RETRY_MS;
	l->ask_ms = 0;
	for (unsigned i = 0; i < l->n_parts; i++) {
		l->parts[i].stale = true;
		l->parts[i].open = false;
		l->parts[i].asked_ms = 0;
	}
	if (l->back)
		l->back(l->arg);
}

/* Before anything is asked: what changes after the answer is told. */
static void subscribe(struct live_view *l)
{
	struct koine_json *j = params_new();

	params_add_list(j, "types", l->types);
	l->subscribing = true;
	(void)live_call(l, "event.subscribe", j, on_subscribed, l);
}

/* ---- the parts ---- */

const struct koine_value *live_member(const struct live_part *p, const char *member)
{
	return koine_value_get(koine_doc_root(p->doc), member);
}

static bool is_changed(const struct live_part *p, struct text type)
{
	bool changed = false;

	for (int i = 0; i < 2 && p->row->events[i]; i++)
		changed |= text_begins(type, text_of(p->row->events[i]));
	return changed;
}

static void screen_live_keep(struct live_part *p, const struct koine_value *result)
{
	struct koine_doc *doc = result ? doc_of_value(result) : NULL;

	if (result && !doc)
		return;
	koine_doc_free(p->doc);
	p->doc = doc;
}

static bool is_asking(const struct live_view *l)
{
	bool asking = false;

	for (unsigned i = 0; i < l->n_parts; i++)
		asking |= l->parts[i].open;
	return asking;
}

static void on_part(void *arg, int result, const struct koine_answer *a)
{
	struct live_part *p = arg;
	struct live_view *l = p->live;
	const struct koine_value *v = result == 0 ? koine_answer_result(a) : NULL;

	p->open = false;
	if (l->leave || (p->row->needed && !live_took(l, p->row->method, result, a)))
		return;
	if (live_is_loss(result, a)) {
		live_lost(l);
		return;
	}
	if (!p->row->passing)
		screen_live_keep(p, v);
	if (p->row->took)
		p->row->took(p->arg, v);
	/* Parts that belong together are drawn together. */
	l->changed |= !p->row->needed || !is_asking(l);
}

static bool ask_part(struct live_view *l, struct live_part *p, uint64_t now)
{
	const struct live_row *row = p->row;
	struct koine_json *j = params_new();

	for (int i = 0; i < 2; i++)
		params_add_raw(j, row->with[i][0], text_of(row->with[i][1]));
	if (row->limit > 0)
		params_add_int(j, "limit", row->limit);
	if (row->add)
		row->add(p->arg, j);
	p->live = l;
	p->stale = false;
	p->open = true;
	p->asked_ms = now;
	return live_call(l, row->method, j, on_part, p);
}

static uint64_t due_ms(const struct live_part *p)
{
	bool polled = p->row->polled && koine_value_first(live_member(p, p->row->polled));
	bool soon = p->stale || polled;

	if (p->open || (!soon && p->row->most_ms == 0))
		return UINT64_MAX;
	return p->asked_ms == 0
		       ? 0
		       : p->asked_ms + (uint64_t)(soon ? p->row->least_ms : p->row->most_ms);
}

/* When it is to be called next. */
static uint64_t screen_live_ask(struct live_view *l)
{
	uint64_t now = clock_steady_ms(), next = UINT64_MAX;

	for (unsigned i = 0; i < l->n_parts && l->here; i++) {
		if (due_ms(&l->parts[i]) <= now && !ask_part(l, &l->parts[i], now))
			break;
		if (due_ms(&l->parts[i]) < next)
			next = due_ms(&l->parts[i]);
	}
	return next;
}

static void on_notification(void *arg, const char *method, size_t len,
			    const struct koine_value *whole)
{
	const struct koine_value *event = koine_value_get(whole, "params");
	struct live_view *l = arg;

	if (l->leave || !l->here)
		return;
	for (unsigned i = 0; i < l->n_parts; i++)
		l->parts[i].stale |= is_changed(&l->parts[i], member_string(event, "type"));
	if (l->told)
		l->told(l->arg, event);
}

static bool is_talking(const struct live_view *l)
{
	return l->here || l->subscribing;
}

static void talk(struct live_view *l)
{
	if (is_talking(l) && koine_client_step(l->cli->client) != 0 && is_talking(l) && !l->leave)
		live_lost(l);
	if (!is_talking(l) && !l->leave && clock_steady_ms() >= l->retry_ms)
		subscribe(l);
	if (l->here && !l->leave)
		l->ask_ms = screen_live_ask(l);
}

/* ---- the round ---- */

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int time_left(const struct live_view *l)
{
	uint64_t now = clock_steady_ms();
	uint64_t next = l->drawn_ms + (l->changed ? FRAME_MS : EVERY_MS);

	if (l->keys.escape > 0)
		next = sooner(next, l->keys.escape_ms + ESCAPE_MS);
	if (!is_talking(l))
		next = sooner(next, l->retry_ms);
	if (l->here)
		next = sooner(next, l->ask_ms);
	return next <= now ? 0 : (int)(next - now);
}

static void screen_live_go_on(struct live_view *l)
{
	wait_once(l, is_talking(l) ? l->cli->client : NULL, time_left(l));
	if (l->keys.escape > 0 && clock_steady_ms() >= l->keys.escape_ms + ESCAPE_MS)
		give_up_escape(l);
	if (!l->leave)
		talk(l);
	if (!l->leave &&
	    clock_steady_ms() >= l->drawn_ms + (unsigned)(l->changed ? FRAME_MS : EVERY_MS))
		draw(l);
}

static int screen_live_run(struct live_view *l)
{
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
	    tcgetattr(STDIN_FILENO, &l->before) != 0)
		return EX_USAGE;
	wants_leave = wants_stop = has_changed = 0;
	signals_catch(&l->signals, numbers, sizeof(numbers) / sizeof(numbers[0]), on_signal);
	l->terminal = terminal_curses;
	enter(l);
	while (!l->leave)
		screen_live_go_on(l);
	if (l->status == 0)
		screen_live_end(l);
	return l->status;
}

int live_run(struct live_view *l)
{
	int r = talk_connect(l->cli);

	if (r != 0)
		return r;
	l->delay_ms = RETRY_MS;
	koine_client_on_notification(l->cli->client, on_notification, l);
	r = screen_live_run(l);
	/* Callbacks of pending calls may still use what the caller has. */
	talk_hang_up(l->cli);
	for (unsigned i = 0; i < l->n_parts; i++)
		koine_doc_free(l->parts[i].doc);
	return r;
}
