#!/usr/bin/env python3
"""The ocg dialect with Go itself as the client (test/go/ocg), and byte by byte."""
import json
import os
import re
import socket
import stat
import subprocess

from harness import (KOINE, PATIENCE, SERVER, SOURCE, Client, Daemon, Folder, Length, check, installed, main,
                     request, run_koined, same, wait_until)
from nexus_client import Nexus
from provider import OPENAI, Provider, model_flags, plain

BUILD = os.environ["KOINE_BUILD"]
TRANSCRIPT = os.path.join(SOURCE, "test", "vectors", "ocg-transcript.json")
PAGE = os.path.join(SOURCE, "doc", "dialects", "ocg.md")
VECTORS = os.path.join(SOURCE, "test", "vectors", "gob.json")


def program(name, *source):
    """One of test/go, or another source, built once."""
    installed("go")
    path = os.path.join(BUILD, "go", name)
    source = os.path.join(SOURCE, *(source or ("test", "go", name, "main.go")))
    if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(source):
        env = dict(os.environ, GO111MODULE="off", GOFLAGS="", GOTOOLCHAIN="local", CGO_ENABLED="0",
                   GOCACHE=os.path.join(BUILD, "gocache"), GOPATH=os.path.join(BUILD, "gopath"))
        subprocess.run(["go", "build", "-o", path, source], check=True, env=env, timeout=150)
    return path


def said(*args):
    done = subprocess.run([program("ocg"), *args], capture_output=True, timeout=4 * PATIENCE)
    check(done.returncode == 0, "%s", done.stderr.decode(errors="replace"))
    return done.stdout.decode().splitlines()


def numbered(n):
    """The nth conversation: where hosts share a store, each counts for itself."""
    return "ocg-%s%d" % (socket.gethostname() + "-" if SERVER else "", n)


def ocg_path(d):
    return d.address("unix", "ocg")[len("unix:"):]


# ---- a model that says what it was sent; the rule is ocgserver's too ----


def calls(*wanted, text=""):
    steps = [OPENAI.text(text)] if text else []
    for i, (id, name, arguments) in enumerate(wanted):
        steps += OPENAI.tool_call(i, id, name, arguments)
    return OPENAI.reply(*steps, OPENAI.finish(stop="tools"), OPENAI.done)


def echo(asked):
    messages = [m for m in asked.json["messages"] if m["role"] != "system"]
    results = []
    for m in reversed(messages):
        if m["role"] != "tool":
            break
        results.insert(0, m)
    text = [m["content"] for m in messages if m["role"] == "user"][-1]
    names = [t["function"]["name"] for t in asked.json.get("tools", [])]
    if results and results[0]["content"] == "more":
        return calls(("call_more", names[0], '{"again":true}'))
    if results:
        return OPENAI.answer("results: " + "; ".join(
            "%s=%s" % (m["tool_call_id"], m["content"]) for m in results))
    if names:
        return calls(*(("call_%d" % i, name, '{"of":"%s"}' % text) for i, name in enumerate(names)),
                     text="a moment")
    return OPENAI.answer("echo %d: %s" % (len(messages), text))


def served(p, *args, **opts):
    return Daemon(*model_flags(p, OPENAI), *args, **opts)


# ---- Go's programs ----


class GoServer:
    def __init__(self, folder):
        self.path = folder("go.sock")

    def __enter__(self):
        self.process = subprocess.Popen([program("ocgserver"), self.path], stdout=subprocess.PIPE)
        same(self.process.stdout.readline(), b"ready\n", "the Go server")
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def test_koined_answers_as_gos_own_server_does():
    with Folder() as f, GoServer(f) as go:
        # its types are the program's own, where the original has a package
        want = [line.replace("struct type main.", "struct type rpcproto.")
                for line in said(go.path)]
    with Provider(default=echo) as p, served(p) as d:
        for got, line in zip(said(ocg_path(d)), want, strict=True):
            same(got, line, "what the client printed")


def test_the_same_stream_is_served_on_koines_own_socket():
    with Provider(default=echo) as p, served(p) as d:
        same(said(d.socket_path, "chat", "over there"), ['Agent.Chat "echo 1: over there"'])
        lines = said(d.socket_path, "many", "300")
        check(lines[0] == "0 <nil> 5 x 100", "%r", lines)
        # ... and the same rows to those who speak JSON
        same(d.connect().call("Agent.Chat", {"Messages": [{"Role": "user", "Content": "JSON"}]}),
             {"Content": "echo 1: JSON"})


def test_the_example_is_answered():
    example = program("dial", "examples", "dial.go")
    with Daemon() as d:
        for path in (ocg_path(d), d.address("unix", "koine")[len("unix:"):]):
            done = subprocess.run([example, path, "Hello"], capture_output=True, timeout=PATIENCE)
            check(done.returncode == 0 and b"offline responder" in done.stdout, "%r", done)


def test_each_of_the_errors_when_it_is_true():
    words = {"--agent none": "agent not initialized",
             "--set memory.enabled=no": "memory store not initialized"}
    for flags, want in words.items():
        with Daemon(*flags.split()) as d:
            for line in said(ocg_path(d), "errors"):
                method, _, error = line.partition(" ")
                kind = method.partition(".")[2]
                touched = kind.startswith("Memory") if "memory" in flags else (
                    kind == "Chat" or kind.startswith("Pulse"))
                same(error == want, touched, "%s with %s: %s" % (method, flags, error))


def test_an_agent_that_fails_is_an_error():
    with Provider(default=plain(500, OPENAI.refusal("no luck"))) as p, served(p) as d:
        done = subprocess.run([program("ocg"), ocg_path(d), "chat", "x"], capture_output=True,
                              timeout=PATIENCE)
        check(done.returncode == 1 and b"Agent.Chat: API error: " in done.stderr
              and b"no luck" in done.stderr, "%r", done.stderr)


# ---- what others see ----


def test_a_chat_is_a_conversation_that_nexus_reads_and_its_number_is_not_used_again():
    with Folder() as f, Provider(default=echo) as p:
        for n in 1, 2:
            with served(p, root=f()) as d:
                said(ocg_path(d), "chat", "words of %d" % n)
                nexus = Nexus(d)
                for k in range(1, n + 1):
                    got = nexus.agent(numbered(k)).call("get_messages")["messages"]
                    same([(m["role"], m["content"]) for m in got],
                         [("user", "words of %d" % k), ("assistant", "echo 1: words of %d" % k)])


def test_a_history_is_sent_and_not_kept_twice():
    with Provider(default=echo) as p, served(p, "--set", "chat.system=Ours.") as d:
        c = d.connect()

        def chat(*messages):
            pairs = [dict(zip(("Role", "Content"), m)) for m in messages]
            return c.call("RPCService.Chat", {"Messages": pairs})["Content"]

        same(chat(("user", "one")), "echo 1: one")
        same(OPENAI.history(p.last), ("Ours.", [("user", "one")]))
        same(chat(("system", "Theirs."), ("user", "one"), ("assistant", "echo 1: one"),
                  ("user", "two")), "echo 3: two")
        same(OPENAI.history(p.last), ("Theirs.", [("user", "one"), ("assistant", "echo 1: one"),
                                                  ("user", "two")]))
        same([m["content"] for m in
              Nexus(d).agent(numbered(1)).call("get_messages")["messages"]],
             ["one", "echo 1: one", "two", "echo 3: two"])
        # one that is longer than the budget loses its oldest part
        long = [(role, "x" * 6000) for _ in range(20) for role in ("user", "assistant")]
        chat(*long, ("user", "three"))
        sent = OPENAI.history(p.last)[1]
        check(1 < len(sent) < 12 and sent[0][0] == "user", "%d were sent", len(sent))


def test_chats_of_one_connection_run_side_by_side():
    def answer(asked):
        late = asked.json["messages"][-1]["content"].startswith("slow")
        return OPENAI.reply(*[gate] * late, OPENAI.text("yes"), OPENAI.finish(), OPENAI.done)

    with Provider(default=answer) as p, served(p) as d:
        gate = p.gate()
        go = subprocess.Popen([program("ocg"), ocg_path(d), "beside"], stdout=subprocess.PIPE)
        try:
            gate.arrived(2)
            same([go.stdout.readline() for _ in range(3)], [b'Agent.Chat "yes"\n'] * 3)
            gate.open()
            same(go.communicate(timeout=PATIENCE)[0], b'Agent.Chat "yes"\n' * 2)
        finally:
            go.kill()
            go.communicate()
        # each of those that ran at once has its own, and it is used again
        for n, said in enumerate((["slow 1"], ["slow 2"], ["quick"] * 3), 1):
            got = Nexus(d).agent(numbered(n)).call("get_messages")["messages"]
            same([m["content"] for m in got if m["role"] == "user"], said)
        same(d.connect().call("Agent.Stats")["Stats"]["sessions"], 3)


def file_round(size, *before):
    results = [{"ID": "call_0", "Type": "function", "Result": {"content": "y " * (size // 2)}}]
    tool = {"Type": "function", "Function": {"Name": "read"}}
    call = {"ID": "call_0", "Type": "function", "Function": {"Name": "read", "Arguments": "{}"}}
    return {"Messages": [*before, {"Role": "user", "Content": "use the file please"},
                         {"Role": "assistant", "ToolCalls": [call]},
                         {"Role": "tool", "ToolExecutionResults": results}], "Tools": [tool]}


def test_a_result_that_is_too_long_keeps_its_question_and_its_call():
    old = {"Role": "user", "Content": "old " * 2000}
    with Provider(default=echo) as p, served(p) as d:
        for size, cut in (20000, False), (26000, True), (50000, True):
            d.connect().call("Agent.Chat", file_round(size, old))
            sent = [m for m in p.last.json["messages"] if m["role"] != "system"]
            same([m["role"] for m in sent], ["user", "assistant", "tool"])
            same(sent[0]["content"], "use the file please")
            same(sent[1]["tool_calls"][0]["id"], sent[2]["tool_call_id"])
            same("[shortened: the first " in sent[2]["content"], cut, "%d bytes" % size)
            check(len(sent[2]["content"]) < 24000, "%d bytes were sent", len(sent[2]["content"]))


def test_results_without_the_answer_find_their_calls():
    tools = [{"Type": "function", "Function": {"Name": name}} for name in ("x", "y")]

    def user(text):
        return {"Role": "user", "Content": text}

    def results(**of):
        return {"Role": "tool", "ToolExecutionResults": [
            {"ID": id, "Type": "function", "Result": r} for id, r in of.items()]}

    with Provider(default=echo) as p, served(p) as d:
        c = d.connect()

        def ask(*messages):
            c.call("Agent.Chat", {"Messages": messages, "Tools": tools})
            return [(m["role"], m["tool_call_id"] if m["role"] == "tool" else
                     [t["id"] for t in m.get("tool_calls", [])] or m["content"])
                    for m in p.last.json["messages"] if m["role"] != "system"]

        both = [("assistant", ["call_0", "call_1"]), ("tool", "call_0"), ("tool", "call_1")]
        given = results(call_0="more", call_1={"x": 1})
        ask(user("use"))
        # one after another, from whoever asked
        ask(user("something else"))
        same(ask(user("use"), given), [("user", "use"), *both])
        same(ask(user("use"), given, results(call_more="end")),
             [("user", "use"), *both, ("assistant", ["call_more"]), ("tool", "call_more")])
        ask(user("again"))
        same(ask(given), [("user", "again"), *both])
        same(ask(results(call_more="end")),
             [("user", "again"), *both, ("assistant", ["call_more"]), ("tool", "call_more")])
        # what is too much is not remembered: the question is, and the calls
        ask(user("much"))
        ask(results(call_0="more", call_1="1" * 70000))
        same(ask(results(call_more="end")),
             [("user", "much"), ("assistant", ["call_more"]), ("tool", "call_more")])
        # nor more than the last ones
        for n in range(17):
            ask(user("q%d" % n))
        same(ask(user("q16"), given), [("user", "q16"), *both])
        # nor is it another's question that they belong to
        same(ask(user("whose?"), given), [("user", 'whose?\n\nmore\n\n{"x":1}')])
        # another connection knows nothing of it
        c = d.connect()
        same(ask(user("use"), given), [("user", 'use\n\nmore\n\n{"x":1}')])


def test_memories_are_shared_with_ash_and_the_command_line():
    with Daemon() as d:
        go = d.connect()
        store = {"Text": "The harbour opens at seven", "Category": "facts", "Importance": 3}
        result = json.loads(go.call("Agent.MemoryStore", store)["Result"])
        same(result["result"], "Stored: The harbour opens at seven")
        ash = d.connect(dialect="ash")
        ash.send(Length.wrap(request("memory.search", {"query": "harbour", "user_id": "ann"})))
        hits = json.loads(Length.read(ash))["result"]
        same([h["id"] for h in hits], [result["id"]])
        ash.send(Length.wrap(request("memory.add", {"content": "The ferry is late on Mondays",
                                                    "user_id": "ann"})))
        Length.read(ash)
        found = json.loads(go.call("Agent.MemorySearch", {"Query": "ferry"})["Result"])
        same([i["text"] for i in found["items"]], ["The ferry is late on Mondays"])
        listed = subprocess.run([KOINE, "--socket", d.socket_path, "memory", "search", "harbour"],
                                capture_output=True, timeout=PATIENCE)
        check(b"The harbour opens at seven" in listed.stdout, "%r", listed)


def test_what_is_said_again_at_once_is_a_duplicate():
    # No words, so that no search finds it.
    with Daemon() as d:
        c = d.connect()
        text = "!!! ???"
        first, again = (json.loads(c.call("Agent.MemoryStore", {"Text": text})["Result"])
                        for _ in range(2))
        same((first["action"], again["action"]), ("created", "duplicate"))
        same(again["id"], first["id"])


def test_what_is_stored_is_quoted_with_every_character():
    with Daemon() as d:
        stored = d.connect().call("Agent.MemoryStore", {"Text": "nul\0and more"})["Result"]
        same(json.loads(stored)["result"], "Stored: nul\0and more")


def test_what_does_not_fit_into_an_answer_is_left_out():
    # Each is said twice, and a quote has its escape escaped.
    texts = {"twenty": "x" * 20000, "quotes": '"' * 7000, "ten": "x" * 10000, "one": "x" * 1000}
    with Daemon("--set", "limits.reply_bytes=64k") as d:
        c = d.connect()
        for name, text in texts.items():
            c.call("memory.add", {"content": "lorem %s %s" % (name, text)})
        found = json.loads(c.call("Agent.MemorySearch", {"Query": "lorem"})["Result"])
        told = [i["text"].split()[1] for i in found["items"]]
        check("one" in told and len(told) == 2 and "twenty" not in told, "%r", told)
        same((found["count"], found["result"].count("(similarity ")), (2, 2))
        done = subprocess.run([KOINE, "--framing", "gob", "-s", ocg_path(d), "call",
                               "Agent.MemorySearch", "Query=twenty"], capture_output=True,
                              timeout=PATIENCE)
        check(b": search failed: the result is larger than 32256 bytes" in done.stderr, "%r", done)
        same(json.loads(c.call("Agent.MemoryGet", {"Path": c.call("memory.list")[-1]["id"]})["Result"])
             ["text"].split()[1], "twenty", "one alone")


def test_a_user_can_own_what_go_clients_store():
    with Daemon("--set", "ocg.user=gopher") as d:
        same(said(ocg_path(d), "many", "9")[0], "0 <nil> 5 x 3")
        with Client(d.address("unix", "ocg")) as c:
            stored = exchange(c, vectors()["req.MemoryStore.text-only"])
            check(b"Stored: " in stored, "%r", stored)
        found = d.connect().call("memory.search", {"query": "тест", "user_id": "bob"})
        same(found, [], "what bob finds")
        check(d.connect().call("memory.search", {"query": "тест", "user_id": "gopher"}),
              "its owner finds it")


def test_pulses_are_events():
    with Daemon() as d:
        c = d.connect()
        added = c.call("Agent.PulseAdd", {"Action": "remind", "Title": "tea", "Priority": 7})
        events = c.call("event.list", {"types": ["pulse.added"]})["events"]
        same([(e["seq"], e["data"]["title"], e["data"]["priority"]) for e in events],
             [(added["EventID"], "tea", 2)])
        status = json.loads(c.call("Agent.PulseStatus")["Result"])
        same((status["event_counts"]["pending"], status["current_event"]["title"]), (1, "tea"))


# ---- bytes ----


def vectors():
    with open(VECTORS, encoding="utf-8") as file:
        return {v["name"]: bytes.fromhex(v["hex"]) for v in json.load(file)["vectors"]}


def exchange(c, data):
    c.send(data)
    c.half_close()
    return c.read_rest()


def test_every_request_of_the_vectors_is_answered():
    with Daemon() as d:
        for name, data in vectors().items():
            if name.startswith(("req.", "robust.", "session.req.")):
                with Client(d.address("unix", "ocg")) as c:
                    got = exchange(c, data)
                check(b"\x08Response" in got, "%s: %r", name, got)
        d.alive()


def test_what_is_no_stream_is_closed_without_a_word():
    garbage = [v for name, v in vectors().items()
               if name.startswith("neg.") and name != "neg.self-referential-slice"]
    garbage += [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x00" * 8, b"\xff" * 64,
                request("ping") + b"\n"]
    with Daemon() as d:
        for data in garbage:
            with Client(d.address("unix", "ocg")) as c:
                same(exchange(c, data), b"", "%r" % data[:40])
        check(b"connection refused" in d.log(), "not logged")
        d.alive()


def test_text_at_the_wrong_socket_is_not_waited_on():
    with Daemon() as d:
        for text in (request("ping") + b"\n", b"GET / HTTP/1.1\r\n\r\n", b"{}"):
            with Client(d.address("unix", "ocg")) as c:
                c.send(text)
                same(c.read_rest(), b"", "%r" % text)
        check(b"not a gob stream" in d.log(), "not logged")


def test_clients_that_leave_with_calls_under_way():
    with Provider() as p, served(p) as d:
        gate = p.gate()
        p.play(*[OPENAI.reply(OPENAI.text("late"), gate, OPENAI.finish(), OPENAI.done)] * 5)
        for _ in range(5):
            c = d.connect(dialect="ocg")
            c.send(vectors()["req.Chat.hello.RPCService"])
        gate.arrived(5)
        for c in d.clients:
            c.close()
        gate.open()
        wait_until(lambda: d.status()["calls_in_flight"] == 0, "all calls have ended")
        # what was said is kept all the same
        wait_until(lambda: all(len(Nexus(d).agent(numbered(n)).call("get_messages")
                                   ["messages"]) == 2 for n in range(1, 6)), "answers are kept")


def test_what_runs_is_answered_after_a_half_close():
    with Provider() as p, served(p) as d:
        gate = p.gate()
        p.play(OPENAI.reply(gate, OPENAI.text("at last"), OPENAI.finish(), OPENAI.done))
        c = d.connect(dialect="ocg")
        c.send(vectors()["req.Chat.hello.RPCService"])
        c.half_close()
        gate.arrived()
        d.settle()
        gate.open()
        check(b"at last" in c.read_rest(), "no answer")


# ---- the page ----

UUID = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def transcript():
    with open(TRANSCRIPT, encoding="utf-8") as file:
        return json.load(file)["steps"]


def lines_of(mark, data, values):
    rows = [data[at:at + 72] for at in range(0, len(data), 72)]
    return "".join("%s %s\n" % (mark if n == 0 else " ", row) for n, row in enumerate(rows)) + \
        "".join("    %s\n" % v for v in values)


def shown(part):
    return "".join(lines_of(">", s["send"], s["sent"]) + lines_of("<", s["answer"], s["said"])
                   for s in transcript() if s["part"] == part)


def parts():
    return list(dict.fromkeys(s["part"] for s in transcript()))


def test_the_page_shows_the_transcript():
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    for part in parts():
        check("```\n%s```\n" % shown(part) in page, "the page shows something else for %r", part)


def values(data):
    """A stream's values, as JSON lines."""
    return subprocess.run([os.environ["KOINE_GOB_PEER"], "read"], input=data, check=True,
                          capture_output=True).stdout.decode().splitlines()


def test_the_transcript_is_what_happens():
    for part in parts():
        with Daemon() as d:
            for step in (s for s in transcript() if s["part"] == part):
                sent, want = bytes.fromhex(step["send"]), bytes.fromhex(step["answer"])
                same(values(sent), step["sent"], "what is sent")
                same(values(want), step["said"], "what is said")
                with Client(d.address("unix", "ocg")) as c:
                    same(UUID.sub(b"ID", exchange(c, sent)), UUID.sub(b"ID", want), step["vector"])


# ---- the socket ----


def test_the_socket_is_private():
    with Daemon() as d:
        same(stat.S_IMODE(os.stat(ocg_path(d)).st_mode), 0o600)


def test_what_is_not_ours_is_neither_followed_nor_replaced():
    with Folder() as f:
        with open(f("file"), "w", encoding="utf-8") as file:
            file.write("theirs")
        os.symlink(f("elsewhere"), f("link"))
        os.symlink(f("file"), f("link-to-file"))
        for name in "file", "link", "link-to-file":
            done = run_koined("--root", f("root"), "--listen", "ocg=unix:" + f(name))
            check(done.returncode != 0 and b"exists and is not a socket" in done.stderr, "%r", done)
        check(os.path.islink(f("link")) and not os.path.exists(f("elsewhere")), "it was followed")
        with open(f("file"), encoding="utf-8") as file:
            same(file.read(), "theirs")


if __name__ == "__main__":
    main(globals())
