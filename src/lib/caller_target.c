#include "lib/caller.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/unix_name.h"

void caller_target_done(struct caller_target *t)
{
	free(t->socket);
	free(t->shown);
	free(t->host);
	free(t->path);
	*t = (struct caller_target) {0};
}

static int set_text(char **field, const char *text, size_t len)
{
	free(*field);
	*field = strndup(text, len);
	return *field ? 0 : -ENOMEM;
}

static int add_unix(struct caller_target *t, const char *path)
{
	int r;

	if (path[0] == '\0')
		return -EINVAL;
	if (!unix_name_fits(path))
		return -ENAMETOOLONG;
	t->at[t->n_at++].addr.ss_family = AF_UNIX;
	r = set_text(&t->socket, path, strlen(path));
	return r != 0 ? r : set_text(&t->host, "localhost", strlen("localhost"));
}

static int add_ipv4(struct caller_target *t, const char *host, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	if (inet_pton(AF_INET, host, &in.sin_addr) != 1)
		return -EINVAL;
	memcpy(&t->at[t->n_at].addr, &in, sizeof(in));
	t->at[t->n_at++].len = sizeof(in);
	return 0;
}

static int add_ipv6(struct caller_target *t, const char *host, uint16_t port)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	if (inet_pton(AF_INET6, host, &in6.sin6_addr) != 1)
		return -EINVAL;
	memcpy(&t->at[t->n_at].addr, &in6, sizeof(in6));
	t->at[t->n_at++].len = sizeof(in6);
	return 0;
}

static int parse_port(const char *text, size_t len, uint16_t *ret_port)
{
	unsigned n = 0;

	if (len == 0 || len > 5)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		n = n * 10 + (unsigned)(text[i] - '0');
	}
	if (n == 0 || n > UINT16_MAX)
		return -EINVAL;
	*ret_port = (uint16_t)n;
	return 0;
}

static int add_host(struct caller_target *t, const char *host, uint16_t port)
{
	int r;

	if (strcmp(host, "localhost") != 0)
		return strchr(host, ':') ? add_ipv6(t, host, port) : add_ipv4(t, host, port);
	r = add_ipv4(t, "127.0.0.1", port);
	return r != 0 ? r : add_ipv6(t, "::1", port);
}

/* "HOST:PORT" or "[V6]:PORT"; without a port, default_port (0: a port is required). */
static int add_authority(struct caller_target *t, const char *text, size_t len,
			 uint16_t default_port)
{
	bool bracket = len > 0 && text[0] == '[';
	const char *end = bracket ? memchr(text, ']', len) : memchr(text, ':', len);
	size_t host_len = end ? (size_t)(end - text) - bracket : len;
	size_t at = host_len + (bracket ? 2 : 0);
	uint16_t port = default_port;
	char host[64];

	if ((bracket && !end) || host_len == 0 || host_len >= sizeof(host))
		return -EINVAL;
	memcpy(host, text + bracket, host_len);
	host[host_len] = '\0';
	if (bracket && !strchr(host, ':'))
		return -EINVAL;
	if (at < len && (text[at] != ':' || parse_port(text + at + 1, len - at - 1, &port) != 0))
		return -EINVAL;
	if (port == 0)
		return -EINVAL;
	return add_host(t, host, port);
}

/* It goes into a request line, so it must not end one. */
static bool is_path(const char *path)
{
	for (; *path; path++) {
		if (*path <= ' ' || *path == '#' || *path == 0x7f)
			return false;
	}
	return true;
}

/* `text` is what follows "http:"; the slashes of a URL may be missing. */
static int parse_http(struct caller_target *t, const char *text)
{
	size_t len;
	int r;

	if (strncmp(text, "//", 2) == 0)
		text += 2;
	len = strcspn(text, "/");
	if (!is_path(text + len))
		return -EINVAL;
	t->is_http = true;
	if (text[len] != '\0')
		r = set_text(&t->path, text + len, strlen(text + len));
	else
		r = set_text(&t->path, "/", 1);
	if (r == 0)
		r = set_text(&t->host, text, len);
	return r != 0 ? r : add_authority(t, text, len, 80);
}

static int parse_tcp(struct caller_target *t, const char *text)
{
	int r = set_text(&t->host, text, strlen(text));

	return r != 0 ? r : add_authority(t, text, strlen(text), 0);
}

/* "https://...", which as a path would only be missing. */
static bool is_foreign_url(const char *address)
{
	size_t n = strspn(address, "abcdefghijklmnopqrstuvwxyz+");

	return n > 0 && strncmp(address + n, "://", 3) == 0;
}

int caller_target_parse(const char *address, struct caller_target *ret_target)
{
	bool plain = strncmp(address, "unix:", 5) != 0 && strncmp(address, "tcp:", 4) != 0 &&
		     strncmp(address, "http:", 5) != 0;
	int r;

	*ret_target = (struct caller_target) {0};
	if (plain && (!strchr(address, '/') || is_foreign_url(address)))
		return -EINVAL;
	if (asprintf(&ret_target->shown, "%s%s", plain ? "unix:" : "", address) < 0) {
		ret_target->shown = NULL;
		return -ENOMEM;
	}
	r = set_text(&ret_target->path, "/", 1);
	if (r != 0)
		return r;
	if (plain)
		return add_unix(ret_target, address);
	if (address[0] == 'u')
		return add_unix(ret_target, address + strlen("unix:"));
	if (address[0] == 't')
		return parse_tcp(ret_target, address + strlen("tcp:"));
	return parse_http(ret_target, address + strlen("http:"));
}
