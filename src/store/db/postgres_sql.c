/* Our SQL in PostgreSQL's words. The texts are the same but for the names of parameters. */
#include <ctype.h>
#include <string.h>

#include "store/db/postgres.h"

static bool in_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* The number of a parameter, 1 for the first; it is added where it is new. */
static unsigned number_of(struct buf *names, const char *name, size_t n)
{
	unsigned number = 1;
	size_t at = 0;

	for (; at < names->len; at += strlen(names->data + at) + 1, number++) {
		if (strlen(names->data + at) == n && memcmp(names->data + at, name, n) == 0)
			return number;
	}
	buf_add(names, name, n);
	buf_add(names, "", 1);
	return number;
}

/* Up to the end of a quoted text, with its quotes. */
static size_t quoted(const char *at)
{
	const char *end = strchr(at + 1, *at);

	return end ? (size_t)(end + 1 - at) : strlen(at);
}

/* What only SQLite says, or says otherwise. */
static const struct {
	const char *ours;
	const char *theirs;
} phrases[] = {
	{" NOT INDEXED", ""},
	{"/* FOR UPDATE */", "FOR UPDATE"},
	{"/* SKIP LOCKED */", "FOR UPDATE SKIP LOCKED"},
	/* The lock of a row that only we can write: any role may take an advisory lock, and keep it. */
	{"/* ONE HOST */", "FROM (SELECT version FROM koine_schema FOR UPDATE) AS turn"},
	{"(SELECT n FROM tally WHERE kind = 'owners')", "koine_owners()"},
	{" FROM tally WHERE kind", " FROM koine_tallied WHERE kind"},
	{"CAST(content AS TEXT)", "koine_text(content)"},
};

static size_t spell_phrase(const char *at, struct buf *out)
{
	for (size_t i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++) {
		size_t n = strlen(phrases[i].ours);

		if (strncmp(at, phrases[i].ours, n) == 0) {
			buf_add_str(out, phrases[i].theirs);
			return n;
		}
	}
	return 0;
}

/*
 * Whether a number stands behind this parameter, as in `:at = 0`. A parameter beside one would be 32
 * bits wide, as the number is; ours are 64.
 */
static bool before_number(const char *at)
{
	const char *sign = at + strspn(at, " ");
	size_t n = strspn(sign, "<>=+-*/");

	at = sign + n;
	at += strspn(at, " ");
	return n > 0 && isdigit((unsigned char)*at);
}

int pg_spell(const char *sql, struct buf *out, struct buf *names)
{
	const char *at = sql;

	while (*at) {
		size_t n = 1;

		if (*at == '\'' || *at == '"') {
			n = quoted(at);
			buf_add(out, at, n);
		} else if (*at == ':' && in_name(at[1])) {
			while (in_name(at[n]))
				n++;
			buf_printf(out, "$%u%s", number_of(names, at, n),
				   before_number(at + n) ? "::bigint" : "");
		} else if (*at == '+' && isalpha((unsigned char)at[1])) {
			/* It keeps SQLite from using an index. */
		} else if ((n = spell_phrase(at, out)) == 0) {
			buf_add(out, at, 1);
			n = 1;
		}
		at += n;
	}
	buf_add(out, "", 1);
	return out->err ? out->err : names->err;
}

/* The table that an INSERT names; empty for anything else. */
static struct text table_of(const char *sql)
{
	static const char start[] = "INSERT INTO ";
	struct text name = {.data = sql + sizeof(start) - 1};

	if (strncmp(sql, start, sizeof(start) - 1) != 0)
		return (struct text) {0};
	while (in_name(name.data[name.len]))
		name.len++;
	return name;
}

bool pg_may_fail(const char *insert)
{
	struct text table = table_of(insert);

	/* An event's only key is the number that the server gives, and it refers to nothing. */
	return table.len > 0 && !text_is(table, "event");
}

const char *pg_key_of(const char *insert)
{
	/* Tables whose rows have other keys, or a number of another name. */
	static const struct {
		const char *table;
		const char *key;
	} others[] = {
		{"meta", NULL},         {"tally", NULL},         {"tally_mark", NULL},
		{"task_project", NULL}, {"task_after", NULL},    {"task_pause", NULL},
		{"visitor", NULL},      {"rule", NULL},          {"project_trust", NULL},
		{"event_clock", NULL},  {"memory_index", NULL},  {"extract_cursor", NULL},
		{"extract_mark", NULL}, {"session_event", "id"}, {"memory_change", "number"},
		{"event", NULL},        {"event_counter", NULL}, {"memory", NULL},
		{"host", NULL},         {"task_chunk", NULL},
	};
	struct text table = table_of(insert);

	if (table.len == 0)
		return NULL;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (text_is(table, others[i].table))
			return others[i].key;
	}
	return "seq";
}
