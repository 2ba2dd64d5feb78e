#include "cli/kit/talk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/kit/glyph.h"
#include "cli/kit/print.h"
#include "cli/kit/value.h"

enum { TOKEN_MAX = 4096 };

bool talk_is_http(const struct cli *cli)
{
	return strncmp(cli->address, "http:", 5) == 0 ||
	       (cli->options.framing && strcmp(cli->options.framing, "http") == 0);
}

bool talk_is_gob(const struct cli *cli)
{
	return cli->options.framing && strcmp(cli->options.framing, "gob") == 0;
}

static int exit_code(int fault)
{
	switch (fault) {
	case -ETIMEDOUT:
		return EX_TEMPFAIL;
	case -EBADMSG:
	case -EMSGSIZE:
	case -EPROTO:
		return EX_PROTOCOL;
	case -EACCES:
	case KOINE_FORBIDDEN:
		return EX_NOPERM;
	case -ENOMEM:
		return EX_SOFTWARE;
	default:
		return fault > 0 ? EX_DATAERR : EX_UNAVAILABLE;
	}
}

/* Puts a sentence into `error`, and returns the exit code that goes with it. */
__attribute__((format(printf, 3, 4))) static int fail(char error[TALK_ERROR], int code,
						      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, TALK_ERROR, format, args);
	va_end(args);
	return code;
}

/* Reads the first line of the file; a token on the command line would show in ps. */
static int read_token(const char *path, char token[TOKEN_MAX], char error[TALK_ERROR])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, token, TOKEN_MAX - 1) : -1;

	if (n < 0)
		fail(error, 0, "cannot read %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return EX_NOINPUT;
	token[n] = '\0';
	token[strcspn(token, "\r\n")] = '\0';
	for (n = 0; token[n] > ' ' && token[n] < 0x7f; n++)
		;
	if (n == 0 || token[n] != '\0')
		return fail(error, EX_DATAERR, "the first line of %s is not a valid token", path);
	return 0;
}

/* "HOST:PORT", where the kind of the server is missing. */
static bool lacks_kind(const char *address)
{
	const char *colon = strrchr(address, ':');
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;

	return colon && colon > address && digits > 0 && colon[1 + digits] == '\0' &&
	       !strchr(address, '/') && strncmp(address, "tcp:", 4) != 0 &&
	       strncmp(address, "http:", 5) != 0 && strncmp(address, "unix:", 5) != 0;
}

static int bad_address(const struct cli *cli, char error[TALK_ERROR])
{
	const char *framing = cli->options.framing;

	if (lacks_kind(cli->address))
		return fail(error, EX_USAGE, "invalid address '%s'; try http://%s or tcp:%s",
			    cli->address, cli->address, cli->address);
	return fail(error, EX_USAGE,
		    "invalid address '%s'%s%s: expected http://HOST[:PORT][/PATH], "
		    "tcp:HOST:PORT or unix:PATH, where HOST is an IP address or localhost",
		    cli->address, framing ? " with framing " : "", framing ? framing : "");
}

static int dial_failed(const struct cli *cli, int fault, char error[TALK_ERROR])
{
	bool is_unix = strncmp(cli->address, "unix:", 5) == 0;

	if (fault == -ETIMEDOUT && cli->options.wait_ms > 0)
		return fail(error, EX_TEMPFAIL, "timeout waiting for %s at %s",
			    talk_is_gob(cli) ? "agent" : "the server",
			    cli->address + (is_unix ? 5 : 0));
	if (is_unix && (fault == -ENOENT || fault == -ECONNREFUSED))
		return fail(error, EX_UNAVAILABLE,
			    "koined is not running: no answer at %s (try: %s)", cli->address + 5,
			    cli->options.socket || cli->options.url ? "koined"
								    : "koine daemon start");
	if (fault == -EINVAL)
		return bad_address(cli, error);
	return fail(error,
		    fault == -ETIMEDOUT || fault == -ENOMEM ? exit_code(fault) : EX_UNAVAILABLE,
		    "cannot connect to %s: %s", cli->address, strerror(-fault));
}

/* Without XDG_RUNTIME_DIR our folder is in /tmp, where another user may have made it first. */
static int check_folder(const struct cli *cli, char error[TALK_ERROR])
{
	char folder[64];
	struct stat st;
	size_t n =
		(size_t)snprintf(folder, sizeof(folder), "/tmp/koine-%lu", (unsigned long)getuid());

	if (strncmp(cli->address, "unix:", 5) != 0 || strncmp(cli->address + 5, folder, n) != 0 ||
	    cli->address[5 + n] != '/' || lstat(folder, &st) != 0)
		return 0;
	if (S_ISDIR(st.st_mode) && st.st_uid == getuid() && (st.st_mode & 022) == 0)
		return 0;
	return fail(error, EX_NOPERM,
		    "%s belongs to another user, or other users can write to it, so koine does not "
		    "trust its sockets",
		    folder);
}

static int dial(struct cli *cli, bytes_cb on_bytes, void *arg, struct koine_client **ret_client,
		char error[TALK_ERROR])
{
	struct koine_dial_opts opts = KOINE_DIAL_OPTS;
	char token[TOKEN_MAX];
	char reason[256] = "";
	int r;

	opts.server_uid = cli->options.server_uid;
	opts.error = reason;
	opts.error_size = sizeof(reason);
	opts.framing = cli->options.framing;
	opts.timeout_ms = cli->options.timeout_ms;
	opts.retries = cli->options.retries > 0 ? (uint32_t)cli->options.retries : 0;
	opts.wait_ms = cli->options.wait_ms;
	opts.on_bytes = on_bytes;
	opts.on_bytes_arg = arg;
	if (cli->options.token_file) {
		r = read_token(cli->options.token_file, token, error);
		if (r != 0)
			return r;
		opts.token = token;
	}
	r = check_folder(cli, error);
	if (r != 0)
		return r;
	r = koine_dial(cli->address, &opts, ret_client);
	if (r == KOINE_FORBIDDEN)
		return fail(error, EX_NOPERM,
			    "%s (to trust that user, use --server-uid UID or set KOINE_SERVER_UID)",
			    reason);
	return r == 0 ? 0 : dial_failed(cli, r, error);
}

int talk_try(struct cli *cli, struct koine_client **ret_client, char error[TALK_ERROR])
{
	return dial(cli, NULL, NULL, ret_client, error);
}

int talk_dial(struct cli *cli, bytes_cb on_bytes, void *arg, struct koine_client **ret_client)
{
	char error[TALK_ERROR];
	int r = dial(cli, on_bytes, arg, ret_client, error);

	if (r != 0)
		complain("%s", error);
	return r;
}

int talk_connect(struct cli *cli)
{
	return cli->client ? 0 : talk_dial(cli, NULL, NULL, &cli->client);
}

void talk_hang_up(struct cli *cli)
{
	koine_client_free(cli->client);
	cli->client = NULL;
}

void talk_be_patient(struct cli *cli)
{
	if (cli->options.timeout_ms != 0)
		return;
	/* A connection keeps the timeout that it was dialled with. */
	talk_hang_up(cli);
	cli->options.timeout_ms = UINT32_MAX;
}

bool talk_may_come_back(int result, const struct koine_answer *a)
{
	if (result == KOINE_ERROR_ANSWER)
		return koine_answer_error_code(a) == CODE_STOPPING;
	return result < 0 && result != -ENOMEM && result != -EACCES && result != -EBADMSG &&
	       result != -EMSGSIZE;
}

/* ---- what went wrong ---- */

/* Users who name the method also get the code and the data of an error. */
static bool is_exact;

void talk_be_exact(void)
{
	is_exact = true;
}

/* "AgentError: ", "ProviderUnavailable: ": a word for programs. */
static size_t type_length(struct text t)
{
	static const struct text ends[] = {TEXT("Error: "), TEXT("Unavailable: ")};
	size_t n = 0;

	while (n < t.len &&
	       ((t.data[n] >= 'A' && t.data[n] <= 'Z') || (t.data[n] >= 'a' && t.data[n] <= 'z')))
		n++;
	n += 2;
	for (size_t i = 0; n <= t.len && i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (n > ends[i].len &&
		    memcmp(t.data + n - ends[i].len, ends[i].data, ends[i].len) == 0)
			return n;
	}
	return 0;
}

/* Only the sentence. The kind of error may precede it, which only programs want. */
static struct text sentence_of(struct text t)
{
	static const struct text kinds[] = {TEXT("Internal error: "), TEXT("Invalid params: "),
					    TEXT("Size limit exceeded: ")};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (t.len > kinds[i].len && text_begins(t, kinds[i])) {
			t = text_skip(t, kinds[i].len);
			break;
		}
	}
	return text_skip(t, type_length(t));
}

/* Without the kind of error before it, which only programs want. */
void talk_print_reason(struct text error)
{
	error = text_without_newlines(error);
	if (error.len > 0)
		PRINT(stderr, TEXT(": "), sentence_of(error));
	fputc('\n', stderr);
}

struct text talk_error(const struct koine_answer *a)
{
	struct text t = {0};

	t.data = koine_answer_error_message(a, &t.len);
	return t.data ? t : (struct text) {0};
}

static void print_sentence(const char *method, const struct koine_answer *a)
{
	struct text sentence = sentence_of(talk_error(a));

	if (koine_answer_error_code(a) == CODE_METHOD_NOT_FOUND) {
		complain("the server has no method %s; it may be an older version or another kind "
			 "of server",
			 method);
		return;
	}
	if (sentence.len > 0)
		PRINT(stderr, TEXT("koine: "), sentence, TEXT("\n"));
	else
		complain("%s failed; see koine daemon log", method);
}

void talk_print_error(const char *method, const struct koine_answer *a)
{
	const struct koine_value *data = koine_answer_error_data(a);
	struct text message = talk_error(a);

	if (!is_exact) {
		print_sentence(method, a);
		return;
	}
	fprintf(stderr, "koine: %s: ", method);
	print_exact(stderr, message.data ? message : TEXT("error"));
	fprintf(stderr, " (code %lld)\n", (long long)koine_answer_error_code(a));
	if (data && koine_value_kind(data) != KOINE_NULL)
		print_json_compact(stderr, data);
}

int talk_failed(const struct koine_client *c, const char *method, int result,
		const struct koine_answer *answer)
{
	if (result == KOINE_ERROR_ANSWER) {
		talk_print_error(method, answer);
		return koine_answer_error_code(answer) == CODE_STOPPING ? EX_UNAVAILABLE
									: EXIT_ERROR_ANSWER;
	}
	PRINT(stderr, TEXT("koine: "), text_of(koine_client_error(c)));
	/* A Unix socket may refuse us, too; a token does not help there. */
	if (result == -EACCES && strstr(koine_client_error(c), ": HTTP 40"))
		fputs(" (--token-file FILE sends a token)", stderr);
	fputc('\n', stderr);
	return exit_code(result);
}
