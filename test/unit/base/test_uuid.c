/* Ids: their form, and that no two are alike. */
#include "check.h"

#include "base/uuid.h"

TEST(has_the_form_of_version_4)
{
	for (int n = 0; n < 1000; n++) {
		char id[UUID_LEN + 1];

		assert_int_equal(uuid4(id), 0);
		assert_int_equal(strlen(id), UUID_LEN);
		for (int i = 0; i < UUID_LEN; i++) {
			if (i == 8 || i == 13 || i == 18 || i == 23)
				assert_int_equal(id[i], '-');
			else
				assert_non_null(strchr("0123456789abcdef", id[i]));
		}
		assert_int_equal(id[14], '4');
		assert_non_null(strchr("89ab", id[19]));
	}
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, UUID_LEN);
}

TEST(never_repeats)
{
	enum { N = 10000 };
	static char ids[N][UUID_LEN + 1];

	for (int i = 0; i < N; i++)
		assert_int_equal(uuid4(ids[i]), 0);
	qsort(ids, N, sizeof(ids[0]), compare);
	for (int i = 1; i < N; i++)
		assert_string_not_equal(ids[i - 1], ids[i]);
}

TEST(every_free_digit_varies)
{
	static const char marks[] = "0123456789abcdef-";
	unsigned seen[UUID_LEN] = {0};

	for (int n = 0; n < 2000; n++) {
		char id[UUID_LEN + 1];

		assert_int_equal(uuid4(id), 0);
		for (int i = 0; i < UUID_LEN; i++)
			seen[i] |= 1U << (strchr(marks, id[i]) - marks);
	}
	for (int i = 0; i < UUID_LEN; i++) {
		if (i == 8 || i == 13 || i == 18 || i == 23)
			assert_int_equal(seen[i], 1U << 16);
		else if (i == 14)
			assert_int_equal(seen[i], 1U << 4);
		else if (i == 19)
			assert_int_equal(seen[i], 0xf00);
		else
			assert_int_equal(seen[i], 0xffff);
	}
}
