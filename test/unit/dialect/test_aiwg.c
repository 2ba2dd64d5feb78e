/* aiwg beyond its handlers: what stands in a project's files, and parameters as they may come. */
#include "check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/pack.h"
#include "dialect/aiwg/files.h"
#include "dialect/aiwg/aiwg.h"
#include "dialect/aiwg/config.h"
#include "dialect/aiwg/project.h"
#include "tempdir.h"
#include "wire/json.h"

#define FILE_NAME "/p/.aiwg/daemon.json"

struct fixture {
	struct arena arena;
	struct error error;
	struct aiwg_config config;
	char complaints[8][400];
	unsigned n_complaints;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	arena_init(&f->arena, 64 << 20);
	*state = f;
	return f ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	arena_done(&f->arena);
	free(f);
	return 0;
}

FIXTURE(setup, teardown);

static void complain(void *arg, const char *sentence)
{
	struct fixture *f = arg;

	assert_true(f->n_complaints < 8);
	snprintf(f->complaints[f->n_complaints++], sizeof(f->complaints[0]), "%s", sentence);
}

static int read_config(struct fixture *f, const char *text)
{
	const struct aiwg_config_file file = {.name = FILE_NAME,
					      .text = text_of(text),
					      .project = TEXT("/p"),
					      .max_rules = 256,
					      .complain = complain,
					      .arg = f};

	return aiwg_config_read(&f->arena, &file, &f->config, &f->error);
}

static void assert_text(struct text got, const char *want)
{
	if (!want) {
		assert_null(got.data);
		return;
	}
	assert_int_equal(got.len, strlen(want));
	assert_memory_equal(got.data, want, got.len);
}

/* ---- daemon.json ---- */

TEST(limits_are_read_and_minutes_may_have_fractions)
{
	struct fixture *f = *state;

	assert_int_equal(
		read_config(f, "{\"daemon\":{\"max_parallel_actions\":5,"
			       "\"action_timeout_minutes\":0.5,\"heartbeat_interval_seconds\":10},"
			       "\"supervisor\":{\"max_queue_depth\":20}}"),
		0);
	assert_int_equal(f->config.parallel, 5);
	assert_int_equal(f->config.timeout_ms, 30000);
	assert_int_equal(f->config.heartbeat_ms, 10000);
	assert_int_equal(f->config.queue, 20);
	assert_int_equal(f->n_complaints, 0);
}

TEST(an_empty_object_says_nothing)
{
	struct fixture *f = *state;

	assert_int_equal(read_config(f, "{}"), 0);
	assert_int_equal(f->config.parallel, 0);
	assert_false(f->config.watch);
	assert_false(f->config.schedule);
	assert_int_equal(f->config.n_rules, 0);
}

TEST(a_rule_has_all_that_it_was_given)
{
	struct fixture *f = *state;
	const struct rule *r;

	assert_int_equal(
		read_config(f,
			    "{\n\"rules\":[\n{\"id\":\"r1\",\"trigger\":{\"type\":\"file.modify\","
			    "\"source\":\"watch\",\"pattern\":\"^file\"},\"action\":{\"type\":"
			    "\"agent\",\"prompt\":\"see {{payload.path}}\",\"agent\":\"rev\","
			    "\"priority\":7},\"enabled\":false,\"cooldownMs\":1500,"
			    "\"requiresApproval\":true,\"description\":\"d\",\"conditions\":[{"
			    "\"field\":\"payload.path\",\"operator\":\"matches\",\"value\":\"c$\"}]"
			    "}]}"),
		0);
	assert_int_equal(f->n_complaints, 0);
	assert_int_equal(f->config.n_rules, 1);
	r = &f->config.rules[0];
	assert_text(r->id, "r1");
	assert_text(r->project, "/p");
	assert_text(r->where, FILE_NAME ":3");
	assert_int_equal(r->trigger, TRIGGER_EVENT);
	assert_text(r->type, "file.modify");
	assert_text(r->source, "watch");
	assert_text(r->pattern, "^file");
	assert_int_equal(r->action, ACTION_TASK);
	assert_text(r->prompt, "see {{payload.path}}");
	assert_text(r->agent, "rev");
	assert_true(r->priority == 7);
	assert_true(r->disabled);
	assert_true(r->needs_approval);
	assert_int_equal(r->cooldown_ms, 1500);
	assert_int_equal(r->n_conditions, 1);
	assert_text(r->conditions[0].field, "payload.path");
	assert_text(r->conditions[0].operator, "matches");
	assert_text(value_text(r->conditions[0].value), "c$");
}

TEST(a_rule_hears_the_log_only_where_its_trigger_names_events)
{
	static const struct {
		const char *trigger;
		bool not_logged;
	} rows[] = {
		{"{}", true},
		{"{\"pattern\":\"^task\"}", true},
		{"{\"type\":\"\",\"source\":null}", true},
		{"{\"type\":\"task.completed\"}", false},
		{"{\"source\":\"task\",\"pattern\":\"x\"}", false},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[200];

		snprintf(text, sizeof(text),
			 "{\"rules\":[{\"id\":\"r\",\"trigger\":%s,\"action\":{\"type\":"
			 "\"notify\"}}]}",
			 rows[i].trigger);
		assert_int_equal(read_config(f, text), 0);
		assert_int_equal(f->config.n_rules, 1);
		assert_int_equal(f->config.rules[0].not_logged, rows[i].not_logged);
	}
}

TEST(a_wrong_rule_is_told_with_its_line_and_the_others_load)
{
	struct fixture *f = *state;

	assert_int_equal(
		read_config(f,
			    "{\"rules\":[\n"
			    "{\"trigger\":{},\"action\":{\"type\":\"agent\",\"prompt\":\"p\"}},\n"
			    "{\"id\":\"b\",\"action\":{\"type\":\"agent\",\"prompt\":\"p\"}},\n"
			    "{\"id\":\"c\",\"trigger\":{},\"action\":{\"type\":\"shell\"}},\n"
			    "{\"id\":\"d\",\"trigger\":{},\"action\":{\"type\":\"agent\"}},\n"
			    "7,\n"
			    "{\"id\":\"ok\",\"trigger\":{},\"action\":{\"type\":\"notify\"}}]}"),
		0);
	assert_int_equal(f->config.n_rules, 1);
	assert_text(f->config.rules[0].id, "ok");
	assert_int_equal(f->config.rules[0].action, ACTION_DESKTOP);
	assert_int_equal(f->n_complaints, 5);
	assert_string_equal(f->complaints[0], FILE_NAME ":2: a rule requires an id");
	assert_string_equal(f->complaints[1], FILE_NAME ":3: 'b' requires a trigger (object)");
	assert_string_equal(f->complaints[2],
			    FILE_NAME ":4: 'c' action type must be agent, notify or webhook");
	assert_string_equal(f->complaints[3], FILE_NAME ":5: 'd' requires an action with a prompt");
	assert_string_equal(f->complaints[4], FILE_NAME ":6: a rule requires an id");
}

/* A file with n rules, paths and jobs. */
static void read_many(struct fixture *f, unsigned n)
{
	struct buf text;

	buf_init(&text, 1 << 20);
	buf_add_str(&text, "{\"rules\":[");
	for (unsigned i = 0; i < n; i++)
		buf_printf(&text,
			   "%s\n{\"id\":\"r%u\",\"trigger\":{},\"action\":{\"type\":\"notify\"}}",
			   i > 0 ? "," : "", i);
	buf_add_str(&text, "],\n\"watch\":{\"paths\":[");
	for (unsigned i = 0; i < n; i++)
		buf_printf(&text, "%s\"p%u\"", i > 0 ? "," : "", i);
	buf_add_str(&text, "]},\n\"schedule\":{\"jobs\":[");
	for (unsigned i = 0; i < n; i++)
		buf_printf(&text, "%s{\"id\":\"j%u\",\"cron\":\"* * * * *\"}", i > 0 ? "," : "", i);
	buf_add_str(&text, "]}}");
	buf_add(&text, "", 1);
	assert_int_equal(text.err, 0);
	assert_int_equal(read_config(f, text.data), 0);
	/* What was read points into the text. */
	assert_true(f->config.n_rules == 0 || f->config.rules[0].id.data[0] == 'r');
	buf_done(&text);
}

TEST(the_first_of_too_many_are_used_and_the_rest_is_told)
{
	struct fixture *f = *state;

	read_many(f, 64);
	assert_int_equal(f->n_complaints, 0);
	assert_int_equal(f->config.n_left_out, 0);
	read_many(f, 300);
	assert_int_equal(f->config.n_rules, 256);
	assert_int_equal(f->config.n_left_out, 44);
	assert_int_equal(f->config.n_watched, AIWG_PATHS_MAX);
	assert_int_equal(f->config.n_jobs, AIWG_JOBS_MAX);
	assert_int_equal(f->n_complaints, 3);
	assert_string_equal(f->complaints[0], FILE_NAME
			    ":1: 'rules' has 300 entries; koined uses only the first 256: see "
			    "project.rules in koine.conf");
	assert_string_equal(f->complaints[1], FILE_NAME
			    ":302: 'paths' has 300 entries; koined uses only the first 64");
	assert_string_equal(f->complaints[2], FILE_NAME
			    ":303: 'jobs' has 300 entries; koined uses only the first 256");
}

TEST(paths_to_watch_are_objects_or_texts)
{
	struct fixture *f = *state;
	const struct aiwg_watched *w;

	assert_int_equal(
		read_config(f,
			    "{\"watch\":{\"enabled\":true,\"debounce_ms\":40,\"paths\":[\"src/\","
			    "{\"path\":\"doc\",\"events\":[\"create\",\"delete\"],\"ignore\":"
			    "[\"out\"],\"extensions\":[\".md\"]}]}}"),
		0);
	assert_true(f->config.watch);
	assert_int_equal(f->config.debounce_ms, 40);
	assert_int_equal(f->config.n_watched, 2);
	w = f->config.watched;
	assert_text(w[0].path, "src/");
	assert_int_equal(w[0].changes, CHANGE_ANY);
	assert_int_equal(w[1].changes, CHANGE_CREATE | CHANGE_DELETE);
	assert_text(w[1].ignore[0], "out");
	assert_text(w[1].extensions[0], ".md");
}

TEST(jobs_need_an_id_and_a_time)
{
	struct fixture *f = *state;

	assert_int_equal(
		read_config(f, "{\"schedule\":{\"enabled\":true,\"jobs\":[{\"id\":\"a\",\"cron\":"
			       "\"*/5 * * * *\",\"action\":\"doctor\"},{\"id\":\"b\"}]}}"),
		0);
	assert_true(f->config.schedule);
	assert_int_equal(f->config.n_jobs, 1);
	assert_text(f->config.jobs[0].cron, "*/5 * * * *");
	assert_text(value_text(f->config.jobs[0].action), "doctor");
	assert_int_equal(f->n_complaints, 1);
}

TEST(what_is_no_json_is_refused_with_its_line)
{
	struct fixture *f = *state;

	assert_int_equal(read_config(f, "{\n\"daemon\": {\n\"x\": oops}}"), REFUSE_PARSE);
	assert_non_null(strstr(f->error.text, FILE_NAME ":3: "));
	assert_int_equal(read_config(f, "[1]"), REFUSE_PARAMS);
	assert_non_null(strstr(f->error.text, "must contain a JSON object"));
}

/* ---- tasks.json ---- */

static struct printed_task *import(struct fixture *f, const char *text, unsigned *n)
{
	struct printed_task *tasks = NULL;

	assert_int_equal(
		aiwg_tasks_read(&f->arena, text_of(text), TEXT("/p"), 1000, &tasks, n, &f->error),
		0);
	return tasks;
}

TEST(tasks_come_back_oldest_first_and_none_runs)
{
	struct fixture *f = *state;
	struct value *metadata;
	unsigned n;
	struct printed_task *r = import(
		f,
		"{\"version\":1,\"updatedAt\":\"2026-02-09T10:00:00.000Z\",\"tasks\":["
		"{\"id\":\"task-0002\",\"prompt\":\"c\",\"agent\":null,\"priority\":0,"
		"\"state\":\"running\",\"createdAt\":\"2026-02-09T10:00:02.000Z\",\"startedAt\":"
		"\"2026-02-09T10:00:03.000Z\",\"completedAt\":null,\"pid\":7,\"result\":null,"
		"\"error\":null,\"output\":\"so far\",\"metadata\":{}},"
		"{\"id\":\"task-0000\",\"prompt\":\"a\",\"agent\":\"rev\",\"priority\":3,"
		"\"state\":\"completed\",\"createdAt\":\"2026-02-09T10:00:00.000Z\","
		"\"startedAt\":\"2026-02-09T10:00:01.000Z\",\"completedAt\":"
		"\"2026-02-09T10:00:02.000Z\",\"result\":\"done\",\"error\":null,"
		"\"output\":\"done\",\"metadata\":"
		"{\"source\":\"ipc-chat\"}},"
		"{\"id\":\"task-0001\",\"prompt\":\"b\",\"state\":\"queued\",\"output\":\"no\","
		"\"createdAt\":"
		"\"2026-02-09T10:00:01.000Z\"},"
		"{\"prompt\":\"no id\",\"state\":\"queued\"},"
		"{\"id\":\"task-0009\",\"prompt\":\"x\",\"state\":\"odd\"}]}",
		&n);

	assert_int_equal(n, 3);
	assert_text(r[0].task.id, "task-0000");
	assert_int_equal(r[0].task.state, TASK_COMPLETED);
	assert_text(r[0].task.agent, "rev");
	assert_text(r[0].task.result, "done");
	assert_text(r[0].output, "done");
	assert_true(r[0].task.priority == 3);
	assert_int_equal(value_unpack(&f->arena, r[0].task.metadata.bytes, &metadata), 0);
	assert_text(value_text(value_find(metadata, "source")), "ipc-chat");
	assert_text(r[1].task.id, "task-0001");
	assert_int_equal(r[1].task.state, TASK_QUEUED);
	assert_int_equal(r[1].task.completed_ms, 0);
	assert_text(r[1].output, NULL);
	assert_int_equal(r[2].task.state, TASK_FAILED);
	assert_text(r[2].task.error, "daemon restarted");
	assert_true(r[2].task.completed_ms > 0);
	assert_text(r[2].output, "so far");
}

TEST(a_queued_task_whose_prompt_cannot_be_used_has_failed)
{
	struct fixture *f = *state;
	unsigned n;
	struct printed_task *r =
		import(f,
		       "{\"tasks\":[{\"id\":\"a\",\"state\":\"queued\",\"prompt\":\"x\\u0000\"},"
		       "{\"id\":\"b\",\"state\":\"queued\",\"prompt\":5}]}",
		       &n);

	assert_int_equal(n, 2);
	assert_int_equal(r[0].task.state, TASK_FAILED);
	assert_int_equal(r[1].task.state, TASK_QUEUED);
	assert_text(r[1].task.prompt, "5");
}

TEST(what_holds_no_tasks_is_refused)
{
	static const char *const texts[] = {"", "{", "[]", "{\"tasks\":{}}", "null"};
	struct fixture *f = *state;
	struct printed_task *tasks;
	unsigned n;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_true(aiwg_tasks_read(&f->arena, text_of(texts[i]), TEXT("/p"), 0, &tasks, &n,
					    &f->error) > 0);
}

/* ---- parameters ---- */

static int limit_of(struct fixture *f, const char *json, int64_t *ret)
{
	struct value *v;

	assert_int_equal(
		json_read(&f->arena, json, strlen(json), &json_default_limits, &v, &f->error), 0);
	return aiwg_read_limit(v, ret, &f->error);
}

TEST(limits_come_as_numbers_or_digits)
{
	static const struct {
		const char *json;
		int64_t want;
	} cases[] = {
		{"5", 5},       {"\"5\"", 5},    {"0", 0},         {"null", 0},
		{"\"\"", 0},    {"false", 0},    {"2.7", 2},       {"1000", 1000},
		{"1001", 1000}, {"1e300", 1000}, {"\"1e2\"", 100},
	};
	struct fixture *f = *state;
	int64_t got;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(limit_of(f, cases[i].json, &got), 0);
		assert_int_equal(got, cases[i].want);
	}
	assert_int_equal(aiwg_read_limit(NULL, &got, &f->error), 0);
	assert_int_equal(got, 0);
}

TEST(limits_that_are_none_are_refused)
{
	static const char *const cases[] = {"-1",   "\"-1\"", "\"five\"", "\"0x10\"",
					    "true", "[5]",    "{}",       "\"inf\""};
	struct fixture *f = *state;
	int64_t got;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(limit_of(f, cases[i], &got), REFUSE_PARAMS);
}

/* ---- files ---- */

TEST(json_is_indented_as_the_original_does)
{
	static const char plain[] =
		"{\"a\":[1,{\"b\":\"x{,:\\\"]\"}],\"c\":{},\"d\":[],\"e\":null}";
	static const char want[] = "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x{,:\\\"]\"\n    "
				   "}\n  ],\n  \"c\": {},\n  \"d\": [],\n  \"e\": null\n}";
	struct buf out;

	buf_init(&out, 4096);
	project_indent(text_of(plain), &out);
	buf_add_char(&out, '\0');
	assert_string_equal(out.data, want);
	buf_done(&out);
}

TEST(the_pid_is_removed_only_while_it_is_ours)
{
	char dir[TEMPDIR_MAX];
	char path[TEMPDIR_MAX + 64];
	char want[32];
	struct buf text;
	struct stat st;

	tempdir_make(dir);
	snprintf(path, sizeof(path), "%s/.aiwg", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/%s", dir, PROJECT_PID);
	assert_int_equal(project_pid_write(dir), 0);
	buf_init(&text, 100);
	assert_int_equal(project_file_read(dir, PROJECT_PID, &text), 0);
	snprintf(want, sizeof(want), "%d", (int)getpid());
	assert_int_equal(text.len, strlen(want));
	assert_memory_equal(text.data, want, text.len);
	project_pid_remove(dir);
	assert_int_equal(stat(path, &st), -1);
	assert_int_equal(project_file_write(dir, PROJECT_PID, TEXT("1")), 0);
	project_pid_remove(dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	buf_done(&text);
	tempdir_remove(dir);
}

/* A project may come from anywhere. */
TEST(a_link_in_the_way_is_replaced_not_followed)
{
	char dir[TEMPDIR_MAX];
	char victim[TEMPDIR_MAX + 64];
	char link_path[TEMPDIR_MAX + 64];
	struct stat st;
	FILE *file;

	tempdir_make(dir);
	snprintf(victim, sizeof(victim), "%s/.aiwg", dir);
	assert_int_equal(mkdir(victim, 0700), 0);
	snprintf(victim, sizeof(victim), "%s/victim", dir);
	file = fopen(victim, "w");
	assert_non_null(file);
	fputs("precious", file);
	fclose(file);
	snprintf(link_path, sizeof(link_path), "%s/%s", dir, PROJECT_PID);
	assert_int_equal(symlink(victim, link_path), 0);
	snprintf(link_path, sizeof(link_path), "%s/%s.tmp", dir, PROJECT_PID);
	assert_int_equal(symlink(victim, link_path), 0);
	assert_int_equal(project_pid_write(dir), 0);
	assert_int_equal(stat(victim, &st), 0);
	assert_int_equal(st.st_size, 8);
	tempdir_remove(dir);
}

TEST(a_log_is_private_and_moved_aside_when_it_is_full)
{
	char dir[TEMPDIR_MAX];
	char path[TEMPDIR_MAX + 64];
	struct buf text;
	struct stat st;

	tempdir_make(dir);
	for (const char *const *part = (const char *const[]) {"/.aiwg", "/.aiwg/daemon", NULL};
	     *part; part++) {
		snprintf(path, sizeof(path), "%s%s", dir, *part);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	snprintf(path, sizeof(path), "%s/%s", dir, PROJECT_LOG);
	assert_int_equal(project_file_append(dir, PROJECT_LOG, TEXT("one\n"), 8), 0);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(project_file_append(dir, PROJECT_LOG, TEXT("two\n"), 8), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(st.st_size, 8);
	assert_int_equal(project_file_append(dir, PROJECT_LOG, TEXT("three\n"), 8), 0);
	buf_init(&text, 100);
	assert_int_equal(project_file_read(dir, PROJECT_LOG, &text), 0);
	assert_int_equal(project_file_read(dir, PROJECT_LOG ".1", &text), 0);
	assert_int_equal(text.len, 14);
	assert_memory_equal(text.data, "three\none\ntwo\n", 14);
	buf_done(&text);
	tempdir_remove(dir);
}

TEST(a_log_that_is_another_file_too_is_left_alone)
{
	char dir[TEMPDIR_MAX];
	char victim[TEMPDIR_MAX + 64];
	char path[TEMPDIR_MAX + 64];
	struct stat st;

	tempdir_make(dir);
	snprintf(path, sizeof(path), "%s/.aiwg", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(project_file_write(dir, PROJECT_PID, TEXT("precious")), 0);
	snprintf(victim, sizeof(victim), "%s/%s", dir, PROJECT_PID);
	snprintf(path, sizeof(path), "%s/.aiwg/log", dir);
	assert_int_equal(link(victim, path), 0);
	assert_int_equal(project_file_append(dir, ".aiwg/log", TEXT("x"), 100), -EPERM);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(victim, path), 0);
	assert_int_equal(project_file_append(dir, ".aiwg/log", TEXT("x"), 100), -ELOOP);
	assert_int_equal(stat(victim, &st), 0);
	assert_int_equal(st.st_size, 8);
	tempdir_remove(dir);
}
