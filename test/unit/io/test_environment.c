/* What a program gets of our environment. */
#include "check.h"

#include "io/process/child.h"

#define LIST(...) ((const char *const[]) {__VA_ARGS__, NULL})

static const char *const ours[] = {
	"PATH=/bin",           "HOME=/h",      "LC_ALL=C", "XDG_RUNTIME=/r",
	"KEY=secret",          "KEYS=none",    "OTHER=o",  "KOINE_STORE_URL=u",
	"KOINE_SOCKET=theirs", "KOINE_MARK=m", "LC=x",     NULL};

static void check_made(struct environment_opts o, const char *const *want)
{
	struct environment e = {NULL};
	struct arena a;
	unsigned n = 0;

	arena_init(&a, 1 << 16);
	o.from = ours;
	o.secrets = LIST("KEY", "ABSENT");
	assert_int_equal(environment_make(&a, &o, &e), 0);
	for (; want[n]; n++) {
		assert_non_null(e.list[n]);
		assert_string_equal(e.list[n], want[n]);
	}
	assert_null(e.list[n]);
	arena_done(&a);
}

TEST(all_but_secrets_and_settings)
{
	check_made((struct environment_opts) {.own = LIST("KOINE_SOCKET=us")},
		   LIST("PATH=/bin", "HOME=/h", "LC_ALL=C", "XDG_RUNTIME=/r", "KEYS=none",
			"OTHER=o", "KOINE_MARK=m", "LC=x", "KOINE_SOCKET=us"));
}

TEST(a_short_list)
{
	check_made((struct environment_opts) {.brief = true},
		   LIST("PATH=/bin", "HOME=/h", "LC_ALL=C", "XDG_RUNTIME=/r"));
}

/* A secret is given by its whole name alone. */
TEST(what_is_named_is_given)
{
	check_made(
		(struct environment_opts) {.brief = true, .given = LIST("KEY*", "OTH", "X=a=b")},
		LIST("PATH=/bin", "HOME=/h", "LC_ALL=C", "XDG_RUNTIME=/r", "KEYS=none", "X=a=b"));
	check_made((struct environment_opts) {.brief = true,
					      .given = LIST("KEY", "KOINE_STORE_URL", "KOINE_*"),
					      .own = LIST("KOINE_SOCKET=us")},
		   LIST("PATH=/bin", "HOME=/h", "LC_ALL=C", "XDG_RUNTIME=/r", "KEY=secret",
			"KOINE_STORE_URL=u", "KOINE_MARK=m", "KOINE_SOCKET=us"));
}

TEST(what_a_setting_may_say)
{
	static const char *const good[] = {"A", "_a9", "A_*", "A=", "A=b c=*"};
	static const char *const bad[] = {"", "*", "=x", "9A", "A-B", "A*B", "A B", "A*=x"};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(environment_is_word(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(environment_is_word(bad[i]));
}

TEST(of_one_name_the_last_counts)
{
	const struct environment e = {LIST("A=1", "AB=2", "A=3")};

	assert_string_equal(environment_find(&e, "A"), "3");
	assert_null(environment_find(&e, "B"));
	assert_null(environment_find(NULL, "A"));
}
