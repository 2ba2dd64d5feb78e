#include "message.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "gob.h"

static const char *const framing_names[] = {
	[FRAMING_LINE] = "line", [FRAMING_LENGTH] = "length", [FRAMING_HTTP] = "http",
	[FRAMING_RESP] = "resp", [FRAMING_GOB] = "gob",
};

int framing_parse(const char *name, enum framing *ret_framing)
{
	for (size_t i = 0; i < sizeof(framing_names) / sizeof(framing_names[0]); i++) {
		if (strcmp(name, framing_names[i]) == 0) {
			*ret_framing = (enum framing)i;
			return 0;
		}
	}
	return -EINVAL;
}

static ssize_t cut_line(const char *data, size_t len, struct text *ret_body)
{
	const char *end = memchr(data, '\n', len);

	if (!end)
		return len > MESSAGE_MAX ? -EPROTO : 0;
	ret_body->data = data;
	ret_body->len = (size_t)(end - data);
	return end - data + 1;
}

static ssize_t cut_length(const char *data, size_t len, struct text *ret_body)
{
	uint32_t n;

	if (len < sizeof(n))
		return 0;
	memcpy(&n, data, sizeof(n));
	n = ntohl(n);
	if (n > MESSAGE_MAX)
		return -EPROTO;
	if (len - sizeof(n) < n)
		return 0;
	ret_body->data = data + sizeof(n);
	ret_body->len = n;
	return (ssize_t)(sizeof(n) + n);
}

/* Content-Length within the head [data, end), which ends in an empty line; -1 without one. */
static long content_length(const char *data, const char *end)
{
	static const char name[] = "content-length:";

	while (data < end) {
		if ((*data | 0x20) == 'c' && strncasecmp(data, name, sizeof(name) - 1) == 0)
			return strtol(data + sizeof(name) - 1, NULL, 10);
		data = memchr(data, '\n', (size_t)(end - data));
		if (!data)
			break;
		data++;
	}
	return -1;
}

static ssize_t cut_http(const char *data, size_t len, struct text *ret_body)
{
	const char *end = memmem(data, len, "\r\n\r\n", 4);
	size_t head;
	long body;

	if (!end)
		return len > MESSAGE_MAX ? -EPROTO : 0;
	head = (size_t)(end - data) + 4;
	body = content_length(data, end + 2);
	if (body < 0 || body > MESSAGE_MAX)
		return -EPROTO;
	if (len - head < (size_t)body)
		return 0;
	ret_body->data = data + head;
	ret_body->len = (size_t)body;
	return (ssize_t)head + body;
}

ssize_t message_cut(enum framing framing, const char *data, size_t len, struct text *ret_body)
{
	switch (framing) {
	case FRAMING_LINE:
	case FRAMING_RESP:
		return cut_line(data, len, ret_body);
	case FRAMING_LENGTH:
		return cut_length(data, len, ret_body);
	case FRAMING_HTTP:
		return cut_http(data, len, ret_body);
	case FRAMING_GOB:
		return gob_cut(data, len, ret_body);
	}
	return -EPROTO;
}

void message_add(struct buf *out, enum framing framing, const char *head, struct text body)
{
	uint32_t n = htonl((uint32_t)body.len);

	switch (framing) {
	case FRAMING_LINE:
		buf_add(out, body.data, body.len);
		buf_add_char(out, '\n');
		return;
	case FRAMING_RESP:
		buf_add(out, body.data, body.len);
		buf_add_str(out, "\r\n");
		return;
	case FRAMING_LENGTH:
		buf_add(out, &n, sizeof(n));
		buf_add(out, body.data, body.len);
		return;
	case FRAMING_GOB:
		buf_add(out, body.data, body.len);
		return;
	case FRAMING_HTTP:
		buf_add_str(out, head);
		buf_add_str(out, "Content-Length: ");
		buf_add_uint(out, body.len);
		buf_add_str(out, "\r\n\r\n");
		buf_add(out, body.data, body.len);
		return;
	}
}
