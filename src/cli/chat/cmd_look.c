/* koine tokens, agents, conversations, messages. */
#include <string.h>

#include "cli/chat/chat.h"

enum { ROWS = 20 };

static int takes_none(const struct cli *cli, const char *name)
{
	if (cli->n_args == 0)
		return 0;
	complain("%s takes no arguments", name);
	return EX_USAGE;
}

int cmd_tokens(struct cli *cli)
{
	struct koine_client *c = NULL;
	int r = takes_none(cli, "tokens");

	if (r == 0)
		r = talk_dial(cli, NULL, NULL, &c);
	if (r == 0)
		r = look_tokens(cli, c, cli->options.chat.conversation);
	koine_client_free(c);
	return r;
}

int cmd_agents(struct cli *cli)
{
	struct koine_client *c = NULL;
	int r = takes_none(cli, "agents");

	if (r == 0)
		r = talk_dial(cli, NULL, NULL, &c);
	if (r == 0)
		r = look_agents(cli, c);
	koine_client_free(c);
	return r;
}

/* NUMBER... or --all, and nothing that could be meant otherwise. */
static int check_purge(const struct cli *cli)
{
	int64_t number;

	if ((cli->n_args == 1) != cli->options.chat.all) {
		complain("conversations purge wants NUMBERs, as conversations --ended shows them, "
			 "or "
			 "--all");
		return EX_USAGE;
	}
	for (int i = 1; i < cli->n_args; i++) {
		if (!chat_read_count(cli->args[i], &number)) {
			complain("'%s' is no number of a conversation that was ended",
				 cli->args[i]);
			return EX_USAGE;
		}
	}
	return 0;
}

static int purge(struct cli *cli)
{
	struct koine_client *c = NULL;
	int64_t number;
	int r = check_purge(cli);

	if (r == 0)
		r = talk_dial(cli, NULL, NULL, &c);
	if (r == 0 && cli->options.chat.all)
		r = look_purge(cli, c, 0);
	for (int i = 1; r == 0 && i < cli->n_args; i++) {
		chat_read_count(cli->args[i], &number);
		r = look_purge(cli, c, number);
	}
	koine_client_free(c);
	return r;
}

int cmd_conversations(struct cli *cli)
{
	int64_t n = cli->options.chat.limit ? cli->options.chat.limit : ROWS;
	struct koine_client *c = NULL;
	int r;

	if (cli->n_args > 0 && strcmp(cli->args[0], "purge") == 0)
		return purge(cli);
	r = takes_none(cli, "conversations");
	if (r == 0)
		r = talk_dial(cli, NULL, NULL, &c);
	if (r == 0 && cli->options.chat.ended)
		r = look_ended(cli, c, n);
	else if (r == 0)
		r = look_conversations(cli, c, n);
	koine_client_free(c);
	return r;
}

int cmd_messages(struct cli *cli)
{
	int64_t n = cli->options.chat.limit ? cli->options.chat.limit : ROWS;
	const char *name = cli->n_args > 0 ? cli->args[0] : cli->options.chat.conversation;
	struct koine_client *c = NULL;
	int r;

	if (cli->n_args > 1) {
		complain("messages wants at most one NAME of a conversation");
		return EX_USAGE;
	}
	if (cli->options.chat.number && name) {
		complain("messages wants a NAME or --ended NUMBER, not both");
		return EX_USAGE;
	}
	if (cli->n_args == 1 && cli->options.chat.conversation) {
		complain("messages wants a NAME or --conversation, not both");
		return EX_USAGE;
	}
	r = talk_dial(cli, NULL, NULL, &c);
	if (r == 0 && cli->options.chat.number)
		r = look_messages_ended(cli, c, cli->options.chat.number, n);
	else if (r == 0)
		r = look_messages(cli, c, name, n);
	koine_client_free(c);
	return r;
}
