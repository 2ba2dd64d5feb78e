#!/usr/bin/env python3
"""[chat], [agent NAME] and [nexus]: the three places they come from, what is refused and with
which words, --check, nexus's listener, and how turns end with the daemon."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess

from harness import (KOINE, SOURCE, Client, Daemon, Folder, Http, check,
                     clean_environment, main, post, request, run_koined, same,
                     wait_until)

UNAVAILABLE, CONFIG = 69, 78
TOKEN = "0123456789abcdef-nexus"
OTHER = "fedcba9876543210-koine"


def write(path, text, mode=0o600):
    with open(path, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())
    os.chmod(path, mode)
    return path


def sections(text):
    """What --check printed, as section to key to value."""
    out = {}
    section = None
    for line in text.decode().splitlines():
        found = re.fullmatch(r"\[(.+)\]", line)
        if found:
            section = out.setdefault(found.group(1), {})
        pair = re.fullmatch(r"(\w+) ?= ?(.*)", line)
        if pair and section is not None:
            section[pair.group(1)] = pair.group(2)
    return out


def settings(*args, env=None, status=0):
    with Folder() as folder:
        done = run_koined("--root", folder.path, "--check", *args, env=env)
        same(done.returncode, status, "exit status (%r)" % (done.stderr or done.stdout[:800]))
        return sections(done.stdout)


def refused(words, *args, env=None, status=CONFIG):
    with Folder() as folder:
        done = run_koined("--root", folder.path, *args, env=env)
        same(done.returncode, status, "exit status of %r (%r)" % (args or env, done.stderr))
        check(words.encode() in done.stderr, "%r: %r is not in %r", args or env, words, done.stderr)


def sets(*pairs):
    return [word for pair in pairs for word in ("--set", pair)]


# ---- where they come from ----


OLLAMA = "[agent ollama]\nkind = openai\nurl = http://127.0.0.1:11434\nmodel = one\n"


def test_an_agent_is_named_the_same_in_all_three_places():
    with Folder() as folder:
        conf = write(folder("koine.conf"), OLLAMA + "[chat]\nagent = ollama\nbudget = 9000\n")
        got = settings("--config", conf)
        same(got["agent ollama"]["model"], "one", "model in the file")
        same((got["chat"]["agent"], got["chat"]["budget"]), ("ollama", "9000"), "chat in the file")
        env = {"KOINE_AGENT_OLLAMA_MODEL": "two", "KOINE_CHAT_BUDGET": "9100"}
        got = settings("--config", conf, env=env)
        same((got["agent ollama"]["model"], got["chat"]["budget"]), ("two", "9100"),
             "in the environment")
        got = settings("--config", conf, *sets("agent.ollama.model=three"), "--agent", "recall",
                       env=env)
        same((got["agent ollama"]["model"], got["chat"]["agent"]), ("three", "recall"), "by flags")
        same(got["agent ollama"]["url"], "http://127.0.0.1:11434", "what nobody changed")


def test_a_name_may_have_dots_and_the_environment_finds_it():
    with Folder() as folder:
        conf = write(folder("koine.conf"), "[agent My.Own-one]\nkind = recall\n")
        got = settings("--config", conf, env={"KOINE_AGENT_MY_OWN_ONE_WORD_DELAY": "5"})
        same(got["agent My.Own-one"]["word_delay"], "5", "from the environment")
        got = settings("--config", conf, *sets("agent.My.Own-one.word_delay=6"))
        same(got["agent My.Own-one"]["word_delay"], "6", "by --set")


def test_a_name_that_only_the_environment_has_makes_an_agent():
    got = settings(env={"KOINE_AGENT_MY_LLAMA_KIND": "openai",
                        "KOINE_AGENT_MY_LLAMA_URL": "http://127.0.0.1:1",
                        "KOINE_AGENT_MY_LLAMA_TEMPERATURE": "0.7"})
    same(got["agent my_llama"]["temperature"], "0.7", "in lower case")


def test_the_longest_key_at_the_end_of_a_variable_decides():
    got = settings(env={"KOINE_AGENT_X_KIND": "openai", "KOINE_AGENT_X_URL": "http://127.0.0.1:1",
                        "KOINE_AGENT_X_KEY_COMMAND": "echo key"})
    same(got["agent x"]["key_command"], "echo key", "key_command, not the command of x_key")
    check("agent x_key" not in got, "%r", list(got))


def test_variables_that_name_no_setting_of_an_agent_are_refused():
    for name in "KOINE_AGENT_X_URLS", "KOINE_AGENT_URL", "KOINE_AGENT__URL2", "KOINE_AGENT_X_":
        refused("unknown setting " + name, env={name: "1"})
    refused("unknown setting KOINE_CHAT_AGENTS", env={"KOINE_CHAT_AGENTS": "1"})
    with Folder() as folder:
        conf = write(folder("koine.conf"), "[agent a.b]\nkind=recall\n[agent a-b]\nkind=recall\n")
        refused("KOINE_AGENT_A_B is ambiguous: it may mean agent a.b or a-b", "--config", conf,
                env={"KOINE_AGENT_A_B_WORD_DELAY": "1"})


def test_defaults_are_those_of_the_manual():
    got = settings()
    chat = got["chat"]
    same((chat["agent"], chat["budget"], chat["reserve"], chat["system_file"]),
         ("recall", "8000", "2000", ""), "[chat]")
    check("reached through koine" in chat["system"], "%r", chat)
    same(got["agent recall"], {"kind": "recall", "word_delay": "0", "budget": "0", "reserve": "0"},
         "[agent recall]")
    same(got["nexus"], {"token_file": "", "shutdown": "daemon"}, "[nexus]")
    got = settings(*sets("agent.anthropic.model=m", "agent.command.command=true"))
    model = got["agent anthropic"]
    same((model["kind"], model["retries"], model["temperature"], model["idle_timeout"]),
         ("anthropic", "2", "", "120"), "a model's")
    command = got["agent command"]
    same((command["input"], command["output"], command["interrupt_time"],
          command["terminate_time"]), ("argument", "text", "5", "5"), "a command's")


# ---- what is refused ----


def test_wrong_settings_of_agents_are_refused_with_words():
    for words, pairs in (
            ("[agent x] requires kind: recall, openai, anthropic or command", ["agent.x.budget=9000"]),
            ("invalid agent.x.kind 'llm': expected recall, openai, anthropic or command", ["agent.x.kind=llm"]),
            ("unknown setting 'urls' in [agent x]", ["agent.x.urls=1"]),
            ("[agent x]: url is not valid for kind command",
             ["agent.x.kind=command", "agent.x.command=true", "agent.x.url=http://127.0.0.1:1"]),
            ("[agent x]: command is not valid for kind openai",
             ["agent.x.kind=openai", "agent.x.url=http://127.0.0.1:1", "agent.x.command=true"]),
            ("[agent recall]: model is not valid for kind recall", ["agent.recall.model=m"]),
            ("[agent recall]: kind must be recall", ["agent.recall.kind=command"]),
            ("[agent x]: set only one of key_env, key_file and key_command",
             ["agent.x.kind=openai", "agent.x.url=http://127.0.0.1:1", "agent.x.key_env=A",
              "agent.x.key_file=/a"]),
            ("[agent openai]: kind openai requires url", ["agent.openai.model=m"]),
            ("[agent anthropic]: kind anthropic requires model", ["agent.anthropic.retries=1"]),
            ("[agent command]: kind command requires command", ["agent.command.cwd=/"]),
            ("invalid agent.x.url: expected http://HOST[:PORT][/PATH], https://… or unix:PATH",
             ["agent.x.url=ftp://127.0.0.1"]),
            ("invalid agent.x.temperature 'hot': expected a number", ["agent.x.temperature=hot"]),
            ("invalid agent.x.temperature '3': expected a number from 0 to 2", ["agent.x.temperature=3"]),
            ("invalid agent.x.retries '11': expected a number from 0 to 10", ["agent.x.retries=11"]),
            ("invalid agent.x.output 'xml': expected text or stream-json", ["agent.x.output=xml"]),
            ("expected 1 to 40", ["agent.a b.kind=recall"]),
            ("expected 1 to 40", ["agent.%s.kind=recall" % ("a" * 41)]),
            ("expected 1 to 40", ["agent..kind=recall"]),
            ("'none' is reserved and means no agent", ["agent.none.kind=recall"]),
            ("unknown setting 'kind' in [agent]", ["agent.kind=recall"]),
            ("too many agents (limit 32)", ["agent.a%d.kind=recall" % i for i in range(32)]),
            ("invalid chat.reserve '8000': expected less than chat.budget (8000)",
             ["chat.reserve=8000"]),
            ("[agent recall]: invalid reserve '2000': expected less than the budget (1500)",
             ["agent.recall.budget=1500"]),
            ("invalid chat.system '", ["chat.system=" + "x" * 512]),
            ("invalid nexus.shutdown 'all': expected daemon, listener or off", ["nexus.shutdown=all"])):
        refused(words, *sets(*pairs))


def test_a_wrong_key_in_the_file_is_named_with_its_line():
    with Folder() as folder:
        conf = write(folder("koine.conf"), OLLAMA + "modell = two\n")
        refused("%s:5: unknown setting 'modell' in [agent ollama]" % conf, "--config", conf)
        conf = write(folder("koine.conf"), "[agent %s]\nkind = recall\n" % ("a" * 60))
        refused("%s:1: " % conf, "--config", conf)
        conf = write(folder("koine.conf"), "[agent x]\n")
        refused("[agent x] requires kind", "--config", conf)


def test_a_url_that_cannot_be_is_not_repeated():
    with Folder() as folder:
        done = run_koined("--root", folder.path, *sets("agent.x.url=http://me:geheim@127.0.0.1"))
        same(done.returncode, CONFIG, "exit status")
        check(b"geheim" not in done.stderr, "%r", done.stderr)


def test_an_unknown_default_agent_is_refused_with_the_names_there_are():
    refused("chat.agent = olama: agent not found (available: recall", "--agent", "olama")
    refused("chat.agent = olama: agent not found (available: recall, ollama and quick",
            "--agent", "olama", *sets("agent.ollama.kind=openai",
                                      "agent.ollama.url=http://127.0.0.1:1",
                                      "agent.quick.kind=recall"))


def test_a_reload_with_a_wrong_agent_changes_nothing():
    with Folder() as folder:
        conf = write(folder("koine.conf"), "[limits]\nbatch = 2\n")
        with Daemon("--config", conf, announced=["could not reload settings"]) as d:
            write(conf, "[limits]\nbatch = 3\n[chat]\nagent = nobody\n")
            d.signal(signal.SIGHUP)
            wait_until(lambda: b"could not reload settings" in d.log(), "the log line")
            check(b"agent not found" in d.log(), "%r", d.log())
            d.alive()


# ---- --check ----


def check_line(name, *args, env=None, status=0):
    with Folder() as folder:
        done = run_koined("--root", folder.path, "--check", *args, env=env)
        same(done.returncode, status, "exit status (%r)" % done.stdout[:600])
        lines = re.findall(r"^would use     agent (%s \(.*)$" % re.escape(name), done.stdout.decode(),
                           re.M)
        same(len(lines), 1, "lines of %s in %r" % (name, done.stdout[:600]))
        return lines[0]


def test_check_tells_what_each_agent_lacks():
    with Folder() as folder:
        same(check_line("recall"), "recall (recall)  ok, the default", "line of recall")
        url = ["agent.x.kind=openai", "agent.x.url=http://127.0.0.1:1", "agent.x.model=m"]
        same(check_line("x", *sets(*url)), "x (openai http://127.0.0.1:1)  ok", "line of a model")
        line = check_line("x", *sets(*url, "agent.x.key_env=NO_SUCH_KEY"))
        same(line, "x (openai http://127.0.0.1:1)  not available: environment variable NO_SUCH_KEY is not set",
             "line without the variable")
        line = check_line("x", *sets("agent.x.kind=command", "agent.x.command=no-such-program -p"))
        same(line, "x (command)  not available: no program 'no-such-program' in PATH",
             "line without the program")
        plain = write(folder("plain"), "#!/bin/sh\n", 0o600)
        line = check_line("x", *sets("agent.x.kind=command", "agent.x.command=" + plain))
        same(line, "x (command)  not available: '%s' is not executable" % plain, "line of a plain file")
        line = check_line("x", *sets(*url[:2]), "--agent", "x")
        same(line, "x (openai http://127.0.0.1:1)  warning, the default: no model is set, but most "
             "servers require a model", "line without a model")
        line = check_line("x", *sets("agent.x.kind=command", "agent.x.command=cat -u"))
        same(line, "x (command)  ok", "line of a program")
        key = write(folder("key"), "sk-secret\n")
        line = check_line("x", *sets(*url, "agent.x.key_file=" + key))
        same(line, "x (openai http://127.0.0.1:1)  ok", "line with a private key")
        os.chmod(key, 0o644)
        line = check_line("x", *sets(*url, "agent.x.key_file=" + key))
        check("not available: " in line and "must belong to this user and have mode 0600" in line,
              "%r", line)
        line = check_line("x", *sets("agent.x.kind=command", "agent.x.command='open"))
        check("not available: " in line, "%r", line)


# ---- one that cannot answer ----


def agents_of(d):
    with d.connect() as c:
        return {a["name"]: (a["ok"], a["text"]) for a in c.call("chat.agents")["agents"]}


def told(c):
    """The answer, behind the words that came before it."""
    while "id" not in (line := json.loads(c.read_line())):
        pass
    return line


def ask(c, **params):
    c.send(request("chat.stream", dict({"content": "hi"}, **params)) + b"\n")
    return told(c)


def test_a_broken_agent_keeps_nobody_from_starting():
    with Folder() as folder:
        key = write(folder("key"), "sk-secret\n", 0o640)
        args = sets("agent.x.kind=openai", "agent.x.url=http://127.0.0.1:1",
                    "agent.x.key_file=" + key, "agent.y.kind=command", "agent.y.command='open",
                    "agent.z.kind=openai", "agent.z.url=http://127.0.0.1:1",
                    "agent.z.key_env=NO_SUCH_KEY")
        with Daemon(*args, "--agent", "y", announced=["agent unavailable  agent=x ",
                                                      "agent unavailable  agent=y ",
                                                      "agent unavailable  agent=z "]) as d:
            found = agents_of(d)
            same(found["recall"][0], True, "recall")
            check(not found["x"][0] and "have mode 0600" in found["x"][1], "%r", found)
            check(not found["y"][0] and not found["z"][0], "%r", found)
            with d.connect() as c:
                said = ask(c)
                check("agent 'y' is not available: " in said["error"]["message"], "%r", said)
            # Mended while it runs: nothing has to be started again.
            os.chmod(key, 0o600)
            check("private" not in agents_of(d)["x"][1], "%r", agents_of(d))


def test_the_guides_own_settings_start():
    with open(os.path.join(SOURCE, "doc", "guide.md")) as f:
        conf = re.search(r"(?s)```\n(\[chat\]\nagent = ollama\n.*?)```", f.read()).group(1)
    with Folder() as folder:
        write(folder("koine.conf"), conf)
        lacks = ["openai", "anthropic"] + ([] if shutil.which("claude") else ["claude"])
        with Daemon("--config", folder("koine.conf"), env={"OPENAI_API_KEY": ""},
                    announced=["agent unavailable  agent=%s " % name for name in lacks]) as d:
            check({"recall", "ollama", "anthropic", "claude"} <= set(agents_of(d)), "agents")


def test_a_reload_takes_agents_as_they_are_now():
    with Folder() as folder:
        conf = write(folder("koine.conf"), "[agent one]\nkind = command\ncommand = echo first\n"
                     "[agent slow]\nkind = recall\nword_delay = 40\n[chat]\nagent = one\n")
        with Daemon("--config", conf) as d, d.connect() as c, d.connect() as busy:
            check("first" in ask(c)["result"]["content"], "the first")
            # Under way when the settings change: it ends with the agent it began with.
            busy.send(request("chat.stream", {"content": "An essay", "conversation": "busy",
                                              "agent": "slow"}) + b"\n")
            check(b"chat.text" in busy.read_line(), "its first words")
            write(conf, "[agent one]\nkind = command\ncommand = echo second\n"
                        "[agent two]\nkind = command\ncommand = echo third\n[chat]\nagent = two\n")
            same(c.call("daemon.reload")["reloaded"], True, "answer")
            check("third" in ask(c)["result"]["content"] and
                  "second" in ask(c, agent="one")["result"]["content"], "the new ones")
            same(set(agents_of(d)), {"recall", "one", "two"}, "agents")
            said = ask(c, agent="slow")
            check("agent not found: 'slow'" in said["error"]["message"], "%r", said)
            check("result" in (said := told(busy)), "%r", said)
            # Again and again, and back: nothing is left behind.
            for i in range(3):
                write(conf, "[agent one]\nkind = command\ncommand = echo %d\n[chat]\nagent = one\n"
                      % i)
                done = subprocess.run([KOINE, "-s", d.socket_path, "daemon", "reload"],
                                      capture_output=True, check=True, env=clean_environment())
                lines = done.stdout.decode().splitlines()
                same((lines[0], "applied: agent.one.command (%s:3)" % conf in lines), ("koined has reloaded its settings", True),
                     "command line")
                check(str(i) in ask(c)["result"]["content"], "reloaded %d", i)


def test_a_reload_counts_only_agents_that_are_new_and_a_refused_one_leaves_nothing():
    def conf_of(n, delay):
        others = "".join("[agent a%d]\nkind = recall\nword_delay = %d\n" % (i, delay)
                         for i in range(n))
        return ("[agent one]\nkind = command\ncommand = sh -c 'echo PATH=$PATH'\n"
                "[chat]\nagent = one\n" + others)

    with Folder() as folder:
        conf = write(folder("koine.conf"), conf_of(0, 0))
        with Daemon("--config", conf, announced=["could not reload settings"]) as d:
            with d.connect() as c:
                for delay in range(33):
                    write(conf, conf_of(30, delay))
                    same(c.call("daemon.reload")["reloaded"], True, "reload %d" % delay)
                # 33 times 30 are in use, with the first two: 32 more fit, 30 twice do not.
                write(conf, conf_of(30, 33))
                same(c.call("daemon.reload")["reloaded"], True, "the last that fits")
                for delay in range(34, 37):
                    write(conf, conf_of(30, delay))
                    c.send(request("daemon.reload") + b"\n")
                    said = told(c)
                    check("too many agents since" in said["error"]["message"], "%r", said)
                    check("PATH=" in ask(c)["result"]["content"], "its environment")
                # Nobody new is among these.
                write(conf, conf_of(20, 33))
                same(c.call("daemon.reload")["reloaded"], True, "fewer of the same")
                same(len(agents_of(d)), 22, "agents")
                check("PATH=" in ask(c)["result"]["content"], "its environment")


def test_a_system_file_is_read_at_start_and_must_be_text():
    with Folder() as folder:
        for text, words in ((b"x" * 65537, "is larger than 64 KiB"), (b"\xff\xfe", "is not UTF-8 text"),
                            (b"a\0b", "is not UTF-8 text")):
            file = write(folder("system"), text)
            refused(words, *sets("chat.system_file=" + file))
            settings(*sets("chat.system_file=" + file), status=UNAVAILABLE)
        refused("cannot read chat.system_file", *sets("chat.system_file=" + folder("nothing")))
        refused("is not a file", *sets("chat.system_file=" + folder.path))
        os.mkfifo(folder("fifo"))
        refused("is not a file", *sets("chat.system_file=" + folder("fifo")))
        write(folder("empty"), "")
        settings(*sets("chat.system_file=" + folder("empty")))
        file = write(folder("system"), "x" * 65536)
        with Daemon(*sets("chat.system_file=" + file, "chat.budget=100000")) as d:
            same(Nexus(d).call("get_tokens")["system"] > 16000, True, "its tokens count")
        with Daemon(*sets("chat.system=")) as d:
            same(Nexus(d).call("get_context")["system_prompt"], False, "no prompt")


# ---- nexus's listener ----


class Nexus:
    """One keep-alive connection to nexus's port."""

    def __init__(self, daemon, token=None):
        self.client = daemon.connect("http", "nexus")
        self.headers = "Authorization: Bearer %s\r\n" % token if token else ""

    def post(self, method, params=None, id=1):
        return post(self.client, request(method, params, id), headers=self.headers)

    def ask(self, method, params=None):
        return json.loads(self.post(method, params).body)

    def call(self, method, params=None):
        answer = self.ask(method, params)
        check("result" in answer, "%s failed: %r", method, answer)
        return answer["result"]


def test_below_a_root_nexus_has_a_free_port():
    with Daemon() as one, Daemon() as two:
        ports = {d.address("http", "nexus") for d in (one, two)}
        same(len(ports), 2, "ports of two daemons in %r" % ports)
        check(all(re.fullmatch(r"http:127\.0\.0\.1:[1-9]\d*", p) for p in ports), "%r", ports)
        for d in one, two:
            same(Nexus(d).call("get_context")["message_count"], 0, "messages")


def test_without_a_root_nexus_would_have_its_own_port():
    with Folder() as folder:
        done = run_koined("--check", "--store", "sqlite:" + folder("koine.db"),
                          env={"XDG_RUNTIME_DIR": folder.path, "ASH_RPC_SOCKET": folder("a.sock")})
        check(b"would listen  nexus http:127.0.0.1:8765  " in done.stdout, "%r", done.stdout)


def test_nexus_binds_nothing_but_localhost():
    for host in "0.0.0.0", "127.0.0.2", "192.168.1.1", "[::]", "example.org", "localhost.evil":
        words = "Security: HTTP server must bind to localhost only, not '%s'" % host
        refused(words, "--listen", "nexus=http:%s:0" % host)
        refused(words, *sets("listen.nexus=http:%s:0" % host))
        refused(words, env={"KOINE_LISTEN_NEXUS": "http:%s:0" % host})
    refused("expected HOST:PORT", "--listen", "nexus=http:8765")
    for host in "127.0.0.1", "localhost":
        with Daemon("--set", "listen.nexus=http:%s:0" % host) as d:
            port = int(d.address("http", "nexus").rpartition(":")[2])
            with Client("http:127.0.0.1:%d" % port) as c:
                same(post(c, request("get_context")).status, 200, "status")


def test_nexus_may_be_on_a_socket_or_off():
    with Folder() as folder:
        with Daemon("--set", "listen.nexus=unix:" + folder("n.sock")) as d:
            with Client("unix:" + folder("n.sock")) as c:
                same(post(c, request("get_context")).status, 200, "status")
        with Daemon("--set", "listen.nexus=off") as d:
            same([dialect for dialect, _ in d.addresses], ["koine", "ash", "hld", "ocg", "aiwg"],
                 "dialects")


def test_a_taken_port_is_refused_with_how_to_do_without():
    with socket.socket() as taken, Folder() as folder:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place = "http:127.0.0.1:%d" % taken.getsockname()[1]
        args = ("--root", folder.path, *sets("listen.nexus=" + place))
        done = run_koined(*args)
        same(done.returncode, UNAVAILABLE, "exit status")
        check(("address in use: %s (python3, pid %d); to start without nexus, set [listen] "
               "nexus = off" % (place, os.getpid()))
              .encode() in done.stderr, "%r", done.stderr)
        done = run_koined(*args, "--check")
        same(done.returncode, UNAVAILABLE, "exit status of --check")
        check(("nexus %s  error: address in use" % place).encode() in done.stdout,
              "%r", done.stdout)
        same(os.path.exists(folder("koine.sock")), False, "a socket left behind")


def statuses(daemon, kind, dialect, tokens):
    out = []
    for token in tokens:
        with Client(daemon.address(kind, dialect)) as c:
            headers = "Authorization: Bearer %s\r\n" % token if token else ""
            out.append(post(c, request("ping" if dialect == "koine" else "get_context"),
                            headers=headers).status)
    return out


def test_nexus_has_a_token_of_its_own_or_koines():
    with Folder() as folder:
        own = write(folder("nexus.token"), TOKEN + "\n")
        koines = write(folder("koine.token"), OTHER + "\n")
        listen = ("--listen", "nexus=http:127.0.0.1:0", "--listen", "koine=http:127.0.0.1:0",
                  "--listen", "koine=unix:" + folder("k.sock"))
        asked = (None, TOKEN, OTHER)
        with Daemon(*listen, *sets("nexus.token_file=" + own)) as d:
            same(statuses(d, "http", "nexus", asked), [401, 200, 403], "nexus with its own")
            same(statuses(d, "http", "koine", asked), [200, 200, 200], "koine with none")
        with Daemon(*listen, *sets("koine.token_file=" + koines)) as d:
            same(statuses(d, "http", "nexus", asked), [401, 403, 200], "nexus with koine's")
        with Daemon(*listen, *sets("koine.token_file=" + koines, "nexus.token_file=" + own)) as d:
            same(statuses(d, "http", "nexus", asked), [401, 200, 403], "nexus with both set")
            same(statuses(d, "http", "koine", asked), [401, 403, 200], "koine with both set")
        os.chmod(own, 0o640)
        refused("must belong to this user", *sets("nexus.token_file=" + own))


def test_shutdown_closes_the_listener_alone_when_told_so():
    with Daemon(*sets("nexus.shutdown=listener")) as d:
        same(Nexus(d).call("shutdown"), {"success": True}, "answer")

        def closed():
            try:
                Client(d.address("http", "nexus")).close()
            except ConnectionRefusedError:
                return True
            return False

        wait_until(closed, "the port to be closed")
        d.alive()
    with Daemon() as d:
        same(Nexus(d).call("shutdown"), {"success": True}, "answer")
        same(d.wait_exit(), 0, "exit status of the whole daemon")


# ---- agents at work ----


def test_without_an_agent_a_question_is_refused_and_the_rest_works():
    with Daemon("--agent", "none") as d:
        n = Nexus(d)
        error = n.ask("send", {"content": "Hello"})["error"]
        check("no agent is configured" in error["message"], "%r", error)
        same(n.call("get_context")["message_count"], 0, "messages")
        d.alive()


def test_a_word_delay_can_be_set_and_the_offline_responder_remembers():
    with Daemon(*sets("agent.recall.word_delay=1")) as d:
        n = Nexus(d)
        n.call("send", {"content": "My name is Alice"})
        check("Alice" in n.call("send", {"content": "What is my name?"})["content"], "no Alice")


SLOW = request("send", {"content": "My name is Alice", "request_id": "r1"})
SLOWLY = sets("agent.recall.word_delay=300")


def stored(n, words):
    rows = n.call("get_messages")["messages"]
    return len(rows) == 2 and words in rows[1]["content"]


def begin_turn(d, words="I am koine's", over_http=True):
    """Asks what takes long to answer; the client, when the words have reached the store."""
    c = d.connect("http" if over_http else "unix", "nexus" if over_http else "koine")
    c.send(Http.wrap(SLOW) if over_http else SLOW + b"\n")
    other = Nexus(d)
    wait_until(lambda: stored(other, words), "the first words")
    other.client.close()
    return c


def said(root):
    """What a later daemon finds of the turn."""
    with Daemon(root=root) as d:
        rows = Nexus(d).call("get_messages")["messages"]
        same([r["role"] for r in rows], ["user", "assistant"], "roles")
        return rows[1]


def test_a_stop_cancels_turns_in_time_to_tell_what_came():
    with Folder() as folder:
        with Daemon(*SLOWLY, *sets("limits.stop_time=3"), root=folder.path) as d:
            c = begin_turn(d)
            d.signal(signal.SIGTERM)
            answer = json.loads(c.read_response().body)["result"]
            same((answer["request_id"], answer["cancelled"]), ("r1", True), "answer")
            check("I am koine" in answer["content"], "%r", answer)
            same(d.wait_exit(), 0, "exit status")
        same(said(folder.path)["content"], answer["content"], "what was kept")


def test_a_turn_whose_client_left_ends_with_the_daemon_and_is_kept():
    with Folder() as folder:
        with Daemon(*SLOWLY, *sets("limits.stop_time=600"), root=folder.path) as d:
            begin_turn(d, over_http=False).close()
            wait_until(lambda: d.status()["listeners"][0]["connections"] == 1, "it to be gone")
            d.signal(signal.SIGTERM)
            same(d.wait_exit(), 0, "exit status")
        check("I am koine" in said(folder.path)["content"], "nothing was kept")


def test_a_second_signal_ends_a_turn_at_once():
    with Folder() as folder:
        with Daemon(*SLOWLY, *sets("limits.stop_time=600"), root=folder.path) as d:
            begin_turn(d)
            d.signal(signal.SIGTERM)
            wait_until(lambda: b"stopping" in d.log(), "the stop to begin")
            d.signal(signal.SIGTERM)
            same(d.wait_exit(), 0, "exit status")
        check("I am koine" in said(folder.path)["content"], "nothing was kept")


def processes(mark):
    """Those that carry the mark in their command line."""
    out = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                if mark.encode() in f.read() and int(pid) != os.getpid():
                    out.append(int(pid))
        except OSError:
            pass
    return out


# It prints, ignores what it is asked, and has a child that does the same.
STUBBORN = """#!/bin/sh
trap '' INT TERM
echo here it is
(trap '' INT TERM; while :; do sleep 1000; done) &
while :; do sleep 1000; done
"""


def none_left(groups):
    def left():
        out = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if os.getpgid(int(pid)) in groups:
                    out.append(pid)
        return out

    # Those it left to init are reaped by that.
    wait_until(lambda: not left(), "the programs to be gone")


def stubborn_turn(d, script):
    c = begin_turn(d, "here it is")
    groups = {os.getpgid(p) for p in processes(script) if p != d.pid}
    check(groups and os.getpgid(d.pid) not in groups, "groups %r", groups)
    d.signal(signal.SIGTERM)
    return c, groups


def test_no_program_survives_a_stop():
    with Folder() as folder:
        script = write(folder("agent.sh"), STUBBORN, 0o700)
        args = sets("agent.x.kind=command", "agent.x.command=" + script, "chat.agent=x")
        at_once = sets("agent.x.interrupt_time=0", "agent.x.terminate_time=0")
        with Daemon(*args, *at_once, *sets("limits.stop_time=3")) as d:
            c, groups = stubborn_turn(d, script)
            answer = json.loads(c.read_response().body)["result"]
            same((answer["content"].strip(), answer["cancelled"]), ("here it is", True), "answer")
            same(d.wait_exit(), 0, "exit status")
            none_left(groups)
        with Daemon(*args, *sets("limits.stop_time=1"), root=folder.path,
                    announced=["shutdown timed out"]) as d:
            c, groups = stubborn_turn(d, script)
            same(d.wait_exit(), 0, "exit status though it would have more time")
            none_left(groups)
        check("here it is" in said(folder.path)["content"], "nothing was kept")


if __name__ == "__main__":
    main(globals())
