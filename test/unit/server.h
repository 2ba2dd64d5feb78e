/* A server's database in place of a file: KOINE_TEST_STORE is its address. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static inline bool on_server(void)
{
	return getenv("KOINE_TEST_STORE") != NULL;
}

/* Its address, and nothing of ours in it. Without a server nothing happens. */
static inline int server_use(char *url, size_t size)
{
	if (!on_server())
		return 0;
	snprintf(url, size, "%s", getenv("KOINE_TEST_STORE"));
	return system("psql -qX -d \"$KOINE_TEST_STORE\" -c 'DROP SCHEMA IF EXISTS koine CASCADE'"
		      " 2>/dev/null") == 0
		       ? 0
		       : -1;
}
