#!/usr/bin/env python3
"""
koine connect claude --http: hooks that go to koined's own port, with its token. What was written is
then used, as Claude Code would.
"""
import contextlib
import json
import os
import socket
import stat

from harness import KOINE, Client, Daemon, Folder, check, main, same
from test_connect import SETTINGS, Home, full_home, load
from test_manager import handing_over
from test_hook import PERMISSION, approvals, decide, waiting

NAME = ".claude/settings.json"
POSTED = {"PermissionRequest", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop",
          "SessionEnd"}


@contextlib.contextmanager
def daemon(*args):
    """A koined whose port a service manager holds."""
    with Folder() as folder, socket.socket(socket.AF_UNIX) as own, socket.socket() as port:
        own.bind(folder("koine.sock"))
        own.listen(16)
        port.bind(("127.0.0.1", 0))
        port.listen(16)
        with Daemon("--set", "listen.mcp=on", *args,
                    **handing_over(own, port, names="koine:mcp")) as d:
            yield d


def token(d):
    with open(os.path.join(d.root, "mcp.token"), encoding="ascii") as f:
        return f.read().strip()


def url(d):
    return "http://%s/hook" % d.address("tcp", "mcp")[len("tcp:"):]


def hooks(home):
    return {event: [hook for group in groups for hook in group["hooks"]]
            for event, groups in load(home, NAME)["hooks"].items()}


def mode(home, name=NAME):
    return stat.S_IMODE(os.stat(home(name)).st_mode)


def connect(home, d, *args, **more):
    return home.connect("claude", "--yes", "--socket", d.socket_path, *args, **more)


def test_hooks_go_to_the_port_with_its_token():
    with Home() as home, daemon() as d:
        full_home(home)
        home.write(NAME, SETTINGS, 0o644)
        said = connect(home, d, "--http", "--gate").out
        check(token(d) not in said, "the token is shown: %s", said)
        check("Bearer ..." in said, "%s", said)
        same(mode(home), 0o600, "mode")
        found = hooks(home)
        for event in POSTED | {"PreToolUse", "Elicitation"}:
            waits = event in ("PermissionRequest", "PreToolUse", "Elicitation")
            same(found[event], [{
                "type": "http", "url": url(d), "headers": {
                    "Authorization": "Bearer " + token(d), "Koine-Timeout": "590" if waits else "5",
                    "Koine-Session": "$KOINE_SESSION_ID", "Koine-Run": "$KOINE_RUN_ID"},
                "allowedEnvVars": ["KOINE_SESSION_ID", "KOINE_RUN_ID"],
                "timeout": 600 if waits else 10}], event)
        same(found["SessionStart"], [{"type": "command", "timeout": 10, "command":
             "%s hook --timeout 5 --socket %s" % (KOINE, d.socket_path)}], "for commands alone")
        check(token(d) not in home.read(".claude.json"), "the server's file has the token")


def test_the_hook_that_was_written_decides():
    with Home() as home, daemon() as d, d.connect() as c:
        full_home(home)
        connect(home, d, "--http")
        hook, = hooks(home)["PermissionRequest"]
        # As Claude Code fills in variables that are not there.
        headers = "".join("%s: %s\r\n" % (k, "" if v.startswith("$") else v)
                          for k, v in hook["headers"].items())
        body = json.dumps(PERMISSION).encode()
        host = hook["url"].split("/")[2]
        with Client("http:" + host) as agent:
            agent.send(("POST /hook HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%s"
                        "Content-Length: %d\r\n\r\n" % (host, headers, len(body))).encode() + body)
            asked, = waiting(c)
            decide(c, asked["id"], "deny", comment="another way")
            same(json.loads(agent.read_response().body)["hookSpecificOutput"]["decision"],
                 {"behavior": "deny", "message": "another way"})
        same(approvals(c), [], "that wait")


def test_twice_changes_nothing_and_the_other_kind_replaces():
    with Home() as home, daemon() as d:
        full_home(home)
        home.write(NAME, SETTINGS)
        before = home.all()
        connect(home, d, "--http")
        first = home.all()
        check("nothing to change" in connect(home, d, "--http").out, "it changes something")
        same(home.all(), first, "a second run")
        connect(home, d)
        check(all(hook["type"] == "command" for of in hooks(home).values() for hook in of),
              "%r", hooks(home))
        check("Bearer" not in home.read(NAME), "the token stays")
        connect(home, d, "--http")
        same({event for event, of in hooks(home).items() if of[0]["type"] == "http"}, POSTED)
        same([len(of) for of in hooks(home).values()], [1] * (len(POSTED) + 1), "one of each")
        connect(home, d, "--undo")
        same({k: v[0] for k, v in home.all().items()}, {k: v[0] for k, v in before.items()}, "undone")


def test_undo_needs_no_daemon_and_leaves_what_others_have():
    with Home() as home:
        full_home(home)
        with daemon() as d:
            connect(home, d, "--http", "--gate")
        settings = load(home, NAME)
        theirs = {"hooks": [{"type": "http", "url": "http://127.0.0.1:9/hook"}]}
        settings["hooks"]["Stop"].append(theirs)
        home.write(NAME, json.dumps(settings))
        home.connect("claude", "--yes", "--undo")
        same(load(home, NAME), {"hooks": {"Stop": [theirs]}}, "left")


def test_a_port_that_has_moved_is_brought_up_to_date():
    with Home() as home:
        full_home(home)
        for _ in range(2):
            with daemon() as d:
                connect(home, d, "--http")
                same({(h["url"], h["headers"]["Authorization"]) for event, of in
                      hooks(home).items() if event in POSTED for h in of},
                     {(url(d), "Bearer " + token(d))}, "where")
                same([len(of) for of in hooks(home).values()], [1] * (len(POSTED) + 1), "one of each")
                found = json.loads(home.connect("--json", "--socket", d.socket_path).out)
                same([r["connected"] for r in found if r["agent"] == "claude"], ["yes"], "listed")


def test_without_a_token_there_is_none():
    with Home() as home, daemon("--set", "mcp.token_file=off") as d:
        full_home(home)
        home.write(NAME, "{}", 0o644)
        connect(home, d, "--http")
        hook, = hooks(home)["Stop"]
        check("Authorization" not in hook["headers"], "%r", hook)
        same(mode(home), 0o644, "nothing in it is secret")


def test_port_that_no_socket_unit_holds_is_refused():
    with Home() as home, Daemon("--set", "listen.mcp=http:127.0.0.1:0") as d:
        full_home(home)
        before = home.all()
        said = connect(home, d, "--http", code=69).err
        check("requires a systemd socket unit" in said and "koine connect claude)" in said, "%s", said)
        same(home.all(), before)
        connect(home, d)
        connect(home, d, "--undo", "--http")
        same(home.all(), before)


def test_what_cannot_be_done_changes_nothing():
    with Home() as home, Daemon() as d:
        full_home(home)
        before = home.all()
        connect(home, d, "--http", code=69)  # no port
        home.connect("claude", "--yes", "--http", "--socket", home("none.sock"), code=69)
        home.connect("claude", "--yes", "--http", "--project=" + home(".claude"), code=64)
        for agent in ("codex", "gemini", "cursor"):
            home.connect(agent, "--yes", "--http", "--socket", d.socket_path, code=64)
        same(home.all(), before)


def test_a_named_token_file_is_found():
    with Home() as home:
        full_home(home)
        path = home.write("my.token", "0123456789abcdef0123\n", 0o600)
        with daemon("--set", "mcp.token_file=" + path) as d:
            connect(home, d, "--http")
            same(hooks(home)["Stop"][0]["headers"]["Authorization"], "Bearer 0123456789abcdef0123")


if __name__ == "__main__":
    main(globals())
