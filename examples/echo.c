/*
 * A JSON-RPC server in about 40 lines. It speaks newline-delimited JSON,
 * length-prefixed JSON and HTTP on one socket:
 *
 *	cc echo.c -o echo $(pkg-config --cflags --libs koine)
 *	./echo unix:/tmp/echo.sock &
 *	koine --socket /tmp/echo.sock call echo text=hello
 */
#include <stdio.h>

#include <koine/koine.h>

static void echo(struct koine_call *call, void *arg)
{
	size_t len;
	const char *text = koine_value_text(koine_call_param(call, "text"), &len);

	(void)arg;
	koine_json_text_n(koine_call_result(call), text, len);
	koine_call_reply(call);
}

int main(int argc, char **argv)
{
	const struct koine_field fields[] = {{"text", KOINE_TYPE_STRING, true, "Text to return"}};
	const struct koine_method method = {"echo", echo, NULL, fields, 1, "Returns the text"};
	struct koine_server *server;

	if (argc != 2 || koine_server_new(&server) != 0)
		return 1;
	if (koine_server_add(server, &method) != 0 ||
	    koine_server_listen(server, argv[1], NULL, NULL, 0) != 0) {
		fprintf(stderr, "echo: %s\n", koine_server_error(server));
		koine_server_free(server);
		return 1;
	}
	printf("ready\n");
	fflush(stdout);
	koine_server_run(server);
	koine_server_free(server);
	return 0;
}
