/* The editors of koine connect: what they change, what they leave, what they refuse. */
#include "check.h"

#include "cli/connect/edit.h"
#include "cli/connect/json_file.h"
#include "cli/connect/toml_file.h"
#include "cli/kit/value.h"
#include "connect_files.h"

#define SERVER "{\"command\":\"/usr/bin/koine\",\"args\":[\"mcp\"]}"
#define HOOK                                                                                       \
	"{\"matcher\":\"*\",\"hooks\":[{\"command\":\"/usr/bin/koine hook --timeout "              \
	"590\",\"timeout\":600}]}"

static const struct edit member = {EDIT_MEMBER, "mcpServers/koine", SERVER};
static const struct edit element = {EDIT_ELEMENT, "hooks/PermissionRequest", HOOK};
static const struct edit both[] = {{EDIT_MEMBER, "mcpServers/koine", SERVER},
				   {EDIT_ELEMENT, "hooks/PermissionRequest", HOOK}};
static const struct edit table[] = {{EDIT_MEMBER, "mcp_servers/koine", SERVER}};

/* In memory of exactly its size, so that one byte too far is seen. */
static char *exact(struct text t)
{
	char *copy = malloc(t.len > 0 ? t.len : 1);

	assert_non_null(copy);
	memcpy(copy, t.data, t.len);
	return copy;
}

static void expect_put(const struct editor *by, const struct edit *e, struct text file,
		       struct text want)
{
	struct error error = {0};
	struct buf out;
	char *text = exact(file);

	file.data = text;
	buf_init(&out, 1 << 20);
	if (edit_put(by, file, e, 1, &out, &error) != 0)
		fail_msg("%s: %.*s", error.text, TEXT_ARGS(file));
	if (!text_equal(buf_text(&out), want))
		fail_msg("%.*s\nbecame\n%.*s\nnot\n%.*s", TEXT_ARGS(file),
			 TEXT_ARGS(buf_text(&out)), TEXT_ARGS(want));
	buf_done(&out);
	free(text);
}

static void expect_refused(const struct editor *by, const struct edit *e, struct text file,
			   const char *words)
{
	struct error error = {0};
	struct buf out;

	buf_init(&out, 1 << 20);
	if (edit_put(by, file, e, 1, &out, &error) <= 0)
		fail_msg("taken: %.*s", TEXT_ARGS(file));
	if (!strstr(error.text, words))
		fail_msg("%.*s: \"%s\" lacks \"%s\"", TEXT_ARGS(file), error.text, words);
	buf_done(&out);
}

/* ---- what it looks like ---- */

static const struct edit small = {EDIT_MEMBER, "a/b", "{\"x\":1}"};
static const struct edit word = {EDIT_ELEMENT, "p/allow", "\"w\""};

TEST(new_text_follows_the_file)
{
	expect_put(&json_editor, &small, TEXT(""),
		   TEXT("{\n  \"a\": {\n    \"b\": {\n      \"x\": 1\n    }\n  }\n}\n"));
	expect_put(&json_editor, &small, TEXT("{\"z\":[]}"),
		   TEXT("{\"z\":[], \"a\": {\"b\": {\"x\": 1}}}"));
	expect_put(&json_editor, &small, TEXT("{\r\n\t\"z\": 1\r\n}"),
		   TEXT("{\r\n\t\"z\": 1,\r\n\t\"a\": {\r\n\t\t\"b\": {\r\n\t\t\t\"x\": "
			"1\r\n\t\t}\r\n\t}\r\n}"));
	expect_put(&json_editor, &word,
		   TEXT("{\n    \"p\": {\n        \"allow\": [\"v\"]\n    }\n}\n"),
		   TEXT("{\n    \"p\": {\n        \"allow\": [\"v\", \"w\"]\n    }\n}\n"));
	expect_put(&json_editor, &word, TEXT("{\n  \"p\": {}\n}\n"),
		   TEXT("{\n  \"p\": {\n    \"allow\": [\n      \"w\"\n    ]\n  }\n}\n"));
}

TEST(comments_stay_where_they_belong)
{
	expect_put(
		&jsonc_editor, &word,
		TEXT("{\n  \"p\": {\"allow\": [\n    \"v\" // of v\n  ]} // of p\n}"),
		TEXT("{\n  \"p\": {\"allow\": [\n    \"v\", // of v\n    \"w\"\n  ]} // of p\n}"));
	expect_put(&jsonc_editor, &word,
		   TEXT("{\n  \"p\": {\"allow\": [\n    \"v\", /* of\n v */\n    // end\n  ]},\n}"),
		   TEXT("{\n  \"p\": {\"allow\": [\n    \"v\", /* of\n v */\n    \"w\",\n    // "
			"end\n  ]},\n}"));
	expect_put(&jsonc_editor, &word, TEXT("{\"p\": {\"allow\": [ // none\n]}}"),
		   TEXT("{\"p\": {\"allow\": [ // none\n  \"w\"\n]}}"));
	expect_put(&jsonc_editor, &word, TEXT("//"),
		   TEXT("//\n{\n  \"p\": {\n    \"allow\": [\n      \"w\"\n    ]\n  }\n}\n"));
	expect_put(
		&jsonc_editor, &word, TEXT("// nothing"),
		TEXT("// nothing\n{\n  \"p\": {\n    \"allow\": [\n      \"w\"\n    ]\n  }\n}\n"));
}

TEST(what_is_there_is_left_alone)
{
	static const char *const files[] = {
		"{\"p\":{\"allow\":[\"w\"]}}",
		"{\"p\" : { \"allow\":[ 1,\"\\u0077\" ,2]}}",
	};

	for (size_t i = 0; i < 2; i++)
		expect_put(&json_editor, &word, text_of(files[i]), text_of(files[i]));
	/* What somebody has added to ours stays, too. */
	expect_put(&json_editor, &member,
		   TEXT("{\"mcpServers\":{\"koine\":{\"env\":{\"A\":\"1\"},\"args\":[ \"mcp\" "
			"],\"command\":\"/usr/bin/koine\"}}}"),
		   TEXT("{\"mcpServers\":{\"koine\":{\"env\":{\"A\":\"1\"},\"args\":[ \"mcp\" "
			"],\"command\":\"/usr/bin/koine\"}}}"));
	expect_put(&json_editor, &element,
		   TEXT("{\"hooks\":{\"PermissionRequest\":[{\"hooks\":[{\"command\":\"other\"},{"
			"\"command\":\"koine hook\"}]}]}}"),
		   TEXT("{\"hooks\":{\"PermissionRequest\":[{\"hooks\":[{\"command\":\"other\"},{"
			"\"command\":\"koine hook\"}]}]}}"));
}

TEST(what_is_ours_is_brought_up_to_date)
{
	expect_put(&json_editor, &member,
		   TEXT("{\"mcpServers\":{\"koine\":{\"command\":\"/old/koine\",\"env\":{}}}}"),
		   TEXT("{\"mcpServers\":{\"koine\":{\"command\":\"/usr/bin/koine\",\"env\":{}, "
			"\"args\": [\"mcp\"]}}}"));
	expect_put(&json_editor, &element,
		   TEXT("{\"hooks\":{\"PermissionRequest\":[{\"hooks\":[{\"command\":\"'/a "
			"b/koine' hook\"}]}]}}"),
		   TEXT("{\"hooks\":{\"PermissionRequest\":[{\"matcher\": \"*\", \"hooks\": "
			"[{\"command\": \"/usr/bin/koine hook --timeout 590\", \"timeout\": "
			"600}]}]}}"));
	expect_put(&toml_editor, table,
		   TEXT("[mcp_servers.koine] # mine\ncommand = '/old/koine' # it\n\n[z]\n"),
		   TEXT("[mcp_servers.koine] # mine\ncommand = \"/usr/bin/koine\" # it\nargs = "
			"[\"mcp\"]\n\n[z]\n"));
}

TEST(tables_are_added_at_the_end)
{
	expect_put(&toml_editor, table, TEXT(""),
		   TEXT("[mcp_servers.koine]\ncommand = \"/usr/bin/koine\"\nargs = [\"mcp\"]\n"));
	expect_put(&toml_editor, table, TEXT("a=1"),
		   TEXT("a=1\n\n[mcp_servers.koine]\ncommand = \"/usr/bin/koine\"\nargs = "
			"[\"mcp\"]\n"));
	expect_put(&toml_editor, table, TEXT("a = 1\r\n[b]"),
		   TEXT("a = 1\r\n[b]\r\n\r\n[mcp_servers.koine]\r\ncommand = "
			"\"/usr/bin/koine\"\r\nargs = [\"mcp\"]\r\n"));
	expect_put(&toml_editor, table, TEXT("x = \"\"\"\n[mcp_servers.koine]\n\"\"\"\n"),
		   TEXT("x = \"\"\"\n[mcp_servers.koine]\n\"\"\"\n\n[mcp_servers.koine]\ncommand = "
			"\"/usr/bin/koine\"\nargs = [\"mcp\"]\n"));
}

/* ---- what is refused ---- */

TEST(broken_json_is_refused_by_its_line)
{
	expect_refused(&json_editor, &member, TEXT("{\n\"a\": }"), "line 2: invalid JSON");
	expect_refused(&json_editor, &member, TEXT("{"), "line 1: invalid JSON");
	expect_refused(&json_editor, &member, TEXT("{}\n{}"), "line 2: invalid JSON");
	expect_refused(&json_editor, &member, TEXT("{\n// c\n}"), "line 2: invalid JSON");
	expect_refused(&json_editor, &member, TEXT("{\"a\":1,}"), "line 1: invalid JSON");
	expect_refused(&json_editor, &member, TEXT("{\"a\":\"\xff\"}"), "invalid JSON");
	expect_refused(&json_editor, &member, TEXT("{\"a\":\"\0\"}"), "invalid JSON");
	expect_refused(&jsonc_editor, &member, TEXT("{ /* }"), "line 1: invalid JSON");
	expect_refused(&jsonc_editor, &member, TEXT("{\n,}"), "line 2: invalid JSON");
	expect_refused(&jsonc_editor, &member, TEXT("{\"a\":1\n,,}"), "line 2: invalid JSON");
	expect_refused(&jsonc_editor, &member, TEXT("{\"a\":,}"), "line 1: invalid JSON");
}

TEST(a_place_that_is_taken_is_refused)
{
	expect_refused(&json_editor, &member, TEXT("[]"), "line 1: the file is not an object");
	expect_refused(&json_editor, &member, TEXT("{\n\n\"mcpServers\": \"x\"}"),
		       "line 3: mcpServers is not an object");
	expect_refused(&json_editor, &member,
		       TEXT("{\"mcpServers\":{\n\"koine\":{\"command\":\"x\"}}}"),
		       "line 2: mcpServers.koine already has a different value");
	expect_refused(&json_editor, &member, TEXT("{\"mcpServers\":{\"koine\":null}}"),
		       "mcpServers.koine already has a different value");
	expect_refused(&json_editor, &element, TEXT("{\"hooks\":{\"PermissionRequest\":{}}}"),
		       "hooks.PermissionRequest is not a list");
	expect_refused(&json_editor, &member, TEXT("{\"mcpServers\":{},\n\"mcpServers\":{}}"),
		       "line 2: duplicate key \"mcpServers\"");
	expect_refused(&json_editor, &member,
		       TEXT("{\"mcpServers\":{\"koine\":1,\"\\u006boine\":1}}"), "duplicate key");
}

TEST(broken_or_taken_toml_is_refused)
{
	static const struct {
		const char *file, *words;
	} rows[] = {
		{"a = \"", "line 1: invalid TOML"},
		{"a = 1\nb", "line 2: invalid TOML"},
		{"a = 1 2", "line 1: invalid TOML"},
		{"[a", "line 1: invalid TOML"},
		{"[a]]\n", "line 1: invalid TOML"},
		{"a = [1, \n", "invalid TOML"},
		{"a = { b = 1, }", "invalid TOML"},
		{"a = '''\n", "invalid TOML"},
		{"= 1", "line 1: invalid TOML"},
		{"a = \xff", "not UTF-8"},
		{"mcp_servers = 1", "line 1: mcp_servers.koine has a different value"},
		{"\nmcp_servers = { koine = { command = \"koine\" } }",
		 "line 2: mcp_servers.koine has a different value"},
		{"[mcp_servers]\nkoine.command = \"koine\"",
		 "line 2: mcp_servers.koine has dotted keys, which koine cannot edit"},
		{"mcp_servers.koine.command = \"koine\"",
		 "line 1: mcp_servers.koine has dotted keys, which koine cannot edit"},
		{"[[mcp_servers]]\n",
		 "line 1: mcp_servers.koine is in an array of tables, which koine cannot edit"},
		{"[[mcp_servers.koine]]\n", "is in an array of tables, which koine cannot edit"},
		{"[mcp_servers.koine]\ncommand=\"koine\"\n[mcp_servers.\"koine\"]\n",
		 "line 3: mcp_servers.koine is a duplicate"},
		{"[mcp_servers.koine]\ncommand = \"x\"\n",
		 "line 1: mcp_servers.koine already has a different value"},
		{"[mcp_servers.koine]\n",
		 "line 1: mcp_servers.koine already has a different value"},
		{"[mcp_servers.koine]\ncommand=\"koine\"\ncommand=\"koine\"\n",
		 "line 3: mcp_servers.koine has two command keys"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect_refused(&toml_editor, table, text_of(rows[i].file), rows[i].words);
}

/* ---- taking out ---- */

static void expect_taken(const struct editor *by, const struct edit *e, const char *file,
			 const char *before, const char *want)
{
	struct error error = {0};
	struct buf out;

	buf_init(&out, 1 << 20);
	if (edit_take(by, text_of(file), text_of(before), e, 1, &out, &error) != 0)
		fail_msg("%s: %s", error.text, file);
	if (!text_equal(buf_text(&out), text_of(want)))
		fail_msg("%s\nbecame\n%.*s\nnot\n%s", file, TEXT_ARGS(buf_text(&out)), want);
	buf_done(&out);
}

TEST(only_what_was_put_in_is_taken)
{
	expect_taken(&json_editor, &word, "{\"p\":{\"allow\":[\"w\"]},\"q\":1}", "", "{\"q\":1}");
	expect_taken(&json_editor, &word, "{\"p\":{\"allow\":[\"w\"]}}", "{\"p\":{}}",
		     "{\"p\":{}}");
	expect_taken(&json_editor, &word, "{\"p\":{\"allow\":[\"v\", \"w\", 1]}}", "",
		     "{\"p\":{\"allow\":[\"v\", 1]}}");
	expect_taken(&json_editor, &word, "{ \"p\": { } }", "", "{ \"p\": { } }");
	expect_taken(&json_editor, &member, "{\"mcpServers\":{\"koine\":{\"command\":\"mine\"}}}",
		     "", "{\"mcpServers\":{\"koine\":{\"command\":\"mine\"}}}");
	expect_taken(&json_editor, &member,
		     "{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"koine\": {\"command\": "
		     "\"/moved/koine\"}\n  }\n}\n",
		     "{\n  \"a\": 1\n}\n", "{\n  \"a\": 1\n}\n");
	expect_taken(&jsonc_editor, &word, "{\"p\":{\"allow\":[\n  \"v\", // of v\n  \"w\"]}}",
		     "{\"p\":{\"allow\":[]}}", "{\"p\":{\"allow\":[\n  \"v\" // of v\n  ]}}");
	expect_taken(&toml_editor, table,
		     "a = 1\n\n[mcp_servers.koine]\ncommand = \"koine\"\nx = 1\n# of "
		     "b\n[b]\n[mcp_servers.koine.env]\nA = \"1\"\n",
		     "", "a = 1\n# of b\n[b]\n");
	expect_taken(&toml_editor, table, "[mcp_servers.koine]\ncommand = \"mine\"\n", "",
		     "[mcp_servers.koine]\ncommand = \"mine\"\n");
}

TEST(tables_of_others_are_not_put_back_twice)
{
	expect_taken(&toml_editor, table,
		     "[mcp_servers.koine]\ncommand = \"/new/koine\"\n[x]\na = 1\n"
		     "[mcp_servers.koine.env]\nA = 1\n[new]\n",
		     "[mcp_servers.koine]\ncommand = 'koine'\n[x]\na = 1\n"
		     "[mcp_servers.koine.env]\nA = 1\n",
		     "[mcp_servers.koine]\ncommand = 'koine'\n[mcp_servers.koine.env]\nA = 1\n"
		     "[x]\na = 1\n[new]\n");
}

TEST(a_table_at_the_end_of_a_file_is_put_back_before_another)
{
	expect_taken(&toml_editor, table,
		     "[mcp_servers.koine]\ncommand = \"/new/koine\"\n[new]\na = 1\n",
		     "[mcp_servers.koine]\ncommand = 'koine'",
		     "[mcp_servers.koine]\ncommand = 'koine'\n[new]\na = 1\n");
}

TEST(a_group_with_another_hook_is_not_taken)
{
	struct text file = TEXT("{\"hooks\":{\"PermissionRequest\":[\n{\"hooks\":[{\"command\":"
				"\"other\"},{\"command\":\"koine hook\"}]}]}}");
	struct error error = {0};
	struct buf out;

	buf_init(&out, 1 << 20);
	assert_true(edit_take(&json_editor, file, TEXT(""), &element, 1, &out, &error) > 0);
	assert_non_null(
		strstr(error.text,
		       "line 2: hooks.PermissionRequest contains koine's hook and another hook"));
	buf_done(&out);
}

/* ---- any file ---- */

struct trial {
	const struct editor *by;
	const struct edit *edits;
	unsigned n;
	enum made_kind kind;
};

static const struct trial trials[] = {
	{&json_editor, both, 2, MADE_JSON},
	{&jsonc_editor, both, 2, MADE_JSONC},
	{&toml_editor, table, 1, MADE_TOML},
};

/* Every byte of the old text is in the new one, in order. */
static bool is_within(struct text old, struct text new)
{
	size_t at = 0;

	for (size_t i = 0; i < new.len &&at < old.len; i++)
		at += new.data[i] == old.data[at];
	return at == old.len;
}

static void check_values(const struct trial *t, struct text file)
{
	struct json_file f;
	const struct koine_value *v;
	struct koine_doc *want = NULL;

	if (t->kind == MADE_TOML)
		return;
	assert_int_equal(json_file_open(&f, file, t->kind == MADE_JSONC, NULL), 0);
	assert_int_equal(koine_doc_parse(SERVER, strlen(SERVER), &want, NULL, 0), 0);
	v = koine_value_get(koine_value_get(f.root, "mcpServers"), "koine");
	assert_true(json_value_equal(v, koine_doc_root(want)));
	koine_doc_free(want);
	assert_int_equal(koine_doc_parse(HOOK, strlen(HOOK), &want, NULL, 0), 0);
	v = koine_value_first(
		koine_value_get(koine_value_get(f.root, "hooks"), "PermissionRequest"));
	while (v && !json_value_equal(v, koine_doc_root(want)))
		v = koine_value_next(v);
	assert_non_null(v);
	koine_doc_free(want);
	json_file_close(&f);
}

/* Somebody adds something at the begin. False: nothing can be added in the same way to both. */
static bool add_around(const struct trial *t, struct text file, struct buf *out)
{
	bool has_mark = file.len >= 3 && file.data[0] == '\xef';
	struct splice s = {.at = has_mark ? 3 : 0, .added = TEXT("# mine\nmine = 1\n")};
	struct json_file f;
	bool is_empty;

	buf_clear(out);
	if (t->kind == MADE_TOML)
		return edit_splice(file, &s, 1, out) == 0;
	assert_int_equal(json_file_open(&f, file, t->kind == MADE_JSONC, NULL), 0);
	s.at = f.span.start + 1;
	s.added = TEXT("\"mine\" : 1 ,");
	is_empty = koine_value_count(f.root) == 0;
	json_file_close(&f);
	return !is_empty && edit_splice(file, &s, 1, out) == 0;
}

static void try_file(const struct trial *t, uint64_t seed)
{
	struct buf out, again, other, want;
	struct error error = {0};
	struct made m;
	struct text file;

	made_file(&m, t->kind, seed);
	buf_init(&out, 1 << 20);
	buf_init(&again, 1 << 20);
	buf_init(&other, 1 << 20);
	buf_init(&want, 1 << 20);
	file = buf_text(&m.out);
	if (edit_put(t->by, file, t->edits, t->n, &out, &error) != 0)
		fail_msg("seed %llu: %s\n%.*s", (unsigned long long)seed, error.text,
			 TEXT_ARGS(file));
	if (!is_within(file, buf_text(&out)))
		fail_msg("seed %llu: bytes are lost\n%.*s\n--\n%.*s", (unsigned long long)seed,
			 TEXT_ARGS(file), TEXT_ARGS(buf_text(&out)));
	check_values(t, buf_text(&out));
	assert_int_equal(edit_put(t->by, buf_text(&out), t->edits, t->n, &again, &error), 0);
	assert_true(text_equal(buf_text(&again), buf_text(&out)));
	assert_int_equal(edit_take(t->by, buf_text(&out), file, t->edits, t->n, &again, &error), 0);
	assert_true(text_equal(buf_text(&again), file));
	/* And where it was changed meanwhile. */
	if (add_around(t, file, &want) && add_around(t, buf_text(&out), &other)) {
		if (edit_take(t->by, buf_text(&other), file, t->edits, t->n, &again, &error) != 0)
			fail_msg("seed %llu: %s", (unsigned long long)seed, error.text);
		if (!text_equal(buf_text(&again), buf_text(&want)))
			fail_msg("seed %llu: %.*s\nbecame\n%.*s\nnot\n%.*s",
				 (unsigned long long)seed, TEXT_ARGS(buf_text(&other)),
				 TEXT_ARGS(buf_text(&again)), TEXT_ARGS(buf_text(&want)));
	}
	buf_done(&m.out);
	buf_done(&out);
	buf_done(&again);
	buf_done(&other);
	buf_done(&want);
}

TEST(every_other_byte_stays_in_any_file)
{
	for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
		for (uint64_t seed = 1; seed <= (uint64_t)rounds(500, 3000); seed++)
			try_file(&trials[i], seed);
	}
}
