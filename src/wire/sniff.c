/*
 * What does this client speak? Told from its first bytes, by what cannot be
 * anything else:
 *
 * - gob: a Go client first defines a type, so its stream opens with a message's
 *   byte count, a negative type id and the kind of type. A count may look like
 *   a letter, a bracket or a newline; the id and the kind, which hold bytes
 *   that no JSON text has there, tell them apart.
 * - HTTP: a method in capitals, then a space.
 * - length: a first byte that no text starts with, or a second one that no
 *   text goes on with. A length of less than 16 MiB begins with 0x00.
 * - line: the rest.
 */
#include "wire/framing.h"

enum fit { FIT_NO, FIT_MORE, FIT_YES };

enum {
	/* No type definition is shorter: id, kind, common part with an id, the ends. */
	GOB_SHORTEST = 7,
	GOB_FIRST_ID = 0x7f, /* -64, the first type id, as gob writes it */
	GOB_LAST_KIND = 7,   /* the wireType members: array, slice, struct, map, 3 encoders */
};

/* A gob unsigned number of at most four bytes. */
static enum fit gob_uint(const unsigned char *in, size_t len, size_t *at, uint32_t *ret)
{
	uint32_t value = 0;
	size_t n;

	if (*at == len)
		return FIT_MORE;
	if (in[*at] < 0x80) {
		*ret = in[(*at)++];
		return FIT_YES;
	}
	n = 256 - (size_t)in[*at];
	if (n > 4)
		return FIT_NO;
	if (len - *at - 1 < n)
		return FIT_MORE;
	for (size_t i = 1; i <= n; i++)
		value = value << 8 | in[*at + i];
	*at += 1 + n;
	*ret = value;
	return FIT_YES;
}

static enum fit fits_gob(const unsigned char *in, size_t len, size_t max)
{
	uint32_t count, id;
	size_t at = 0;
	enum fit fit;

	/* The largest length there is. As gob it would be the 64th type of a process in a
	 * definition of 255 bytes; waiting for a fifth byte would leave it unanswered. */
	if (len >= 4 && in[0] == 0xff && in[1] == 0xff && in[2] == 0xff && in[3] == 0xff)
		return FIT_NO;
	fit = gob_uint(in, len, &at, &count);
	if (fit != FIT_YES)
		return fit;
	if (count < GOB_SHORTEST || count > max)
		return FIT_NO;
	/* FIT_NO as early as possible: a lone "{" waits for one byte more, "{}" for none */
	if (at < len && in[at] < GOB_FIRST_ID)
		return FIT_NO;
	fit = gob_uint(in, len, &at, &id);
	if (fit != FIT_YES)
		return fit;
	if (id < GOB_FIRST_ID || id % 2 == 0)
		return FIT_NO;
	if (at == len)
		return FIT_MORE;
	return in[at] >= 1 && in[at] <= GOB_LAST_KIND ? FIT_YES : FIT_NO;
}

static enum fit fits_http(const unsigned char *in, size_t len)
{
	size_t n = 0;

	while (n < len && n < SNIFF_MAX && in[n] >= 'A' && in[n] <= 'Z')
		n++;
	if (n == 0 || n == SNIFF_MAX)
		return FIT_NO;
	if (n == len)
		return FIT_MORE;
	return in[n] == ' ' ? FIT_YES : FIT_NO;
}

/* No UTF-8 text holds these, nor does JSON hold a NUL. */
static bool never_text(unsigned char c)
{
	return c == 0 || c >= 0xf5;
}

static bool starts_no_text(unsigned char c)
{
	if (c == '\t' || c == '\n' || c == '\r')
		return false;
	return c < 0x20 || (c >= 0x80 && c < 0xc0) || never_text(c);
}

static enum fit fits_length(const unsigned char *in, size_t len)
{
	if (starts_no_text(in[0]))
		return FIT_YES;
	/* broken JSON is still JSON: its sender must be told so */
	if (in[0] == '{' || in[0] == '[' || in[0] == '"')
		return FIT_NO;
	if (len == 1)
		return FIT_MORE;
	return never_text(in[1]) ? FIT_YES : FIT_NO;
}

enum sniffed sniff(const char *data, size_t len, bool eof, size_t max)
{
	const unsigned char *in = (const unsigned char *)data;
	enum fit gob, http, length;

	if (len == 0)
		return eof ? SNIFF_LINE : SNIFF_MORE;
	gob = fits_gob(in, len, max);
	if (gob == FIT_YES)
		return SNIFF_GOB;
	http = fits_http(in, len);
	if (http == FIT_YES)
		return SNIFF_HTTP;
	length = fits_length(in, len);
	if (!eof && (gob == FIT_MORE || http == FIT_MORE || length == FIT_MORE))
		return SNIFF_MORE;
	return length == FIT_YES ? SNIFF_LENGTH : SNIFF_LINE;
}
