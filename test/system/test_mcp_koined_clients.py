#!/usr/bin/env python3
"""koined before the protocol's official suite, and its own libraries."""
import os
import threading

from harness import KOINE, Folder, clean_environment, check, main, note, same, wait_until
from mcp_npm import (ATTEMPTS, NODE, PACKAGES, SUITE, failed_checks, need, outcomes,
                     passes_alone, run_script, run_suite)
from task_world import World

# Those that want no tools, resources or prompts of their own.
FREE = {
    "2025-11-25": ("server-initialize", "ping", "tools-list", "prompts-list", "resources-list",
                   "dns-rebinding-protection", "server-session-lifecycle",
                   "server-sse-multiple-streams"),
    "2026-07-28": ("tools-list", "prompts-list", "resources-list", "dns-rebinding-protection",
                   "caching", "sep-2164-resource-not-found", "http-header-validation",
                   "server-sse-multiple-streams"),
}


class Served:
    """Where a daemon's MCP is, as the suite's runner wants it."""

    def __init__(self, daemon):
        self.url = "http://%s/mcp" % daemon.address("http", "mcp")[len("http:"):]


def daemon(world):
    return world.daemon("listen.mcp=http:127.0.0.1:0", "mcp.token_file=off")


def judge(version):
    need(NODE, SUITE)
    with World() as w, Folder() as folder, daemon(w) as d:
        result = outcomes(run_suite(Served(d), folder.path, "--requirements", version))
        left = [name for name in FREE[version] if not result.get(name)]
        for _ in range(ATTEMPTS):
            left = [name for name in left
                    if not passes_alone(Served(d), folder, version, name)]
        same(left, [], "failed scenarios at " + version)
        note("%s: %d scenarios" % (version, len(FREE[version])))


def test_what_wants_no_tools_of_its_own_in_server_stateless():
    need(NODE, SUITE)
    with World() as w, Folder() as folder, daemon(w) as d:
        def failed():
            return [why for why in failed_checks(Served(d), folder, "2026-07-28",
                                                 "server-stateless")
                    if not why.startswith("Not testable: server does not list the diagnostic")]
        wait_until(lambda: not failed(), "a pass", 300)


def test_suite_2025_11_25():
    judge("2025-11-25")


def test_suite_2026_07_28():
    judge("2026-07-28")


# ---- the protocol's own libraries ----


def answer_inbox(k, running):
    """A human who answers what is asked here, and nothing that the client is asked."""
    def look():
        for a in k.call("approval.list", {})["approvals"]:
            if a["tool"] == "Bash":
                k.call("approval.decide", {"id": a["id"], "decision": "approve"})
            elif a["input"]["msg"] == "Which number?":
                k.call("approval.decide", {"id": a["id"], "decision": "respond", "comment": "7"})
        return not running.is_alive()
    wait_until(look, "the client's end", 300)


def run_client(w, d, *args):
    """What the script prints, with a human at the inbox."""
    out = []
    env = clean_environment({"KOINE_SOCKET": w("root", "koine.sock")})

    def run():
        try:
            out.append(run_script("mcp_koined_client.mjs", *args, env=env, cwd=w.path))
        except Exception as e:
            out.append(e)
    running = threading.Thread(target=run)
    running.start()
    answer_inbox(d.connect(), running)
    if isinstance(out[0], Exception):
        raise out[0]
    return out[0]


def check_answers(out, library):
    same(out["uncalled"], [], "tools that were not called")
    same(out["server"]["name"], "koine")
    check("memory_search" in out["instructions"], "instructions")
    same(out["found"], ["Anna moved to Oslo in May"])
    same({out["changed"], out["read"], *out["listed"]}, {"Anna moved to Bergen"})
    check("koine's offline responder" in out["output"], out["output"])
    same(out["printed"], out["output"])
    check("completed" in out["cancelled"], out["cancelled"])
    same(out["colour"], {"answered": True, "answer": "blue", "status": "responded"})
    same(out["name"], {"answered": False, "answer": "", "status": "declined"})
    same(out["number"], {"answered": True, "answer": "7", "status": "responded"})
    same(out["allowed"], {"behavior": "allow", "updatedInput": {"command": "ls"}})
    check({out["memory"], out["task"]} <= set(out["uris"]), "%s", out["uris"])
    same(out["templates"],
         ["memory://{id}", "task://{id}", "session://{id}", "conversation://{id}"])
    same(list(out["prompts"]), ["recall", "handoff"])
    for text in out["prompts"].values():
        check("Anna moved to Bergen" in text, text)
    same(out["unknown"], -32602)
    same(out["wrong"], "query must be a string, not number")
    same(out["deleted"], {"deleted": out["memory"][len("memory://"):], "content": "Anna moved to Bergen"})
    if library == "sdk":
        same(out["missing"], -32002)


def clients(library, *eras):
    need(NODE, os.path.join(PACKAGES, "node_modules", "@modelcontextprotocol", library))
    for era in eras:
        for carrier in ("stdio", "http"):
            with World() as w, w.daemon("listen.mcp=http:127.0.0.1:0") as d:
                place = [KOINE] if carrier == "stdio" else [
                    Served(d).url, w.read("root", "mcp.token").strip()]
                check_answers(run_client(w, d, library, era, carrier, *place), library)


def test_every_tool_by_the_first_library():
    clients("sdk", "legacy")


def test_every_tool_by_the_second_library():
    clients("client", "legacy", "modern", "auto")


if __name__ == "__main__":
    main(globals())
