/* The commands about conversations: their table, and those that only show or purge. */
#include "cli/commands.h"

#include <string.h>

#include "cli/chat/chat.h"
#include "cli/kit/args.h"

enum { ROWS = 20 };

static int cmd_tokens(struct cli *cli)
{
	const struct chat_options *o = cli->own;
	return chat_print_tokens(cli, o->conversation);
}

/* Either numbers or --all, but not both. */
static int check_purge(const struct cli *cli)
{
	const struct chat_options *o = cli->own;
	int64_t number;

	if ((cli->n_args == 1) != o->all) {
		complain("conversations purge wants NUMBERs, as conversations --ended shows them, "
			 "or --all");
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
	const struct chat_options *o = cli->own;
	int64_t number = 0;
	int r = check_purge(cli);

	if (r == 0 && o->all)
		r = chat_purge(cli, 0);
	for (int i = 1; r == 0 && i < cli->n_args; i++) {
		(void)chat_read_count(cli->args[i], &number);
		r = chat_purge(cli, number);
	}
	return r;
}

static int cmd_conversations(struct cli *cli)
{
	const struct chat_options *o = cli->own;
	int64_t n = o->limit ? o->limit : ROWS;

	if (cli->n_args > 0)
		return strcmp(cli->args[0], "purge") == 0 ? purge(cli) : args_refuse(cli);
	return o->ended ? chat_print_ended(cli, n) : chat_print_conversations(cli, n);
}

static int cmd_messages(struct cli *cli)
{
	const struct chat_options *o = cli->own;
	const struct conversation which = {
		.name = cli->n_args > 0 ? cli->args[0] : o->conversation,
		.number = o->number,
	};

	if (which.number && which.name) {
		complain("messages wants a NAME or --ended NUMBER, not both");
		return EX_USAGE;
	}
	if (cli->n_args == 1 && o->conversation) {
		complain("messages wants a NAME or --conversation, not both");
		return EX_USAGE;
	}
	return chat_print_messages(cli, &which, o->limit ? o->limit : ROWS);
}

#define OWN sizeof(struct chat_options), chat_options_init

const struct command chat_commands[] = {
	{"chat", "", "talk with an agent",
	 "On a terminal: a prompt with history and editing. Ctrl-C stops an answer and keeps what\n"
	 "came of it, or clears the line; Ctrl-D ends. /help says what else there is.\n"
	 "From a pipe every line is a question, and stdout gets the answers alone.\n",
	 cmd_chat, NULL, chat_options, OWN,
	 ARGS(0, 0, "takes no arguments; to ask one thing: koine send TEXT")},
	{"send", "TEXT... | -", "ask an agent one thing and print its answer as it comes",
	 "- reads the text from stdin. Ctrl-C cancels: what came is printed, and kept in the\n"
	 "conversation.\n",
	 cmd_send, NULL, send_options, OWN,
	 ARGS(1, INT_MAX, "wants a text: koine send TEXT..., or - for stdin")},
	{"cancel", "ID", "stop the answer to the request of that id",
	 "An ID of digits alone is tried as a string, then as a number.\n", cmd_cancel, NULL,
	 cancel_options, OWN, ARGS(1, 1, "wants the ID of one request")},
	{"agents", "", "show which agents are configured, and whether they answer",
	 "* marks the one that answers unless another is named. Each is asked, and given ten\n"
	 "seconds. Below stand the servers that agents work in ([agent-server NAME]), if there "
	 "are\n"
	 "any, and how many of their requests are open.\n",
	 chat_print_agents, NO_ARGS},
	{"conversations", "[purge NUMBER...]", "list conversations, the one changed last first",
	 "What was said in a conversation that was ended stays: --ended lists those, with a "
	 "number\n"
	 "for each, messages --ended NUMBER shows one, and purge deletes it for good.\n",
	 cmd_conversations, NULL, conversations_options, OWN,
	 ARGS(0, INT_MAX, "takes no arguments"), .completes = COMPLETES_ENDED},
	{"messages", "[NAME]", "show what was said last in a conversation", NULL, cmd_messages,
	 NULL, messages_options, OWN, ARGS(0, 1, "wants at most one NAME of a conversation"),
	 .completes = COMPLETES_CONVERSATION},
	{"tokens", "", "show what a conversation counts against its budget", NULL, cmd_tokens, NULL,
	 tokens_options, OWN, NO_ARGS},
	{NULL},
};
