/* Files that somebody may have written, made from a seed: neat, on one line, or odd. */
#pragma once

#include <stdint.h>

#include "base/buf.h"

enum made_kind { MADE_JSON, MADE_JSONC, MADE_TOML };

struct made {
	uint64_t seed;
	struct buf out;
	enum made_kind kind;
	const char *newline;
	const char *unit;
	enum { MADE_NEAT, MADE_FLAT, MADE_ODD } layout;
	unsigned depth;
};

static inline unsigned made_roll(struct made *m, unsigned sides)
{
	m->seed = m->seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(m->seed >> 33) % sides;
}

static inline void made_comment(struct made *m)
{
	static const char *const words[] = {"// a \"remark\" {", "/* [ , */", "/* \xc3\xa4 */",
					    "// koine, not"};
	const char *word = words[made_roll(m, 4)];

	buf_add_str(&m->out, word);
	if (word[1] == '/')
		buf_add_str(&m->out, m->newline);
}

/* Between two tokens. `breaks`: where a neat file begins a line. */
static inline void made_gap(struct made *m, bool breaks)
{
	if (m->layout == MADE_NEAT && breaks) {
		if (m->kind == MADE_JSONC && made_roll(m, 6) == 0)
			buf_add_str(&m->out, " /* here */");
		buf_add_str(&m->out, m->newline);
		for (unsigned i = 0; i < m->depth; i++)
			buf_add_str(&m->out, m->unit);
	}
	if (m->layout != MADE_ODD)
		return;
	for (unsigned n = made_roll(m, 3); n > 0; n--) {
		switch (made_roll(m, m->kind == MADE_JSONC ? 5 : 4)) {
		case 0:
			buf_add_str(&m->out, m->newline);
			break;
		case 1:
			buf_add_str(&m->out, "\t");
			break;
		case 4:
			made_comment(m);
			break;
		default:
			buf_add_str(&m->out, "  ");
		}
	}
}

static inline void made_scalar(struct made *m)
{
	static const char *const scalars[] = {"1",
					      "-0.5e3",
					      "true",
					      "null",
					      "\"\"",
					      "\"\\\"}{,\"",
					      "\"\xf0\x9f\x9a\x80 // no\"",
					      "\"mcpServers\"",
					      "\"/* not */\""};

	buf_add_str(&m->out, scalars[made_roll(m, 9)]);
}

static inline void made_value(struct made *m, unsigned room);

static inline void made_children(struct made *m, bool is_object, unsigned n, unsigned room)
{
	m->depth++;
	for (unsigned i = 0; i < n; i++) {
		made_gap(m, true);
		if (is_object) {
			buf_printf(&m->out, "\"k%u\\\"%u\"", i, made_roll(m, 100));
			made_gap(m, false);
			buf_add_str(&m->out, m->layout == MADE_NEAT ? ": " : ":");
			made_gap(m, false);
		}
		made_value(m, room);
		made_gap(m, false);
		if (i + 1 < n || (m->kind == MADE_JSONC && made_roll(m, 3) == 0))
			buf_add_str(&m->out, ",");
	}
	m->depth--;
	made_gap(m, n > 0);
}

static inline void made_value(struct made *m, unsigned room)
{
	unsigned what = room > 0 ? made_roll(m, 4) : 0;

	if (what < 2) {
		made_scalar(m);
		return;
	}
	buf_add_str(&m->out, what == 2 ? "{" : "[");
	made_children(m, what == 2, made_roll(m, 3), room - 1);
	buf_add_str(&m->out, what == 2 ? "}" : "]");
}

/* An object with some of these members, and others between them. */
static inline void made_object(struct made *m, const char *const *names, unsigned n_names,
			       void (*member)(struct made *m, const char *name))
{
	bool is_first = true;

	buf_add_str(&m->out, "{");
	m->depth++;
	for (unsigned i = 0; i < n_names * 2; i++) {
		if (made_roll(m, 2) == 0)
			continue;
		if (!is_first)
			buf_add_str(&m->out, ",");
		is_first = false;
		made_gap(m, true);
		if (i % 2 == 0)
			buf_printf(&m->out, "\"%s\"", names[i / 2]);
		else
			buf_printf(&m->out, "\"x%u\"", i);
		made_gap(m, false);
		buf_add_str(&m->out, m->layout == MADE_NEAT ? ": " : ":");
		made_gap(m, false);
		if (i % 2 == 0)
			member(m, names[i / 2]);
		else
			made_value(m, 3);
		made_gap(m, false);
	}
	if (!is_first && m->kind == MADE_JSONC && made_roll(m, 3) == 0)
		buf_add_str(&m->out, ",");
	m->depth--;
	made_gap(m, !is_first);
	buf_add_str(&m->out, "}");
}

static inline void made_list(struct made *m, const char *name)
{
	unsigned n = made_roll(m, 3);

	buf_add_str(&m->out, "[");
	made_children(m, false, n, 2);
	buf_add_str(&m->out, "]");
}

static inline void made_top_member(struct made *m, const char *name)
{
	static const char *const events[] = {"Stop", "PermissionRequest"};

	if (name[0] == 'h')
		made_object(m, events, 2, made_list);
	else
		made_object(m, events, 1, made_list);
}

static inline void made_toml_table(struct made *m, unsigned i)
{
	static const char *const values[] = {"1",
					     "\"a # b\"",
					     "'[mcp_servers.koine]'",
					     "[ 1, # one\n  2,\n]",
					     "\"\"\"\n[mcp_servers.koine]\ncommand = \\\"\"\"\"",
					     "'''\n[x]\n'''",
					     "{ a = 1, b = { c = \"}\" } }",
					     "1979-05-27 07:32:00Z",
					     "0xdead_beef",
					     "[{ a = 1 }, { a = 2 }]",
					     "true"};

	if (i > 0)
		buf_printf(&m->out,
			   made_roll(m, 4) == 0 ? "[[list.\"t %u\"]]%s" : "[ t%u . \"b.c\" ]%s", i,
			   m->newline);
	for (unsigned k = made_roll(m, 4); k > 0; k--) {
		const char *value = values[made_roll(m, 11)];

		if (made_roll(m, 4) == 0)
			buf_printf(&m->out, "# a [remark]%s", m->newline);
		buf_printf(&m->out, made_roll(m, 2) == 0 ? "k%u = " : "  \"k\".'l'.m%u\t=  ", k);
		buf_add_str(&m->out, value);
		buf_printf(&m->out, "%s%s", made_roll(m, 5) == 0 ? " # why" : "", m->newline);
		if (made_roll(m, 5) == 0)
			buf_add_str(&m->out, m->newline);
	}
}

static inline void made_toml(struct made *m)
{
	unsigned n = made_roll(m, 5);

	for (unsigned i = 0; i < n; i++)
		made_toml_table(m, i);
	if (made_roll(m, 3) == 0)
		buf_printf(&m->out, "[mcp_servers.other]%scommand = \"x\"%s", m->newline,
			   m->newline);
}

static inline void made_file(struct made *m, enum made_kind kind, uint64_t seed)
{
	static const char *const names[] = {"mcpServers", "hooks"};

	*m = (struct made) {.seed = seed, .kind = kind};
	buf_init(&m->out, 1 << 20);
	m->newline = made_roll(m, 3) == 0 ? "\r\n" : "\n";
	m->unit = made_roll(m, 3) == 0 ? "\t" : made_roll(m, 2) == 0 ? "    " : "  ";
	m->layout = made_roll(m, 3);
	if (made_roll(m, 8) == 0)
		buf_add_str(&m->out, "\xef\xbb\xbf");
	if (kind == MADE_TOML) {
		made_toml(m);
	} else {
		made_gap(m, false);
		made_object(m, names, 2, made_top_member);
		made_gap(m, false);
	}
	if (made_roll(m, 3) != 0)
		buf_add_str(&m->out, m->newline);
	else if (kind == MADE_TOML && m->out.len > 3 && m->out.data[m->out.len - 1] == '\n')
		m->out.len -= strlen(m->newline);
}
