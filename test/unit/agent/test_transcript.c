/* What a coding agent prints, cut at every place. */
#include "check.h"

#include <errno.h>

#include "../transcript_feed.h"

#define ASSISTANT(content) "{\"type\":\"assistant\",\"message\":{\"content\":" content "}}\n"
#define USER(content)      "{\"type\":\"user\",\"message\":{\"content\":" content "}}\n"
#define REPLACED           "\xef\xbf\xbd"

struct vector {
	const char *in;
	const char *out;
};

static const struct vector vectors[] = {
	/* the beginning, and other lines of the system */
	{"{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s-1\",\"model\":\"opus\","
	 "\"tools\":[\"Bash\"],\"mcp_servers\":[{\"name\":\"a\",\"status\":\"connected\"}]}\n",
	 "system session=s-1 model=opus role=system subtype=init\n"},
	{"{\"type\":\"system\",\"subtype\":\"note\",\"content\":\"Compacted\"}\n",
	 "system role=system subtype=note text=Compacted\n"},
	{"{\"type\":\"system\"}\n", "system role=system\n"},
	/* messages */
	{"{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"model\":"
	 "\"opus\","
	 "\"content\":[{\"type\":\"text\",\"text\":\"Hi\"}],\"usage\":{}},\"session_id\":\"s-1\"}"
	 "\n",
	 "text session=s-1 model=opus role=assistant text=Hi\n"},
	{ASSISTANT("\"a string\""), "text role=assistant text=a string\n"},
	{USER("\"a string\""), "text role=user text=a string\n"},
	{"{\"type\":\"user\",\"message\":{\"role\":\"system\",\"content\":\"x\"}}\n",
	 "text role=system text=x\n"},
	{ASSISTANT("[{\"type\":\"text\",\"text\":\"one\"},{\"type\":\"tool_use\",\"id\":\"t1\","
		   "\"name\":\"Bash\",\"input\":{\"command\":\"ls -l\"}},"
		   "{\"type\":\"text\",\"text\":\"two\"}]"),
	 "text role=assistant text=one\n"
	 "call role=assistant id=t1 name=Bash input={\"command\":\"ls -l\"}\n"
	 "text role=assistant text=two\n"},
	{ASSISTANT("[{\"type\":\"text\",\"text\":\"a\\nb \\u00e4 \\ud83d\\ude00\"}]"),
	 "text role=assistant text=a\nb \xc3\xa4 \xf0\x9f\x98\x80\n"},
	{ASSISTANT("\"\""), ""},
	{ASSISTANT("[]"), ""},
	{ASSISTANT("[{\"type\":\"text\",\"text\":\"\"}]"), ""},
	/* an agent below is an agent */
	{"{\"type\":\"assistant\",\"message\":{\"content\":\"below\"},\"parent_tool_use_id\":\"t\"}"
	 "\n",
	 "text role=assistant text=below\n"},
	/* calls */
	{ASSISTANT("[{\"type\":\"tool_use\",\"name\":\"Now\"}]"),
	 "call role=assistant name=Now input={}\n"},
	{ASSISTANT("[{\"type\":\"tool_use\",\"name\":\"Now\",\"input\":[1]}]"),
	 "raw role=assistant text={\"type\":\"tool_use\",\"name\":\"Now\",\"input\":[1]}\n"},
	/* their results */
	{USER("[{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":\"done\"}]"),
	 "result role=user text=done id=t1\n"},
	{USER("[{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":\"no\","
	      "\"is_error\":true}]"),
	 "result role=user text=no id=t1 failed\n"},
	{USER("[{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":["
	      "{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image\",\"source\":{}},"
	      "{\"type\":\"text\",\"text\":\"b\"},\"c\",{},5]}]"),
	 "result role=user text=a\n[image]\nb\nc\n[unknown]\n[unknown] id=t1\n"},
	{USER("[{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":[]}]"),
	 "result role=user text= id=t1\n"},
	{USER("[{\"type\":\"tool_result\",\"tool_use_id\":\"t1\"}]"),
	 "result role=user text= id=t1\n"},
	{USER("[{\"type\":\"tool_result\",\"content\":{\"a\":1}}]"),
	 "result role=user text={\"a\":1}\n"},
	/* blocks that are not known, among those that are */
	{ASSISTANT("[{\"type\":\"wondering\",\"x\":\"Hm\"},{\"type\":\"text\",\"text\":\"x\"}"
		   ",7]"),
	 "raw role=assistant text={\"type\":\"wondering\",\"x\":\"Hm\"}\n"
	 "text role=assistant text=x\n"
	 "raw role=assistant text=7\n"},
	/* what it thinks, unless that is hidden */
	{ASSISTANT("[{\"type\":\"thinking\",\"thinking\":\"Hm\",\"signature\":\"s\"},"
		   "{\"type\":\"thinking\",\"thinking\":\"\"},"
		   "{\"type\":\"redacted_thinking\",\"data\":\"d\"}]"),
	 "thinking role=assistant text=Hm\n"
	 "raw role=assistant text={\"type\":\"redacted_thinking\",\"data\":\"d\"}\n"},
	/* the end */
	{"{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"duration_ms\":1200,"
	 "\"num_turns\":3,\"result\":\"All done\",\"session_id\":\"s-1\",\"total_cost_usd\":0.25,"
	 "\"usage\":{\"input_tokens\":10,\"cache_read_input_tokens\":5,\"output_tokens\":20}}\n",
	 "end session=s-1 subtype=success text=All done cost=0.25 ms=1200 turns=3 in=15 out=20\n"},
	{"{\"type\":\"result\"}\n", "end\n"},
	{"{\"type\":\"result\",\"total_cost_usd\":-1,\"duration_ms\":-5,\"num_turns\":\"3\"}\n",
	 "end\n"},
	{"{\"type\":\"result\",\"total_cost_usd\":1e999,\"duration_ms\":99999999999999999999}\n",
	 "end\n"},
	{"{\"type\":\"result\",\"is_error\":true,\"result\":\"No credit\"}\n",
	 "end text=No credit failed error=No credit\n"},
	{"{\"type\":\"result\",\"is_error\":true,\"result\":\"x\",\"error\":\"why\"}\n",
	 "end text=x failed error=why\n"},
	{"{\"type\":\"result\",\"is_error\":true,\"error\":{\"message\":\"why\"}}\n",
	 "end failed error=why\n"},
	{"{\"type\":\"result\",\"subtype\":\"error_during_execution\",\"errors\":[\"a\",\"b\"]}\n",
	 "end subtype=error_during_execution failed error=a\nb\n"},
	{"{\"type\":\"result\",\"subtype\":\"error_max_turns\",\"is_error\":false,\"errors\":[]}\n",
	 "end subtype=error_max_turns failed error=error_max_turns\n"},
	/* pieces of what comes whole later */
	{"{\"type\":\"stream_event\",\"event\":{\"type\":\"message_start\"}}\n", ""},
	/* what is not known */
	{"{\"type\":\"rate_limit_event\",\"session_id\":\"s-1\"}\n",
	 "raw session=s-1 text={\"type\":\"rate_limit_event\",\"session_id\":\"s-1\"}\n"},
	{"{\"type\":5}\n{}\n[]\n\"x\"\nnull\n", "raw text={\"type\":5}\nraw text={}\nraw text=[]\n"
						"raw text=\"x\"\nraw text=null\n"},
	{"{\"type\":\"assistant\"}\n", "raw text={\"type\":\"assistant\"}\n"},
	{"{\"type\":\"assistant\",\"message\":\"x\"}\n",
	 "raw text={\"type\":\"assistant\",\"message\":\"x\"}\n"},
	{"{\"type\":\"user\",\"message\":{\"content\":5}}\n",
	 "raw text={\"type\":\"user\",\"message\":{\"content\":5}}\n"},
	{"Warning: no JSON\r\n{\"type\":\"system\"}\r\n",
	 "raw text=Warning: no JSON\nsystem role=system\n"},
	{"\n\r\n  \t\n{\"type\":\"system\"}\n\n", "system role=system\n"},
	{"{\"type\":\"system\"} x\n", "raw text={\"type\":\"system\"} x\n"},
	/* half a last line, and a whole one without its end */
	{"{\"type\":\"system\"}\n{\"type\":\"assis",
	 "system role=system\nraw text={\"type\":\"assis\n"},
	{"{\"type\":\"system\"}", "system role=system\n"},
	{"", ""},
	/* what is no UTF-8 */
	{ASSISTANT("\"a\xff z\xc3\""), "text role=assistant text=a" REPLACED " z" REPLACED "\n"},
	{"\xff\xfe no JSON \xe4\n", "raw text=" REPLACED REPLACED " no JSON " REPLACED "\n"},
	{"\xc3", "raw text=" REPLACED "\n"},
	{ASSISTANT("\"\xc3\xa4\""), "text role=assistant text=\xc3\xa4\n"},
	/* half a pair of surrogates; a backslash before u that is one itself */
	{ASSISTANT("\"a\\ud83d\""), "text role=assistant text=a" REPLACED "\n"},
	{ASSISTANT("\"\\uDE00b\\\\ud83d\""), "text role=assistant text=" REPLACED "b\\ud83d\n"},
	{ASSISTANT("\"\\ud83d\\ud83d\\ude00\""),
	 "text role=assistant text=" REPLACED "\xf0\x9f\x98\x80\n"},
	{"\\ud83d\n", "raw text=\\ud83d\n"},
};

static void check(const char *in, size_t len, const unsigned char *sizes, size_t n_sizes,
		  const char *out)
{
	struct transcript_feed f;

	transcript_feed_init(&f);
	transcript_feed_all(&f, in, len, sizes, n_sizes);
	assert_int_equal(f.result, 0);
	buf_add_char(&f.out, '\0');
	assert_string_equal(f.out.data, out);
	transcript_feed_done(&f);
}

TEST(what_is_said_is_told)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		check(vectors[i].in, strlen(vectors[i].in), NULL, 0, vectors[i].out);
}

TEST(it_may_be_cut_anywhere)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		const char *in = vectors[i].in;
		size_t len = strlen(in);

		check(in, len, (const unsigned char[]) {0}, 1, vectors[i].out);
		for (size_t at = 1; at < len; at++) {
			unsigned char sizes[] = {(unsigned char)(at - 1), 255, 255};

			if (at <= 256)
				check(in, len, sizes, 3, vectors[i].out);
		}
	}
}

TEST(lines_are_counted)
{
	static const char in[] = "x\n\n{\"type\":\"system\"}\n{\"type\":\"y\"}\n" ASSISTANT(
		"[{\"type\":\"thinking\"}]");
	struct transcript_feed f;

	transcript_feed_init(&f);
	transcript_feed_all(&f, in, sizeof(in) - 1, NULL, 0);
	assert_int_equal(f.transcript.n_lines, 4);
	assert_int_equal(f.transcript.n_bad, 2);
	transcript_feed_done(&f);
}

/* ---- sizes ---- */

/* Pushes the same (of at most 64 bytes) so many times, many at once. */
static void push_many(struct transcript_feed *f, const char *what, size_t times)
{
	const size_t len = strlen(what);
	char piece[65536];

	for (size_t i = 0; i < 1024; i++)
		memcpy(piece + i * len, what, len);
	while (times > 0) {
		size_t n = times < 1024 ? times : 1024;

		transcript_feed_push(f, piece, n * len);
		times -= n;
	}
}

static void push(struct transcript_feed *f, const char *s)
{
	transcript_feed_push(f, s, strlen(s));
}

static void check_said(const struct transcript_feed *f, const char *begins, size_t len,
		       const char *ends)
{
	assert_int_equal(f->result, 0);
	assert_int_equal(f->out.len, len);
	assert_memory_equal(f->out.data, begins, strlen(begins));
	assert_memory_equal(f->out.data + len - strlen(ends), ends, strlen(ends));
}

TEST(a_line_as_long_as_may_be_is_told_whole)
{
	static const char head[] = "{\"type\":\"assistant\",\"message\":{\"content\":\"";
	static const char tail[] = "\"}}";
	const size_t n = TRANSCRIPT_LINE_MAX - strlen(head) - strlen(tail);
	static const char said[] = "text role=assistant text=";
	struct transcript_feed f;

	transcript_feed_init(&f);
	push(&f, head);
	push_many(&f, "y", n);
	push(&f, tail);
	push(&f, "\n");
	check_said(&f, "text role=assistant text=yyyy", strlen(said) + n + 1, "yyyy\n");
	assert_true(f.transcript.lines.line.cap <= 65536);
	assert_true(f.transcript.lines.arena.used <= 65536);
	transcript_feed_done(&f);
}

TEST(of_a_longer_line_the_beginning_is_told)
{
	struct transcript_feed f;

	transcript_feed_init(&f);
	push(&f, "{\"type\":\"assistant\",\"x\":\"");
	push_many(&f, "y", 40U << 20);
	/* It holds no more than that while it goes on. */
	assert_true(f.transcript.lines.line.cap <= 65536);
	assert_int_equal(f.n_said, 0);
	push(&f, "\"}\n{\"type\":\"system\"}\n");
	check_said(&f, "raw text={\"type\":\"assistant\",\"x\":\"yyy",
		   strlen("raw text=") + TRANSCRIPT_RAW_MAX + 1 + strlen("system role=system\n"),
		   "yyy\nsystem role=system\n");
	assert_int_equal(f.transcript.n_bad, 1);
	transcript_feed_done(&f);
}

TEST(a_longer_line_in_one_piece_is_no_other)
{
	const size_t len = (size_t)TRANSCRIPT_LINE_MAX + 2;
	char *in = malloc(len);
	struct transcript_feed f;

	assert_non_null(in);
	memset(in, ' ', len);
	memcpy(in, "{\"type\":\"system\"}", 17);
	in[len - 1] = '\n';
	transcript_feed_init(&f);
	transcript_feed_push(&f, in, len);
	transcript_feed_push(&f, "{", 1);
	transcript_feed_push(&f, in, len);
	check_said(&f, "raw text={\"type\":\"system\"} ",
		   2 * (strlen("raw text=") + TRANSCRIPT_RAW_MAX + 1), " \n");
	transcript_feed_done(&f);
	free(in);
}

TEST(a_long_line_that_never_ends_is_told_at_the_end)
{
	struct transcript_feed f;

	transcript_feed_init(&f);
	push_many(&f, "z", (size_t)TRANSCRIPT_LINE_MAX + 1);
	assert_int_equal(f.n_said, 0);
	assert_int_equal(transcript_finish(&f.transcript), 0);
	assert_int_equal(transcript_finish(&f.transcript), 0);
	check_said(&f, "raw text=zzz", strlen("raw text=") + TRANSCRIPT_RAW_MAX + 1, "zzz\n");
	transcript_feed_done(&f);
}

/* "ää…" from an odd byte on: the last of 65536 would be half an ä. */
TEST(what_is_raw_is_cut_between_characters)
{
	struct transcript_feed f;

	for (int longer = 0; longer < 2; longer++) {
		size_t n = longer ? (TRANSCRIPT_LINE_MAX >> 1) + 1 : TRANSCRIPT_RAW_MAX;

		transcript_feed_init(&f);
		push(&f, "x");
		push_many(&f, "\xc3\xa4", n);
		push(&f, "\n");
		check_said(&f, "raw text=x\xc3\xa4", strlen("raw text=") + TRANSCRIPT_RAW_MAX,
			   "\xc3\xa4\n");
		transcript_feed_done(&f);
	}
}

/* Each byte becomes three. */
TEST(garbage_is_bounded_too)
{
	struct transcript_feed f;

	transcript_feed_init(&f);
	push_many(&f, "\xff", TRANSCRIPT_LINE_MAX);
	push(&f, "\n");
	check_said(&f, "raw text=" REPLACED, strlen("raw text=") + TRANSCRIPT_RAW_MAX / 3 * 3 + 1,
		   REPLACED "\n");
	transcript_feed_done(&f);
}

TEST(an_unknown_block_is_cut_as_well)
{
	struct transcript_feed f;

	transcript_feed_init(&f);
	push(&f,
	     "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"thinking\",\"x\":\"");
	push_many(&f, "h", 100000);
	push(&f, "\"}]}}\n");
	check_said(&f, "raw role=assistant text={\"type\":\"thinking\",\"x\":\"hh",
		   strlen("raw role=assistant text=") + TRANSCRIPT_RAW_MAX + 1, "hh\n");
	assert_int_equal(f.transcript.n_bad, 0);
	transcript_feed_done(&f);
}

/* Too deep, too many values: not for the reader, so told as it is. */
TEST(a_line_beyond_the_readers_limits_is_raw)
{
	struct transcript_feed f;

	transcript_feed_init(&f);
	push_many(&f, "[", 5000);
	push_many(&f, "]", 5000);
	push(&f, "\n");
	check_said(&f, "raw text=[[[", strlen("raw text=") + 10000 + 1, "]]\n");
	transcript_feed_done(&f);

	transcript_feed_init(&f);
	push(&f, "{\"type\":\"system\",\"x\":[0");
	push_many(&f, ",0", 250000);
	push(&f, "]}\n");
	check_said(&f, "raw text={\"type\":\"system\"",
		   strlen("raw text=") + TRANSCRIPT_RAW_MAX + 1, ",\n");
	transcript_feed_done(&f);
}

/* ---- who does not want more ---- */

TEST(who_says_stop_is_told_no_more_of_these_bytes)
{
	static const char in[] = ASSISTANT("[{\"type\":\"text\",\"text\":\"a\"},"
					   "{\"type\":\"text\",\"text\":\"b\"}]") "raw\n";
	struct transcript_feed f;

	for (size_t pieces = 0; pieces < 2; pieces++) {
		transcript_feed_init(&f);
		f.stop_at = 1;
		transcript_feed_all(&f, in, sizeof(in) - 1, (const unsigned char[]) {5}, pieces);
		assert_int_equal(f.result, 7);
		assert_int_equal(f.n_said, 1);
		/* What comes later is heard. */
		f.result = 0;
		push(&f, "{\"type\":\"system\"}\n");
		assert_int_equal(f.result, 0);
		assert_int_equal(f.n_said, 2);
		transcript_feed_done(&f);
	}
}
