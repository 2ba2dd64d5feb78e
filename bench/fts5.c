/*
 * What SQLite's own full-text search does with the same memories and questions,
 * inside the process, without a socket: stop words dropped, the rest OR-ed, the user
 * part of the match, the best ten by bm25 with their text.
 *
 *	fts5 build FILE MEMORIES[,USERS,OWN]
 *	fts5 ask FILE MEMORIES[,USERS,OWN] SECONDS
 */
#include <ctype.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hist.h"
#include "made.h"
#include "now.h"
#include "search/language.h"

enum { MATCH_MAX = 4096, WARM_UP = 20, QUERIES_MIN = 100 };

static void die(sqlite3 *db, const char *what)
{
	fprintf(stderr, "fts5: %s: %s\n", what, sqlite3_errmsg(db));
	exit(1);
}

static void run(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		die(db, sql);
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *st;

	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
		die(db, sql);
	return st;
}

static sqlite3 *open_file(const char *path)
{
	sqlite3 *db;

	if (sqlite3_open(path, &db) != SQLITE_OK)
		die(db, path);
	run(db, "PRAGMA cache_size = -524288"); /* all of it: no page is read twice */
	return db;
}

static void build(const char *path, const struct made_set *set)
{
	sqlite3 *db = open_file(path);
	sqlite3_stmt *st;
	struct made m;
	char user[32];

	run(db, "PRAGMA journal_mode = OFF");
	run(db, "CREATE VIRTUAL TABLE memory USING"
		" fts5(content, user, tokenize = \"porter unicode61 remove_diacritics 2\")");
	run(db, "BEGIN");
	st = prepare(db, "INSERT INTO memory (content, user) VALUES (?, ?)");
	for (uint64_t i = 0; i < set->n_memories; i++) {
		made_memory(set, i, &m);
		snprintf(user, sizeof(user), "user%llu", (unsigned long long)m.user);
		sqlite3_bind_text(st, 1, m.text, (int)m.len, SQLITE_STATIC);
		sqlite3_bind_text(st, 2, user, -1, SQLITE_STATIC);
		if (sqlite3_step(st) != SQLITE_DONE)
			die(db, "insert");
		sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	run(db, "INSERT INTO memory (memory) VALUES ('optimize')");
	run(db, "COMMIT");
	sqlite3_close(db);
}

/* user:user0 AND (content:one OR content:two); all words if all are stop words. */
static void make_match(const struct made *question, char *match)
{
	size_t len = 0;

	for (int keep_all = 0; keep_all < 2 && len == 0; keep_all++) {
		size_t at = 0;

		while (at < question->len) {
			char word[64];
			size_t n = 0;
			const struct lexicon_entry *known;

			while (at < question->len && !isalnum((unsigned char)question->text[at]))
				at++;
			while (at < question->len && isalnum((unsigned char)question->text[at]) &&
			       n < sizeof(word) - 1)
				word[n++] = (char)tolower((unsigned char)question->text[at++]);
			word[n] = 0;
			known = lexicon_find(word, n);
			if (n == 0 || (!keep_all && known && known->flags & WORD_STOP))
				continue;
			len += (size_t)snprintf(match + len, MATCH_MAX - len, "%s\"%s\"",
						len ? " OR " : "user:user0 AND content:(", word);
		}
	}
	snprintf(match + len, MATCH_MAX - len, ")");
}

static uint64_t ask_one(sqlite3 *db, sqlite3_stmt *st, const char *match, uint64_t *n_rows)
{
	uint64_t start = now_ns();
	int rc;

	sqlite3_bind_text(st, 1, match, -1, SQLITE_STATIC);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		if (!sqlite3_column_text(st, 1))
			die(db, "row");
		(*n_rows)++;
	}
	if (rc != SQLITE_DONE)
		die(db, match);
	sqlite3_reset(st);
	return now_ns() - start;
}

static void ask(const char *path, const struct made_set *set, double seconds)
{
	static struct hist hist;
	sqlite3 *db = open_file(path);
	sqlite3_stmt *st = prepare(db, "SELECT rowid, content FROM memory WHERE memory MATCH ?"
				       " ORDER BY rank LIMIT 10");
	uint64_t until = 0, n_rows = 0;

	for (uint64_t i = 0; i < WARM_UP + QUERIES_MIN || now_ns() < until; i++) {
		struct made question;
		char match[MATCH_MAX];
		uint64_t took;

		if (i == WARM_UP) {
			until = now_ns() + (uint64_t)(seconds * 1e9);
			n_rows = 0;
		}
		made_question(set, i, &question);
		make_match(&question, match);
		took = ask_one(db, st, match, &n_rows);
		if (i >= WARM_UP)
			hist_add(&hist, took);
	}
	printf("{\"requests\":%llu,\"p50_ns\":%llu,\"p99_ns\":%llu,\"max_ns\":%llu,\"rows\":%.2f}"
	       "\n",
	       (unsigned long long)hist.n, (unsigned long long)hist_quantile(&hist, 0.5),
	       (unsigned long long)hist_quantile(&hist, 0.99), (unsigned long long)hist.max,
	       (double)n_rows / (double)hist.n);
	sqlite3_finalize(st);
	sqlite3_close(db);
}

int main(int argc, char **argv)
{
	struct made_set set;

	if (argc == 4 && strcmp(argv[1], "build") == 0 && made_set_parse(argv[3], &set) == 0) {
		build(argv[2], &set);
		return 0;
	}
	if (argc == 5 && strcmp(argv[1], "ask") == 0 && made_set_parse(argv[3], &set) == 0) {
		ask(argv[2], &set, strtod(argv[4], NULL));
		return 0;
	}
	fprintf(stderr, "usage: %s build|ask FILE MEMORIES[,USERS,OWN] [SECONDS]\n", argv[0]);
	return 2;
}
