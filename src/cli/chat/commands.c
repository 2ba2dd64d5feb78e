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
		complain("conversations purge requires --all or NUMBERs (koine conversations "
			 "--ended lists the numbers)");
		return EX_USAGE;
	}
	for (int i = 1; i < cli->n_args; i++) {
		if (!chat_read_count(cli->args[i], &number)) {
			complain(
				"invalid conversation number '%s': see koine conversations --ended",
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
		complain("messages takes a NAME or --ended NUMBER, not both");
		return EX_USAGE;
	}
	if (cli->n_args == 1 && o->conversation) {
		complain("messages takes a NAME or --conversation, not both");
		return EX_USAGE;
	}
	return chat_print_messages(cli, &which, o->limit ? o->limit : ROWS);
}

#define OWN sizeof(struct chat_options), chat_options_init

const struct command chat_commands[] = {
	{"chat", "", "Chat with an agent",
	 "On a terminal, koine shows a prompt with history and line editing. Ctrl-C cancels an "
	 "answer and keeps the text received so far, or clears the line; Ctrl-D quits. /help lists "
	 "more commands. In a pipe, every input line is a question, and stdout contains only the "
	 "answers.\n",
	 cmd_chat, NULL, chat_options, OWN,
	 ARGS(0, 0, "takes no arguments; for a single question use koine send TEXT"),
	 .examples = {"koine chat", "koine chat --agent claude --conversation release"}},
	{"send", "TEXT... | -", "Ask an agent one question and stream its answer",
	 "Use - to read the question from stdin. Ctrl-C cancels the answer; the text received so "
	 "far stays in the conversation.\n",
	 cmd_send, NULL, send_options, OWN, ARGS(1, INT_MAX, "requires TEXT, or - for stdin"),
	 .examples = {"koine send \"What did we decide about the cache?\"",
		      "git diff | koine send --agent claude -"}},
	{"cancel", "ID", "Cancel a request to an agent",
	 "ID is the id that you set with `koine send --request-id`. If ID is a number, koine tries "
	 "it as a string first, then as an integer.\n",
	 cmd_cancel, NULL, cancel_options, OWN, ARGS(1, 1, "requires one request ID"),
	 .examples = {"koine cancel r1", "koine cancel r1 -c release"}},
	{"agents", "", "List configured agents and check that they respond",
	 "* marks the default agent. Each agent has ten seconds to respond. After the agents, the "
	 "list shows the agent servers ([agent-server NAME]) and the number of pending requests of "
	 "each.\n",
	 chat_print_agents, NO_ARGS, .examples = {"koine agents", "koine agents --json"}},
	{"conversations", "[purge NUMBER...]", "List conversations, most recently changed first",
	 "koined keeps ended conversations: --ended lists them with their numbers, `koine messages "
	 "--ended NUMBER` shows one, and `koine conversations purge NUMBER` deletes it "
	 "permanently.\n",
	 cmd_conversations, NULL, conversations_options, OWN,
	 ARGS(0, INT_MAX, "takes no arguments"), .completes = COMPLETES_ENDED,
	 .examples = {"koine conversations", "koine conversations --ended",
		      "koine conversations purge 12"}},
	{"messages", "[NAME]", "Show the last messages of a conversation", NULL, cmd_messages, NULL,
	 messages_options, OWN, ARGS(0, 1, "takes at most one NAME"),
	 .completes = COMPLETES_CONVERSATION,
	 .examples = {"koine messages", "koine messages release -n 5"}},
	{"tokens", "", "Show the token count and budget of a conversation", NULL, cmd_tokens, NULL,
	 tokens_options, OWN, NO_ARGS,
	 .examples = {"koine tokens -c release", "koine tokens --json"}},
	{NULL},
};
