#include "base/metric/spend.h"

#include <stdlib.h>

static struct spend_row *make(struct spend *s, struct text agent)
{
	struct spend_row *row;

	if (s->n == SPEND_MAX)
		return &s->other;
	row = calloc(1, sizeof(*row));
	if (!row)
		return &s->other;
	memcpy(row->name, agent.data, agent.len);
	s->rows[s->n++] = row;
	return row;
}

static struct spend_row *find(struct spend *s, struct text agent)
{
	agent = text_cut(agent, SPEND_NAME_MAX - 1);
	if (agent.len == 0)
		return &s->other;
	for (unsigned i = 0; i < s->n; i++) {
		if (text_is(agent, s->rows[i]->name))
			return s->rows[i];
	}
	return make(s, agent);
}

static void add(uint64_t *sum, int64_t n)
{
	if (n > 0)
		*sum += (uint64_t)n;
}

void spend_add(struct spend *s, struct text agent, const struct spent *what)
{
	struct spend_row *row = find(s, agent);

	add(&row->input, what->input);
	add(&row->output, what->output);
	add(&row->cache_read, what->cache_read);
	add(&row->cache_written, what->cache_written);
	add(&row->micro_usd, what->micro_usd);
	row->n[what->outcome]++;
}

void spend_done(struct spend *s)
{
	for (unsigned i = 0; i < s->n; i++)
		free(s->rows[i]);
	s->n = 0;
}
