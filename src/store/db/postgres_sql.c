/* Our SQL in PostgreSQL's words. The texts are the same but for the names of parameters. */
#include <ctype.h>
#include <string.h>

#include "store/db/postgres.h"

static bool in_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* The number of a parameter, 1 for the first; it is added where it is new. */
static unsigned postgres_sql_number_of(struct buf *names, const char *name, size_t n)
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
			buf_printf(out, "$%u%s", postgres_sql_number_of(names, at, n),
				   before_number(at + n) ? "::bigint" : "");
		} else if (*at == '+' && isalpha((unsigned char)at[1])) {
			/* It keeps SQLite from using an index. */
		} else {
			buf_add(out, at, 1);
		}
		at += n;
	}
	buf_add(out, "", 1);
	return out->err ? out->err : names->err;
}
