#include "cli/connect/plan.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/connect/ours.h"
#include "cli/kit/place.h"
#include "cli/kit/print.h"
#include "cli/kit/value.h"

/* ---- where the files are ---- */

static bool place_of(const struct connect_plan *p, const char *row, char path[PATH_MAX],
		     char base[PATH_MAX])
{
	if (!p->project)
		return place_path(row, path, base);
	strcpy(base, p->project);
	return snprintf(path, PATH_MAX, "%s/%s", p->project, row) < PATH_MAX;
}

static bool find_place(const struct connect_plan *p, const struct agent_file *row,
		       char path[PATH_MAX], char base[PATH_MAX])
{
	const char *other = p->project ? row->project_other : row->other;

	if (other && place_of(p, other, path, base) && access(path, F_OK) == 0)
		return true;
	return place_of(p, p->project ? row->project : row->user, path, base);
}

/* ---- making it ---- */

static int complain_of(struct connect_plan *p, const struct plan_file *f, int r,
		       const struct error *error)
{
	if (r < 0 || !p->quiet)
		return target_complain(&f->target, r, error);
	refuse(&p->error, error->code, "%s: %s", f->target.path, error->text);
	return r == REFUSE_FORBIDDEN ? EX_NOPERM : EX_DATAERR;
}

static int add_edits(const struct connect_plan *p, const struct connect_words *w,
		     struct plan_file *f, bool gate)
{
	for (unsigned i = 0; i < AGENT_EDITS_MAX && f->row->edits[i].path; i++) {
		const struct agent_edit *e = &f->row->edits[i];
		const char *value = w->door && e->http ? e->http : e->value;

		if (e->gate != gate)
			continue;
		f->target.is_secret |= w->door && w->door->token[0] && e->http;
		f->edits[f->n_edits] = (struct edit) {.kind = e->kind,
						      .path = e->path,
						      .value = words_fill(w, p->agent, value),
						      .stays = e->stays};
		if (!f->edits[f->n_edits].value)
			return out_of_memory();
		f->n_edits++;
	}
	return 0;
}

bool plan_file_has(const struct plan_file *f, const struct edit *edits, unsigned n, bool otherwise)
{
	struct text file = buf_text(&f->target.text);
	CLEANUP(buf_donep) struct buf without;
	int r;

	buf_init(&without, EDIT_FILE_MAX);
	r = edit_take(f->row->by, file, TEXT(""), edits, n, &without, NULL);
	return r != 0 ? otherwise : !text_equal(buf_text(&without), file);
}

static bool mentions_hook(const struct plan_file *f)
{
	for (unsigned i = 0; i < f->n_edits; i++) {
		if (strncmp(f->edits[i].path, "hooks/", 6) == 0)
			return true;
	}
	return false;
}

/* Whether it is what koine connect makes of nothing, as it did before it left a note of that. */
static bool is_ours_alone(const struct plan_file *f)
{
	CLEANUP(buf_donep) struct buf made;
	bool same;

	buf_init(&made, EDIT_FILE_MAX);
	same = edit_put(f->row->by, TEXT(""), f->edits, f->n_wanted, &made, NULL) == 0 &&
	       text_equal(buf_text(&made), buf_text(&f->target.text));
	return same || (edit_put(f->row->by, TEXT(""), f->edits, f->n_edits, &made, NULL) == 0 &&
			text_equal(buf_text(&made), buf_text(&f->target.text)));
}

struct programs {
	unsigned names;
	unsigned paths;
};

static void count_program(void *arg, struct text program)
{
	struct programs *n = arg;

	if (program.data[0] == '/')
		n->paths++;
	else
		n->names++;
}

static struct programs programs_in(const struct plan_file *f, struct text text)
{
	struct programs n = {0};

	program_each(f->row->by, text, count_program, &n);
	return n;
}

/* koine connect writes paths, but for a project. A file without one, or with a name that is about to
 * become one, was never connected, or is not any more. */
static bool is_connected(const struct connect_plan *p, const struct plan_file *f)
{
	struct programs now = programs_in(f, buf_text(&f->target.text));
	struct programs then = programs_in(f, buf_text(&f->after));

	return p->project || (now.paths > 0 && now.names <= then.names);
}

/* Whether the backup is of the file as it was before koine connect. It may be from another time, and
 * an entry made by hand since. */
static bool is_backed_up(const struct connect_plan *p, const struct plan_file *f)
{
	struct text before = buf_text(&f->target.before);
	CLEANUP(buf_donep) struct buf after;

	buf_init(&after, EDIT_FILE_MAX);
	return f->target.has_backup && is_connected(p, f) &&
	       edit_put(f->row->by, before, f->edits, f->n_wanted, &after, NULL) == 0;
}

/* What is there before the first change is kept, also if that is an entry for koine made by hand. */
static bool needs_backup(const struct connect_plan *p, const struct plan_file *f)
{
	if (!f->changes || !f->target.exists || !f->has_ours)
		return f->changes;
	return !is_backed_up(p, f) && (f->target.has_backup || !is_ours_alone(f));
}

int plan_work_out(const struct connect_plan *p, struct plan_file *f, struct error *error)
{
	struct text file = buf_text(&f->target.text);
	int r;

	buf_clear(&f->after);
	f->has_ours = plan_file_has(f, f->edits, f->n_edits, true);
	r = p->undo ? edit_take(f->row->by, file, buf_text(&f->target.before), f->edits, f->n_edits,
				&f->after, error)
		    : edit_put(f->row->by, file, f->edits, f->n_wanted, &f->after, error);
	if (r != 0)
		return r;
	f->changes = !text_equal(buf_text(&f->after), file);
	f->removes = p->undo && f->changes && (!f->target.has_backup || f->target.was_made) &&
		     text_trim(buf_text(&f->after), " \t\r\n{}").len == 0;
	f->backs_up = !p->undo && needs_backup(p, f);
	f->has_hooks = f->changes && mentions_hook(f);
	return f->after.err;
}

static int plan_one(struct connect_plan *p, const struct connect_words *w, const char *path,
		    const char *base, struct plan_file *f)
{
	struct error error = {0};
	int r = target_open(&f->target, path, base, &error);

	if (r != 0)
		return complain_of(p, f, r, &error);
	f->target.is_shared = p->project != NULL;
	r = add_edits(p, w, f, false);
	f->n_wanted = f->n_edits;
	if (r == 0)
		r = add_edits(p, w, f, true);
	if (r != 0)
		return r;
	/* A gate that is there is brought up to date like the rest, and missed if a part of it is gone. */
	if (p->gate ||
	    (!p->undo && plan_file_has(f, f->edits + f->n_wanted, f->n_edits - f->n_wanted, false)))
		f->n_wanted = f->n_edits;
	r = plan_work_out(p, f, &error);
	return r != 0 ? complain_of(p, f, r, &error) : 0;
}

int plan_make(const struct cli *cli, struct connect_plan *p)
{
	char path[PATH_MAX];
	char base[PATH_MAX];
	struct connect_words w;
	int r = words_find(cli, p->agent, p->project != NULL, &w);

	w.door = p->door;
	if (r == 0 && p->starts && !p->project)
		w.starts = words_need_start(cli);
	for (unsigned i = 0; i < AGENT_FILES_MAX && r == 0 && p->agent->files[i].user; i++) {
		struct plan_file *f = &p->files[p->n];

		if (p->project && !p->agent->files[i].project)
			return fail_with(
				EX_USAGE,
				"--project: %s has no documented settings file for projects",
				p->agent->title);
		f->row = &p->agent->files[i];
		if (!find_place(p, f->row, path, base))
			return fail_with(EX_USAGE, "HOME must be an absolute path");
		p->n++;
		buf_init(&f->after, EDIT_FILE_MAX);
		r = plan_one(p, &w, path, base, f);
	}
	return r == 0 && p->agent->trust ? plan_add_trust(cli, p) : r;
}

void plan_done(struct connect_plan *p)
{
	for (unsigned i = 0; i < p->n; i++) {
		target_close(&p->files[i].target);
		buf_done(&p->files[i].after);
		for (unsigned e = 0; e < p->files[i].n_edits; e++) {
			free((char *)p->files[i].edits[e].value);
			free((char *)p->files[i].edits[e].key);
		}
	}
}

bool plan_changes(const struct connect_plan *p)
{
	bool changes = false;

	for (unsigned i = 0; i < p->n; i++)
		changes |= p->files[i].changes;
	return changes;
}

bool plan_has_ours(const struct connect_plan *p)
{
	bool ours = false;

	for (unsigned i = 0; i < p->n; i++)
		ours |= p->files[i].has_ours;
	return ours;
}

/* ---- carrying it out ---- */

/* The backup has done its duty if the file is what it was. Otherwise it gets out of the way: what is
 * there at the next koine connect may be a new entry made by hand. */
static void drop_backup(const struct plan_file *f)
{
	const struct target *t = &f->target;
	struct error error = {0};

	if (!t->has_backup)
		return;
	if (t->was_made || text_equal(buf_text(&f->after), buf_text(&t->before)))
		unlink(t->backup);
	else if (target_keep_backup(t, &error) != 0)
		complain("%s was changed, but koine %s", t->path, error.text);
}

static int carry_out(const struct connect_plan *p, const struct plan_file *f, struct error *error)
{
	const struct target *t = &f->target;
	int r = f->backs_up ? target_back_up(t, error) : 0;

	if (r == 0)
		r = f->removes ? target_remove(t, error)
			       : target_write(t, buf_text(&f->after), error);
	if (r == 0 && p->undo)
		drop_backup(f);
	return r;
}

int plan_carry_out(struct connect_plan *p)
{
	struct error error = {0};
	int r = 0;

	for (unsigned i = 0; i < p->n && r == 0; i++) {
		if (p->files[i].changes)
			r = carry_out(p, &p->files[i], &error);
		if (r != 0)
			return complain_of(p, &p->files[i], r, &error);
	}
	return 0;
}
