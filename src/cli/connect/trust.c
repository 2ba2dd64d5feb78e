/*
 * Hooks that an agent runs only if its user has trusted them, as Codex does: in its settings stands
 * a hash for each, under a key that names the hook's place. Both are the agent's own to make, so
 * the program is asked. It is shown the hooks as they would be, in a folder of their own: nothing
 * of the user's is there, and nothing of the user's changes.
 *
 * Only hooks that start koine, in the file that koine writes, are ever looked at.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "cli/child/child.h"
#include "cli/connect/json_file.h"
#include "cli/connect/ours.h"
#include "cli/connect/plan.h"
#include "cli/connect/toml_file.h"
#include "cli/kit/call.h"
#include "cli/kit/place.h"
#include "cli/kit/print.h"

enum { TRUST_HASH_MAX = 128 };

/* A hook of ours. */
struct connect_trust {
	char place[64];            /* "permission_request:0:0" */
	char hash[TRUST_HASH_MAX]; /* "": unknown */
};

struct trusts {
	struct connect_trust items[TRUSTS_MAX];
	unsigned n;
};

enum { PATIENCE_MS = 10000 };

/* ---- which hooks are ours ---- */

/* "PermissionRequest" is permission_request there. */
static void add_event(struct buf *out, struct text event)
{
	for (size_t i = 0; i < event.len; i++) {
		unsigned char c = (unsigned char)event.data[i];

		if (isupper(c) && i > 0)
			buf_add_char(out, '_');
		buf_add_char(out, (char)tolower(c));
	}
}

static int add_trust(struct trusts *t, struct text event, unsigned group, unsigned at,
		     struct error *error)
{
	CLEANUP(buf_donep) struct buf place;

	buf_init(&place, sizeof(t->items[0].place) - 1);
	add_event(&place, event);
	buf_printf(&place, ":%u:%u", group, at);
	if (t->n == TRUSTS_MAX || place.err == -EMSGSIZE)
		return refuse(error, REFUSE_LIMIT, "more than %d koine hooks", TRUSTS_MAX);
	if (place.err != 0)
		return place.err;
	snprintf(t->items[t->n].place, sizeof(t->items[0].place), "%.*s",
		 TEXT_ARGS(buf_text(&place)));
	t->items[t->n++].hash[0] = '\0';
	return 0;
}

static int find_in(const struct koine_value *groups, struct text event, struct trusts *t,
		   struct error *error)
{
	const struct koine_value *group = koine_value_first(groups);
	int r = 0;

	for (unsigned g = 0; group && r == 0; group = koine_value_next(group), g++) {
		const struct koine_value *hook = member_first(group, "hooks");

		for (unsigned i = 0; hook && r == 0; hook = koine_value_next(hook), i++) {
			if (ours_is_command(member_string(hook, "command")))
				r = add_trust(t, event, g, i, error);
		}
	}
	return r;
}

/* Those in a file of hooks, in the order of the edits that make them. Refuses a file that is not
 * understood, or that has too many. */
static int trust_find(struct text hooks, const struct edit *edits, unsigned n, struct trusts *t,
		      struct error *error)
{
	CLEANUP(json_file_close) struct json_file f;
	int r = json_file_open(&f, hooks, false, error);

	t->n = 0;
	for (unsigned i = 0; i < n && r == 0; i++) {
		struct text event = text_base_name(text_of(edits[i].path));
		const struct koine_value *groups =
			koine_value_get(koine_value_get(f.root, "hooks"), event.data);

		r = find_in(groups, event, t, error);
	}
	return r;
}

/* ---- asking the agent ---- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	remove(path);
	return 0;
}

static void remove_folder(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* A folder as the agent's own, with nothing but the hooks; links followed, as the agent does. */
static bool make_folder(struct text hooks, char folder[PATH_MAX])
{
	const char *temp = option_from_environment("TMPDIR");
	CLEANUP(closep) int fd = -1;
	char made[PATH_MAX];
	char path[PATH_MAX + sizeof("/hooks.json")];

	if (snprintf(made, sizeof(made), "%s/koine-XXXXXX", temp ? temp : "/tmp") >= PATH_MAX ||
	    !mkdtemp(made))
		return false;
	if (!realpath(made, folder)) {
		rmdir(made);
		return false;
	}
	snprintf(path, sizeof(path), "%s/hooks.json", folder);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0 && file_write_all(fd, hooks.data, hooks.len) == 0)
		return true;
	remove_folder(folder);
	return false;
}

static bool is_hash(struct text hash)
{
	for (size_t i = 0; i < hash.len; i++) {
		if (!isalnum((unsigned char)hash.data[i]) && !memchr(":-_+/=", hash.data[i], 6))
			return false;
	}
	return hash.len > 0 && hash.len < TRUST_HASH_MAX;
}

/* What the agent says of one hook. Its key is the path of the hooks, and the place in them. */
static void note(const struct koine_value *hook, const char *folder, struct trusts *t)
{
	struct text key = member_string(hook, "key");
	struct text hash = member_string(hook, "currentHash");
	char want[PATH_MAX + 128];

	for (unsigned i = 0; i < t->n; i++) {
		snprintf(want, sizeof(want), "%s/hooks.json:%s", folder, t->items[i].place);
		if (text_is(key, want) && is_hash(hash) &&
		    ours_is_command(member_string(hook, "command")))
			snprintf(t->items[i].hash, sizeof(t->items[i].hash), "%.*s",
				 TEXT_ARGS(hash));
	}
}

static struct text make_question(const char *folder, struct koine_json *j)
{
	struct text all = {0};

	koine_json_begin_object(j);
	params_add_int(j, "id", 1);
	params_add(j, "method", "hooks/list");
	(void)params_begin_object(j, "params");
	(void)params_begin_array(j, "cwds");
	koine_json_string(j, folder);
	koine_json_end_array(j);
	koine_json_end_object(j);
	koine_json_end_object(j);
	all.data = koine_json_text(j, &all.len);
	return all;
}

static void converse(struct cli_child *c, const char *folder, struct trusts *t)
{
	CLEANUP(json_freep) struct koine_json *j = NULL;
	struct koine_doc *doc = NULL;
	struct text question;
	char hello[256];

	snprintf(hello, sizeof(hello),
		 "{\"id\":0,\"method\":\"initialize\",\"params\":{\"clientInfo\":{\"name\":"
		 "\"koine\",\"version\":\"%s\"}}}\n{\"method\":\"initialized\"}\n",
		 koine_version());
	if (koine_json_new(&j) != 0 || !child_ask(c, text_of(hello), 0, &doc))
		return;
	koine_doc_free(doc);
	question = make_question(folder, j);
	if (!question.data || !child_tell(c, question) || !child_ask(c, TEXT("\n"), 1, &doc))
		return;
	for (EACH(one, member_first(koine_value_get(koine_doc_root(doc), "result"), "data"))) {
		for (EACH(hook, member_first(one, "hooks")))
			note(hook, folder, t);
	}
	koine_doc_free(doc);
}

/* Asks the program for their hashes. False: it does not say all of them in time, in ten seconds if
 * patience_ms is 0. */
static bool trust_ask(const char *program, struct text hooks, unsigned patience_ms,
		      struct trusts *t)
{
	const char *argv[] = {program, "app-server", NULL};
	char folder[PATH_MAX];
	const struct cli_child_opts opts = {.argv = argv,
					    .variable = {.name = "CODEX_HOME", .value = folder},
					    .patience_ms = patience_ms ? patience_ms : PATIENCE_MS};
	struct cli_child c;

	if (!make_folder(hooks, folder))
		return false;
	if (child_start(&c, &opts)) {
		converse(&c, folder, t);
		child_end(&c);
	}
	remove_folder(folder);
	for (unsigned i = 0; i < t->n; i++) {
		if (!t->items[i].hash[0])
			return false;
	}
	return true;
}

/* ---- what the settings say ---- */

/* The hash that the settings have for a key, as it is written there; {NULL, 0}: none. */
static struct text trust_written(struct text settings, const char *path, const char *key)
{
	struct edit e = {.path = path, .key = key};
	struct toml_path p = {.n = 0};
	struct text found = {0};
	CLEANUP(toml_file_close) struct toml_file f;
	int r = toml_file_open(&f, settings, NULL);

	p.n = edit_keys(&e, p.keys);
	p.keys[p.n++] = TEXT("trusted_hash");
	for (size_t i = 0; r == 0 && i < f.n_items; i++) {
		if (f.items[i].kind == TOML_KEY && toml_path_equal(&f.items[i].path, &p))
			found = f.items[i].value;
	}
	return found;
}

/*
 * The trust that an agent's hooks need is an edit like others: shown, written with the rest, taken
 * out again.
 *
 * A project's hooks get none. It would be the user's, in the user's own file, and for lines that
 * whoever has the project may write; the agent asks for that itself.
 */

/* Where the agent says that the hooks are: with links followed if a variable says where. A key
 * that TOML cannot have between quotes is refused. */
static bool find_hooks(const struct plan_file *f, char path[PATH_MAX])
{
	char folder[PATH_MAX];
	size_t n = 0;

	if (place_variable(f->row->user)) {
		snprintf(folder, sizeof(folder), "%s", f->target.path);
		*strrchr(folder, '/') = '\0';
		if (!realpath(folder, path) || strlen(path) + sizeof("/hooks.json") > PATH_MAX)
			return false;
		strcat(path, strrchr(f->target.path, '/'));
	} else {
		for (const char *c = f->target.path; *c; c++) {
			if (c[0] != '/' || c[1] != '/')
				path[n++] = *c;
		}
		path[n] = '\0';
	}
	for (const char *c = path; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == '\'' || *c == 127)
			return false;
	}
	return true;
}

/* Hashes that the agent does not tell are those that the settings have. */
static char *make_value(const struct connect_plan *p, const struct connect_trust *t,
			const char *key)
{
	CLEANUP(json_freep) struct koine_json *j = params_new();
	struct text written =
		trust_written(buf_text(&p->files[0].target.text), p->agent->trust, key);
	const char *text;

	if (t->hash[0])
		params_add(j, "trusted_hash", t->hash);
	else if (written.len >= 2)
		params_add_text(j, "trusted_hash",
				(struct text) {.data = written.data + 1, .len = written.len - 2});
	text = params_end(j);
	return text ? strdup(text) : NULL;
}

static int add_edit(struct connect_plan *p, const struct connect_trust *t, const char *hooks)
{
	struct plan_file *f = &p->files[0];
	struct edit *e = &f->edits[f->n_edits];
	size_t size = strlen(hooks) + strlen(t->place) + 2;
	char *key = malloc(size);

	if (!key)
		return out_of_memory();
	snprintf(key, size, "%s:%s", hooks, t->place);
	if (!t->hash[0] && !trust_written(buf_text(&f->target.text), p->agent->trust, key).data) {
		free(key);
		return 0;
	}
	*e = (struct edit) {.kind = EDIT_MEMBER,
			    .path = p->agent->trust,
			    .key = key,
			    .value = make_value(p, t, key),
			    .ours = true};
	f->n_edits++;
	f->n_wanted = f->n_edits;
	return e->value ? 0 : out_of_memory();
}

/* The agent's own word for them; false: there is none. */
static bool connect_trust_ask(const struct cli *cli, const struct connect_plan *p, struct trusts *t)
{
	struct probe program;

	return p->asks && t->n > 0 && program_find(p->agent->programs[0], program.program) &&
	       trust_ask(program.program, buf_text(&p->files[1].after), cli->options.timeout_ms, t);
}

static void forget_edits(struct plan_file *f, unsigned n)
{
	while (f->n_edits > n) {
		f->n_edits--;
		free((char *)f->edits[f->n_edits].key);
		free((char *)f->edits[f->n_edits].value);
	}
	f->n_wanted = n;
}

int plan_add_trust(const struct cli *cli, struct connect_plan *p)
{
	struct plan_file *settings = &p->files[0];
	struct plan_file *hooks = &p->files[1];
	struct text text = buf_text(p->undo ? &hooks->target.text : &hooks->after);
	unsigned n = settings->n_edits;
	struct trusts t = {.n = 0};
	char path[PATH_MAX];
	bool known;
	int r = 0;

	p->trust = TRUST_UNKNOWN;
	if (p->project || !find_hooks(hooks, path) ||
	    trust_find(text, hooks->edits, hooks->n_edits, &t, NULL) != 0)
		return 0;
	known = connect_trust_ask(cli, p, &t);
	for (unsigned i = 0; i < t.n && r == 0; i++)
		r = add_edit(p, &t.items[i], path);
	if (r != 0)
		return r;
	/* Where the settings are written so that it cannot be put in, all else still can. */
	if (plan_work_out(p, settings, NULL) != 0) {
		forget_edits(settings, n);
		return plan_work_out(p, settings, NULL) == 0 ? 0 : out_of_memory();
	}
	if (known)
		p->trust = TRUST_GIVEN;
	return 0;
}
