#include "cli/dialect/places.h"

#include <string.h>

#include "base/cleanup.h"
#include "cli/child/koined.h"
#include "cli/kit/call.h"
#include "cli/kit/print.h"
#include "cli/kit/table.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"

enum { LOOK_MS = 20000, SAYS_MAX = 1 << 20, WHO_MAX = 160 };

/* ---- looking ---- */

static int ask_koined(struct places *p)
{
	char program[PATH_MAX];
	CLEANUP(buf_donep) struct buf out;

	buf_init(&out, SAYS_MAX);
	if (!koined_find(program)) {
		complain("koined not found in koine's folder or in PATH");
		return EX_UNAVAILABLE;
	}
	if (koined_dialects(program, LOOK_MS, &out, &p->doc))
		return 0;
	/* It has said what is wrong with the settings. */
	print_text(stderr, text_without_newlines(buf_text(&out)));
	fputc('\n', stderr);
	return EX_CONFIG;
}

static void ask_running(struct cli *cli, struct places *p)
{
	char error[TALK_ERROR];

	if (talk_try(cli, &cli->client, error) != 0)
		return;
	if (koine_client_call(cli->client, "daemon.status", NULL, &p->status) != 0) {
		koine_answer_free(p->status);
		p->status = NULL;
	}
	talk_hang_up(cli);
}

int places_look(struct cli *cli, struct places *p)
{
	int r;

	*p = (struct places) {.doc = NULL};
	r = ask_koined(p);
	if (r == 0)
		ask_running(cli, p);
	return r;
}

void places_done(struct places *p)
{
	koine_doc_free(p->doc);
	koine_answer_free(p->status);
}

struct text places_config(const struct places *p)
{
	return member_string(koine_doc_root(p->doc), "config");
}

const struct koine_value *places_find(const struct places *p, const char *dialect)
{
	const struct koine_value *d = member_first(koine_doc_root(p->doc), "dialects");

	while (d && !member_is(d, "name", dialect))
		d = koine_value_next(d);
	return d;
}

/* ---- one dialect ---- */

/* Addresses where it listens; or would, if none runs. */
struct walk {
	const struct koine_value *at;
	struct text dialect; /* of the rows of daemon.status; {NULL, 0}: `at` are addresses */
};

static struct walk walk_begin(const struct places *p, const struct koine_value *d)
{
	if (!p->status)
		return (struct walk) {.at = member_first(d, "listen")};
	return (struct walk) {.at = member_first(koine_answer_result(p->status), "listeners"),
			      .dialect = member_text(d, "name")};
}

static bool walk_next(struct walk *w, struct text *ret_address)
{
	for (; w->at; w->at = koine_value_next(w->at)) {
		if (w->dialect.data && !text_equal(member_text(w->at, "dialect"), w->dialect))
			continue;
		*ret_address =
			w->dialect.data ? member_text(w->at, "address") : text_of_value(w->at);
		w->at = koine_value_next(w->at);
		return true;
	}
	return false;
}

bool places_listens(const struct places *p, const struct koine_value *d)
{
	struct walk w = walk_begin(p, d);
	struct text unused;

	return walk_next(&w, &unused);
}

/* In a project, the end of the path is what its clients know. */
static bool is_original(const struct koine_value *d, struct text address)
{
	struct text place = member_string(d, "original");

	if (!member_flag(d, "in_project"))
		return place.data && text_equal(place, address);
	return address.len > place.len &&
	       memcmp(address.data + address.len - place.len, place.data, place.len) == 0;
}

/*
 * on: where its clients look; own: at a place of ours; elsewhere: where the settings say; moved:
 * it should be where its clients look, but somebody else is there; off.
 */
static const char *state_of(const struct places *p, const struct koine_value *d)
{
	struct text setting = member_string(d, "setting");
	struct walk w = walk_begin(p, d);
	struct text address;
	bool listens = false;

	while (walk_next(&w, &address)) {
		listens = true;
		if (is_original(d, address))
			return "on";
	}
	if (!listens)
		return "off";
	if (setting.data && text_is(setting, "on") && member_string(d, "original").data)
		return "moved";
	/* One that was switched off may still listen until a restart. */
	if (setting.data && !text_is(setting, "on") && !text_is(setting, "off"))
		return "elsewhere";
	return "own";
}

/* Who is at the place where its clients look. */
static void who_is_there(const struct places *p, const struct koine_value *d, char out[WHO_MAX])
{
	const struct koine_value *o = koine_value_get(d, "occupant");
	int64_t pid = p->status ? member_number(koine_answer_result(p->status), "pid") : 0;

	if (koine_value_kind(o) != KOINE_OBJECT)
		snprintf(out, WHO_MAX, "-");
	else if (pid > 0 && member_number(o, "pid") == pid)
		snprintf(out, WHO_MAX, "this koined");
	else
		member_copy(o, "text", out, WHO_MAX);
}

/* ---- showing ---- */

static enum color state_color(const char *state)
{
	if (strcmp(state, "off") == 0)
		return COLOR_GREY;
	return strcmp(state, "moved") == 0 ? COLOR_YELLOW : COLOR_GREEN;
}

static void add_row(struct table *t, const struct koine_value *d, const char *state,
		    const char *who)
{
	struct text original = member_string(d, "original");

	table_cell(t, member_text(d, "name"));
	table_cell_color(t, text_of(state), state_color(state));
	table_cell(t, original.data ? original : TEXT("-"));
	table_cell_str(t, who);
}

/* A line for each address; what is said of the dialect stands in the first. */
static void add_dialect(struct table *t, const struct places *p, const struct koine_value *d)
{
	struct walk w = walk_begin(p, d);
	struct text address;
	char who[WHO_MAX];
	unsigned n = 0;

	who_is_there(p, d, who);
	while (walk_next(&w, &address)) {
		if (n++ == 0)
			add_row(t, d, state_of(p, d), who);
		else
			for (unsigned i = 0; i < 4; i++)
				table_cell_str(t, "");
		table_cell(t, address);
	}
	if (n == 0) {
		add_row(t, d, state_of(p, d), who);
		table_cell_str(t, "-");
	}
}

static int print_table(const struct cli *cli, const struct places *p)
{
	static const char *const titles[] = {"DIALECT", "STATE", "USUAL ADDRESS", "USED BY",
					     "LISTENS AT"};
	const struct koine_value *d = member_first(koine_doc_root(p->doc), "dialects");
	CLEANUP(table_freep) struct table *t = table_new("lllll");

	for (unsigned i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		table_cell_str(t, titles[i]);
	for (; d; d = koine_value_next(d))
		add_dialect(t, p, d);
	if (!p->status)
		fputs("koined is not running; when started as a service, it would listen at:\n",
		      stderr);
	return table_print(t, stdout, cli->color);
}

static void write_dialect(struct koine_json *j, const struct places *p, const struct koine_value *d)
{
	struct walk w = walk_begin(p, d);
	struct text address;
	char who[WHO_MAX];

	who_is_there(p, d, who);
	koine_json_begin_object(j);
	params_add_text(j, "dialect", member_text(d, "name"));
	params_add(j, "state", state_of(p, d));
	params_add_text(j, "setting", member_string(d, "setting"));
	params_add_text(j, "original", member_string(d, "original"));
	params_add(j, "there", strcmp(who, "-") == 0 ? NULL : who);
	koine_json_key(j, "listens");
	koine_json_begin_array(j);
	while (walk_next(&w, &address))
		koine_json_text_n(j, address.data, address.len);
	koine_json_end_array(j);
	koine_json_end_object(j);
}

static int print_json(const struct places *p)
{
	const struct koine_value *d = member_first(koine_doc_root(p->doc), "dialects");
	CLEANUP(json_freep) struct koine_json *j = params_new();
	const char *text;

	params_add_text(j, "config", places_config(p));
	params_add_bool(j, "running", p->status != NULL);
	koine_json_key(j, "dialects");
	koine_json_begin_array(j);
	for (; d; d = koine_value_next(d))
		write_dialect(j, p, d);
	koine_json_end_array(j);
	text = params_end(j);
	return text ? (puts(text), EX_OK) : out_of_memory();
}

int places_print(const struct cli *cli, const struct places *p)
{
	return cli->options.json ? print_json(p) : print_table(cli, p);
}
