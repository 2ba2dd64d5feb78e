/*
 * Other spellings of commands and options: shortcuts, and the names that the previous version
 * had. Scripts may use the old names for one more version; doc/cli.md lists them.
 */
#include <string.h>

#include "cli/kit/command.h"

const struct alias aliases[] = {
	{{"agents"}, {"agent", "list"}, true},
	{{"approvals"}, {"approval", "list"}, true},
	{{"backup"}, {"store", "backup"}, true},
	{{"browsers"}, {"browser", "list"}, true},
	{{"conversations"}, {"conversation", "list"}, true},
	{{"dialects"}, {"dialect", "list"}, true},
	{{"events"}, {"event", "list"}, true},
	{{"grants"}, {"grant", "list"}, true},
	{{"hosts"}, {"host", "list"}, true},
	{{"memories"}, {"memory", "list"}, true},
	{{"messages"}, {"conversation", "show"}, true},
	{{"notifiers"}, {"notifier", "list"}, true},
	{{"projects"}, {"project", "list"}, true},
	{{"rules"}, {"rule", "list"}, true},
	{{"sessions"}, {"session", "list"}, true},
	{{"status"}, {"daemon", "status"}, true},
	{{"tasks"}, {"task", "list"}, true},
	{{"tokens"}, {"conversation", "tokens"}, true},

	{{"*", "ls"}, {"*", "list"}},
	{{"*", "get"}, {"*", "show"}},
	{{"*", "rm"}, {"*", "delete"}},
	{{"*", "del"}, {"*", "delete"}},
	{{"*", "remove"}, {"*", "delete"}},
	{{"*", "interrupt"}, {"*", "cancel"}},

	{{"automation"}, {"rule"}},
	{{"notify"}, {"notifier"}},
	{{"approval", "list", "ID"}, {"approval", "show"}},
	{{"conversation", "purge"}, {"conversation", "delete"}},
	{{"grant", "revoke"}, {"grant", "delete"}},
	{{"host", "forget"}, {"host", "delete"}},
	{{"run", NULL, "--directory"}, {.option = "--dir"}},
	{{"run", NULL, "-d"}, {.option = "--dir"}},
	{{"session", "run"}, {"session", "add"}},
	{{"session", "*", "--cwd"}, {.option = "--dir"}},
	{{"session", "list", "--status"}, {.option = "--state"}},
	{{"task", "clean"}, {"task", "delete", "--all"}},
	{{"task", "clean", "-s"}, {.option = "--successful-only"}},
	{{"task", "follow"}, {"task", "watch"}},
	{{"task", "*", "--directory"}, {.option = "--dir"}},
	{{"task", "*", "-d"}, {.option = "--dir"}},
	{{"task", "*", "--runner"}, {.option = "--agent"}},
	{{"task", "*", "-r"}, {.option = "--agent"}},
	{{NULL}},
};

static bool fits(const char *pattern, const char *word)
{
	if (!pattern || !word)
		return pattern == word;
	return strcmp(pattern, "*") == 0 || strcmp(pattern, word) == 0;
}

const struct alias *alias_find(const char *noun, const char *verb, const char *option)
{
	for (const struct alias *a = aliases; a->typed.noun; a++) {
		if (fits(a->typed.noun, noun) && fits(a->typed.verb, verb) &&
		    fits(a->typed.option, option))
			return a;
	}
	return NULL;
}
