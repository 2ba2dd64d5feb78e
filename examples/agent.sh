#!/bin/sh
# A minimal agent for sessions. Any program can be one that prints the same JSON as
# `claude --print --output-format stream-json`. The query is its last argument. This agent asks a
# human for approval before it acts.
#
#	koined --set session.program=$PWD/examples/agent.sh
set -eu

for query; do :; done
koine=${KOINE:-$(dirname "$0")/../build/koine}
[ -x "$koine" ] || koine=koine

# Escapes text for a JSON string.
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
	say "Done: deployed to production."
	;;
*)
	result "not allowed"
	say "Then not."
	;;
esac
printf '{"type":"result","subtype":"success","is_error":false,"result":"%s"}\n' "$(json "$query")"
