/* How a session's program is started. */
#include "check.h"

#include <sys/stat.h>
#include <unistd.h>

#include "agent/command/words.h"
#include "agent/session_program.h"
#include "tempdir.h"

static void check_words(const struct session_program_opts *o, const char *const *want)
{
	struct session_program p = {0};
	struct error error = {0};
	unsigned n = 0;

	assert_int_equal(session_program_make(o, &p, &error), 0);
	for (; want[n]; n++) {
		assert_non_null(p.argv[n]);
		assert_string_equal(p.argv[n], want[n]);
	}
	assert_null(p.argv[n]);
	assert_null(p.input.data);
	free(p.argv);
}

#define WORDS(...) ((const char *const[]) {__VA_ARGS__, NULL})

TEST(a_query_alone)
{
	check_words(&(struct session_program_opts) {.program = "claude", .query = TEXT("Hi")},
		    WORDS("claude", "--output-format", "stream-json", "--verbose", "--print", "--",
			  "Hi"));
}

TEST(everything_in_its_order)
{
	const struct text allowed[] = {TEXT("Bash"), TEXT("Edit(a b)")};
	const struct text disallowed[] = {TEXT("Write")};
	const struct session_program_opts o = {
		.program = "env -i  'my claude' \"a b\"",
		.resume = TEXT("id-1"),
		.model = TEXT("opus"),
		.mcp_file = TEXT("/tmp/a b.json"),
		.permission_prompt_tool = TEXT("mcp__a__b"),
		.system_prompt = TEXT("Be\nshort"),
		.append_system_prompt = TEXT("--and kind"),
		.max_turns = INT64_MAX,
		.allowed = allowed,
		.n_allowed = 2,
		.disallowed = disallowed,
		.n_disallowed = 1,
		.query = TEXT("--help {prompt} $HOME"),
	};

	check_words(&o,
		    WORDS("env", "-i", "my claude", "a b", "--resume", "id-1", "--model", "opus",
			  "--output-format", "stream-json", "--verbose", "--mcp-config",
			  "/tmp/a b.json", "--permission-prompt-tool", "mcp__a__b", "--max-turns",
			  "9223372036854775807", "--system-prompt", "Be\nshort",
			  "--append-system-prompt=--and kind", "--allowedTools", "Bash,Edit(a b)",
			  "--disallowedTools", "Write", "--print", "--", "--help {prompt} $HOME"));
}

/* Whatever a client, an agent or a repository says: with a dash it is a value, and no option. */
TEST(a_value_with_a_dash_is_no_option)
{
	const struct text dash = TEXT("--settings={}");
	const struct text list[] = {TEXT("-x"), TEXT("Bash")};
	const struct session_program_opts o = {
		.program = "claude",
		.resume = dash,
		.model = dash,
		.mcp_file = dash,
		.permission_prompt_tool = dash,
		.system_prompt = dash,
		.append_system_prompt = dash,
		.allowed = list,
		.n_allowed = 2,
		.disallowed = list,
		.n_disallowed = 1,
		.query = dash,
	};

	check_words(&o,
		    WORDS("claude", "--resume=--settings={}", "--model=--settings={}",
			  "--output-format", "stream-json", "--verbose",
			  "--mcp-config=--settings={}", "--permission-prompt-tool=--settings={}",
			  "--system-prompt=--settings={}", "--append-system-prompt=--settings={}",
			  "--allowedTools=-x,Bash", "--disallowedTools=-x", "--print", "--",
			  "--settings={}"));
}

TEST(what_is_empty_is_left_out)
{
	check_words(&(struct session_program_opts) {.program = "claude",
						    .resume = TEXT(""),
						    .model = TEXT(""),
						    .system_prompt = TEXT(""),
						    .max_turns = -3,
						    .query = TEXT("")},
		    WORDS("claude", "--output-format", "stream-json", "--verbose", "--print", "--",
			  ""));
}

TEST(a_query_that_no_argument_can_hold_is_input)
{
	static char big[COMMAND_WORD_MAX];
	struct session_program_opts o = {.program = "claude", .query = {big, sizeof(big)}};
	struct session_program p = {0};

	memset(big, 'q', sizeof(big));
	assert_int_equal(session_program_make(&o, &p, NULL), 0);
	assert_string_equal(p.argv[4], "--print");
	assert_null(p.argv[5]);
	assert_ptr_equal(p.input.data, big);
	assert_int_equal(p.input.len, sizeof(big));
	free(p.argv);

	o.query.len--;
	assert_int_equal(session_program_make(&o, &p, NULL), 0);
	assert_int_equal(strlen(p.argv[6]), sizeof(big) - 1);
	assert_null(p.input.data);
	free(p.argv);
}

static void check_refused(const struct session_program_opts *o, const char *field, const char *says)
{
	struct session_program p = {0};
	struct error error = {0};

	assert_int_equal(session_program_make(o, &p, &error), REFUSE_PARAMS);
	assert_string_equal(error.field, field);
	assert_non_null(strstr(error.text, says));
	assert_null(p.argv);
}

/* Each field in turn, with a NUL in it and (but for the query) too long. */
TEST(what_no_argument_can_be_is_refused_by_name)
{
	static char big[COMMAND_WORD_MAX];
	const struct text nul = TEXT("a\0b");
	const struct text many = {big, sizeof(big)};
	struct session_program_opts o = {.program = "claude", .query = TEXT("Hi")};
	struct {
		const char *field;
		struct text *text;
	} fields[] = {
		{"resume", &o.resume},
		{"model", &o.model},
		{"mcp_config", &o.mcp_file},
		{"permission_prompt_tool", &o.permission_prompt_tool},
		{"system_prompt", &o.system_prompt},
		{"append_system_prompt", &o.append_system_prompt},
	};

	memset(big, 'x', sizeof(big));
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		*fields[i].text = nul;
		check_refused(&o, fields[i].field, "has a NUL byte");
		*fields[i].text = many;
		check_refused(&o, fields[i].field, "is too long for an argument");
		*fields[i].text = (struct text) {0};
	}
	o.query = nul;
	check_refused(&o, "query", "has a NUL byte");
}

TEST(lists_are_refused_alike)
{
	static char half[COMMAND_WORD_MAX / 2];
	const struct text nul[] = {TEXT("Bash"), TEXT("a\0b")};
	const struct text many[] = {{half, sizeof(half)}, {half, sizeof(half) - 1}};
	const struct text fit[] = {{half, sizeof(half)}, {half, sizeof(half) - 2}};
	struct session_program_opts o = {.program = "claude", .query = TEXT("Hi")};
	struct session_program p = {0};

	memset(half, 'x', sizeof(half));
	o.n_allowed = 2;
	o.allowed = nul;
	check_refused(&o, "allowed_tools", "has a NUL byte");
	o.allowed = many;
	check_refused(&o, "allowed_tools", "is too long for an argument");
	o.allowed = fit;
	assert_int_equal(session_program_make(&o, &p, NULL), 0);
	assert_int_equal(strlen(p.argv[5]), COMMAND_WORD_MAX - 1);
	free(p.argv);
	o.n_disallowed = 2;
	o.disallowed = many;
	check_refused(&(struct session_program_opts) {.program = "claude",
						      .disallowed = nul,
						      .n_disallowed = 2},
		      "disallowed_tools", "has a NUL byte");
	check_refused(&o, "disallowed_tools", "is too long for an argument");
}

TEST(a_program_that_is_no_words_is_refused)
{
	static const char *const programs[] = {"", "  ", "'open", "\"\" x"};
	struct session_program p = {0};

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		const struct session_program_opts o = {.program = programs[i], .query = TEXT("Hi")};

		assert_int_equal(session_program_make(&o, &p, NULL), REFUSE_PARAMS);
		assert_false(session_program_is_there(programs[i]));
	}
}

/* It is looked for when asked: what comes later is found. */
TEST(a_program_is_found_once_it_is_there)
{
	char dir[TEMPDIR_MAX];
	char path[TEMPDIR_MAX + 16];
	char words[TEMPDIR_MAX + 32];
	char *before = strdup(getenv("PATH") ? getenv("PATH") : "/bin:/usr/bin");
	FILE *f;

	assert_non_null(before);
	tempdir_make(dir);
	snprintf(path, sizeof(path), "%s/koi agent", dir);
	snprintf(words, sizeof(words), "'%s' --flag", path);
	setenv("PATH", dir, 1);
	assert_false(session_program_is_there("'koi agent' --flag"));
	assert_false(session_program_is_there(words));
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
	assert_false(session_program_is_there(words));
	assert_int_equal(chmod(path, 0700), 0);
	assert_true(session_program_is_there(words));
	assert_true(session_program_is_there("'koi agent' --flag"));
	setenv("PATH", before, 1);
	assert_false(session_program_is_there("'koi agent'"));
	assert_true(session_program_is_there("sh -c x"));
	tempdir_remove(dir);
	free(before);
}
