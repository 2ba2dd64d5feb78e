/* Programs as agents: real children, what they print, and how they end. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/command/command.h"
#include "agent/command/inner.h"
#include "agent/command/words.h"
#include "base/buf.h"
#include "tempdir.h"

struct fixture {
	char dir[TEMPDIR_MAX];
	char script[TEMPDIR_MAX + 16];
	struct loop *loop;
	struct agent *agent;
	struct agent_turn *turn;
	struct command_opts opts;
	struct message messages[8];
	struct agent_ask ask;
	struct error error;
	struct buf out;
	unsigned n_pieces;
	unsigned n_ends;
	enum agent_outcome outcome;
	struct agent_usage usage;
	char type[64];
	char text[1024];
	/* What to do when text comes. */
	bool cancel_on_text, free_on_text, stop_on_text;
	bool started;
	unsigned n_healths;
	bool health_ok;
	char health[600];
};

static void on_text(void *arg, struct text piece)
{
	struct fixture *f = arg;

	assert_true(f->started);
	assert_int_equal(f->n_ends, 0);
	assert_true(piece.len > 0);
	buf_add(&f->out, piece.data, piece.len);
	f->n_pieces++;
	if (f->cancel_on_text) {
		f->agent->ops->cancel(f->turn);
		f->agent->ops->cancel(f->turn);
		assert_int_equal(f->n_ends, 0);
	}
	if (f->free_on_text) {
		agent_free(f->agent);
		f->agent = NULL;
	}
	if (f->stop_on_text)
		loop_stop(f->loop);
}

static void on_end(void *arg, const struct agent_end *end)
{
	struct fixture *f = arg;

	assert_true(f->started);
	f->n_ends++;
	f->outcome = end->outcome;
	f->usage = end->usage;
	snprintf(f->type, sizeof(f->type), "%s", end->type ? end->type : "");
	snprintf(f->text, sizeof(f->text), "%s", end->text ? end->text : "");
	loop_stop(f->loop);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	tempdir_make(f->dir);
	snprintf(f->script, sizeof(f->script), "%s/agent", f->dir);
	assert_int_equal(loop_new(&f->loop), 0);
	buf_init(&f->out, 32 << 20);
	f->opts = (struct command_opts) {
		.name = "prog",
		.command = f->script,
		.interrupt_ms = 60000,
		.terminate_ms = 60000,
	};
	f->ask.conversation = TEXT("c-1");
	f->ask.messages = f->messages;
	*state = f;
	return 0;
}

/* No test may leave a process: not a child, nor an orphan that became one. */
static int teardown(void **state)
{
	struct fixture *f = *state;

	agent_free(f->agent);
	loop_free(f->loop);
	while (waitpid(-1, NULL, 0) > 0)
		;
	assert_int_equal(errno, ECHILD);
	buf_done(&f->out);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

FIXTURE(setup, teardown);

static void write_script(struct fixture *f, const char *text)
{
	int fd = open(f->script, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0700);

	assert_true(fd >= 0);
	assert_int_equal(dprintf(fd, "#!/bin/sh\n%s\n", text), (int)strlen(text) + 11);
	close(fd);
}

static void say(struct fixture *f, enum message_role role, const char *text)
{
	f->messages[f->ask.n_messages++] = (struct message) {.role = role, .text = text_of(text)};
}

static int try_start(struct fixture *f)
{
	const struct agent_sink sink = {.on_text = on_text, .on_end = on_end, .arg = f};
	int r;

	if (!f->agent)
		assert_int_equal(command_new(f->loop, &f->opts, &f->agent, &f->error), 0);
	if (f->ask.n_messages == 0)
		say(f, MESSAGE_USER, "Hello");
	buf_clear(&f->out);
	f->n_pieces = 0;
	f->n_ends = 0;
	f->started = false;
	r = f->agent->ops->start(f->agent, &f->ask, &sink, &f->turn, &f->error);
	f->started = true;
	return r;
}

static void run(struct fixture *f, const char *script)
{
	write_script(f, script);
	assert_int_equal(try_start(f), 0);
	loop_run(f->loop);
	assert_int_equal(f->n_ends, 1);
}

static void expect_out(struct fixture *f, const char *text)
{
	buf_add_char(&f->out, '\0');
	assert_int_equal(f->out.err, 0);
	assert_string_equal(f->out.data, text);
}

static void expect_done(struct fixture *f, const char *text)
{
	assert_string_equal(f->text, "");
	assert_int_equal(f->outcome, AGENT_DONE);
	expect_out(f, text);
}

static void expect_failed(struct fixture *f, const char *type, const char *text)
{
	assert_int_equal(f->outcome, AGENT_FAILED);
	assert_string_equal(f->type, type);
	assert_string_equal(f->text, text);
}

/* ---- words ---- */

TEST_WITH(words_are_split_as_a_shell_would, NULL, NULL)
{
	static const char *const want[] = {"a", "b c",  "d\"e\\f", "$HOME 'x'", "g h",
					   "",  "i*|;", "jk",      "\\n"};
	struct error error;
	char **words;
	unsigned n;

	assert_int_equal(
		command_split(" a 'b c'\td\\\"e\\\\f \"\\$HOME 'x'\" g\\ h ''\n i*|; j\"k\" "
			      "\"\\n\" ",
			      &words, &n, &error),
		0);
	assert_int_equal(n, sizeof(want) / sizeof(want[0]));
	for (unsigned i = 0; i < n; i++)
		assert_string_equal(words[i], want[i]);
	assert_null(words[n]);
	free(words);
}

TEST(commands_that_are_none_are_refused)
{
	static const char *const bad[] = {"",        "  \t", "'open", "\"open",
					  "a \"b\\", "a \\", "'' -x", "{prompt} -x"};
	struct fixture *f = *state;
	struct agent *agent = NULL;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		f->opts.command = bad[i];
		if (command_new(f->loop, &f->opts, &agent, &f->error) != REFUSE_PARAMS)
			fail_msg("%s", bad[i]);
	}
	assert_null(agent);
}

/* ---- the prompt ---- */

TEST(prompt_is_the_last_argument_as_it_is)
{
	static const char prompt[] = "n it's \"quoted\" $HOME `id`\n\nand {prompt} \\n é";
	struct fixture *f = *state;
	char want[200];

	say(f, MESSAGE_USER, prompt);
	run(f, "printf '%s|%s|' $# \"$1\"");
	snprintf(want, sizeof(want), "1|%s|", prompt);
	expect_done(f, want);
}

TEST(prompt_goes_where_the_command_says)
{
	struct fixture *f = *state;
	char command[200];

	snprintf(command, sizeof(command), "%s -a --say={prompt}! -- {prompt} z", f->script);
	f->opts.command = command;
	say(f, MESSAGE_USER, "-x y");
	run(f, "for a; do printf '[%s]' \"$a\"; done");
	expect_done(f, "[-a][--say=-x y!][--][-x y][z]");
}

TEST(prompt_comes_by_stdin_whatever_it_holds)
{
	struct fixture *f = *state;

	f->opts.input = COMMAND_STDIN;
	say(f, MESSAGE_USER, "");
	f->messages[0].text = TEXT("a\0b");
	run(f, "echo $#; od -An -c | tr -d ' '");
	expect_done(f, "0\na\\0b");
	f->messages[0].text = TEXT("");
	run(f, "cat; echo end");
	expect_done(f, "end");
}

TEST(a_long_prompt_comes_by_stdin_only)
{
	struct fixture *f = *state;
	char *prompt = malloc(200001);

	memset(prompt, 'p', 200000);
	prompt[200000] = '\0';
	say(f, MESSAGE_USER, prompt);
	write_script(f, "wc -c");
	assert_int_equal(try_start(f), REFUSE_TOO_LARGE);
	assert_non_null(strstr(f->error.text, "set input = stdin"));
	agent_free(f->agent);
	f->agent = NULL;
	f->opts.input = COMMAND_STDIN;
	run(f, "wc -c | tr -d ' '");
	expect_done(f, "200000");
	free(prompt);
}

TEST(the_longest_argument_is_taken)
{
	struct fixture *f = *state;
	char *prompt = malloc(COMMAND_WORD_MAX + 1);

	memset(prompt, 'p', COMMAND_WORD_MAX);
	prompt[COMMAND_WORD_MAX - 1] = '\0';
	say(f, MESSAGE_USER, prompt);
	run(f, "echo ${#1}");
	expect_done(f, "131071");
	memset(prompt, 'p', COMMAND_WORD_MAX);
	prompt[COMMAND_WORD_MAX] = '\0';
	f->messages[0].text = text_of(prompt);
	assert_int_equal(try_start(f), REFUSE_TOO_LARGE);
	free(prompt);
}

TEST(nul_is_written_as_an_argument_can_hold_it)
{
	struct fixture *f = *state;

	say(f, MESSAGE_USER, "");
	f->messages[0].text = TEXT("a\0b\0");
	run(f, "printf %s \"$1\"");
	expect_done(f, "a\xef\xbf\xbd"
		       "b\xef\xbf\xbd");
}

/* Whoever may ask may not give options. */
TEST(a_dash_begins_no_option)
{
	struct fixture *f = *state;

	say(f, MESSAGE_USER, "--dangerously");
	run(f, "printf '%s|' \"$@\"");
	expect_done(f, " --dangerously|");
}

TEST(a_wrapper_may_end_its_options)
{
	struct fixture *f = *state;
	char command[200];

	snprintf(command, sizeof(command), "%s -- x", f->script);
	f->opts.command = command;
	say(f, MESSAGE_USER, "--dangerously");
	run(f, "printf '%s|' \"$@\"");
	expect_done(f, "--|x| --dangerously|");
}

TEST(the_oldest_are_left_out_of_an_argument)
{
	struct fixture *f = *state;
	char *old = malloc(COMMAND_WORD_MAX + 1);

	memset(old, 'o', COMMAND_WORD_MAX);
	old[COMMAND_WORD_MAX] = '\0';
	f->ask.system = TEXT("Be brief.");
	say(f, MESSAGE_USER, old);
	say(f, MESSAGE_ASSISTANT, "Too long.");
	say(f, MESSAGE_USER, "Hello");
	say(f, MESSAGE_ASSISTANT, "Hello.");
	say(f, MESSAGE_USER, "And now?");
	run(f, "printf %s \"$1\"");
	expect_done(f, "Be brief.\n\nUser: Hello\n\nAssistant: Hello.\n\nUser: And now?");
	free(old);
}

TEST(a_longer_conversation_is_a_transcript)
{
	struct fixture *f = *state;

	f->ask.system = TEXT("Be brief.");
	say(f, MESSAGE_USER, "My name is Alice");
	say(f, MESSAGE_ASSISTANT, "Hello\nAlice");
	say(f, MESSAGE_ASSISTANT, "");
	say(f, MESSAGE_TOOL, "21 degrees");
	say(f, MESSAGE_USER, "What is my name?");
	run(f, "printf %s \"$1\"");
	expect_done(f, "Be brief.\n\nUser: My name is Alice\n\nAssistant: Hello\nAlice\n\n"
		       "Tool: 21 degrees\n\nUser: What is my name?");
	f->ask.n_messages = 1;
	run(f, "printf %s \"$1\"");
	expect_done(f, "Be brief.\n\nMy name is Alice");
}

TEST(it_knows_the_conversation_and_our_environment)
{
	struct fixture *f = *state;

	setenv("KOINE_TEST", "ours", 1);
	setenv("KOINE_CONVERSATION", "another", 1);
	run(f, "echo $KOINE_CONVERSATION,$KOINE_TEST; env | grep -c ^KOINE_CONVERSATION=");
	expect_done(f, "c-1,ours\n1");
}

TEST(it_runs_in_its_folder)
{
	struct fixture *f = *state;

	f->opts.cwd = f->dir;
	f->opts.command = "./agent";
	run(f, "pwd -P");
	expect_done(f, f->dir);
	agent_free(f->agent);
	f->agent = NULL;
	f->opts.cwd = "/no/such/place";
	f->opts.command = "true";
	assert_int_equal(try_start(f), REFUSE_UNAVAILABLE);
	assert_string_equal(f->error.text, "no such directory: /no/such/place");
}

/* ---- plain text ---- */

TEST(text_comes_while_the_program_runs)
{
	struct fixture *f = *state;
	char script[200];

	/* It goes on only when its first words have arrived. */
	snprintf(script, sizeof(script),
		 "echo one; until [ -e %s/go ]; do sleep 0.01; done; echo; echo two", f->dir);
	write_script(f, script);
	f->stop_on_text = true;
	assert_int_equal(try_start(f), 0);
	loop_run(f->loop);
	assert_int_equal(f->out.len, 3);
	snprintf(script, sizeof(script), "%s/go", f->dir);
	close(open(script, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	f->stop_on_text = false;
	loop_run(f->loop);
	expect_done(f, "one\n\ntwo");
	assert_int_equal(f->usage.input, -1);
	assert_int_equal(f->usage.output, -1);
}

TEST(a_program_that_prints_nothing_is_done)
{
	struct fixture *f = *state;

	run(f, "exit 0");
	expect_done(f, "");
	assert_int_equal(f->n_pieces, 0);
	run(f, "echo; echo");
	expect_done(f, "\n");
}

TEST(what_is_no_utf8_is_replaced)
{
	struct fixture *f = *state;

	run(f, "printf 'a\\377b\\000c\\303\\251\\342\\202d\\360\\237\\230'");
	expect_done(f, "a\xef\xbf\xbd"
		       "b\xef\xbf\xbd"
		       "c\xc3\xa9\xef\xbf\xbd"
		       "d\xef\xbf\xbd");
}

TEST(binary_output_does_no_harm)
{
	struct fixture *f = *state;

	run(f, "head -c 300000 /dev/urandom");
	assert_int_equal(f->outcome, AGENT_DONE);
	assert_true(f->out.len > 300000);
	f->opts.output = COMMAND_STREAM_JSON;
	agent_free(f->agent);
	f->agent = NULL;
	run(f, "head -c 300000 /dev/urandom");
	assert_int_equal(f->outcome, AGENT_FAILED);
}

TEST(a_line_of_ten_megabytes_comes_whole)
{
	struct fixture *f = *state;

	run(f, "head -c 10000000 /dev/zero | tr '\\0' x; echo");
	assert_int_equal(f->outcome, AGENT_DONE);
	assert_int_equal(f->out.len, 10000000);
	assert_int_equal(f->out.data[9999999], 'x');
}

/* Cut anywhere, the same comes out, and never a part of a character. */
TEST_WITH(text_may_be_cut_anywhere, NULL, NULL)
{
	static const char in[] = "\n\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\n\n\xf0\x9f\xff"
				 "A\xed\xa0\x80\xe0\x80\n\xc2\n";
	char whole[256] = "";
	struct buf out;

	for (size_t cut = 0; cut <= sizeof(in) - 1; cut++) {
		for (size_t next = cut; next <= sizeof(in) - 1; next++) {
			struct command_text t = {0};
			struct buf check;
			struct command_text again = {0};

			buf_init(&out, 4096);
			buf_init(&check, 4096);
			command_text_feed(&t, in, cut, &out);
			command_text_feed(&t, in + cut, next - cut, &out);
			/* What came so far is whole. */
			command_text_feed(&again, out.data ? out.data : "", out.len, &check);
			assert_int_equal(again.n_held, 0);
			command_text_feed(&t, in + next, sizeof(in) - 1 - next, &out);
			command_text_finish(&t, &out);
			buf_add_char(&out, '\0');
			if (whole[0])
				assert_string_equal(out.data, whole);
			snprintf(whole, sizeof(whole), "%s", out.data);
			buf_done(&out);
			buf_done(&check);
		}
	}
	assert_string_equal(whole,
			    "\n\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\n\n\xef\xbf\xbd\xef\xbf\xbd"
			    "A\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\n"
			    "\xef\xbf\xbd");
}

/* ---- stream-json ---- */

static void run_json(struct fixture *f, const char *lines)
{
	size_t size = strlen(lines) + 64;
	char *script = malloc(size);

	f->opts.output = COMMAND_STREAM_JSON;
	snprintf(script, size, "cat <<'EOF'\n%s\nEOF", lines);
	run(f, script);
	free(script);
}

TEST(claude_lines_are_read)
{
	struct fixture *f = *state;

	run_json(f, "{\"type\":\"system\",\"subtype\":\"init\",\"tools\":[\"Bash\"]}\n"
		    "{\"type\":\"assistant\",\"message\":{\"id\":\"m1\",\"content\":["
		    "{\"type\":\"text\",\"text\":\"Let me look.\"}]}}\n"
		    "{\"type\":\"assistant\",\"message\":{\"id\":\"m1\",\"content\":["
		    "{\"type\":\"tool_use\",\"name\":\"Bash\",\"input\":{\"text\":\"no\"}}]}}\n"
		    "{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":"
		    "\"no\"}]}}\n"
		    "{\"type\":\"assistant\",\"parent_tool_use_id\":\"t1\",\"message\":{"
		    "\"content\":\"no\"}}\n"
		    "{\"type\":\"assistant\",\"parent_tool_use_id\":null,\"message\":{"
		    "\"content\":\"It is Alice.\"}}\n"
		    "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":"
		    "\"It is Alice.\",\"usage\":{\"input_tokens\":5,\"output_tokens\":7,"
		    "\"cache_read_input_tokens\":100,\"cache_creation_input_tokens\":20}}");
	expect_done(f, "Let me look.\n\nIt is Alice.");
	assert_int_equal(f->usage.input, 125);
	assert_int_equal(f->usage.output, 7);
	assert_int_equal(f->usage.cache_read, 100);
	assert_int_equal(f->usage.cache_written, 20);
}

#define DELTA(text)                                                                                \
	"{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_delta\",\"delta\":{"       \
	"\"type\":\"text_delta\",\"text\":\"" text "\"}}}\n"
#define STARTS(id)                                                                                 \
	"{\"type\":\"stream_event\",\"event\":{\"type\":\"message_start\",\"message\":{"           \
	"\"id\":\"" id "\"}}}\n"
#define MESSAGE(id, text)                                                                          \
	"{\"type\":\"assistant\",\"message\":{\"id\":\"" id "\",\"content\":["                     \
	"{\"type\":\"text\",\"text\":\"" text "\"}]}}\n"

TEST(what_came_in_deltas_does_not_come_again)
{
	struct fixture *f = *state;

	run_json(f, STARTS("m1") DELTA("It ") DELTA("is") MESSAGE("m1", "It is") STARTS("m2")
			    DELTA("Alice") MESSAGE("m2", "Alice") MESSAGE("m3", "Bye"));
	expect_done(f, "It is\n\nAlice\n\nBye");
}

TEST(a_result_alone_is_the_text)
{
	struct fixture *f = *state;

	run_json(f, "{\"type\":\"result\",\"subtype\":\"success\",\"result\":\"Only this\"}");
	expect_done(f, "Only this");
	assert_int_equal(f->usage.input, -1);
}

TEST(a_result_may_be_an_error)
{
	struct fixture *f = *state;

	run_json(f, MESSAGE("m1", "Half") "{\"type\":\"result\",\"subtype\":\"success\","
					  "\"is_error\":true,\"result\":\"Credit is too low\"}");
	expect_failed(f, "CommandError", "prog: Credit is too low");
	expect_out(f, "Half");
	run_json(f, "{\"type\":\"result\",\"subtype\":\"error_max_turns\"}");
	expect_failed(f, "CommandError", "prog: error_max_turns");
}

TEST(codex_lines_are_read)
{
	struct fixture *f = *state;

	run_json(f,
		 "{\"type\":\"thread.started\",\"thread_id\":\"x\"}\n"
		 "{\"type\":\"item.completed\",\"item\":{\"type\":\"reasoning\",\"text\":\"no\"}}\n"
		 "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":"
		 "\"Yes\"}}\n"
		 "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":30,"
		 "\"cached_input_tokens\":10,\"output_tokens\":3}}");
	expect_done(f, "Yes");
	assert_int_equal(f->usage.input, 30);
	assert_int_equal(f->usage.cache_read, 10);
	assert_int_equal(f->usage.cache_written, -1);
	run_json(f, "{\"type\":\"turn.failed\",\"error\":{\"message\":\"No quota\"}}");
	expect_failed(f, "CommandError", "prog: No quota");
}

TEST(lines_that_are_no_json_are_passed_over)
{
	struct fixture *f = *state;

	run_json(f, "warning: old node\n\n{\"type\":\"assistant\"\n[1]\n{}\n{\"type\":7}\n"
		    "{\"type\":\"assistant\",\"message\":7}\n" MESSAGE("m", "Yes") "bye");
	expect_done(f, "Yes");
}

TEST(nothing_but_such_lines_is_an_error)
{
	struct fixture *f = *state;

	run_json(f, "Please log in\nfirst");
	expect_failed(f, "CommandError", "prog: output is not stream-json: 2 lines are not JSON");
	assert_int_equal(f->out.len, 0);
}

TEST(a_json_line_may_be_long_but_not_endless)
{
	struct fixture *f = *state;

	f->opts.output = COMMAND_STREAM_JSON;
	run(f, "printf '{\"type\":\"result\",\"result\":\"'; head -c 10000000 /dev/zero | "
	       "tr '\\0' x; echo '\"}'");
	assert_string_equal(f->text, "");
	assert_int_equal(f->outcome, AGENT_DONE);
	assert_int_equal(f->out.len, 10000000);
	run(f, "printf '{\"type\":\"result\",\"result\":\"'; head -c 17000000 /dev/zero | "
	       "tr '\\0' x; echo '\"}'; echo '{\"type\":\"result\",\"result\":\"next\"}'");
	expect_done(f, "next");
	run(f, "head -c 17000000 /dev/zero | tr '\\0' x");
	expect_failed(f, "CommandError", "prog: an output line is longer than 16777216 bytes");
}

/* ---- ends ---- */

TEST(a_failing_program_is_quoted)
{
	struct fixture *f = *state;

	run(f, "echo partial; echo first >&2; echo 'no key given' >&2; exit 1");
	expect_failed(f, "CommandError", "prog: exit status 1: first no key given");
	expect_out(f, "partial");
	run(f, "exit 3");
	expect_failed(f, "CommandError", "prog: exit status 3");
	run(f, "exit 0");
	expect_done(f, "");
}

TEST(only_the_end_of_stderr_is_kept)
{
	struct fixture *f = *state;

	run(f,
	    "head -c 3000000 /dev/zero | tr '\\0' y >&2; printf '\\nthe \\377 end\\n' >&2; exit 1");
	expect_failed(f, "CommandError", "prog: exit status 1: the \xef\xbf\xbd end");
	run(f, "head -c 3000000 /dev/zero | tr '\\0' y >&2; exit 1");
	assert_int_equal(strlen(f->text), strlen("prog: exit status 1: ") + 400);
	run(f, "echo warned >&2; echo fine");
	expect_done(f, "fine");
}

TEST(a_signal_is_named)
{
	struct fixture *f = *state;

	run(f, "kill -9 $$");
	expect_failed(f, "CommandError", "prog: killed by signal 9 (Killed)");
}

TEST(a_missing_program_is_refused)
{
	struct fixture *f = *state;

	f->opts.command = "no-such-program-here -x";
	assert_int_equal(try_start(f), REFUSE_UNAVAILABLE);
	assert_string_equal(f->error.text, "no program 'no-such-program-here' in PATH");
	agent_free(f->agent);
	f->agent = NULL;
	f->opts.command = "/no/such/program";
	assert_int_equal(try_start(f), REFUSE_UNAVAILABLE);
	assert_string_equal(f->error.text, "no program at '/no/such/program'");
	agent_free(f->agent);
	f->agent = NULL;
	f->opts.command = "/tmp";
	assert_int_equal(try_start(f), REFUSE_UNAVAILABLE);
}

TEST(a_program_that_is_none_is_refused)
{
	struct fixture *f = *state;
	int fd = open(f->script, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);

	assert_int_equal(write(fd, "#!/no/such/shell\n", 17), 17);
	close(fd);
	assert_int_equal(try_start(f), REFUSE_UNAVAILABLE);
	assert_int_equal(f->error.code, REFUSE_UNAVAILABLE);
}

TEST(cancel_interrupts_and_keeps_what_came)
{
	struct fixture *f = *state;

	f->cancel_on_text = true;
	run(f, "trap 'echo more; exit 0' INT; echo partial; while :; do sleep 0.01; done");
	assert_int_equal(f->outcome, AGENT_CANCELLED);
	expect_out(f, "partial");
}

TEST(cancel_before_any_word_ends_it)
{
	struct fixture *f = *state;

	write_script(f, "exec sleep 1000");
	assert_int_equal(try_start(f), 0);
	f->agent->ops->cancel(f->turn);
	assert_int_equal(f->n_ends, 0);
	loop_run(f->loop);
	assert_int_equal(f->outcome, AGENT_CANCELLED);
}

TEST(a_program_that_ignores_the_interrupt_is_killed)
{
	struct fixture *f = *state;

	f->opts.interrupt_ms = 20;
	f->opts.terminate_ms = 20;
	f->cancel_on_text = true;
	run(f, "trap '' INT TERM; echo partial; while :; do sleep 0.01; done");
	assert_int_equal(f->outcome, AGENT_CANCELLED);
	expect_out(f, "partial");
}

static pid_t first_number(struct fixture *f)
{
	buf_add_char(&f->out, '\0');
	return (pid_t)atoi(f->out.data);
}

/* The orphan is ours to wait for, see main. */
static void expect_killed(pid_t pid)
{
	int status;

	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST(grandchildren_that_hold_stdout_are_not_waited_for)
{
	struct fixture *f = *state;

	run(f, "sleep 1000 & echo $!");
	assert_int_equal(f->outcome, AGENT_DONE);
	expect_killed(first_number(f));
}

TEST(grandchildren_do_not_hold_a_cancel)
{
	struct fixture *f = *state;

	f->cancel_on_text = true;
	run(f, "trap 'exit 0' INT; (trap '' INT TERM; exec sh -c 'echo $$; exec sleep 1000') & "
	       "while :; do sleep 0.01; done");
	assert_int_equal(f->outcome, AGENT_CANCELLED);
	/* Told before its program was gone; then the rest of the group goes. */
	loop_run(f->loop);
	expect_killed(first_number(f));
}

/* A program that does not heed the signals in time is not waited for by whoever cancelled. */
TEST(a_cancel_is_told_before_the_program_ends)
{
	struct fixture *f = *state;
	pid_t program;

	f->opts.interrupt_ms = 3600000;
	f->cancel_on_text = true;
	run(f, "trap '' INT TERM; echo $$; while :; do sleep 0.01; done");
	assert_int_equal(f->outcome, AGENT_CANCELLED);
	program = first_number(f);
	assert_int_equal(kill(program, 0), 0);
	agent_free(f->agent);
	f->agent = NULL;
	loop_run(f->loop);
	assert_int_equal(kill(program, 0), -1);
}

TEST(too_long_a_turn_is_stopped)
{
	struct fixture *f = *state;

	f->opts.total_timeout_ms = 50;
	f->opts.interrupt_ms = 20;
	f->opts.terminate_ms = 20;
	run(f, "trap '' INT TERM; while :; do sleep 0.01; done");
	expect_failed(f, "CommandTimeout", "prog: timed out after 0.05 s");
	agent_free(f->agent);
	f->agent = NULL;
	f->opts.total_timeout_ms = 3600000;
	run(f, "echo fine");
	expect_done(f, "fine");
}

TEST(freeing_the_agent_kills_what_runs)
{
	struct fixture *f = *state;
	pid_t grandchild;

	f->free_on_text = true;
	f->stop_on_text = true;
	write_script(f, "sleep 1000 & echo $!; wait");
	assert_int_equal(try_start(f), 0);
	loop_run(f->loop);
	grandchild = first_number(f);
	loop_run(f->loop);
	assert_int_equal(f->n_ends, 0);
	expect_killed(grandchild);
}

TEST(freeing_the_agent_at_the_last_words_does_no_harm)
{
	struct fixture *f = *state;

	f->free_on_text = true;
	/* Half a character comes as the program's end does. */
	write_script(f, "printf '\\342\\202'");
	assert_int_equal(try_start(f), 0);
	loop_run(f->loop);
	assert_null(f->agent);
	assert_int_equal(f->n_ends, 0);
}

TEST(the_next_turn_works_after_each_of_them)
{
	struct fixture *f = *state;

	run(f, "exit 1");
	f->cancel_on_text = true;
	run(f, "echo x; exec sleep 1000");
	assert_int_equal(f->outcome, AGENT_CANCELLED);
	f->cancel_on_text = false;
	run(f, "echo fine");
	expect_done(f, "fine");
}

static void on_health(void *arg, const struct agent_health *health)
{
	struct fixture *f = arg;

	f->n_healths++;
	f->health_ok = health->ok;
	snprintf(f->health, sizeof(f->health), "%s", health->text);
}

static void probe(struct fixture *f, const char *command)
{
	unsigned before = f->n_healths;

	agent_free(f->agent);
	f->agent = NULL;
	f->opts.command = command;
	assert_int_equal(command_new(f->loop, &f->opts, &f->agent, &f->error), 0);
	assert_int_equal(f->agent->ops->probe(f->agent, on_health, f), 0);
	assert_int_equal(f->n_healths, before);
	loop_run(f->loop);
	assert_int_equal(f->n_healths, before + 1);
}

TEST(a_probe_tells_where_the_program_is)
{
	struct fixture *f = *state;

	probe(f, "sh -c true");
	assert_true(f->health_ok);
	assert_int_equal(f->health[0], '/');
	assert_string_equal(strrchr(f->health, '/'), "/sh");
	assert_string_equal(f->agent->model, "sh");
	probe(f, "no-such-program-here");
	assert_false(f->health_ok);
	assert_string_equal(f->health, "no program 'no-such-program-here' in PATH");
}

int main(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return run_all_tests("tests");
}
