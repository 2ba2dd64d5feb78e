/*
 * Whose the schema is. Its rows are commands that run as our user, and its triggers, functions and types
 * run as our role, so all of it must belong to us, to a role that we are a member of, or to one that was
 * accepted by koine store adopt. Being a superuser does not count as membership: then every role could
 * prepare a schema for us.
 *
 * Also: who holds one of our advisory locks, which any role may take, and whether a connection to
 * another machine makes sure of that machine.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "store/db/postgres.h"

enum { LINE_LEN = 256 };

#define OURS                                                                                       \
	"WITH RECURSIVE us (oid) AS (SELECT oid FROM pg_roles WHERE rolname = current_user"        \
	" UNION SELECT m.roleid FROM pg_auth_members AS m JOIN us ON m.member = us.oid)"

/* A trigger belongs to its table, and runs a function that may be elsewhere. Those of the system are
 * the superuser's, who needs no trigger. */
static const char foreign[] = OURS
	", schema AS (SELECT oid, nspname, nspowner FROM pg_namespace WHERE nspname = 'koine'),"
	" owned (kind, name, owner) AS (SELECT 'schema', nspname, nspowner FROM schema"
	" UNION ALL SELECT CASE c.relkind WHEN 'S' THEN 'sequence' WHEN 'v' THEN 'view'"
	" WHEN 'i' THEN 'index' WHEN 'c' THEN 'type' ELSE 'table' END, c.relname, c.relowner"
	" FROM pg_class AS c JOIN schema ON c.relnamespace = schema.oid"
	" UNION ALL SELECT 'function', p.proname, p.proowner FROM pg_proc AS p"
	" JOIN schema ON p.pronamespace = schema.oid"
	" UNION ALL SELECT 'operator', o.oprname, o.oprowner FROM pg_operator AS o"
	" JOIN schema ON o.oprnamespace = schema.oid"
	" UNION ALL SELECT 'type', t.typname, t.typowner FROM pg_type AS t"
	" JOIN schema ON t.typnamespace = schema.oid"
	" UNION ALL SELECT 'trigger', t.tgname, p.proowner FROM pg_trigger AS t"
	" JOIN pg_class AS c ON c.oid = t.tgrelid JOIN schema ON c.relnamespace = schema.oid"
	" JOIN pg_proc AS p ON p.oid = t.tgfoid AND p.pronamespace <>"
	" CAST(CAST('pg_catalog' AS regnamespace) AS oid) WHERE NOT t.tgisinternal)"
	" SELECT f.kind, f.name, CAST(f.owner AS TEXT), coalesce(r.rolname, CAST(f.owner AS TEXT)),"
	" (" PG_PLACE_ID "), current_user FROM owned AS f"
	" LEFT JOIN pg_roles AS r ON r.oid = f.owner WHERE f.owner NOT IN (SELECT oid FROM us)"
	" ORDER BY f.kind <> 'schema', f.kind = 'type', f.kind, f.name";

enum { KIND, NAME, OWNER, ROLE, PLACE, SELF };

/* ---- what was accepted ---- */

/* "PLACE OWNER" */
static void format_line(char out[LINE_LEN], const PGresult *rows, int i)
{
	snprintf(out, LINE_LEN, "%s %s", PQgetvalue(rows, i, PLACE), PQgetvalue(rows, i, OWNER));
}

/* A file that others can write could accept any schema for us. */
static FILE *open_accepted(const char *path)
{
	FILE *f = path ? fopen(path, "re") : NULL;
	struct stat st;

	if (f && (fstat(fileno(f), &st) != 0 || st.st_uid != geteuid() || (st.st_mode & 022))) {
		fclose(f);
		return NULL;
	}
	return f;
}

static bool is_accepted(const char *path, const PGresult *rows, int i)
{
	char wanted[LINE_LEN], line[LINE_LEN];
	FILE *f = open_accepted(path);
	bool found = false;

	format_line(wanted, rows, i);
	while (f && !found && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		found = strcmp(line, wanted) == 0;
	}
	if (f)
		fclose(f);
	return found;
}

static bool copy_accepted(const char *from, FILE *to)
{
	char line[LINE_LEN];
	FILE *f = open_accepted(from);

	while (f && fgets(line, sizeof(line), f))
		fputs(line, to);
	if (f)
		fclose(f);
	return fflush(to) == 0;
}

static int write_accepted(const struct pg_place *p, const char *next, const PGresult *rows,
			  struct error *error)
{
	char line[LINE_LEN];
	FILE *f = unlink(next) == 0 || errno == ENOENT ? fopen(next, "wxe") : NULL;
	bool ok = f && fchmod(fileno(f), 0600) == 0 && copy_accepted(p->accepted, f);

	for (int i = 0; ok && i < PQntuples(rows); i++) {
		format_line(line, rows, i);
		ok = is_accepted(next, rows, i) || (fprintf(f, "%s\n", line) > 0 && fflush(f) == 0);
	}
	ok = ok && fsync(fileno(f)) == 0;
	if (f && fclose(f) != 0)
		ok = false;
	return ok ? 0
		  : refuse(error, REFUSE_UNAVAILABLE, "cannot write %s: %s", next, strerror(errno));
}

/* ---- the schema ---- */

static int refuse_foreign(const struct pg_place *p, const PGresult *rows, int i,
			  struct error *error)
{
	const char *kind = PQgetvalue(rows, i, KIND);

	if (strcmp(kind, "schema") == 0)
		return refuse(error, REFUSE_CONFLICT,
			      "the schema 'koine' in %s belongs to role '%s', but koined connects "
			      "as '%s': that role's tasks and triggers would run with koined's "
			      "rights (to accept the role: koine store adopt)",
			      p->shown, PQgetvalue(rows, i, ROLE), PQgetvalue(rows, i, SELF));
	return refuse(
		error, REFUSE_CONFLICT,
		"the schema 'koine' in %s contains an object of another role: %s '%s' belongs to "
		"role '%s', but koined connects as '%s' (to accept the role: koine store adopt)",
		p->shown, kind, PQgetvalue(rows, i, NAME), PQgetvalue(rows, i, ROLE),
		PQgetvalue(rows, i, SELF));
}

/* While the schema may be anybody's, no name is looked up in it: an operator there that fits better
 * than the server's own would run as us, in the question whose it is. */
static int find_foreign(struct pg *db, PGresult **ret_rows)
{
	PGresult *rows = NULL;
	int r = pg_simple(db, "SELECT set_config('search_path', 'pg_catalog', false)", NULL)
			?: pg_simple(db, foreign, &rows)
			?: pg_simple(db, "SELECT set_config('search_path', 'koine', false)", NULL);

	if (r == 0)
		*ret_rows = rows;
	else
		PQclear(rows);
	return r;
}

int pg_check_owners(struct pg *db, struct error *error)
{
	PGresult *rows = NULL;
	int r = find_foreign(db, &rows);

	if (r == 0 && db->place->accepts && PQntuples(rows) == 0)
		r = refuse(error, REFUSE_CONFLICT,
			   "nothing to adopt: you already own everything in %s", db->place->shown);
	for (int i = 0; r == 0 && !db->place->accepts && i < PQntuples(rows); i++) {
		if (!is_accepted(db->place->accepted, rows, i))
			r = refuse_foreign(db->place, rows, i, error);
	}
	PQclear(rows);
	return r;
}

void pg_set_accepted(void *place, const char *file, bool all)
{
	struct pg_place *p = place;

	snprintf(p->accepted, sizeof(p->accepted), "%s", file ? file : "");
	p->accepts = all;
}

int pg_accept(void *handle, const char *next, char *ret_roles, size_t size, struct error *error)
{
	struct pg *db = handle;
	PGresult *rows = NULL;
	size_t n = 0;
	int r = find_foreign(db, &rows) ?: write_accepted(db->place, next, rows, error);

	ret_roles[0] = '\0';
	for (int i = 0; r == 0 && i < PQntuples(rows) && n < size; i++) {
		const char *role = PQgetvalue(rows, i, ROLE);

		if (i == 0 || strcmp(role, PQgetvalue(rows, i - 1, ROLE)) != 0)
			n += (size_t)snprintf(ret_roles + n, size - n, "%s%s", i > 0 ? ", " : "",
					      role);
	}
	PQclear(rows);
	return r;
}

/* ---- locks ---- */

int pg_name_holder(struct pg *db, int lock, int number)
{
	static const char query[] = OURS
		" SELECT a.usename, a.pid FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)"
		" WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.classid = %d"
		" AND l.objid = %d AND l.granted AND l.pid <> pg_backend_pid() AND l.database ="
		" (SELECT oid FROM pg_database WHERE datname = current_database())"
		" AND a.usesysid NOT IN (SELECT oid FROM us) LIMIT 1";
	char sql[sizeof(query) + 2 * 12], words[PG_MESSAGE_MAX];
	PGresult *rows = NULL;
	int r;

	snprintf(sql, sizeof(sql), query, lock, number);
	r = pg_simple(db, sql, &rows);
	if (r == 0 && PQntuples(rows) > 0) {
		snprintf(words, sizeof(words),
			 "role '%s' holds the store's lock in PostgreSQL backend %s: end that "
			 "session",
			 PQgetvalue(rows, 0, 0), PQgetvalue(rows, 0, 1));
		pg_keep_message(db, words);
		r = -EBUSY;
	}
	PQclear(rows);
	return r;
}

/* ---- the server ---- */

static const char *value_of(const PQconninfoOption *options, const char *name)
{
	for (const PQconninfoOption *o = options; o && o->keyword; o++) {
		if (strcmp(o->keyword, name) == 0)
			return o->val ? o->val : "";
	}
	return "";
}

/* By the address that was connected to: a name says nothing about where it leads. */
static bool is_here(PGconn *conn)
{
	const char *address = PQhostaddr(conn);

	/* A Unix socket has none. */
	return !address || !address[0] || strncmp(address, "127.", 4) == 0 ||
	       strcmp(address, "::1") == 0;
}

void pg_note_server(struct pg *db, char *ret_note, size_t size)
{
	PQconninfoOption *options = PQconninfo(db->conn);
	const char *mode = value_of(options, "sslmode");
	const char *host = PQhost(db->conn) ? PQhost(db->conn) : "";

	ret_note[0] = '\0';
	if (!is_here(db->conn) && strcmp(mode, "verify-full") != 0)
		snprintf(ret_note, size,
			 "%s is another machine, and sslmode is '%s': an attacker on the "
			 "network could impersonate it (add sslmode=verify-full to the address)",
			 host, mode);
	PQconninfoFree(options);
}
