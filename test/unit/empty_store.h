/* A new store is a copy of an earlier one: making its tables takes most of the time of a test that does little. */
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server.h"
#include "store/store.h"

/* The first test of a program makes the store. */
static inline int empty_store_make(const char *url, int fd, char **ret_bytes, size_t *ret_len)
{
	const struct store_opts opts = {.n_readers = 1};
	struct store *store = NULL;
	struct error error = {0};
	struct stat st;
	int r = store_open(url, &opts, &store, &error);

	store_close(store);
	if (r != 0 || fstat(fd, &st) != 0)
		return -1;
	*ret_len = (size_t)st.st_size;
	*ret_bytes = malloc(*ret_len);
	return *ret_bytes && read(fd, *ret_bytes, *ret_len) == (ssize_t)*ret_len ? 0 : -1;
}

/* At "sqlite:PATH", where nothing is yet. */
static inline int empty_store_copy(const char *url)
{
	static char *bytes;
	static size_t len;
	int fd, r;

	if (on_server())
		return 0;
	fd = open(url + strlen("sqlite:"), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	r = bytes ? (write(fd, bytes, len) == (ssize_t)len ? 0 : -1)
		  : empty_store_make(url, fd, &bytes, &len);
	close(fd);
	return r;
}
