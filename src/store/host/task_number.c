#include "store/host/task_number.h"

#include <stdlib.h>
#include <string.h>

#include "store/db/driver.h"
#include "store/db/query.h"

/* The place of a project in the batch; -1: it has none. */
static int task_number_find(const struct task_numbers *all, struct text project)
{
	for (unsigned i = 0; i < all->n; i++) {
		if (text_equal((struct text) {.data = all->of[i].project, .len = all->of[i].len},
			       project))
			return (int)i;
	}
	return -1;
}

/* Without memory for it, its numbers are taken in the database. */
static int find_or_add(struct connection *c, struct text project)
{
	struct task_numbers *all = &c->numbers;
	int i = task_number_find(all, project);
	char *name;

	if (i >= 0 || !c->in_batch || all->n == TASK_NUMBERED_MAX)
		return i;
	name = malloc(project.len + 1);
	if (!name)
		return -1;
	memcpy(name, project.data, project.len);
	all->of[all->n] = (typeof(all->of[0])) {.project = name, .len = project.len};
	return (int)all->n++;
}

#define NEXT(from)                                                                                 \
	"INSERT INTO task_project (name, next) SELECT :name, 1" from                               \
	" WHERE true ON CONFLICT (name) DO UPDATE SET next = task_project.next + 1"                \
	" RETURNING next - 1"

/* Two hosts that add tasks to several projects would wait for each other's numbers: so they go one
 * after the other, from the first number of a batch to its end. */
static int take_stored(struct connection *c, struct text project, int64_t *ret_number)
{
	QUERY sql = {NEXT(""), .postgres = NEXT(" FROM " ONE_HOST)};
	return query_find_int(c, &sql, ret_number, BIND(":name", project));
}

int task_number_take(struct connection *c, struct text project, int64_t *ret_number)
{
	struct task_numbers *all = &c->numbers;
	int i = find_or_add(c, project);
	int64_t stored;
	int r;

	if (c->lost != 0)
		return c->lost;
	if (i >= 0 && all->of[i].locked) {
		*ret_number = all->of[i].next++;
		all->of[i].is_written = false;
		return 0;
	}
	r = take_stored(c, project, &stored);
	if (r != 0)
		return r;
	*ret_number = stored;
	if (i < 0)
		return 0;
	/* A call that was undone may have had this one, and some behind it. */
	if (all->of[i].next > stored)
		*ret_number = all->of[i].next;
	all->of[i].next = *ret_number + 1;
	all->of[i].is_written = *ret_number == stored;
	all->of[i].locked = all->of[i].by_call = true;
	return 0;
}

int task_number_skip(struct connection *c, struct text project, int64_t number)
{
	QUERY sql = {"INSERT INTO task_project (name, next) VALUES (:name, :next)"
		     " ON CONFLICT (name) DO UPDATE SET next = excluded.next"
		     " WHERE excluded.next > task_project.next"};
	struct task_numbers *all = &c->numbers;
	int i = task_number_find(all, project);

	if (i >= 0 && all->of[i].locked) {
		if (all->of[i].next <= number) {
			all->of[i].next = number + 1;
			all->of[i].is_written = false;
		}
		return 0;
	}
	return query_do(c, &sql, BIND(":name", project), BIND(":next", number + 1));
}

void task_numbers_call(struct connection *c)
{
	for (unsigned i = 0; i < c->numbers.n; i++)
		c->numbers.of[i].by_call = false;
}

/* The row is as it was before, and others may take from it. */
void task_numbers_undo(struct connection *c)
{
	for (unsigned i = 0; i < c->numbers.n; i++) {
		if (c->numbers.of[i].by_call)
			c->numbers.of[i].locked = c->numbers.of[i].by_call = false;
	}
}

int task_numbers_write(struct connection *c)
{
	QUERY sql = {"UPDATE task_project SET next = :next WHERE name = :name"};
	struct task_numbers *all = &c->numbers;
	int r = 0;

	for (unsigned i = 0; i < all->n && r == 0; i++) {
		const struct text name = {.data = all->of[i].project, .len = all->of[i].len};

		if (all->of[i].locked && !all->of[i].is_written)
			r = query_do_later(c, &sql, BIND(":name", name),
					   BIND(":next", all->of[i].next));
	}
	return r;
}

void task_numbers_forget(struct connection *c)
{
	while (c->numbers.n > 0)
		free(c->numbers.of[--c->numbers.n].project);
}
