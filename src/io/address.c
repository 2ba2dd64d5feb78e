/*
 * The text of an address and back. Hosts other than loopback are refused here, before any
 * socket exists, and names are never looked up: what a resolver answers for "localhost" cannot
 * be trusted.
 */
#include "io/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/unix_name.h"

static const struct {
	const char *prefix;
	enum address_kind kind;
} kinds[] = {
	{"unix:", ADDRESS_UNIX},
	{"tcp:", ADDRESS_TCP},
	{"http:", ADDRESS_HTTP},
};

enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

bool address_inet(const char *host, uint16_t port, struct sockaddr_storage *ret, socklen_t *ret_len)
{
	struct sockaddr_in *in4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	if (strcmp(host, "::1") == 0) {
		in6->sin6_family = AF_INET6;
		in6->sin6_addr = in6addr_loopback;
		in6->sin6_port = htons(port);
		*ret_len = sizeof(*in6);
		return true;
	}
	if (strcasecmp(host, "localhost") == 0)
		host = "127.0.0.1";
	/* inet_pton takes four decimal numbers only; "127.1" and "0x7f.0.0.1" are no hosts. */
	if (inet_pton(AF_INET, host, &in4->sin_addr) != 1)
		return false;
	in4->sin_family = AF_INET;
	in4->sin_port = htons(port);
	*ret_len = sizeof(*in4);
	return ntohl(in4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

int address_refuse_host(const char *host, struct error *error)
{
	/* Cut short, so that the sentence always says what is allowed. */
	return refuse(error, REFUSE_FORBIDDEN,
		      "refusing to listen on %.100s: only loopback addresses "
		      "(127.0.0.1, localhost, ::1) are allowed",
		      host);
}

static int parse_path(const char *path, struct address *a, struct error *error)
{
	size_t len = strlen(path);

	if (len == 0)
		return refuse(error, REFUSE_PARAMS, "unix: requires a socket path");
	if (len > UNIX_PATH_MAX)
		return refuse(error, REFUSE_TOO_LARGE,
			      "the socket path is too long (%zu bytes, limit %d): %s", len,
			      UNIX_PATH_MAX, path);
	if (!unix_name_fits(path))
		return refuse(
			error, REFUSE_TOO_LARGE,
			"the socket path is too long (%zu bytes; shorten the path to %d bytes, or "
			"its file name to %d): %s",
			len, UNIX_NAME_MAX, UNIX_LAST_MAX, path);
	if (path[len - 1] == '/')
		return refuse(error, REFUSE_PARAMS, "socket path names a directory: %s", path);
	memcpy(a->path, path, len + 1);
	return 0;
}

static bool parse_port(const char *s, uint16_t *ret_port)
{
	unsigned port = 0;

	if (!*s)
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return false;
		port = port * 10 + (unsigned)(*s - '0');
		if (port > UINT16_MAX)
			return false;
	}
	*ret_port = (uint16_t)port;
	return true;
}

/* host is what precedes the last colon, without the brackets of an IPv6 address. */
static bool split_host(const char *text, const char *colon, char *host, size_t size)
{
	size_t len = (size_t)(colon - text);

	if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
		if (!memchr(text, ':', len))
			return false;
	}
	if (len == 0 || len >= size)
		return false;
	memcpy(host, text, len);
	host[len] = '\0';
	return true;
}

static int parse_inet(const char *text, struct address *a, struct error *error)
{
	const char *colon = strrchr(text, ':');
	struct sockaddr_storage unused;
	socklen_t unused_len;

	if (!colon)
		return refuse(error, REFUSE_PARAMS, "invalid address '%.100s': expected HOST:PORT",
			      text);
	/* No host at all would mean every address, so it is reported as such. */
	if (!split_host(text, colon, a->host, sizeof(a->host)))
		return address_refuse_host(text, error);
	if (!address_inet(a->host, 0, &unused, &unused_len))
		return address_refuse_host(a->host, error);
	if (!parse_port(colon + 1, &a->port))
		return refuse(error, REFUSE_PARAMS, "invalid port in '%.100s': expected 0 to 65535",
			      text);
	return 0;
}

int address_parse(const char *text, struct address *ret_address, struct error *error)
{
	for (size_t i = 0; i < N_KINDS; i++) {
		size_t n = strlen(kinds[i].prefix);
		struct address a = {.kind = kinds[i].kind};
		int r;

		if (strncmp(text, kinds[i].prefix, n) != 0)
			continue;
		if (a.kind == ADDRESS_UNIX)
			r = parse_path(text + n, &a, error);
		else
			r = parse_inet(text + n, &a, error);
		if (r == 0)
			*ret_address = a;
		return r;
	}
	return refuse(error, REFUSE_PARAMS,
		      "invalid address '%.80s': use unix:PATH, tcp:HOST:PORT or http:HOST:PORT",
		      text);
}

void address_format(const struct address *a, char out[ADDRESS_TEXT_MAX])
{
	bool v6 = strchr(a->host, ':') != NULL;

	switch (a->kind) {
	case ADDRESS_UNIX:
		snprintf(out, ADDRESS_TEXT_MAX, "unix:%s", a->path);
		return;
	case ADDRESS_TCP:
	case ADDRESS_HTTP:
		snprintf(out, ADDRESS_TEXT_MAX, "%s:%s%s%s:%u",
			 a->kind == ADDRESS_TCP ? "tcp" : "http", v6 ? "[" : "", a->host,
			 v6 ? "]" : "", a->port);
		return;
	}
}
