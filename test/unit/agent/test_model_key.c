/* Where a model's key comes from, that it stays secret, and whether a model would answer. */
#include "check.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "model_fixture.h"
#include "tempdir.h"

#define DONE "data: [DONE]\n\n"

struct world {
	struct fixture *f;
	char dir[TEMPDIR_MAX];
	char path[80];
	char command[200];
};

static struct world world;

static int set_up(void **state)
{
	setup(state);
	world.f = *state;
	tempdir_make(world.dir);
	snprintf(world.path, sizeof(world.path), "%s/key", world.dir);
	return 0;
}

static int tear_down(void **state)
{
	tempdir_remove(world.dir);
	return teardown(state);
}

FIXTURE(set_up, tear_down);

static void put_key(const char *text, mode_t mode)
{
	int fd = open(world.path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void sends_key(struct fixture *f, const char *key)
{
	char line[100];

	snprintf(line, sizeof(line), "\r\nAuthorization: Bearer %s\r\n", key);
	f->end.done = false;
	assert_int_equal(ask_for(f, hello()), AGENT_DONE);
	assert_non_null(strstr(f->head, line));
}

static void refuses(struct fixture *f, const char *text)
{
	assert_int_equal(start(f, hello()), REFUSE_UNAVAILABLE);
	assert_string_equal(f->error.text, text);
	assert_int_equal(f->n_asked, 0);
}

/* ---- environment and file ---- */

TEST(the_environment_is_asked_every_time)
{
	struct fixture *f = *state;

	f->opts.key.environment = "TEST_MODEL_KEY";
	make_openai(f);
	answers(f, DONE);
	unsetenv("TEST_MODEL_KEY");
	refuses(f, "agent 'm': no key: environment variable TEST_MODEL_KEY is not set");
	setenv("TEST_MODEL_KEY", "two words", 1);
	refuses(f, "agent 'm': no valid key in variable TEST_MODEL_KEY: a key must be ASCII "
		   "without spaces");
	setenv("TEST_MODEL_KEY", "first", 1);
	sends_key(f, "first");
	setenv("TEST_MODEL_KEY", "second", 1);
	sends_key(f, "second");
	unsetenv("TEST_MODEL_KEY");
}

TEST(a_file_is_read_every_time)
{
	struct fixture *f = *state;

	f->opts.key.file = world.path;
	make_openai(f);
	answers(f, DONE);
	put_key("first\n", 0600);
	sends_key(f, "first");
	put_key("second", 0400);
	sends_key(f, "second");
}

TEST(a_file_that_others_may_read_is_refused)
{
	struct fixture *f = *state;
	char text[200];
	char other[100];

	f->opts.key.file = world.path;
	make_openai(f);
	put_key("a-secret\n", 0640);
	snprintf(text, sizeof(text),
		 "agent 'm': the key file %s must belong to this user and have mode 0600",
		 world.path);
	refuses(f, text);
	put_key("a-secret\n", 0604);
	refuses(f, text);
	unlink(world.path);
	snprintf(other, sizeof(other), "%s/other", world.dir);
	assert_int_equal(mkfifo(world.path, 0600), 0);
	refuses(f, text);
	unlink(world.path);
	snprintf(text, sizeof(text),
		 "agent 'm': cannot read the key file %s: "
		 "No such file or directory",
		 world.path);
	refuses(f, text);
	assert_int_equal(symlink(other, world.path), 0);
	assert_int_equal(start(f, hello()), REFUSE_UNAVAILABLE);
	unlink(world.path);
	put_key("\n", 0600);
	snprintf(text, sizeof(text),
		 "agent 'm': no valid key in file %s: a key must be ASCII without spaces",
		 world.path);
	refuses(f, text);
}

/* ---- the command ---- */

/* Prints what lies in the file, and marks that it ran. */
static void use_command(struct fixture *f, const char *more)
{
	snprintf(world.command, sizeof(world.command), "echo x >>%s/ran; cat %s; %s", world.dir,
		 world.path, more);
	f->opts.key.command = world.command;
	make_openai(f);
}

static unsigned n_runs(void)
{
	struct stat st;
	char path[100];

	snprintf(path, sizeof(path), "%s/ran", world.dir);
	return stat(path, &st) == 0 ? (unsigned)st.st_size / 2 : 0;
}

TEST(a_command_is_run_once)
{
	struct fixture *f = *state;

	put_key("first  \r\nnot this\n", 0600);
	use_command(f, "head -c 100000 /dev/zero; echo secret >&2");
	answers(f, DONE);
	sends_key(f, "first");
	put_key("second\n", 0600);
	sends_key(f, "first");
	assert_int_equal(n_runs(), 1);
}

static unsigned n_left;

static void many_end(void *arg, const struct agent_end *end)
{
	struct fixture *f = arg;

	assert_int_equal(end->outcome, AGENT_DONE);
	if (--n_left == 0)
		loop_stop(f->loop);
}

TEST(all_who_wait_get_the_key_of_one_run)
{
	struct fixture *f = *state;
	const struct agent_sink sink = {on_text, on_call, many_end, f};
	struct agent_turn *t;

	put_key("first\n", 0600);
	use_command(f, "");
	answers(f, DONE);
	n_left = 5;
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(f->agent->ops->start(f->agent, hello(), &sink, &t, &f->error), 0);
	run(f);
	assert_int_equal(n_runs(), 1);
	assert_int_equal(f->n_asked, 5);
}

TEST(a_key_that_is_refused_is_asked_for_anew)
{
	struct fixture *f = *state;

	put_key("first\n", 0600);
	use_command(f, "");
	answers(f, DONE);
	sends_key(f, "first");
	put_key("second\n", 0600);
	afresh(f);
	script(f, (struct step) {.status = 401, .body = "{}"});
	answers(f, DONE);
	sends_key(f, "second");
	assert_int_equal(n_runs(), 2);
	/* A fresh one that is refused is not: it would be the same. */
	afresh(f);
	make_openai(f);
	script(f, (struct step) {.status = 401, .body = "{\"error\":\"who?\"}"});
	fails(f, "ProviderError", "agent 'm': the provider rejected the key (HTTP 401): who?");
	assert_int_equal(f->n_asked, 1);
	assert_int_equal(n_runs(), 3);
}

TEST(a_command_that_fails_is_named_without_its_words)
{
	struct fixture *f = *state;

	put_key("a-secret\n", 0600);
	use_command(f, "exit 3");
	fails(f, "KeyError", "agent 'm': the key command ended with status 3");
	afresh(f);
	use_command(f, "kill -9 $$");
	fails(f, "KeyError", "agent 'm': the key command ended with signal 9");
	afresh(f);
	put_key("two words\n", 0600);
	use_command(f, "");
	fails(f, "KeyError",
	      "agent 'm': no valid key in the output of the key command: a key must be ASCII "
	      "without spaces");
	afresh(f);
	put_key("", 0600);
	use_command(f, "");
	fails(f, "KeyError",
	      "agent 'm': no valid key in the output of the key command: a key must be ASCII "
	      "without spaces");
	assert_int_equal(f->n_asked, 0);
}

static bool at_once(const struct agent_turn *t)
{
	return !t->key;
}

TEST(waiting_for_the_command_can_be_cancelled)
{
	struct fixture *f = *state;

	f->opts.key.command = "sleep 600";
	make_openai(f);
	f->cancel_when = at_once;
	assert_int_equal(ask_for(f, hello()), AGENT_CANCELLED);
	/* one that waits when the agent goes, too */
	f->cancel_when = NULL;
	afresh(f);
	assert_int_equal(start(f, hello()), 0);
	assert_int_equal(f->agent->ops->probe(f->agent, on_health, f), 0);
	agent_free(f->agent);
	f->agent = NULL;
	assert_true(f->probed);
	assert_false(f->end.done);
}

/* ---- secret ---- */

TEST(a_key_that_is_echoed_is_hidden)
{
	struct fixture *f = *state;

	setenv("TEST_MODEL_KEY", "sk-very-secret", 1);
	f->opts.key.environment = "TEST_MODEL_KEY";
	make_openai(f);
	script(f,
	       (struct step) {
		       .status = 401,
		       .body = "{\"error\":{\"message\":\"Incorrect key sk-very-secret given\"}}"});
	fails(f, "ProviderError",
	      "agent 'm': the provider rejected the key (HTTP 401): Incorrect key [key] given");
	afresh(f);
	answers(f, "data: {\"error\":{\"message\":\"sk-very-secretsk-very-secret\"}}\n\n");
	fails(f, "ProviderError", "agent 'm': the provider reported an error: [key][key]");
	afresh(f);
	script(f, (struct step) {.status = 400, .body = "no: Bearer sk-very-secret"});
	fails(f, "ProviderError", "agent 'm': the provider returned HTTP 400: no: Bearer [key]");
	unsetenv("TEST_MODEL_KEY");
}

/* ---- would it answer ---- */

TEST(a_probe_says_what_is_there)
{
	static const struct {
		int status;
		const char *body;
		bool ok;
		const char *text;
	} rows[] = {
		{200, "{\"data\":[{\"id\":\"a\"},{\"id\":\"b\"}]}", true, "HTTP 200, 2 models"},
		{200, "{\"data\":[{}]}", true, "HTTP 200, 1 model"},
		{200, "<html>", true, "HTTP 200"},
		{200, "", true, "HTTP 200"},
		{404, "not here", true, "HTTP 404"},
		{405, "", true, "HTTP 405"},
		{401, "a-secret", false, "agent 'm': the provider rejected the key (HTTP 401)"},
		{403, "", false, "agent 'm': the provider rejected the key (HTTP 403)"},
		{503, "", false, "agent 'm': the provider returned HTTP 503"},
	};
	struct fixture *f = *state;

	make_anthropic(f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		afresh(f);
		script(f, (struct step) {.status = rows[i].status, .body = rows[i].body});
		assert_int_equal(probe(f), rows[i].ok);
		assert_string_equal(f->health, rows[i].text);
		assert_non_null(strstr(f->head, "GET /v1/models HTTP/1.1\r\n"));
		assert_non_null(strstr(f->head, "anthropic-version: 2023-06-01\r\n"));
	}
}

TEST(a_probe_needs_a_key_and_somebody_there)
{
	struct fixture *f = *state;

	f->opts.key.environment = "TEST_MODEL_KEY";
	unsetenv("TEST_MODEL_KEY");
	make_openai(f);
	assert_false(probe(f));
	assert_string_equal(f->health,
			    "agent 'm': no key: environment variable TEST_MODEL_KEY is not set");
	f->opts.key = (struct model_key) {.command = "exit 1"};
	make_openai(f);
	assert_false(probe(f));
	assert_string_equal(f->health, "agent 'm': the key command ended with status 1");
	f->opts.key = (struct model_key) {.command = "echo a-key"};
	make_openai(f);
	answers(f, "{}");
	assert_true(probe(f));
	assert_non_null(strstr(f->head, "Authorization: Bearer a-key\r\n"));
	f->opts.url = "unix:/nonexistent/sock";
	make_openai(f);
	assert_false(probe(f));
	assert_memory_equal(f->health, "agent 'm': cannot reach the provider: ", 38);
}
