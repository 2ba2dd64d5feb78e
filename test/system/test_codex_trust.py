#!/usr/bin/env python3
"""
Codex runs a hook only if its settings have the hook's hash. koine connect asks Codex for it: a
program that answers as Codex does, or does not, and Codex itself where it is installed (KOINE_CODEX
or PATH), with a model of our own.
"""
import http.server
import json
import os
import subprocess
import sys
import threading

from harness import PATIENCE, SOURCE, Daemon, Folder, check, installed, main, same
from test_chat_cli import Terminal
from test_connect import TOML, Home, full_home, load

# What Codex 0.166 to 0.169 answer, with hashes that are easier to foresee.
# Where ./dev agents installs them; ./dev test does in CI.
AGENTS = os.path.join(SOURCE, "build", "agents", "node_modules", ".bin")
CODEX = r'''#!%s
import hashlib, json, os, re, sys
home = os.path.realpath(os.environ["CODEX_HOME"])
with open(os.path.join(os.path.dirname(__file__), "asked"), "a") as f:
    f.write(home + "\n")
def hooks():
    path = os.path.join(home, "hooks.json")
    with open(path) as f:
        events = json.load(f)["hooks"]
    for event, groups in events.items():
        word = re.sub("(?<!^)([A-Z])", r"_\1", event).lower()
        for g, group in enumerate(groups):
            for i, hook in enumerate(group["hooks"]):
                yield {"key": "%%s:%%s:%%d:%%d" %% (path, word, g, i), "eventName": event,
                       "command": hook["command"], "sourcePath": path, "currentHash": "sha256:" +
                       hashlib.sha256((event + hook["command"]).encode()).hexdigest()}
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"method": "configWarning", "params": {"id": 1}}))
    if asked["method"] == "initialize":
        print(json.dumps({"id": asked["id"], "result": {"codexHome": home}}))
    elif asked["method"] == "hooks/list":
        print(json.dumps({"id": asked["id"], "result": {"data": [
            {"cwd": asked["params"]["cwds"][0], "hooks": list(hooks())}]}}))
    sys.stdout.flush()
''' % sys.executable


class CodexHome(Home):
    def __enter__(self):
        super().__enter__()
        full_home(self)
        self.env["TMPDIR"] = self("tmp")
        os.mkdir(self("tmp"))
        self.write("bin/codex", CODEX, 0o755)
        return self

    def connect(self, *args, patient=True, **more):
        return super().connect(*args, "--timeout", "60" if patient else "1", **more)

    def state(self):
        return load(self, ".codex/config.toml").get("hooks", {}).get("state", {})

    def key(self, place, name=".codex/hooks.json"):
        return "%s:%s" % (self(name), place)


def test_koines_hooks_are_trusted_and_no_other():
    with CodexHome() as home:
        other = {"hooks": [{"type": "command", "command": "/bin/other"}]}
        home.write(".codex/hooks.json", json.dumps({"hooks": {"PermissionRequest": [other],
                                                              "Stop": [other]}}))
        out = home.connect("codex", "--yes").out
        same(list(home.state()), [home.key("permission_request:1:0")])
        check("trusted_hash" in out and "you trust" in out and "/hooks" not in
              out.replace("/hooks.json", ""), "%r", out)
        home.connect("codex", "--yes", "--gate")
        same(list(home.state()), [home.key("permission_request:1:0"), home.key("pre_tool_use:0:0")])
        check("already connected" in home.connect("codex", "--yes").out, "twice")
        with open(home("bin/asked")) as f:
            check(home(".codex") not in f.read(), "the user's own folder was shown")
        same(os.listdir(home("tmp")), [], "what is left")


def test_undo_takes_the_trust_out_without_codex():
    for text in (TOML, "", '[hooks.state]\n\n[hooks.state."/x:stop:0:0"]\ntrusted_hash = "h"\n'):
        with CodexHome() as home:
            home.write(".codex/config.toml", text)
            home.connect("codex", "--yes")
            home.connect("codex", "--yes", "--gate")
            check(home.key("permission_request:0:0") in home.state(), "nothing was written")
            os.unlink(home("bin/codex"))
            home.connect("codex", "--yes", "--undo")
            same(home.read(".codex/config.toml"), text)
            check(not os.path.exists(home(".codex/hooks.json")), "hooks are left")


def test_undo_leaves_what_codex_has_added():
    with CodexHome() as home:
        home.write(".codex/config.toml", TOML)
        home.connect("codex", "--yes", "--gate")
        more = '\n[hooks.state."/x:stop:0:0"]\ntrusted_hash = "h"\n'
        home.write(".codex/config.toml", home.read(".codex/config.toml") + more)
        home.connect("codex", "--yes", "--undo")
        same(home.read(".codex/config.toml"), TOML + "\n" + more)


def test_a_hook_that_has_changed_is_trusted_anew():
    with CodexHome() as home:
        home.connect("codex", "--yes", "--socket", "/a.sock")
        first = home.state()
        home.connect("codex", "--yes", "--socket", "/b.sock")
        same(list(home.state()), list(first))
        check(home.state() != first, "the hash is the old one")
        # What its user has written beside it stays.
        home.write(".codex/config.toml", home.read(".codex/config.toml") + "enabled = false\n")
        home.connect("codex", "--yes", "--socket", "/a.sock")
        [one] = home.state().values()
        same(one, dict(first[home.key("permission_request:0:0")], enabled=False))


def test_a_variable_says_where_with_links_followed():
    with CodexHome() as home:
        os.mkdir(home("x"))
        os.symlink("x", home("y"))
        home.connect("codex", "--yes", CODEX_HOME=home("y"))
        same(list(load(home, "x/config.toml")["hooks"]["state"]),
             [home.key("permission_request:0:0", "x/hooks.json")])
        # Without it Codex takes the home as it is written.
        os.rmdir(home(".codex"))
        os.symlink("z", home(".codex"))
        os.mkdir(home("z"))
        home.connect("codex", "--yes")
        same(list(load(home, "z/config.toml")["hooks"]["state"]),
             [home.key("permission_request:0:0")])


ANSWERS = {
    "is not there": None,
    "ends at once": "exit 0",
    "prints no JSON": "while read -r line; do echo hello; done",
    "knows no hooks/list": "while read -r line; do echo '{\"id\":0,\"result\":{}}'; "
                           "echo '{\"id\":1,\"error\":{\"code\":-32601}}'; done",
    "has another form": "while read -r line; do echo '{\"id\":0,\"result\":{}}'; "
                        "echo '{\"id\":1,\"result\":{\"data\":[{\"hooks\":[{\"key\":\"a\","
                        "\"currentHash\":\"sha256:1\",\"command\":\"koine hook\"}]}]}}'; done",
    "prints without end": "while printf '%01000d' 1; do :; done",
}


def test_without_an_answer_the_user_is_told_of_hooks():
    for what, line in ANSWERS.items():
        with CodexHome() as home:
            os.unlink(home("bin/codex"))
            if line:
                home.program("codex", line)
            out = home.connect("codex", "--yes", patient=False).out
            check("open /hooks" in out, "%s: %r", what, out)
            same(home.state(), {}, what)
            check("mcp_servers" in load(home, ".codex/config.toml"), what)
            same(os.listdir(home("tmp")), [], what)
            got = json.loads(home.connect("codex", "--json", "--dry-run", patient=False).out)
            same((got["changed"], got["trusted"]), (False, False), what)


def test_settings_of_another_form_get_all_but_the_trust():
    with CodexHome() as home:
        home.write(".codex/config.toml", "hooks = { state = {} }\n")
        check("open /hooks" in home.connect("codex", "--yes").out, "nothing was said")
        check("koine" in load(home, ".codex/config.toml")["mcp_servers"], "no server")
        home.connect("codex", "--yes", "--undo")
        same(home.read(".codex/config.toml"), "hooks = { state = {} }\n")


def test_a_projects_hooks_are_left_to_the_user():
    with CodexHome() as home, Folder() as project:
        before = home.all()
        out = home.connect("codex", "--yes", "--project=" + project.path).out
        check("open /hooks" in out, "%r", out)
        same(home.all(), before, "the home")
        with open(project(".codex/config.toml")) as f:
            check("trusted_hash" not in f.read(), "trust is in the project")


def test_a_terminal_is_asked_with_the_trust_in_sight():
    with CodexHome() as home:
        before = home.all()
        with Terminal(home.env, "connect", "codex") as t:
            t.expect("trusted_hash")
            t.expect("Write these changes? [y/N] ")
            t.type("n\r")
            t.leave(1)
        after = home.all()
        after.pop("bin/asked")
        same(after, before)


# ---- Codex itself ----


class Model(http.server.BaseHTTPRequestHandler):
    """Wants one command to be run, and is done."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        self.send_error(404)

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        ran = [i for i in asked["input"] if i.get("type") == "function_call_output"]
        self.server.ran += [i["output"] for i in ran]
        item = {"type": "function_call", "name": "exec_command", "call_id": "c1",
                "arguments": json.dumps({"cmd": "touch ran"})}
        if ran:
            item = {"type": "message", "role": "assistant",
                    "content": [{"type": "output_text", "text": "done"}]}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        data = "".join("event: %s\ndata: %s\n\n" % (e["type"], json.dumps(e)) for e in (
            {"type": "response.created", "response": {"id": "r"}},
            {"type": "response.output_item.done", "item": item},
            {"type": "response.completed", "response": {"id": "r", "usage": usage}})).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def need_codex(home):
    path = os.environ.get("KOINE_CODEX") or installed("codex", path=AGENTS + ":" + os.environ["PATH"])
    os.unlink(home("bin/codex"))
    os.symlink(os.path.realpath(path), home("bin/codex"))
    home.env["PATH"] = home("bin") + ":" + os.environ["PATH"]


def listed(home):
    """What Codex says of the trust of each hook."""
    with subprocess.Popen(["codex", "app-server"], env=home.env, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
        for line in ({"id": 0, "method": "initialize",
                      "params": {"clientInfo": {"name": "t", "version": "1"}}},
                     {"method": "initialized"},
                     {"id": 1, "method": "hooks/list", "params": {"cwds": [home.path]}}):
            p.stdin.write(json.dumps(line).encode() + b"\n")
        p.stdin.flush()
        for line in p.stdout:
            answer = json.loads(line)
            if answer.get("id") == 1:
                break
        p.stdin.close()
    return {h["key"]: h["trustStatus"] for h in answer["result"]["data"][0]["hooks"]}


def test_codex_itself_trusts_what_was_written():
    with CodexHome() as home:
        need_codex(home)
        other = {"hooks": [{"type": "command", "command": "/bin/other"}]}
        home.write(".codex/hooks.json", json.dumps({"hooks": {"PreToolUse": [other]}}))
        home.connect("codex", "--yes", "--gate")
        same(listed(home), {home.key("permission_request:0:0"): "trusted",
                            home.key("pre_tool_use:0:0"): "untrusted",
                            home.key("pre_tool_use:1:0"): "trusted"})
        check("already connected" in home.connect("codex", "--yes", "--gate").out, "twice")


def run_codex(home, server, d):
    home.write(".codex/config.toml", "\n".join((
        'model = "m"', 'model_provider = "ours"', "[model_providers.ours]", 'name = "ours"',
        'base_url = "http://127.0.0.1:%d/v1"' % server.server_port, 'wire_api = "responses"',
        "request_max_retries = 0", "stream_max_retries = 0", '[projects."%s"]' % home("w"),
        'trust_level = "trusted"', "")))
    home.connect("codex", "--yes", "--gate", "--socket", os.path.join(d.root, "koine.sock"))
    subprocess.run(["codex", "exec", "--skip-git-repo-check", "-s", "danger-full-access", "go"],
                   env=home.env, cwd=home("w"), stdin=subprocess.DEVNULL, capture_output=True,
                   timeout=PATIENCE, check=True)


def test_codex_itself_runs_the_hook():
    with CodexHome() as home:
        need_codex(home)
        os.mkdir(home("w"))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
        server.ran = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            with Daemon("--set", "policy.no.verdict=deny",
                        "--set", "policy.no.comment=not today") as d:
                run_codex(home, server, d)
        finally:
            server.shutdown()
            server.server_close()
        check(server.ran and "not today" in server.ran[0], "%r", server.ran)
        check(not os.path.exists(home("w/ran")), "the command ran")


if __name__ == "__main__":
    main(globals())
