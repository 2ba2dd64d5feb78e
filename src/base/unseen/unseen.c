#include "base/unseen/unseen.h"

#include "base/unseen/table.h"

bool ranges_have(const struct range *rows, size_t n, uint32_t c)
{
	size_t low = 0;

	while (low < n) {
		size_t middle = low + (n - low) / 2;

		if (c > rows[middle].last)
			low = middle + 1;
		else if (c < rows[middle].first)
			n = middle;
		else
			return true;
	}
	return false;
}

bool char_is_unseen(uint32_t c)
{
	if (c < 0xa0)
		return c < 0x20 || c >= 0x7f;
	return ranges_have(not_seen, sizeof(not_seen) / sizeof(not_seen[0]), c);
}
