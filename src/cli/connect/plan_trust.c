/*
 * The trust that an agent's hooks need is an edit like others: shown, written with the rest, taken
 * out again.
 *
 * A project's hooks get none. It would be the user's, in the user's own file, and for lines that
 * whoever has the project may write; the agent asks for that itself.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/connect/plan.h"
#include "cli/connect/probe.h"
#include "cli/kit/call.h"
#include "cli/kit/print.h"
#include "cli/kit/value.h"

/* Where the agent says that the hooks are: with links followed if a variable says where. A key
 * that TOML cannot have between quotes is refused. */
static bool find_hooks(const struct plan_file *f, char path[PATH_MAX])
{
	char folder[PATH_MAX];
	size_t n = 0;

	if (plan_is_moved(f->row->user)) {
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
static char *make_value(const struct plan *p, const struct trust *t, const char *key)
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

static int add_edit(struct plan *p, const struct trust *t, const char *hooks)
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
static bool ask(const struct cli *cli, const struct plan *p, struct trusts *t)
{
	struct probe program;

	return p->asks && t->n > 0 && probe_find(&program, p->agent->programs[0]) &&
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

int plan_add_trust(const struct cli *cli, struct plan *p)
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
	known = ask(cli, p, &t);
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
