#include "base/pattern/pattern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/pattern/code.h"

/* The states that the program may be in, each listed once. */
struct states {
	unsigned n;
	uint16_t at[PATTERN_CODE_MAX];
};

struct pattern {
	struct pattern_step *steps;
	struct pattern_set *sets;
	unsigned n_steps;
	uint32_t turn;  /* counts the bytes examined */
	uint32_t *seen; /* for each step: the turn in which it was last a state */
	struct states now, next;
	struct states open; /* for the walk from one state to those that consume a byte */
};

static void *copy_of(const void *data, size_t n)
{
	void *copy = malloc(n ? n : 1);

	return copy && n > 0 ? memcpy(copy, data, n) : copy;
}

static int pattern_make(const struct pattern_code *code, struct pattern **ret_pattern)
{
	struct pattern *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->n_steps = code->n;
	p->steps = copy_of(code->steps, code->n * sizeof(code->steps[0]));
	p->sets = copy_of(code->sets, code->n_sets * sizeof(code->sets[0]));
	p->seen = calloc(code->n, sizeof(p->seen[0]));
	if (!p->steps || !p->sets || !p->seen) {
		pattern_free(p);
		return -ENOMEM;
	}
	*ret_pattern = p;
	return 0;
}

int pattern_new(struct text expression, struct pattern **ret_pattern, struct error *error)
{
	CLEANUP(freep) struct pattern_code *code = calloc(1, sizeof(*code));
	int r = code ? pattern_parse(expression, code, error) : -ENOMEM;

	return r == 0 ? pattern_make(code, ret_pattern) : r;
}

void pattern_free(struct pattern *p)
{
	if (!p)
		return;
	free(p->steps);
	free(p->sets);
	free(p->seen);
	free(p);
}

/* ---- finding ---- */

static bool is_word_at(struct text t, size_t i)
{
	return i < t.len && is_word_byte((unsigned char)t.data[i]);
}

/* Whether the op, which consumes no byte, matches between the bytes i - 1 and i. */
static bool holds(enum pattern_op op, struct text t, size_t i)
{
	bool edge = (i > 0 && is_word_at(t, i - 1)) != is_word_at(t, i);

	if (op == OP_BEGIN)
		return i == 0;
	if (op == OP_END)
		return i == t.len;
	return op == OP_WORD ? edge : !edge;
}

static void open_state(struct pattern *p, unsigned at)
{
	if (p->seen[at] == p->turn)
		return;
	p->seen[at] = p->turn;
	p->open.at[p->open.n++] = (uint16_t)at;
}

/* Adds all states that consume a byte and can be reached without consuming one. True: the end
 * was reached. */
static bool follow(struct pattern *p, unsigned from, struct text t, size_t i, struct states *to,
		   uint64_t *steps)
{
	open_state(p, from);
	while (p->open.n > 0) {
		unsigned at = p->open.at[--p->open.n];
		const struct pattern_step *s = &p->steps[at];

		*steps -= *steps > 0;
		switch ((enum pattern_op)s->op) {
		case OP_BYTE:
		case OP_SET:
			to->at[to->n++] = (uint16_t)at;
			break;
		case OP_BEGIN:
		case OP_END:
		case OP_WORD:
		case OP_NOT_WORD:
			if (holds((enum pattern_op)s->op, t, i))
				open_state(p, at + 1);
			break;
		case OP_SPLIT:
			open_state(p, (unsigned)((int)at + s->or_to));
			open_state(p, (unsigned)((int)at + s->to));
			break;
		case OP_JUMP:
			open_state(p, (unsigned)((int)at + s->to));
			break;
		case OP_FOUND:
			p->open.n = 0;
			return true;
		}
	}
	return false;
}

static bool takes(const struct pattern *p, unsigned at, unsigned char c)
{
	const struct pattern_step *s = &p->steps[at];

	return s->op == OP_BYTE ? s->byte == c : set_has(&p->sets[s->set], c);
}

/* Turns are told apart by number; when it wraps around, all marks are cleared. */
static void next_turn(struct pattern *p)
{
	if (++p->turn == 0) {
		memset(p->seen, 0, p->n_steps * sizeof(p->seen[0]));
		p->turn = 1;
	}
}

bool pattern_finds(struct pattern *p, struct text t, uint64_t *steps)
{
	struct states *now = &p->now, *next = &p->next;

	if (t.len > PATTERN_TEXT_MAX)
		t.len = PATTERN_TEXT_MAX;
	now->n = 0;
	next_turn(p);
	for (size_t i = 0; *steps > 0; i++) {
		struct states *gone = now;

		/* The expression may match from any byte. */
		if (follow(p, 0, t, i, now, steps))
			return true;
		if (i == t.len)
			return false;
		next->n = 0;
		next_turn(p);
		for (unsigned k = 0; *steps > 0 && k < now->n; k++) {
			--*steps;
			if (takes(p, now->at[k], (unsigned char)t.data[i]) &&
			    follow(p, now->at[k] + 1, t, i + 1, next, steps))
				return true;
		}
		now = next;
		next = gone;
	}
	return false;
}

/* If the rest does not match, the last star takes one more byte. any_one is the character that
 * matches any byte; '*', which is tested first, means that there is none. */
static bool fits(struct text glob, struct text t, char any_one)
{
	size_t star = SIZE_MAX;
	size_t mark = 0;
	size_t g = 0;

	for (size_t i = 0; i < t.len;) {
		if (g < glob.len && glob.data[g] == '*') {
			star = g++;
			mark = i;
		} else if (g < glob.len && (glob.data[g] == any_one || glob.data[g] == t.data[i])) {
			g++;
			i++;
		} else if (star != SIZE_MAX) {
			g = star + 1;
			i = ++mark;
		} else {
			return false;
		}
	}
	while (g < glob.len && glob.data[g] == '*')
		g++;
	return g == glob.len;
}

bool glob_fits(struct text glob, struct text t)
{
	return fits(glob, t, '?');
}

bool stars_fit(struct text glob, struct text t)
{
	return fits(glob, t, '*');
}
