#include "call/metric/call_count.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* ---- finding a row ---- */

static unsigned hash(const struct dialect *d, const struct method *m)
{
	uintptr_t a = (uintptr_t)d >> 5;
	uintptr_t b = (uintptr_t)m >> 4;

	return (unsigned)((a ^ b) * 2654435761U >> 8);
}

static void call_count_insert(struct call_count_slot *slots, unsigned n,
			      const struct call_count_slot *slot)
{
	unsigned at = hash(slot->dialect, slot->method);

	while (slots[at & (n - 1)].row)
		at++;
	slots[at & (n - 1)] = *slot;
}

static bool grow(struct call_counts *k)
{
	unsigned n = k->n_slots ? k->n_slots * 2 : 64;
	struct call_count_slot *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return false;
	for (unsigned i = 0; i < k->n_slots; i++) {
		if (k->slots[i].row)
			call_count_insert(slots, n, &k->slots[i]);
	}
	free(k->slots);
	k->slots = slots;
	k->n_slots = n;
	return true;
}

static struct call_count *call_count_add_row(struct call_counts *k, const struct dialect *d,
					     const char name[CALL_NAME_MAX])
{
	struct call_count **rows = realloc(k->rows, (k->n + 1) * sizeof(struct call_count *));
	struct call_count *row;

	if (!rows)
		return NULL;
	k->rows = rows;
	row = calloc(1, sizeof(*row));
	if (!row)
		return NULL;
	row->dialect = d;
	memcpy(row->name, name, CALL_NAME_MAX);
	k->rows[k->n++] = row;
	return row;
}

/* Two rows of one name would be one series twice. */
static struct call_count *row_named(struct call_counts *k, const struct dialect *d,
				    const struct method *m)
{
	char name[CALL_NAME_MAX] = {0};

	snprintf(name, sizeof(name), "%s", m && m->name ? m->name : "unknown");
	for (unsigned i = 0; i < k->n; i++) {
		if (k->rows[i]->dialect == d && strcmp(k->rows[i]->name, name) == 0)
			return k->rows[i];
	}
	return call_count_add_row(k, d, name);
}

static struct call_count *call_count_make(struct call_counts *k, const struct dialect *d,
					  const struct method *m)
{
	struct call_count_slot slot = {.dialect = d, .method = m};

	if (k->n_used == CALL_COUNTS_MAX || (k->n_used * 2 == k->n_slots && !grow(k)))
		return &k->other;
	slot.row = row_named(k, d, m);
	if (!slot.row)
		return &k->other;
	call_count_insert(k->slots, k->n_slots, &slot);
	k->n_used++;
	return slot.row;
}

static struct call_count *call_count_find(struct call_counts *k, const struct dialect *d,
					  const struct method *m)
{
	const struct call_count_slot *slot;
	unsigned at = hash(d, m);

	while (k->n_slots > 0 && (slot = &k->slots[at & (k->n_slots - 1)])->row) {
		if (slot->method == m && slot->dialect == d)
			return slot->row;
		at++;
	}
	return call_count_make(k, d, m);
}

/* ---- counting ---- */

/* n calls that took `ns` each, and those before them that nobody timed. */
static void call_count_add(struct call_count *row, uint64_t n, uint64_t ns)
{
	n += row->untimed;
	row->untimed = 0;
	row->usual_ns = ns;
	histogram_add(&row->time, &histogram_times, n, n * ns);
}

static void call_count_settle(struct call_counts *k, uint64_t now_ns)
{
	if (k->n_now > 0) {
		k->usual_ns = (now_ns - k->since_ns) / k->n_now;
		call_count_add(k->at, k->n_now, k->usual_ns);
	}
	k->n_now = 0;
	k->since_ns = now_ns;
}

void call_counts_settle(struct call_counts *k)
{
	if (k->timed) {
		call_count_settle(k, clock_steady_ns());
		return;
	}
	k->at->untimed += k->n_now;
	k->n_now = 0;
}

void call_counts_look(struct call_counts *k, uint64_t now_ms)
{
	k->timed_ms = now_ms;
	k->timed = true;
	k->since_ns = clock_steady_ns();
}

static void fold(const struct call_counts *k, struct call_count *row)
{
	if (row->untimed > 0)
		call_count_add(row, 0, row->usual_ns > 0 ? row->usual_ns : k->usual_ns);
}

void call_counts_fold(struct call_counts *k)
{
	for (unsigned i = 0; i < k->n; i++)
		fold(k, k->rows[i]);
	fold(k, &k->other);
}

void call_counts_turn(struct call_counts *k, const struct call *c)
{
	/* With none before it, what has passed until now belongs to the new one. */
	if (k->n_now > 0)
		call_counts_settle(k);
	k->at = call_count_find(k, c->dialect, c->method);
	k->at_dialect = c->dialect;
	k->at_method = c->method;
}

void call_count_begin(struct call_counts *k, struct call *c)
{
	uint64_t now = clock_steady_ns();

	c->started_ns = now;
	if (k->timed)
		call_count_settle(k, now);
}

void call_count_end(struct call_counts *k, const struct call *c)
{
	struct call_count *row = call_count_find(k, c->dialect, c->method);

	histogram_add(&row->time, &histogram_times, 1, clock_steady_ns() - c->started_ns);
	call_count_refusal(row, c);
}

uint64_t call_count_refused(const struct call_count *row)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < N_REFUSALS; i++)
		n += row->refused[i];
	return n;
}

void call_counts_init(struct call_counts *k)
{
	snprintf(k->other.name, sizeof(k->other.name), "%s", "other");
	k->at = &k->other;
}

void call_counts_done(struct call_counts *k)
{
	for (unsigned i = 0; i < k->n; i++)
		free(k->rows[i]);
	free(k->rows);
	free(k->slots);
}
