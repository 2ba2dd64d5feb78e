/*
 * Processes of clients, as real shells, on pipes and terminals. The test plays whoever approves.
 * Each ends by itself after a while, should a test leave it.
 */
#include "stage.h"

#include <signal.h>
#include <sys/stat.h>

#include "io/process/console.h"
#include "io/process/tree.h"
#include "engine/approval/approval.h"
#include "engine/attempt/attempt.h"
#include "engine/program/process.h"

/* Of this process alone: the same test may run in another build at the same time. */
static char owner[TREE_OWNER_MAX + 1];

/* What was asked, until it was answered. */
struct approval_waiter {
	approval_fn on_kept;
	approval_fn fn;
	void *arg;
};

struct world {
	struct stage stage;
	struct processes *processes;
	struct tree_keeper *keeper;
	char dir[64];

	struct approval_waiter waiter;
	bool lets_wait;
	bool keeps_late;
	enum approval_status verdict;
	unsigned n_asked;
	unsigned n_left;
	char withdrawn[32];
	char action[16];
	char shown[256]; /* of the last that was asked: its command, or the data */
	char env[64];
	bool is_command; /* and nothing else that counts */

	int n_told;
	int result;
	struct error error;
	char id[PROCESS_ID_MAX];
	struct process_info info;
	struct process_ask *ask;
	int n_stopped;
};

static struct world *the_world;

/* ---- whoever approves ---- */

int __wrap_approval_wait(struct approvals *s, const struct approval_new *in, approval_fn on_kept,
			 approval_fn fn, void *arg, struct approval_waiter **ret_waiter,
			 struct error *error);
void __wrap_approval_leave(struct approval_waiter *w);
int __wrap_approval_decide(struct approvals *s, const struct approval_decision *d, approval_fn fn,
			   void *arg, struct error *error);

void __wrap_approvals_withdraw_left(struct approvals *s, struct text agent,
				    bool (*is_own)(const struct approval *row));

static void note(char *to, size_t size, struct text t)
{
	snprintf(to, size, "%.*s", TEXT_ARGS(t));
}

int __wrap_approval_wait(struct approvals *s, const struct approval_new *in, approval_fn on_kept,
			 approval_fn fn, void *arg, struct approval_waiter **ret_waiter,
			 struct error *error)
{
	const struct approval kept = {.id = TEXT("local-1"), .status = APPROVAL_PENDING};
	struct world *w = the_world;

	assert_true(text_is(in->agent, "gateway"));
	assert_true(text_is(in->tool, "process"));
	note(w->action, sizeof(w->action), value_text(value_find(in->input, "action")));
	w->is_command = value_find(in->input, "command");
	note(w->shown, sizeof(w->shown),
	     value_text(value_find(in->input, strcmp(w->action, "write") == 0 ? "data"
					      : w->is_command                 ? "command"
									      : "run")));
	note(w->env, sizeof(w->env), value_text(value_find(in->input, "env")));
	assert_int_equal(value_find(in->input, "process_id") != NULL,
			 strcmp(w->action, "write") == 0);
	w->n_asked++;
	w->waiter = (struct approval_waiter) {on_kept, fn, arg};
	*ret_waiter = &w->waiter;
	if (w->lets_wait && !w->keeps_late)
		on_kept(arg, 0, &kept, NULL);
	return 0;
}

void __wrap_approval_leave(struct approval_waiter *w)
{
	if (!w)
		return;
	assert_non_null(w->fn);
	w->fn = NULL;
	the_world->n_left++;
}

void __wrap_approvals_withdraw_left(struct approvals *s, struct text agent,
				    bool (*is_own)(const struct approval *row))
{
	assert_true(text_is(agent, "gateway"));
	assert_true(is_own(&(struct approval) {.tool = TEXT("process")}));
	assert_false(is_own(&(struct approval) {.tool = TEXT("exec")}));
}

int __wrap_approval_decide(struct approvals *s, const struct approval_decision *d, approval_fn fn,
			   void *arg, struct error *error)
{
	assert_int_equal(d->status, APPROVAL_SUPERSEDED);
	note(the_world->withdrawn, sizeof(the_world->withdrawn), d->id);
	return 0;
}

static void decide(struct world *w, enum approval_status status, const char *comment)
{
	const struct approval how = {.status = status, .comment = text_of(comment)};
	approval_fn fn = w->waiter.fn;

	assert_non_null(fn);
	w->waiter.fn = NULL;
	fn(w->waiter.arg, 0, &how, NULL);
}

/* ---- a world ---- */

static void on_told(void *arg, int result, const struct process_info *info,
		    const struct error *error)
{
	struct world *w = arg;

	w->n_told++;
	w->result = result;
	w->ask = NULL;
	if (error)
		w->error = *error;
	if (info) {
		w->info = *info;
		snprintf(w->id, sizeof(w->id), "%s", info->id);
	}
}

static int world_setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct processes_opts opts = {0};
	struct error error;

	if (!w)
		return -1;
	the_world = w;
	signal(SIGPIPE, SIG_IGN);
	snprintf(owner, sizeof(owner), "process-test%d.", (int)getpid());
	stage_make(&w->stage, NULL);
	strcpy(w->dir, "/tmp/koine-process-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	assert_int_equal(tree_keeper_new(w->stage.loop, &w->keeper), 0);
	w->verdict = APPROVAL_APPROVED;
	opts.loop = w->stage.loop;
	opts.folder = w->dir;
	opts.owner = owner;
	opts.id_name = "process_id";
	/* Only that it is there is looked at. */
	opts.approvals = (struct approvals *)w;
	assert_int_equal(processes_new(&opts, &w->processes, &error), 0);
	*state = w;
	return 0;
}

static int world_teardown(void **state)
{
	struct world *w = *state;
	char path[128];

	processes_free(w->processes);
	stage_until(&w->stage, tree_signal(owner, true, SIGKILL) == 0);
	tree_keeper_free(w->keeper);
	timer_free(w->stage.tick);
	loop_free(w->stage.loop);
	snprintf(path, sizeof(path), "%s/below", w->dir);
	rmdir(path);
	assert_int_equal(rmdir(w->dir), 0);
	free(w);
	return 0;
}

FIXTURE(world_setup, world_teardown);

static void settle(struct world *w, int before)
{
	if (!w->lets_wait && w->waiter.fn)
		decide(w, w->verdict, "");
	if (!w->lets_wait)
		assert_int_equal(w->n_told, before + 1);
}

static int start_as(struct world *w, const struct process_new *in)
{
	int before = w->n_told;
	int r = process_start(w->processes, in, on_told, w, &w->ask, &w->error);

	if (r == 0)
		settle(w, before);
	return r != 0 ? r : w->result;
}

static void start(struct world *w, const char *command, bool terminal)
{
	const struct process_new in = {.command = text_of(command), .terminal = terminal};

	assert_int_equal(start_as(w, &in), 0);
}

static int write_to(struct world *w, const char *data, bool eof)
{
	int before = w->n_told;
	int r = process_write(w->processes, text_of(w->id), text_of(data), eof, &(struct peer) {0},
			      on_told, w, &w->ask, &w->error);

	if (r == 0)
		settle(w, before);
	return r != 0 ? r : w->result;
}

static const char *printed(struct world *w)
{
	static char out[PROCESS_OUTPUT_MAX + 1];
	struct process_log log;

	assert_int_equal(process_log(w->processes, text_of(w->id), 0, sizeof(out), &log, &w->error),
			 0);
	memcpy(out, log.bytes.data, log.bytes.len);
	out[log.bytes.len] = '\0';
	return out;
}

static unsigned count(struct world *w, struct process_info *ret_newest)
{
	static struct process_info list[PROCESS_KEPT_MAX];
	unsigned n;

	assert_int_equal(process_list(w->processes, list, &n, &w->error), 0);
	if (ret_newest && n > 0)
		*ret_newest = list[0];
	return n;
}

static bool runs(struct world *w)
{
	struct process_info info;

	assert_int_equal(process_get(w->processes, text_of(w->id), &info, &w->error), 0);
	w->info = info;
	return info.running;
}

#define until_printed(w, part) stage_until(&(w)->stage, strstr(printed(w), part) != NULL)
#define until_ended(w)         stage_until(&(w)->stage, !runs(w))

/* ---- how it runs ---- */

TEST(a_command_runs_where_and_as_it_was_said)
{
	struct world *w = *state;
	const struct text env[] = {TEXT("A=b"), TEXT("KOINE_MARK=a lie")};
	const struct process_new in = {
		.command = TEXT("pwd; echo $A; echo err >&2; exit 3"), .env = env, .n_env = 2};
	char expected[128];

	assert_int_equal(start_as(w, &in), 0);
	assert_true(strncmp(w->id, "proc_", 5) == 0);
	assert_true(w->info.pid > 0);
	assert_true(w->info.running);
	assert_string_equal(w->action, "start");
	assert_string_equal(w->shown, "pwd; echo $A; echo err >&2; exit 3");
	assert_string_equal(w->env, "A=b\nKOINE_MARK=a lie\n");
	assert_false(w->is_command);
	until_ended(w);
	assert_int_equal(w->info.status, 3);
	assert_int_equal(w->info.signal, 0);
	assert_false(w->info.killed);
	assert_true(w->info.ended_ms >= w->info.started_ms);
	snprintf(expected, sizeof(expected), "%s\nb\nerr\n", w->dir);
	assert_string_equal(printed(w), expected);
	assert_int_equal(w->info.output, strlen(expected));
}

TEST(a_command_is_no_option_of_the_shell)
{
	struct world *w = *state;

	start(w, "-x 2>&-; echo ran", false);
	until_ended(w);
	assert_string_equal(printed(w), "ran\n");
}

TEST(what_is_written_is_read_up_to_its_end)
{
	struct world *w = *state;

	start(w, "read a; echo got $a; cat; echo over", false);
	assert_int_equal(write_to(w, "one\n", false), 0);
	assert_string_equal(w->action, "write");
	assert_string_equal(w->shown, "one\n");
	assert_false(w->is_command);
	until_printed(w, "got one\n");
	assert_int_equal(write_to(w, "two", true), 0);
	until_ended(w);
	assert_string_equal(printed(w), "got one\ntwoover\n");
	assert_int_equal(write_to(w, "late", false), REFUSE_CONFLICT);
}

TEST(a_program_that_reads_nothing_is_not_written_to_for_ever)
{
	struct world *w = *state;
	char *much = malloc(PROCESS_WRITE_MAX + 1);
	int r = 0;
	int n = 0;

	assert_non_null(much);
	memset(much, 'a', PROCESS_WRITE_MAX);
	much[PROCESS_WRITE_MAX] = '\0';
	start(w, "sleep 60", false);
	while (r == 0 && n++ < 100)
		r = write_to(w, much, false);
	assert_int_equal(r, REFUSE_LIMIT);
	assert_true(n <= CONSOLE_QUEUE_MAX / PROCESS_WRITE_MAX + 2);
	free(much);
}

TEST(one_that_closes_its_input_is_told_of)
{
	struct world *w = *state;
	int r = 0;

	start(w, "exec 0<&-; echo closed; sleep 60", false);
	until_printed(w, "closed");
	r = write_to(w, "x", false);
	if (r == 0)
		r = write_to(w, "x", false);
	assert_int_equal(r, REFUSE_CONFLICT);
	assert_true(runs(w));
}

TEST(a_terminal_is_one)
{
	struct world *w = *state;

	start(w,
	      "test -t 0 && test -t 1 && test -t 2 && tty </dev/tty && stty size && echo $TERM; "
	      "read a; echo got $a; cat",
	      true);
	until_printed(w, "24 80\r\nxterm\r\n");
	assert_non_null(strstr(printed(w), "/dev/tty\r\n"));
	assert_int_equal(write_to(w, "one\n", false), 0);
	until_printed(w, "got one\r\n");
	assert_int_equal(write_to(w, "no line", true), 0);
	until_ended(w);
	assert_int_equal(w->info.status, 0);
	assert_true(w->info.terminal);
	assert_non_null(strstr(printed(w), "no line"));
}

TEST(an_interrupt_comes_by_the_terminal)
{
	struct world *w = *state;

	start(w, "trap 'echo interrupted; exit 7' INT; echo up; while :; do sleep 0.05; done",
	      true);
	until_printed(w, "up");
	assert_int_equal(write_to(w, "\x03", false), 0);
	until_ended(w);
	assert_int_equal(w->info.status, 7);
	until_printed(w, "interrupted");
}

/* A terminal's last bytes are under way in the kernel when its program has ended. */
TEST(nothing_of_what_a_terminal_printed_is_lost)
{
	struct world *w = *state;

	for (int i = 0; i < 20; i++) {
		start(w, "seq 1 400; printf last", true);
		until_ended(w);
		assert_non_null(strstr(printed(w), "400\r\nlast"));
	}
}

/* ---- what it printed ---- */

TEST(the_last_of_much_output_is_kept_by_its_offset)
{
	struct world *w = *state;
	const size_t total = 588895; /* of seq 1 100000 */
	struct process_log log;
	uint64_t first;

	start(w, "seq 1 100000", false);
	until_ended(w);
	assert_int_equal(w->info.output, total);
	assert_int_equal(process_log(w->processes, text_of(w->id), 0, 1 << 20, &log, &w->error), 0);
	assert_true(log.offset > 0);
	assert_int_equal(log.offset + log.bytes.len, total);
	assert_int_equal(log.end, total);
	assert_true(log.bytes.len >= PROCESS_OUTPUT_MAX / 2);
	assert_true(log.bytes.len <= PROCESS_OUTPUT_MAX);
	assert_memory_equal(log.bytes.data + log.bytes.len - 13, "99999\n100000\n", 13);

	assert_int_equal(
		process_log(w->processes, text_of(w->id), (int64_t)total - 7, 3, &log, &w->error),
		0);
	assert_int_equal(log.offset, total - 7);
	assert_int_equal(log.bytes.len, 3);
	assert_memory_equal(log.bytes.data, "100", 3);
	assert_int_equal(process_log(w->processes, text_of(w->id), -7, 100, &log, &w->error), 0);
	assert_int_equal(log.bytes.len, 7);
	assert_int_equal(process_log(w->processes, text_of(w->id), INT64_MAX, 100, &log, &w->error),
			 0);
	assert_int_equal(log.offset, total);
	assert_int_equal(log.bytes.len, 0);
	assert_int_equal(process_log(w->processes, text_of(w->id), INT64_MIN, 10, &log, &w->error),
			 0);
	assert_int_equal(log.bytes.len, 10);
	first = log.offset;
	for (int more = 0; more < 3; more++) {
		assert_int_equal(process_log(w->processes, text_of(w->id), -(int64_t)total - more,
					     10, &log, &w->error),
				 0);
		assert_int_equal(log.offset, first);
	}
}

/* ---- how it ends ---- */

TEST(a_kill_ends_all_that_it_has_started)
{
	struct world *w = *state;
	struct process_wait *wait;
	struct process_info info;
	int before;

	start(w, "trap '' TERM; setsid sleep 60 & sleep 60 & echo up; wait; sleep 60", false);
	until_printed(w, "up");
	before = w->n_told;
	assert_int_equal(
		process_kill(w->processes, text_of(w->id), on_told, w, &wait, &info, &w->error), 0);
	assert_int_equal(w->n_told, before);
	stage_until(&w->stage, w->n_told > before);
	assert_false(w->info.running);
	assert_true(w->info.killed);
	assert_int_equal(tree_signal(owner, true, 0), 0);
	/* Once more is fine. */
	assert_int_equal(
		process_kill(w->processes, text_of(w->id), on_told, w, &wait, &info, &w->error), 0);
	assert_null(wait);
	assert_false(info.running);
	assert_int_equal(w->n_told, before + 1);
}

TEST(what_a_command_leaves_behind_ends_with_it)
{
	struct world *w = *state;

	start(w, "setsid sleep 60 & sleep 60 & echo up", false);
	until_ended(w);
	assert_string_equal(printed(w), "up\n");
	assert_int_equal(w->info.status, 0);
	assert_int_equal(tree_signal(owner, true, 0), 0);
}

TEST(whoever_waits_for_an_end_may_leave)
{
	struct world *w = *state;
	struct process_wait *wait;
	struct process_info info;

	start(w, "sleep 60", false);
	assert_int_equal(
		process_kill(w->processes, text_of(w->id), on_told, w, &wait, &info, &w->error), 0);
	process_wait_leave(wait);
	until_ended(w);
	assert_int_equal(w->n_told, 1);
}

static void on_stopped(void *arg)
{
	((struct world *)arg)->n_stopped++;
}

TEST(a_stop_ends_all_and_begins_none)
{
	struct world *w = *state;
	const struct process_new in = {.command = TEXT("true")};

	start(w, "trap '' TERM; echo up; while :; do sleep 60; done", false);
	until_printed(w, "up");
	start(w, "sleep 60", true);
	w->lets_wait = true;
	assert_int_equal(start_as(w, &in), 0);
	processes_stop(w->processes, 200, on_stopped, w);
	assert_int_equal(w->result, REFUSE_STOPPING);
	assert_int_equal(w->n_stopped, 0);
	assert_int_equal(start_as(w, &in), REFUSE_STOPPING);
	stage_until(&w->stage, w->n_stopped == 1);
	assert_int_equal(tree_signal(owner, true, 0), 0);
	assert_false(runs(w));
}

/* ---- who may ---- */

TEST(what_is_denied_does_not_run)
{
	struct world *w = *state;
	const struct process_new in = {.command = TEXT("sleep 60")};

	w->lets_wait = true;
	assert_int_equal(start_as(w, &in), 0);
	assert_int_equal(count(w, NULL), 0);
	decide(w, APPROVAL_DENIED, "not today");
	assert_int_equal(w->result, REFUSE_FORBIDDEN);
	assert_string_equal(w->error.text, "denied: not today");
	assert_int_equal(start_as(w, &in), REFUSE_FORBIDDEN);
	decide(w, APPROVAL_EXPIRED, "");
	assert_int_equal(w->result, REFUSE_TIMEOUT);
	assert_int_equal(count(w, NULL), 0);
}

TEST(whoever_leaves_withdraws_the_question)
{
	struct world *w = *state;
	const struct process_new in = {.command = TEXT("sleep 60")};

	w->lets_wait = true;
	assert_int_equal(start_as(w, &in), 0);
	assert_true(w->is_command);
	process_ask_leave(w->ask);
	assert_int_equal(w->n_left, 1);
	assert_string_equal(w->withdrawn, "local-1");
	assert_int_equal(w->n_told, 0);
}

TEST(one_that_leaves_before_it_is_asked_withdraws_later)
{
	const struct approval kept = {.id = TEXT("local-2"), .status = APPROVAL_PENDING};
	struct world *w = *state;
	const struct process_new in = {.command = TEXT("sleep 60")};

	w->lets_wait = true;
	w->keeps_late = true;
	assert_int_equal(start_as(w, &in), 0);
	process_ask_leave(w->ask);
	assert_string_equal(w->withdrawn, "");
	w->waiter.on_kept(w->waiter.arg, 0, &kept, NULL);
	assert_int_equal(w->n_left, 1);
	assert_string_equal(w->withdrawn, "local-2");
	/* A rule may have said yes meanwhile. */
	assert_int_equal(start_as(w, &in), 0);
	process_ask_leave(w->ask);
	decide(w, APPROVAL_APPROVED, "");
	assert_int_equal(count(w, NULL), 0);
	assert_int_equal(w->n_told, 0);
}

TEST(what_was_written_to_waits_for_its_own_approval)
{
	struct world *w = *state;

	start(w, "cat", false);
	w->lets_wait = true;
	assert_int_equal(write_to(w, "rm\n", false), 0);
	decide(w, APPROVAL_DENIED, "");
	assert_int_equal(w->result, REFUSE_FORBIDDEN);
	w->lets_wait = false;
	assert_int_equal(write_to(w, "", true), 0);
	until_ended(w);
	assert_string_equal(printed(w), "");
}

TEST(without_the_setting_nothing_is_allowed)
{
	struct world *w = *state;
	struct processes *with = w->processes;
	const struct processes_opts alone = {.loop = w->stage.loop, .owner = owner};
	const struct process_new in = {.command = TEXT("true")};
	struct process_info list[PROCESS_KEPT_MAX];
	struct process_log log;
	struct process_wait *wait;
	unsigned n;

	assert_int_equal(process_list(NULL, list, &n, &w->error), REFUSE_FORBIDDEN);
	assert_int_equal(process_start(NULL, &in, on_told, w, &w->ask, &w->error),
			 REFUSE_FORBIDDEN);
	assert_int_equal(process_write(NULL, TEXT("x"), TEXT("x"), false, &(struct peer) {0},
				       on_told, w, &w->ask, &w->error),
			 REFUSE_FORBIDDEN);
	assert_int_equal(process_kill(NULL, TEXT("x"), on_told, w, &wait, list, &w->error),
			 REFUSE_FORBIDDEN);
	assert_int_equal(process_log(NULL, TEXT("x"), 0, 1, &log, &w->error), REFUSE_FORBIDDEN);
	assert_non_null(strstr(w->error.text, "[gateway] process = yes"));
	assert_int_equal(w->n_asked, 0);
	assert_int_equal(processes_new(&alone, &w->processes, &w->error), 0);
	assert_int_equal(start_as(w, &in), REFUSE_FORBIDDEN);
	processes_free(w->processes);
	w->processes = with;
}

TEST(what_cannot_be_started_is_refused_with_its_field)
{
	struct world *w = *state;
	const struct text nameless[] = {TEXT("=x")};
	char below[128];

	assert_int_equal(start_as(w, &(struct process_new) {.command = TEXT("")}), REFUSE_PARAMS);
	assert_string_equal(w->error.field, "command");
	assert_int_equal(start_as(w, &(struct process_new) {.command = TEXT("a\0b")}),
			 REFUSE_PARAMS);
	assert_int_equal(start_as(w, &(struct process_new) {.command = TEXT("true"),
							    .env = nameless,
							    .n_env = 1}),
			 REFUSE_PARAMS);
	assert_string_equal(w->error.field, "env");
	assert_int_equal(w->n_asked, 0);
	for (unsigned more = 0; more < 2; more++) {
		static char long_value[PROCESS_ENV_BYTES_MAX + 1];
		static struct text env[PROCESS_ENV_MAX + 1];
		const struct text large[] = {TEXT("A="),
					     {long_value, PROCESS_ENV_BYTES_MAX - 4 + more}};

		memset(long_value, '=', sizeof(long_value));
		long_value[0] = 'B';
		for (unsigned i = 0; i <= PROCESS_ENV_MAX; i++)
			env[i] = TEXT("A=");
		/* What is not refused here is refused for its folder. */
		assert_int_equal(
			start_as(w, &(struct process_new) {.command = TEXT("true"),
							   .workdir = TEXT("missing"),
							   .env = env,
							   .n_env = PROCESS_ENV_MAX + more}),
			REFUSE_PARAMS);
		assert_string_equal(w->error.field, more ? "env" : "workdir");
		assert_int_equal(start_as(w, &(struct process_new) {.command = TEXT("true"),
								    .workdir = TEXT("missing"),
								    .env = large,
								    .n_env = 2}),
				 REFUSE_PARAMS);
		assert_string_equal(w->error.field, more ? "env" : "workdir");
	}
	assert_int_equal(
		start_as(w, &(struct process_new) {.command = TEXT("true"), .workdir = TEXT("/")}),
		REFUSE_FORBIDDEN);
	assert_int_equal(
		start_as(w, &(struct process_new) {.command = TEXT("true"), .workdir = TEXT("..")}),
		REFUSE_FORBIDDEN);
	snprintf(below, sizeof(below), "%s/below", w->dir);
	assert_int_equal(mkdir(below, 0700), 0);
	assert_int_equal(start_as(w, &(struct process_new) {.command = TEXT("pwd"),
							    .workdir = TEXT("below")}),
			 0);
	until_ended(w);
	until_printed(w, "/below\n");
	snprintf(w->id, sizeof(w->id), "proc_1");
	assert_int_equal(write_to(w, "x", false), REFUSE_NOT_FOUND);
}

TEST(workdir_beside_the_folder_is_refused)
{
	struct world *w = *state;
	char beside[80], inside[96];
	size_t n = strlen(w->dir);

	/* A name of the same length, and one that goes on after the folder's. */
	for (int longer = 0; longer < 2; longer++) {
		snprintf(beside, sizeof(beside), "%s%s", w->dir, longer ? "x" : "");
		beside[n - 1] = longer ? beside[n - 1] : '_';
		snprintf(inside, sizeof(inside), "%s/x", beside);
		assert_int_equal(mkdir(beside, 0700), 0);
		assert_int_equal(mkdir(inside, 0700), 0);
		assert_int_equal(start_as(w, &(struct process_new) {.command = TEXT("true"),
								    .workdir = text_of(inside)}),
				 REFUSE_FORBIDDEN);
		assert_int_equal(rmdir(inside), 0);
		assert_int_equal(rmdir(beside), 0);
	}
}

TEST(there_is_a_bound_to_those_that_run_and_to_those_kept)
{
	struct world *w = *state;
	struct process_info newest;
	const struct process_new one_more = {.command = TEXT("true")};
	char first[PROCESS_ID_MAX];
	char ids[PROCESS_RUNNING_MAX][PROCESS_ID_MAX];
	int n_started = 1 + PROCESS_RUNNING_MAX;

	start(w, "true", false);
	memcpy(first, w->id, sizeof(first));
	until_ended(w);
	for (int i = 0; i < PROCESS_RUNNING_MAX; i++) {
		start(w, "read a", false);
		memcpy(ids[i], w->id, sizeof(ids[i]));
	}
	assert_int_equal(start_as(w, &one_more), REFUSE_LIMIT);
	assert_int_equal(count(w, &newest), PROCESS_RUNNING_MAX + 1);
	assert_string_equal(newest.id, ids[PROCESS_RUNNING_MAX - 1]);
	for (int i = 0; i < PROCESS_RUNNING_MAX; i++) {
		memcpy(w->id, ids[i], sizeof(w->id));
		assert_int_equal(write_to(w, "\n", false), 0);
	}
	for (int i = 0; i < PROCESS_RUNNING_MAX; i++) {
		memcpy(w->id, ids[i], sizeof(w->id));
		until_ended(w);
	}
	while (process_get(w->processes, text_of(first), &newest, &w->error) == 0) {
		start(w, "true", false);
		until_ended(w);
		n_started++;
		assert_true(count(w, &newest) <= PROCESS_KEPT_MAX);
	}
	assert_int_equal(n_started, PROCESS_KEPT_MAX + 1);
	assert_int_equal(count(w, &newest), PROCESS_KEPT_MAX);
}

TEST_WITH(tail_is_the_last_whole_characters, NULL, NULL)
{
	static const struct {
		const char *added, *want;
	} rows[] = {
		{"", ""},
		{"abcd", "abcd"},
		{"e", "bcde"},
		{"fghi", "fghi"},
		{"jklmnop", "mnop"},
		{"\u00e9\u00e9", "\u00e9\u00e9"},
		{"x", "\u00e9x"},
		{"\x80\x80\x80\x80\x80", "\x80\x80\x80\x80"},
		{"\x80", ""},
	};
	struct buf b;

	buf_init(&b, 8);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct text got;

		tail_add(&b, 4, rows[i].added, strlen(rows[i].added));
		assert_int_equal(b.err, 0);
		got = tail_of(&b, 4);
		if (!text_is(got, rows[i].want))
			fail_msg("%zu: %.*s", i, TEXT_ARGS(got));
	}
	buf_clear(&b);
	tail_add(&b, 4, "\x80z", 2);
	assert_true(text_is(tail_of(&b, 4), "\x80z"));
	buf_done(&b);
}
