/* A server's database in place of a file: KOINE_TEST_STORE is its address. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Found where the store was built with it. */
#if __has_include(<libpq-fe.h>)
#include <libpq-fe.h>
#define HAVE_SERVER 1
#else
#define HAVE_SERVER 0
#endif

static inline bool on_server(void)
{
	return HAVE_SERVER && getenv("KOINE_TEST_STORE") != NULL;
}

#if HAVE_SERVER
/* One of this program's own beside the store's: a test asks thousands of questions. */
static inline PGconn *server_connection(void)
{
	static const char *const keys[] = {"dbname", "options", NULL};
	const char *values[] = {getenv("KOINE_TEST_STORE"),
				"-c search_path=koine -c client_min_messages=warning", NULL};
	static PGconn *kept;

	if (kept && PQstatus(kept) != CONNECTION_OK) {
		PQfinish(kept);
		kept = NULL;
	}
	if (!kept)
		kept = PQconnectdbParams(keys, values, 1);
	return kept;
}

/* *ret_n: the first column of the last statement's first row; 0 if there is none. */
static inline int server_ask(const char *sql, int64_t *ret_n)
{
	PGresult *answer = PQexec(server_connection(), sql);
	ExecStatusType status = PQresultStatus(answer);
	int r = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK ? 0 : -1;

	if (r != 0)
		fprintf(stderr, "%s: %s", sql, PQerrorMessage(server_connection()));
	else
		*ret_n = PQntuples(answer) > 0 ? strtoll(PQgetvalue(answer, 0, 0), NULL, 10) : 0;
	PQclear(answer);
	return r;
}
#else
static inline int server_ask(const char *sql, int64_t *ret_n)
{
	(void)sql;
	(void)ret_n;
	return -1;
}
#endif

/* Its address, and nothing of ours in it. Without a server nothing happens. */
static inline int server_use(char *url, size_t size)
{
	int64_t n;

	if (!on_server())
		return 0;
	snprintf(url, size, "%s", getenv("KOINE_TEST_STORE"));
	return server_ask("DROP SCHEMA IF EXISTS koine CASCADE", &n);
}
