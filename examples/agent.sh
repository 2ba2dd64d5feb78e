#!/bin/sh
# An agent for sessions, as small as one can be: any program that prints stream-json as
# `claude --print --output-format stream-json` does. Its query is the last argument. This one asks a
# human before it acts, and goes on when it may.
#
#	koined --set session.program=$PWD/examples/agent.sh
set -eu

for query; do :; done
koine=${KOINE:-$(dirname "$0")/../build/koine}
[ -x "$koine" ] || koine=koine

# Text within a JSON string: one line, quotes and backslashes escaped.
json() {
	printf '%s' "$1" | tr '\000-\037' ' ' | sed 's/[\\"]/\\&/g'
}
say() {
	printf '{"type":"assistant","message":{"content":[{"type":"text","text":"%s"}]}}\n' "$(json "$1")"
}
call() {
	printf '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"%s","input":%s}]}}\n' "$1" "$2"
}
result() {
	printf '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"1","content":"%s"}]}}\n' "$1"
}
ask() {
	printf '{"tool_name":"%s","tool_input":%s}' "$1" "$2" | "$koine" hook --format plain
}

printf '{"type":"system","subtype":"init","session_id":"shell-%s"}\n' $$
say "You want me to $query. I will ask first."
call deploy '{"to":"production"}'
case $(ask deploy '{"to":"production"}') in
*'"decision":"approved"'*)
	result "deployed"
	say "Done, and nobody was woken up."
	;;
*)
	result "not allowed"
	say "Then not."
	;;
esac
printf '{"type":"result","subtype":"success","is_error":false,"result":"%s"}\n' "$(json "$query")"
