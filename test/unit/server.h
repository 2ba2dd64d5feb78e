/* A server's database in place of a file: KOINE_TEST_STORE is its address, and koine_template has the tables. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
static PGconn *server_kept;

static inline PGconn *server_connection(void)
{
	static const char *const keys[] = {"dbname", "options", NULL};
	const char *values[] = {getenv("KOINE_TEST_STORE"),
				"-c search_path=koine -c client_min_messages=warning", NULL};

	if (server_kept && PQstatus(server_kept) != CONNECTION_OK) {
		PQfinish(server_kept);
		server_kept = NULL;
	}
	if (!server_kept)
		server_kept = PQconnectdbParams(keys, values, 1);
	return server_kept;
}

static inline int server_run(PGconn *connection, const char *sql, int64_t *ret_n)
{
	PGresult *answer = PQexec(connection, sql);
	ExecStatusType status = PQresultStatus(answer);
	int r = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK ? 0 : -1;

	if (r != 0)
		fprintf(stderr, "%s: %s", sql, PQerrorMessage(connection));
	else
		*ret_n = PQntuples(answer) > 0 ? strtoll(PQgetvalue(answer, 0, 0), NULL, 10) : 0;
	PQclear(answer);
	return r;
}

/* *ret_n: the first column of the last statement's first row; 0 if there is none. */
static inline int server_ask(const char *sql, int64_t *ret_n)
{
	return server_run(server_connection(), sql, ret_n);
}

/* Copying a template takes a fifth of the time of dropping and making tables. */
static inline int server_renew(const char *name)
{
	static const char *const keys[] = {"dbname", "dbname", "options", NULL};
	const char *values[] = {getenv("KOINE_TEST_STORE"), "postgres",
				"-c client_min_messages=warning", NULL};
	PGconn *connection = PQconnectdbParams(keys, values, 1);
	char drop[128], copy[256];
	int64_t n;
	int r;

	PQfinish(server_kept);
	server_kept = NULL;
	snprintf(drop, sizeof(drop), "DROP DATABASE IF EXISTS %s WITH (FORCE)", name);
	snprintf(copy, sizeof(copy),
		 "CREATE DATABASE %s TEMPLATE koine_template STRATEGY file_copy", name);
	r = server_run(connection, drop, &n) ?: server_run(connection, copy, &n);
	PQfinish(connection);
	return r;
}
#else
static inline int server_ask(const char *sql, int64_t *ret_n)
{
	return -1;
}

static inline int server_renew(const char *name)
{
	return -1;
}
#endif

/* Its address, with the tables of a new store. Without a server nothing happens. */
static inline int server_use(char *url, size_t size)
{
	const char *address = getenv("KOINE_TEST_STORE");

	if (!on_server())
		return 0;
	snprintf(url, size, "%s", address);
	return server_renew(strrchr(address, '/') + 1);
}
