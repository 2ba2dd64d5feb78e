/* A client in about 30 lines: it calls a method and prints the result.
 *
 *	cc client.c $(pkg-config --cflags --libs koine-client) -o client
 *	./client unix:/run/user/1000/koine/koine.sock ping
 *	./client http://127.0.0.1:8765/ echo '{"text": "hello"}'
 */
#include <koine/koine.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	struct koine_client *client = NULL;
	struct koine_answer *answer = NULL;
	size_t len;
	int r;

	if (argc < 3) {
		fprintf(stderr, "usage: client ADDRESS METHOD [PARAMS]\n");
		return 2;
	}
	r = koine_dial(argv[1], NULL, &client);
	if (r != 0) {
		fprintf(stderr, "client: %s: %s\n", argv[1], strerror(-r));
		return 1;
	}
	r = koine_client_call(client, argv[2], argv[3], &answer);
	if (r == 0) {
		const char *json = koine_value_raw(koine_answer_result(answer), &len);

		printf("%.*s\n", (int)len, json);
	} else {
		fprintf(stderr, "client: %s: %s\n", argv[2], koine_client_error(client));
	}
	koine_answer_free(answer);
	koine_client_free(client);
	return r == 0 ? 0 : 1;
}
