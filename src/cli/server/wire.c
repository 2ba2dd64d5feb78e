/* koine wire: a call that shows its bytes. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/kit/args.h"
#include "cli/kit/call.h"
#include "cli/kit/talk.h"
#include "cli/server/server.h"

struct tap {
	bool out;    /* the direction of the current line */
	bool inside; /* it has begun and not ended */
	bool color;
	size_t matched; /* bytes of the current line that match `secret` */
	bool hides;     /* what follows them */
};

/* The line that contains a token starts with this. People show this output to others, so the
 * token is hidden. */
static const char secret[] = "Authorization: Bearer ";

static void begin_line(struct tap *tap, bool out)
{
	if (tap->color)
		fputs(out ? "\033[33m" : "\033[36m", stdout);
	fputs(out ? "> " : "< ", stdout);
	tap->out = out;
	tap->inside = true;
	tap->matched = 0;
	tap->hides = false;
}

static void end_line(struct tap *tap)
{
	if (!tap->inside)
		return;
	if (tap->color)
		fputs("\033[0m", stdout);
	fputc('\n', stdout);
	tap->inside = false;
}

/* True for a byte of the token; stars replace all of them. */
static bool hide(struct tap *tap, char byte)
{
	size_t len = strlen(secret);

	if (byte == '\r')
		tap->hides = false;
	if (tap->hides)
		return true;
	/* A line that has differed once cannot match any more. */
	if (tap->matched < len)
		tap->matched = byte == secret[tap->matched] ? tap->matched + 1 : len + 1;
	return false;
}

static void show_byte(struct tap *tap, char byte)
{
	if (hide(tap, byte))
		return;
	if (byte >= 0x20 && byte < 0x7f)
		fputc(byte, stdout);
	else
		printf("\\x%02x", (unsigned char)byte);
	if (tap->out && tap->matched == strlen(secret)) {
		fputs("***", stdout);
		tap->hides = true;
		tap->matched++;
	}
}

/* Bytes arrive in arbitrary pieces. A line is printed up to its end in the stream, or until the
 * other side begins. */
static void show_bytes(void *arg, bool out, const char *data, size_t len)
{
	struct tap *tap = arg;

	if (tap->out != out)
		end_line(tap);
	for (size_t i = 0; i < len; i++) {
		if (!tap->inside)
			begin_line(tap, out);
		if (data[i] == '\n')
			end_line(tap);
		else
			show_byte(tap, data[i]);
	}
	fflush(stdout);
}

int cmd_wire(struct cli *cli)
{
	CLEANUP(freep) char *params = NULL;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct tap tap = {.color = cli->color};
	const char *method = args_take(cli);
	int r;

	talk_be_exact();
	r = args_params(cli, talk_is_gob(cli), &params);
	if (r == 0)
		r = talk_dial(cli, show_bytes, &tap, &cli->client);
	if (r != 0)
		return r;
	r = koine_client_call(cli->client, method, params, &a);
	end_line(&tap);
	fflush(stdout);
	if (r != 0)
		r = talk_failed(cli->client, method, r, a);
	/* The tap is a local variable, and is called until the connection ends. */
	talk_hang_up(cli);
	return r;
}
