/*
 * Each allocation of a start fails in turn: over a store that holds some of everything, each
 * service of the engine starts or says that there is no memory, leaks nothing, and starts with memory.
 */
#include "stage.h"

#include <sys/stat.h>

#include "agent/notify/notifier.h"
#include "agent/command/command.h"
#include "agent/recall/recall.h"
#include "base/pack.h"
#include "dialect/aiwg/aiwg.h"
#include "dialect/hld/hld.h"
#include "engine/approval/approval.h"
#include "engine/automation/automation.h"
#include "engine/automation/job.h"
#include "engine/automation/trust.h"
#include "engine/chat/chat.h"
#include "engine/event/event.h"
#include "engine/extract/extract.h"
#include "engine/bridge/bridge.h"
#include "engine/notify/notify.h"
#include "engine/program/process.h"
#include "engine/program/tool.h"
#include "engine/session/session.h"
#include "engine/task/task.h"
#include "engine/page_session/page_session.h"
#include "failing/nomem.h"
#include "store/approval.h"
#include "store/chat.h"
#include "store/rule.h"
#include "store/session.h"
#include "store/task.h"
#include "wire/json.h"

/* No more allocations than these can fail in a start that succeeds: tables grow later, events say less. */
enum { SPARED = 60 };

struct place {
	struct fixture *f;
	struct stage stage; /* its loop */
	char folder[TEMPDIR_MAX + 16];
	char *store; /* the bytes of the store before a start */
	size_t store_len;
};

/* ---- what the store holds ---- */

static void fill_tasks(struct fixture *f, struct connection *c)
{
	static const struct text first[] = {TEXT("task-0001")};
	const struct task tasks[] = {
		{.state = TASK_QUEUED, .group = TEXT("slow"), .priority = 2},
		{.state = TASK_QUEUED, .after = {first, 1}, .not_before_ms = INT64_MAX / 2},
		{.state = TASK_QUEUED, .skipped = TEXT("stashed"), .on_host = TEXT("other")},
		{.state = TASK_RUNNING, .max_attempts = 3, .mark = TEXT("m"), .started_ms = 1},
		{.state = TASK_RUNNING, .mark = TEXT("n"), .started_ms = 1},
		{.state = TASK_COMPLETED, .completed_ms = 1, .result = TEXT("done")},
	};

	for (size_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++) {
		struct task row = tasks[i];
		struct text id;
		int64_t seq;

		row.project = i % 2 ? text_of(f->dir) : TEXT("/");
		row.prompt = TEXT("where does anna run");
		row.exit_status = -1;
		assert_int_equal(store_task_add(c, &f->arena, &row, &seq, &id), 0);
	}
}

/* A job's object: a schedule and a prompt. */
static void pack_job(struct arena *a, struct buf *out)
{
	static const char text[] =
		"{\"name\":\"x\",\"schedule\":{\"kind\":\"every\",\"everyMs\":60000},"
		"\"payload\":{\"kind\":\"agentTurn\",\"message\":\"hi\"}}";
	struct value *v;

	assert_int_equal(json_read(a, text, strlen(text), &json_default_limits, &v, NULL), 0);
	buf_init(out, 4096);
	value_pack(out, v);
}

static void fill_others(struct arena *a, struct connection *c)
{
	const struct approval approvals[] = {
		{.id = TEXT("a"), .tool = TEXT("Bash"), .created_ms = 1},
		{.id = TEXT("b"), .tool = TEXT("Read"), .created_ms = 1, .deadline_ms = 2},
		{.id = TEXT("c"), .session = TEXT("s"), .tool = TEXT("Edit"), .created_ms = 1},
	};
	const struct session session = {.id = TEXT("s"),
					.run = TEXT("r"),
					.query = TEXT("q"),
					.working_dir = TEXT("/"),
					.status = SESSION_RUNNING,
					.mark = TEXT("o")};
	const struct conversation conversation = {.id = TEXT("c1")};
	const struct project_trust trust = {TEXT("/p"), TEXT("digest"), 1};
	struct job job = {.id = TEXT("j"), .created_ms = 1, .updated_ms = 1};
	struct turn turn = {.request_id = TEXT("\"q\""), .agent = TEXT("recall")};
	struct buf packed;
	bool added;
	int64_t seq;

	for (size_t i = 0; i < sizeof(approvals) / sizeof(approvals[0]); i++)
		assert_int_equal(store_approval_add(c, &approvals[i], &seq), 0);
	assert_int_equal(store_session_add(c, &session, &seq), 0);
	assert_int_equal(store_conversation_add(c, &conversation, &turn.conversation), 0);
	assert_int_equal(store_turn_add(c, &turn, &seq), 0);
	assert_int_equal(store_trust_put(c, &trust), 0);
	pack_job(a, &packed);
	job.data.bytes = (struct text) {packed.data, packed.len};
	assert_int_equal(store_job_add(c, &job, &added), 0);
	buf_done(&packed);
}

static void fill(struct place *p)
{
	struct fixture *f = p->f;
	struct stat st;
	int fd;

	add(f, "Anna runs along the fjord", NULL);
	assert_int_equal(engine_begin(f->engine), 0);
	fill_tasks(f, store_writer(f->engine->store));
	fill_others(&f->arena, store_writer(f->engine->store));
	assert_int_equal(engine_commit(f->engine), 0);
	engine_close(f->engine);
	fd = open(f->url + strlen("sqlite:"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	p->store_len = (size_t)st.st_size;
	p->store = malloc(p->store_len);
	assert_int_equal(read(fd, p->store, p->store_len), p->store_len);
	close(fd);
}

static void restore(struct place *p)
{
	const char *path = p->f->url + strlen("sqlite:");
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_int_equal(write(fd, p->store, p->store_len), p->store_len);
	close(fd);
}

/* ---- services ---- */

static int to_json(struct arena *a, const struct value *v, struct text *ret_text)
{
	*ret_text = TEXT("{}");
	return 0;
}

static int start_store(struct place *p, struct engine *e, struct error *error)
{
	const struct engine_opts opts = {.store = p->f->url, .n_readers = N_READERS};

	return engine_open(&opts, &p->f->engine, error);
}

static int start_events(struct place *p, struct engine *e, struct error *error)
{
	const struct events_opts opts = {.store = e->store,
					 .loop = p->stage.loop,
					 .workers = fake_workers(&p->f->fake),
					 .keep = 10};

	return events_start(&opts, &e->events);
}

static int start_memories(struct place *p, struct engine *e, struct error *error)
{
	const struct memories_opts opts = {.store = e->store,
					   .events = e->events,
					   .n_readers = N_READERS,
					   .loop = p->stage.loop,
					   .workers = fake_workers(&p->f->fake),
					   .index_bytes = 1 << 20,
					   .index_folder = p->folder,
					   .index_file_bytes = 1 << 20};

	return memories_start(&opts, &e->memories, error);
}

static int start_chat(struct place *p, struct engine *e, struct error *error)
{
	const struct recall_opts recall = {
		.name = "recall", .budget = 8000, .reserve = 2000, .rank = chat_rank};
	const struct command_opts echo = {
		.name = "echo", .command = "cat", .input = COMMAND_STDIN, .budget = 8000};
	struct agent *agents[2] = {NULL, NULL};
	const struct chat_opts opts = {.store = e->store,
				       .events = e->events,
				       .memories = e->memories,
				       .loop = p->stage.loop,
				       .workers = fake_workers(&p->f->fake),
				       .agents = agents,
				       .n_agents = 2,
				       .agent = "recall",
				       .system = "be brief"};
	int r = command_new(p->stage.loop, &echo, &agents[1], error)
			?: recall_new(p->stage.loop, &recall, &agents[0]);

	if (r == 0)
		return chat_start(&opts, &e->chat, error);
	agent_free(agents[1]);
	return r;
}

static int start_trust(struct place *p, struct engine *e, struct error *error)
{
	return trust_new(e->store, e->events, &e->trust)
		       ?: trust_follow(e->trust, p->stage.loop, fake_workers(&p->f->fake))
		       ?: page_sessions_new(&e->page_sessions);
}

static int start_tasks(struct place *p, struct engine *e, struct error *error)
{
	const char *const program[] = {"/bin/true", NULL};
	const struct task_project projects[] = {{.folder = p->f->dir, .program = program}};
	const struct task_group_limit groups[] = {{.name = "slow", .parallel = 1}};
	const struct tasks_opts opts = {.store = e->store,
					.events = e->events,
					.chat = e->chat,
					.loop = p->stage.loop,
					.workers = fake_workers(&p->f->fake),
					.output_folder = p->folder,
					.wording = &aiwg_task_wording,
					.groups = groups,
					.n_groups = 1,
					.projects = projects,
					.n_projects = 1,
					.keep_ms = 1};

	return tasks_start(&opts, &e->tasks, error);
}

static int start_approvals(struct place *p, struct engine *e, struct error *error)
{
	const struct approval_rule rules[] = {
		{.name = "r", .verdict = VERDICT_DENY, .tool = "Bash*", .comment = "no"}};
	const struct approvals_opts opts = {.store = e->store,
					    .events = e->events,
					    .loop = p->stage.loop,
					    .workers = fake_workers(&p->f->fake),
					    .rules = rules,
					    .n_rules = 1,
					    .keep_ms = 1};

	return approvals_start(&opts, &e->approvals, error);
}

static int start_sessions(struct place *p, struct engine *e, struct error *error)
{
	const struct sessions_opts opts = {.store = e->store,
					   .events = e->events,
					   .chat = e->chat,
					   .approvals = e->approvals,
					   .loop = p->stage.loop,
					   .workers = fake_workers(&p->f->fake),
					   .folder = p->folder,
					   .program = "true",
					   .wording = &hld_session_wording,
					   .to_json = to_json,
					   .silence_ms = 1};

	return sessions_start(&opts, &e->sessions);
}

static int start_programs(struct place *p, struct engine *e, struct error *error)
{
	const struct processes_opts processes = {.loop = p->stage.loop,
						 .approvals = e->approvals,
						 .workers = fake_workers(&p->f->fake),
						 .folder = p->f->dir};
	const struct tools_opts tools = {.loop = p->stage.loop,
					 .workers = fake_workers(&p->f->fake),
					 .memories = e->memories,
					 .approvals = e->approvals,
					 .allowed = (1 << N_TOOLS) - 1,
					 .folder = p->f->dir};
	const struct bridges_opts bridges = {.approvals = e->approvals,
					     .events = e->events,
					     .loop = p->stage.loop,
					     .workers = fake_workers(&p->f->fake)};

	return processes_new(&processes, &e->processes, error) ?: tools_new(&tools, &e->tools, error)
	       ?: bridges_new(&bridges, &e->bridges);
}

static int start_automation(struct place *p, struct engine *e, struct error *error)
{
	const struct automation_opts opts = {.loop = p->stage.loop,
					     .workers = fake_workers(&p->f->fake),
					     .store = e->store,
					     .events = e->events,
					     .tasks = e->tasks,
					     .approvals = e->approvals,
					     .to_json = to_json};
	const struct jobs_opts jobs = {.loop = p->stage.loop,
				       .workers = fake_workers(&p->f->fake),
				       .store = e->store,
				       .events = e->events,
				       .chat = e->chat};
	const struct extracts_opts extracts = {.store = e->store,
					       .chat = e->chat,
					       .memories = e->memories,
					       .loop = p->stage.loop,
					       .workers = fake_workers(&p->f->fake),
					       .agent = "echo",
					       .idle_ms = 1};
	struct jobs_opts with = jobs;
	int r = automation_new(&opts, &e->automation);

	with.automation = e->automation;
	return r ?: jobs_new(&with, &e->jobs) ?: extracts_start(&extracts, &e->extracts, error);
}

static int start_notify(struct place *p, struct engine *e, struct error *error)
{
	const struct notify_opts opts = {.host = "here",
					 .loop = p->stage.loop,
					 .workers = fake_workers(&p->f->fake),
					 .events = e->events,
					 .approvals = e->approvals,
					 .to_json = to_json};
	const struct notify_rule rule = {.name = "n",
					 .on = "approval, task.*",
					 .quiet = "22:00-07:00",
					 .zone = "UTC",
					 .link = "http://x",
					 .per_minute = 3};
	int r = notify_new(&opts, &e->notify);

	return r ?: notify_add(e->notify, &rule, NULL, "trouble", error);
}

static int (*const steps[])(struct place *, struct engine *, struct error *) = {
	start_store,    start_events,     start_memories,  start_chat,
	start_trust,    start_tasks,      start_approvals, start_sessions,
	start_programs, start_automation, start_notify,
};

/* ---- starts ---- */

/* In place of the threads: nothing more is done. */
static void cancel_work(struct place *p)
{
	struct list *first;

	while ((first = list_first(&p->f->works) ?: list_first(&p->f->writes))) {
		list_remove(first);
		work_back(list_entry(first, struct work, link), -ECANCELED);
	}
}

static int start(struct place *p)
{
	struct error error = {0};
	int r = 0;

	p->f->engine = NULL;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && r == 0; i++)
		r = steps[i](p, p->f->engine, &error);
	return r;
}

static void stop(struct place *p)
{
	nomem_stop();
	if (p->f->engine) {
		notify_stop(p->f->engine->notify);
		extracts_stop(p->f->engine->extracts);
	}
	cancel_work(p);
	engine_close(p->f->engine);
	p->f->engine = NULL;
	cancel_work(p);
}

/* Starts until nothing fails any more. How many starts succeeded although something had failed. */
static unsigned start_often(void **state, void (*let_fail)(unsigned n), unsigned *ret_n)
{
	struct place p = {.f = *state};
	bool failed = true;
	unsigned n = 0, n_spared = 0;

	stage_make(&p.stage, NULL);
	p.f->fake = (struct fake_workers) {.submit = fixture_submit, .arg = p.f};
	snprintf(p.folder, sizeof(p.folder), "%s/folder", p.f->dir);
	fill(&p);
	nomem_here_only = true;
	while (failed) {
		int r;

		restore(&p);
		let_fail(++n);
		r = start(&p);
		failed = nomem_failed();
		assert_true(r == 0 || failed);
		n_spared += r == 0 && failed;
		stop(&p);
	}
	timer_free(p.stage.tick);
	loop_free(p.stage.loop);
	free(p.store);
	arena_done(&p.f->arena);
	tempdir_remove(p.f->dir);
	free(p.f);
	*ret_n = n - 1;
	return n_spared;
}

static void fail_allocation(unsigned n)
{
	nomem_fail(n, false);
}

TEST_WITH(start_without_memory_fails_or_succeeds_whole, setup, NULL)
{
	unsigned n, n_spared = start_often(state, fail_allocation, &n);

	print_message("%u allocations, %u of them spared\n", n, n_spared);
	assert_in_range(n_spared, 1, SPARED);
}

/* No service starts with half of what it has stored. */
TEST_WITH(start_fails_if_a_statement_does, setup, NULL)
{
	unsigned n, n_spared = start_often(state, nomem_fail_step, &n);

	print_message("%u steps, %u of them spared\n", n, n_spared);
	assert_true(n > 20);
	assert_int_equal(n_spared, 0);
}
