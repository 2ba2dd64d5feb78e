#include "store/db/members.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "store/db/driver.h"

/* The most in a list, such as the tasks that one comes after. We never write more. */
enum { TEXTS_MAX = 1 << 16 };

static bool is_selected(const struct query *query, const struct member *m)
{
	return m->column && member_is_in(m, query->members);
}

#define query_each(m, query) schema_each(m, (query)->of) if (is_selected(query, m))

/* ---- the text ---- */

static const char *type_of(const struct member *m)
{
	switch ((enum member_kind)m->kind) {
	case MEMBER_TEXT:
	case MEMBER_LINES:
	case MEMBER_JSON:
		return "TEXT";
	case MEMBER_BLOB:
	case MEMBER_ENV:
	case MEMBER_PACKED:
		return "BYTEA";
	case MEMBER_REAL:
		return "DOUBLE PRECISION";
	case MEMBER_TEXTS:
	case MEMBER_INT:
	case MEMBER_TIME:
	case MEMBER_BOOL:
	case MEMBER_ENUM:
		break;
	}
	return "BIGINT";
}

/* `form` with '%' for the column, and '@' for its type. */
static void spell(struct buf *out, const char *form, const struct member *m)
{
	for (; *form; form++) {
		if (*form == '%')
			buf_add_str(out, m->column);
		else if (*form == '@')
			buf_add_str(out, type_of(m));
		else
			buf_add(out, form, 1);
	}
}

static void spell_all(struct buf *out, const struct query *query, const char *form, bool reads)
{
	const char *between = "";

	query_each (m, query) {
		bool is_special = reads && (m->flags & query->special);

		buf_add_str(out, between);
		spell(out, is_special ? query->as : form, m);
		between = ", ";
	}
}

static const struct mark {
	struct text text;
	const char *form;
	bool reads; /* nothing is bound for it */
} marks[] = {
	{TEXT("{columns}"), "%", true},        {TEXT("{values}"), ":%", false},
	{TEXT("{changes}"), "% = :%", false},  {TEXT("{lists}"), "CAST(:% AS @[])", false},
	{TEXT("{listed}"), "% = one.%", true},
};

static const struct mark *member_mark_at(const char *at)
{
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		if (strncmp(at, marks[i].text.data, marks[i].text.len) == 0)
			return &marks[i];
	}
	return NULL;
}

static const char *lock_of(const struct store_ops *ops, const struct query *query)
{
	static const char *const locks[] = {
		[QUERY_LOCKS_ROWS] = "FOR UPDATE",
		[QUERY_SKIPS_LOCKED] = "FOR UPDATE SKIP LOCKED",
	};

	return ops->is_shared ? locks[query->lock] : "";
}

/* The length of the mark at the start of `at`; 0: unknown. */
static size_t spell_mark(struct buf *out, const struct store_ops *ops, const struct query *query,
			 const char *at)
{
	static const struct text lock = TEXT("{lock}"), tally = TEXT("{tally}"),
				 names = TEXT("{names}");
	const struct mark *mark = query->of ? member_mark_at(at) : NULL;

	if (mark) {
		assert(mark->reads || out->err || !memchr(out->data, ':', out->len));
		spell_all(out, query, mark->form, mark->reads);
		return mark->text.len;
	}
	if (strncmp(at, tally.data, tally.len) == 0) {
		buf_add_str(out, ops->is_shared ? "koine_tallied" : "tally");
		return tally.len;
	}
	if (strncmp(at, names.data, names.len) == 0) {
		buf_add_str(out, ops->is_shared
					 ? "(SELECT unnest(CAST(CAST(:names AS TEXT) AS TEXT[])))"
					 : "(SELECT value FROM json_each(:names))");
		return names.len;
	}
	if (query->lock == QUERY_LOCKS_NOTHING || strncmp(at, lock.data, lock.len) != 0)
		return 0;
	buf_add_str(out, lock_of(ops, query));
	return lock.len;
}

/* The length of a quoted text with its quotes, or of one character; 0: a comment. */
static size_t plain_length(const char *at)
{
	const char *end = *at == '\'' || *at == '"' ? strchr(at + 1, *at) : NULL;

	if (strncmp(at, "/*", 2) == 0 || strncmp(at, "--", 2) == 0)
		return 0;
	return end ? (size_t)(end + 1 - at) : 1;
}

static int spell_text(struct buf *out, const struct store_ops *ops, const struct query *query,
		      const char *at)
{
	while (*at) {
		size_t n = *at == '{' ? spell_mark(out, ops, query, at) : plain_length(at);

		if (n == 0)
			return -EINVAL;
		if (*at != '{')
			buf_add(out, at, n);
		at += n;
	}
	buf_add(out, "", 1);
	return out->err;
}

int query_spell(struct buf *out, const struct store_ops *ops, const struct query *query)
{
	const char *sql = ops->is_shared && query->postgres ? query->postgres : query->sql;

	if (query->lock != QUERY_LOCKS_NOTHING && !strstr(sql, "{lock}"))
		return -EINVAL;
	return spell_text(out, ops, query, sql);
}

int query_spell_many(struct buf *out, const struct store_ops *ops, const struct query *query)
{
	return spell_text(out, ops, query, query->many);
}

/* ---- what is bound ---- */

static inline void set_none(struct query_value *v)
{
	v->kind = QUERY_TEXT;
	v->t.data = NULL;
}

static void set_bytes(struct query_value *v, const struct member *m, struct text t)
{
	bool is_text = m->kind == MEMBER_TEXT || m->kind == MEMBER_LINES || m->kind == MEMBER_JSON;

	v->kind = is_text ? QUERY_TEXT : QUERY_BLOB;
	v->t = !t.data && (m->flags & MEMBER_NOT_NULL) ? TEXT("") : t;
}

static void set_value(struct query_value *v, const struct member *m, const void *at)
{
	v->kind = QUERY_INT;
	switch ((enum member_kind)m->kind) {
	case MEMBER_TEXT:
	case MEMBER_LINES:
	case MEMBER_JSON:
	case MEMBER_BLOB:
	case MEMBER_ENV:
	case MEMBER_PACKED:
		set_bytes(v, m, *(const struct text *)at);
		return;
	case MEMBER_REAL:
		v->kind = QUERY_DOUBLE;
		v->d = *(const double *)at;
		if ((m->flags & MEMBER_NULLABLE) && member_real_is_none(m, v->d))
			set_none(v);
		return;
	case MEMBER_TEXTS:
		v->n = ((const struct texts *)at)->n;
		break;
	case MEMBER_INT:
	case MEMBER_TIME:
		v->n = *(const int64_t *)at;
		break;
	case MEMBER_BOOL:
		v->n = *(const bool *)at;
		break;
	case MEMBER_ENUM:
		v->n = *(const unsigned *)at;
		break;
	}
	if ((m->flags & MEMBER_NULLABLE) && member_int_is_none(m, v->n))
		set_none(v);
}

int query_bind_members(struct statement *q, const void *noun)
{
	struct query_value v = {0};
	int place = 1, r = 0;

	query_each (m, q->query) {
		set_value(&v, m, member_at(m, noun));
		r = r ?: q->conn->ops->bind(q->handle, place++, &v);
	}
	return r;
}

/* ---- what a row has ---- */

static int64_t read_int(struct statement *q, int column, const struct member *m)
{
	if ((m->flags & MEMBER_NULLABLE) && query_null(q, column))
		return member_none_int(m);
	return query_int(q, column);
}

static double read_real(struct statement *q, int column, const struct member *m)
{
	if ((m->flags & MEMBER_NULLABLE) && query_null(q, column))
		return (double)member_none_int(m);
	return query_double(q, column);
}

static void read_member(struct statement *q, int column, const struct member *m, void *at)
{
	switch ((enum member_kind)m->kind) {
	case MEMBER_TEXT:
	case MEMBER_LINES:
	case MEMBER_JSON:
		*(struct text *)at = query_text(q, column);
		break;
	case MEMBER_BLOB:
	case MEMBER_ENV:
		*(struct text *)at = query_blob(q, column);
		break;
	case MEMBER_PACKED:
		((struct packed *)at)->bytes = query_blob(q, column);
		break;
	case MEMBER_TEXTS:
		((struct texts *)at)->n = query_enum(q, column, TEXTS_MAX + 1);
		break;
	case MEMBER_INT:
	case MEMBER_TIME:
		*(int64_t *)at = read_int(q, column, m);
		break;
	case MEMBER_REAL:
		*(double *)at = read_real(q, column, m);
		break;
	case MEMBER_BOOL:
		*(bool *)at = query_int(q, column) != 0;
		break;
	case MEMBER_ENUM:
		*(unsigned *)at = query_enum(q, column, m->n_names);
		break;
	}
}

/* This runs for each row, so what does not change is looked up once. */
void query_read_members(struct statement *q, void *noun)
{
	const struct schema *of = q->query->of;
	const struct selection selected = q->query->members;
	int column = 0;

	memset(noun, 0, of->size);
	schema_each(m, of)
	{
		if (m->column && member_is_in(m, selected))
			read_member(q, column++, m, (char *)noun + m->offset);
	}
	q->beside = column;
}

int query_beside(const struct statement *q)
{
	return q->beside;
}
