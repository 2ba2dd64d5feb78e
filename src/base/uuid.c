#include "base/uuid.h"

#include <errno.h>
#include <stddef.h>
#include <sys/random.h>

/* Reads of up to 256 bytes are never partial, but may be interrupted while the pool fills at
 * boot. */
static int fill_random(void *out, size_t n)
{
	ssize_t got;

	do
		got = getrandom(out, n, 0);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	return (size_t)got == n ? 0 : -EIO;
}

int uuid4(char out[UUID_LEN + 1])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char raw[16];
	char *p = out;
	int r;

	r = fill_random(raw, sizeof(raw));
	if (r != 0)
		return r;
	raw[6] = (unsigned char)((raw[6] & 0x0f) | 0x40);
	raw[8] = (unsigned char)((raw[8] & 0x3f) | 0x80);
	for (size_t i = 0; i < sizeof(raw); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*p++ = '-';
		*p++ = digits[raw[i] >> 4];
		*p++ = digits[raw[i] & 0x0f];
	}
	*p = '\0';
	return 0;
}
