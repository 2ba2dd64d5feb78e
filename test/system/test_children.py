#!/usr/bin/env python3
"""What the programs that koined starts find in their environment: each kind of them prints it."""
import os
import subprocess

from harness import (KOINE, Client, Daemon, Folder, check, clean_environment, main, request, same,
                     wait_until)
from provider import OPENAI, Provider, model_flags
from test_gateway import Gateway, user, wants

SECRET = "sekret"
TOKEN = SECRET + "-token"
# What our settings say is secret, by each of the ways to say it.
SECRETS = {"ASH_CONTEXT_TOKEN_SECRET": SECRET * 8, "OPENCLAW_UI_TOKEN": TOKEN,
           "MODEL_KEY": SECRET + "-key", "KOINE_AGENT_OTHER_KEY_COMMAND": "echo " + SECRET}
OTHERS = {"ANTHROPIC_API_KEY": "for-claude", "LC_TIME": "C", "XDG_DATA_HOME": "/nowhere",
          "NAMED": "one", "NAMED_TOO": "two"}
# A short list, which doc/man/koine.conf.5.scd has.
SHORT = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR"}
ALLOW = ("--set", "policy.all.verdict=allow", "--set", "policy.all.agent=gateway")


class World(Folder):
    """Programs that keep their environment in a file of their name, and a daemon with all of them."""

    def __enter__(self):
        super().__enter__()
        os.mkdir(self("bin"))
        for name in ("claude", "session", "agent"):
            with open(self("bin", name), "w", encoding="utf-8") as f:
                f.write("#!/bin/sh\n%s\necho '{\"type\":\"result\",\"result\":\"ok\"}'\n" %
                        self.keep(name))
            os.chmod(self("bin", name), 0o755)
        return self

    def keep(self, name):
        return "env >'%s.new'; mv '%s.new' '%s'" % ((self(name),) * 3)

    def daemon(self, *settings, provider=None, **opts):
        all = ("listen.gateway=on", "gateway.tools=exec", "gateway.process=yes",
               "gateway.folder=" + self.path, "session.program=" + self("bin", "session"),
               "agent.prog.kind=command", "agent.prog.command=" + self("bin", "agent"),
               "agent.keyed.kind=openai", "agent.keyed.url=http://127.0.0.1:1",
               "agent.keyed.model=m", "agent.keyed.key_env=MODEL_KEY",
               "agent.other.kind=openai", "agent.other.url=http://127.0.0.1:1",
               "agent.other.model=m", *settings)
        args = [w for s in all for w in ("--set", s)]
        if provider:
            args += model_flags(provider, OPENAI)
        env = {"PATH": self("bin") + ":" + os.environ["PATH"], **SECRETS, **OTHERS}
        return Daemon(*args, *ALLOW, env=env, **opts)

    def seen(self, name):
        """The environment that a child has kept."""
        path = wait_until(lambda: os.path.exists(self(name)) and self(name), name)
        with open(path, encoding="utf-8") as f:
            found = dict(line.rstrip("\n").split("=", 1) for line in f if "=" in line)
        os.unlink(path)
        return found


def check_free(env, what):
    leaked = sorted(k for k, v in env.items() if SECRET in v)
    same(leaked, [], "secrets of ours in the environment of " + what)


def finds_us(d, env, what):
    same(env.get("KOINE_SOCKET"), d.socket_path, "KOINE_SOCKET of " + what)


def ask(w, d, **params):
    with d.connect() as k:
        k.call("task.wait", {"id": k.call("task.add", {"prompt": "x", **params})["id"]})


def test_agents_have_all_but_our_secrets_and_find_us():
    with World() as w, w.daemon() as d:
        ask(w, d)
        ask(w, d, runner="prog", env={"GIVEN": "x"})
        task = {"claude": w.seen("claude"), "agent": w.seen("agent")}
        same(task["agent"].get("GIVEN"), "x", "what the client gave")
        with d.connect() as k:
            k.call("session.launch", {"query": "x"})
            k.send(request("chat.stream", {"content": "x", "agent": "prog"}) + b"\n")
            found = {**task, "session": w.seen("session"), "a turn": w.seen("agent")}
        for what, env in found.items():
            check_free(env, what)
            finds_us(d, env, what)
            for name, value in OTHERS.items():
                same(env.get(name), value, "%s of %s" % (name, what))


def test_what_tools_run_gets_a_short_list():
    with World() as w:
        calls = wants(("x", "exec", {"command": w.keep("exec")}))
        with Provider(calls, OPENAI.answer("Done.")) as p, w.daemon(provider=p) as d:
            g = Gateway(d, TOKEN)
            same(g.says(user("Work")), "Done.")
            g.get("/process/start", {"command": w.keep("process"), "env": {"GIVEN": "x"}})
            found = {"exec": w.seen("exec"), "a process": w.seen("process")}
            same(found["a process"].pop("GIVEN", None), "x", "what the client gave")
            for what, env in found.items():
                check_free(env, what)
                finds_us(d, env, what)
                more = {k for k in env if not k.startswith(("LC_", "XDG_", "KOINE_"))}
                same(more - SHORT - {"PWD", "OLDPWD", "SHLVL", "_"}, set(), "others in " + what)
                same((env.get("LC_TIME"), env.get("XDG_DATA_HOME")), ("C", "/nowhere"), what)
                check("PATH" in env and "HOME" in env, "%r", env)


def test_the_settings_name_what_else_a_child_gets():
    more = "NAMED MODEL_KEY 'SAID=a b'"
    with World() as w:
        calls = wants(("x", "exec", {"command": w.keep("exec")}))
        with Provider(calls, OPENAI.answer("Done.")) as p, \
                w.daemon(*(s + ".environment=" + more
                           for s in ("gateway", "tasks", "session", "agent.prog")),
                         provider=p) as d:
            g = Gateway(d, TOKEN)
            same(g.says(user("Work")), "Done.")
            g.get("/process/start", {"command": w.keep("process")})
            ask(w, d)
            ask(w, d, runner="prog")
            with d.connect() as k:
                k.call("session.launch", {"query": "x"})
            for name in ("exec", "process", "claude", "agent", "session"):
                env = w.seen(name)
                same((env.get("NAMED"), env.get("MODEL_KEY"), env.get("SAID")),
                     ("one", SECRETS["MODEL_KEY"], "a b"), "what was meant for " + name)
                env.pop("MODEL_KEY")
                check_free(env, name)
                same("NAMED_TOO" in env, name not in ("exec", "process"), "the rest of " + name)


def test_a_pattern_names_no_secret():
    with World() as w, w.daemon("gateway.environment=NAMED* MODEL_*") as d:
        Gateway(d, TOKEN).get("/process/start", {"command": w.keep("process")})
        env = w.seen("process")
        same((env.get("NAMED"), env.get("NAMED_TOO"), env.get("MODEL_KEY")),
             ("one", "two", None), "by pattern")


def test_a_rules_command_and_a_key_command_have_none_of_it():
    with World() as w:
        key = w.keep("key") + "; echo k"
        with w.daemon("rule.r.event=memory.*", "rule.r.command=" + w.keep("rule"),
                      "agent.other.key_command=" + key) as d:
            with d.connect() as k:
                k.call("memory.add", {"content": "something"})
                k.send(request("chat.stream", {"content": "x", "agent": "other"}) + b"\n")
                for name in ("rule", "key"):
                    env = w.seen(name)
                    check_free(env, name)
                    finds_us(d, env, name)
                    same(env.get("NAMED"), "one", name)
                wait_until(lambda: b"rule fired" in d.log(), "the end of the rule's command")


def test_without_a_socket_there_is_an_address():
    with World() as w, w.daemon("agent.prog.environment=NAMED", listen=("tcp:127.0.0.1:0",)) as d:
        with Client(d.address("tcp")) as k:
            k.call("task.wait", {"id": k.call("task.add", {"prompt": "x"})["id"]})
        same(w.seen("claude").get("KOINE_SOCKET"), d.address("tcp"), "KOINE_SOCKET")


def test_a_hook_below_a_task_asks_this_daemon():
    """Under --root, where nobody would find it by itself: what our policy denies is denied."""
    call = '{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "rm -rf /"}}'
    hook = "echo '%s' | '%s' hook --agent claude --format claude" % (call, KOINE)
    with World() as w:
        with open(w("bin", "claude"), "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n" + hook + "\n")
        with w.daemon("policy.no.verdict=deny", "policy.no.agent=claude",
                      "policy.no.tool=Bash") as d, d.connect() as k:
            task = k.call("task.add", {"prompt": "x"})["id"]
            k.call("task.wait", {"id": task})
            said = k.call("task.show", {"id": task})["result"]
            check('"permissionDecision":"deny"' in said.replace(" ", ""), "%r", said)


def test_koine_goes_where_its_variable_says():
    """koined tells its children a port where it has no Unix socket: their hooks must find it."""
    hook = b'{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"rm -rf /"}}'
    for kind in "unix", "tcp", "http":
        where = () if kind == "unix" else (kind + ":127.0.0.1:0",)
        with Daemon("--set", "policy.no.verdict=deny", **({"listen": where} if where else {})) as d:
            env = clean_environment({"KOINE_SOCKET": d.address(kind)})
            done = subprocess.run([KOINE, "hook"], input=hook, env=env, capture_output=True)
            check(b'"permissionDecision":"deny"' in done.stdout, "%s: %r", kind, done)


if __name__ == "__main__":
    main(globals())
