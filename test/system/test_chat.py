#!/usr/bin/env python3
"""
Conversations: turns one after another, side by side, cancelled, within their budget, and
what is answered to those who ask badly. Over nexus, and streaming on koine.sock.
"""
import json
import re
import select
import signal
import socket

from harness import (PATIENCE, Client, Daemon, Folder, check, descriptors, main, post, request,
                     run_koined, same, wait_until)
from nexus_client import Nexus, Refused, Stream, begun, later, nexus_address, result
from provider import LANGUAGES, OPENAI, Provider, agent_flags, model_flags, plain


def with_model(provider, *args, language=OPENAI, root=None, announced=(), **keys):
    return Daemon(*model_flags(provider, language, **keys), *args, root=root, announced=announced)


def echo(asked):
    """Answers with the question."""
    return OPENAI.answer("You said: ", OPENAI.history(asked)[1][-1][1])


def held(provider, *words):
    """A script that says some words and waits; its gate."""
    gate = provider.gate()
    provider.play(OPENAI.reply(*[OPENAI.text(w) for w in words], gate, OPENAI.text("the end"),
                               OPENAI.finish(), OPENAI.done))
    return gate


# ---- koine's own responder ----


def test_the_first_answer_says_what_it_is():
    with Daemon() as d:
        n = Nexus(d)
        first = n.says("Hello")
        check("koine" in first and "offline" in first, "it does not say what it is: %r", first)
        check("agent" in first, "it does not say how to set up a model: %r", first)
        second = n.says("Hello again")
        check("offline" not in second, "it says so again: %r", second)
        # Every conversation is told once.
        n.call("create_agent", {"agent_id": "other"})
        check("offline" in n.agent("other").says("Hello"), "a new conversation was not told")


def test_remembers_a_name():
    with Daemon() as d:
        n = Nexus(d)
        n.says("My name is Alice")
        n.says("I live in Ghent. The weather is fine there.")
        answer = n.says("What is my name?")
        check("Alice" in answer, "%r", answer)
        same(n.count(), 6, "messages")


def test_the_same_conversation_gets_the_same_answers():
    def talk():
        with Daemon() as d:
            n = Nexus(d)
            return [n.says(q) for q in ("My name is Alice", "I like pears", "What is my name?",
                                        "What do I like?", "Where?")]
    same(talk(), talk())


def test_remembers_what_is_in_the_memory():
    with Daemon() as d:
        d.connect().call("memory.add", {"content": "My name is Alice and I work in Ghent."})
        n = Nexus(d)
        n.says("Hello")
        check("Alice" in n.says("What is my name?"), "the memory was not asked")


def test_other_peoples_memories_are_not_quoted():
    with Daemon() as d:
        d.connect().call("memory.add", {"content": "The safe's code is Zanzibar.",
                                        "user_id": "someone"})
        answer = Nexus(d).says("What is the safe's code?")
        check("Zanzibar" not in answer, "%r", answer)


def test_streams_word_by_word():
    with Daemon() as d:
        with Stream(d, "My name is Alice") as s:
            r = s.answer()
        check(len(s.pieces) >= 3, "it came in %d pieces", len(s.pieces))
        same(s.text, r["content"], "what was streamed")
        same((s.request_id, s.conversation), (r["request_id"], r["conversation"]))
        same(r["conversation"], "default")
        with Stream(d, "What is my name?") as s:
            check("Alice" in s.answer()["content"], "%r", s.text)
        # The same conversation as nexus's.
        same(Nexus(d).count(), 4, "messages")


def test_a_delay_between_words_shows_them_one_by_one():
    with Daemon(*agent_flags("recall", kind="recall", word_delay=5), "--agent", "recall") as d:
        with Stream(d, "My name is Alice") as s:
            r = s.answer()
        words = len(r["content"].split())
        check(len(s.pieces) >= words * 0.9, "%d pieces for %d words", len(s.pieces), words)


# ---- what the log says ----


def test_an_unknown_method_is_logged_as_such():
    with Daemon() as d:
        same(Nexus(d).refused("hello").code, -32601)
        check(b"call refused  dialect=nexus method=hello reason=Method not found\n" in d.log(), "%r",
              d.log()[-300:])


def test_a_turn_that_fails_is_logged_once():
    with Provider() as p, with_model(p) as d:
        p.play(*[plain(400, {"error": {"message": "no"}})] * 2)
        Nexus(d).refused("send", {"content": "x"})
        with Stream(d, "x") as s:
            try:
                check(False, "answered: %r", s.answer())
            except Refused as error:
                check(": no" in error.message, "%r", error.message)
        same(d.log().count(b"turn failed"), 2, "lines of the service")
        check(b"call refused" not in d.log(), "%r", d.log()[-500:])


# ---- turns ----


def test_a_second_send_waits_its_turn():
    with Provider(default=echo) as p, with_model(p) as d:
        gate = held(p, "one ")
        n = Nexus(d)
        first = later(n.send, "first", "r1")
        gate.arrived()
        second = begun(d, n.send, "second", "r2")
        third = begun(d, n.send, "third", "r3")
        check(not second.done() and not third.done(), "answered out of turn")
        same(len(p.asked), 1, "times asked")
        gate.open()
        same(result(first)["content"], "one the end")
        same(result(second)["content"], "You said: second")
        same(result(third)["content"], "You said: third")
        same(OPENAI.history(p.asked[1])[1],
             [("user", "first"), ("assistant", "one the end"), ("user", "second")],
             "what the second turn was asked with")
        same([c for r, c in n.said() if r == "user"], ["first", "second", "third"])


def test_ids_are_compared_by_what_they_say():
    with Provider() as p, with_model(p) as d:
        n = Nexus(d)
        for sent, cancelled in (('"é\\u002d1"', '"\\u00e9-1"'), ('"a/b"', '"a\\/b"')):
            gate = held(p, "one ")
            f = later(n.post, '{"jsonrpc":"2.0","id":1,"method":"send","params":{"content":"x",'
                      '"request_id":%s}}'.encode() % sent.encode())
            gate.arrived()
            answer = json.loads(n.post('{"jsonrpc":"2.0","id":1,"method":"cancel","params":'
                                       '{"request_id":%s}}'.encode() % cancelled.encode())[2])
            same(answer["result"]["cancelled"], True, "%s cancelled as %s" % (sent, cancelled))
            same(json.loads(result(f)[2])["result"]["request_id"], json.loads(sent))


def test_a_request_id_in_progress_is_refused():
    with Provider(default=echo) as p, with_model(p) as d:
        gate = held(p, "one ")
        n = Nexus(d)
        n.call("create_agent", {"agent_id": "other"})
        first = later(n.send, "first", "same")
        gate.arrived()
        error = n.refused("send", {"content": "second", "request_id": "same"})
        same(error.code, -32602)
        check("same" in error.message, "%r", error.message)
        with Stream(d, "third", request_id="same") as s:
            try:
                s.answer()
                check(False, "the stream was not refused")
            except Refused as why:
                same(why.code, -32602)
        # 7 and "7" are not the same id, and another conversation has its own.
        same(n.agent("other").send("elsewhere", "same")["content"], "You said: elsewhere")
        gate.open()
        same(result(first)["content"], "one the end")
        same(n.send("again", "same"), {"content": "You said: again", "request_id": "same"},
             "the id once it is free")
        same(len(p.asked), 3, "times asked")


def test_cancel_keeps_what_came():
    for language in LANGUAGES:
        with Provider() as p, with_model(p, language=language) as d:
            gate = p.gate()
            p.play(language.reply(language.opening, language.text("two "), language.text("words "),
                                  gate, language.text("never")),
                   language.answer("next"))
            n = Nexus(d)
            with Stream(d, "Tell me", request_id="koine") as s:
                s.until("two words ")
                gate.arrived()
                same(n.cancel("koine"), {"cancelled": True, "request_id": "koine"})
                r = s.answer()
                same((r["content"], r["stop"]), ("two words ", "cancelled"))
            p.last.left()
            same(n.count(), 2, "messages")
            messages = n.messages()
            same([(m["role"], m["content"]) for m in messages],
                 [("user", "Tell me"), ("assistant", "two words ")])
            same(n.says("go on"), "next")
            same(language.history(p.last)[1],
                 [("user", "Tell me"), ("assistant", "two words "), ("user", "go on")],
                 "what the next turn was asked with")


def test_a_cancelled_send_answers_with_what_came():
    with Provider(default=echo) as p, with_model(p) as d:
        n = Nexus(d)
        for id in ("my-req-1", 7, -9007199254740993):
            gate = held(p, "half ", "of it ")
            sent = later(n.send, "Write a long essay", id)
            gate.arrived()
            # The words are on their way through the daemon: wait until they have come.
            wait_until(lambda: n.messages()[-1]["content"] == "half of it ", "the words")
            same(n.cancel(id), {"cancelled": True, "request_id": id})
            same(result(sent), {"content": "half of it ", "request_id": id, "cancelled": True})
            late = n.cancel(id)
            same((late["cancelled"], late["request_id"]), (False, id), "cancelled again")
        same(n.count(), 6, "messages")


def test_cancel_compares_ids_with_their_type():
    with Provider() as p, with_model(p) as d:
        gate = held(p, "one ")
        n = Nexus(d)
        sent = later(n.send, "first", 7)
        gate.arrived()
        same(n.cancel("7")["cancelled"], False)
        check(not sent.done(), "it was cancelled")
        same(n.cancel(7)["cancelled"], True)
        same(result(sent)["cancelled"], True)


def test_a_send_that_waits_can_be_cancelled():
    with Provider(default=echo) as p, with_model(p) as d:
        gate = held(p, "one ")
        n = Nexus(d)
        first = later(n.send, "first", "r1")
        gate.arrived()
        second = later(n.send, "second", "r2")
        wait_until(lambda: n.cancel("r2")["cancelled"], "the second to wait")
        same(result(second), {"content": "", "request_id": "r2", "cancelled": True})
        check(not first.done(), "the first has ended as well")
        gate.open()
        same(result(first)["content"], "one the end")
        same(n.says("third"), "You said: third")
        same(len(p.asked), 2, "times asked")


def test_conversations_run_side_by_side():
    with Provider(default=echo) as p, with_model(p) as d:
        n = Nexus(d)
        gate = p.gate()
        ids = ["c%d" % i for i in range(8)]
        for id in ids:
            n.call("create_agent", {"agent_id": id})
        p.default = lambda asked: OPENAI.reply(
            OPENAI.text(OPENAI.history(asked)[1][-1][1]), gate, OPENAI.finish(), OPENAI.done)
        sent = {id: later(n.agent(id).send, "from " + id) for id in ids}
        gate.arrived(len(ids))  # all of them are under way before any ends
        gate.open()
        for id in ids:
            same(result(sent[id])["content"], "from " + id)
            same(n.agent(id).said(), [("user", "from " + id), ("assistant", "from " + id)])
        same(n.count(), 0, "messages of the default conversation")


def test_others_are_answered_while_a_turn_waits():
    with Provider() as p, with_model(p) as d:
        gate = held(p, "one ")
        n = Nexus(d)
        sent = later(n.send, "first")
        gate.arrived()
        d.alive()
        check(n.tokens()["total"] > 0, "no tokens")
        same(n.context(), {"message_count": 1, "system_prompt": True})
        n.messages()
        gate.open()
        result(sent)


def test_a_client_that_leaves_does_not_stop_its_turn():
    with Provider() as p, with_model(p) as d:
        n = Nexus(d)
        for leave in ("close", "reset"):
            gate = held(p, "one ")
            c = Client(nexus_address(d))
            body = request("send", {"content": "I will not wait"})
            c.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) +
                   body)
            gate.arrived()
            getattr(c, leave)()
            s = Stream(d, "queued behind it")
            p.play(OPENAI.answer("and this"))
            gate.open()
            same(s.answer()["content"], "and this")
            s.client.close()
            same(n.said()[-4:], [("user", "I will not wait"), ("assistant", "one the end"),
                                 ("user", "queued behind it"), ("assistant", "and this")])


def test_a_stream_that_is_left_goes_on():
    with Provider() as p, with_model(p) as d:
        gate = held(p, "one ")
        s = Stream(d, "first")
        s.until("one ")
        gate.arrived()
        s.client.reset()
        gate.open()
        n = Nexus(d)
        wait_until(lambda: n.said()[-1] == ("assistant", "one the end"), "the end of the turn")


def test_a_reader_that_does_not_read_harms_nobody():
    with Provider() as p, with_model(p) as d:
        gate = p.gate()
        piece = "x" * 65536
        n = Nexus(d)
        n.call("create_agent", {"agent_id": "lazy"})
        p.play(OPENAI.reply(*[OPENAI.text(piece)] * 100, gate, OPENAI.finish(), OPENAI.done))
        lazy = Stream(d, "fill me", conversation="lazy")  # does not read
        gate.arrived()
        p.default = echo
        for i in range(5):
            same(n.says("question %d" % i), "You said: question %d" % i)
        with Stream(d, "streamed") as s:
            same(s.answer()["content"], "You said: streamed")
        gate.open()
        wait_until(lambda: n.agent("lazy").messages()[-1]["content"] == piece * 100, "its answer")
        # Text that comes late comes in larger pieces, but all of it and in order.
        r = lazy.answer()
        same(r["content"] == piece * 100, True, "the answer")
        lazy.client.close()


def test_a_stream_is_cancelled_on_its_own_connection():
    with Provider() as p, with_model(p) as d:
        gate = held(p, "one ")
        with d.connect() as c:
            c.send(request("chat.stream", {"content": "Hi"}, id=5) + b"\n")
            gate.arrived()
            same(json.loads(c.read_line())["params"]["text"], "one ")
            c.send(request("rpc.cancel", {"id": 5}, id=6) + b"\n")
            same(json.loads(c.read_line()), {"jsonrpc": "2.0", "result": {"cancelled": True},
                                             "id": 6})
            answer = json.loads(c.read_line())
            same((answer["id"], answer["result"]["content"], answer["result"]["stop"]),
                 (5, "one ", "cancelled"))
            c.ping()


def test_over_http_a_stream_is_only_its_answer():
    with Provider(default=echo) as p, with_model(p) as d, d.connect() as c:
        for i in range(2):
            r = post(c, request("chat.stream", {"content": "number %d" % i}))
            same(json.loads(r.body)["result"]["content"], "You said: number %d" % i)


def test_a_stream_as_a_notification_is_silent():
    with Provider(default=echo) as p, with_model(p) as d, d.connect() as c:
        c.send(request("chat.stream", {"content": "quiet"}, id=None) + b"\n")
        n = Nexus(d)
        wait_until(lambda: ("assistant", "You said: quiet") in n.said(), "its turn")
        c.ping()  # the next line is the answer to this


def test_settings_read_again_leave_turns_alone():
    with Provider() as p, with_model(p) as d:
        gate = held(p, "one ")
        sent = later(Nexus(d).send, "Hi")
        gate.arrived()
        d.signal(signal.SIGHUP)
        wait_until(lambda: b"settings" in d.log(), "the settings to be read")
        gate.open()
        same(result(sent)["content"], "one the end")


# ---- what is kept ----


def test_the_default_conversation_survives_a_restart():
    with Folder() as f:
        with Daemon(root=f.path) as d:
            n = Nexus(d)
            n.says("My name is Alice")
            before = n.said(), n.tokens(), n.context()
        with Daemon(root=f.path) as d:
            n = Nexus(d)
            same((n.said(), n.tokens(), n.context()), before, "after the restart")
            check("Alice" in n.says("What is my name?"), "forgotten")
            same(n.count(), 4, "messages")


def test_the_model_gets_the_conversation_after_a_restart():
    with Folder() as f, Provider(default=echo) as p:
        with with_model(p, root=f.path) as d:
            Nexus(d).says("first")
        with with_model(p, root=f.path) as d:
            Nexus(d).says("second")
        same(OPENAI.history(p.last)[1], [("user", "first"), ("assistant", "You said: first"),
                                         ("user", "second")])


def weight(language, asked):
    """Tokens of the messages, as they are estimated."""
    return sum(len(text) // 4 + 4 for _, text in language.history(asked)[1])


def test_what_outgrows_the_budget_is_kept_but_not_sent():
    for language in LANGUAGES:
        def answer(asked):
            # One of them counts, the other leaves that to us.
            used = {} if language is OPENAI else {"input": weight(language, asked), "output": 2}
            return language.answer("answer", **used)

        with Provider(default=answer) as p, with_model(
                p, "--set", "chat.system=Answer as a pirate.", language=language, budget=600,
                reserve=200) as d:
            n = Nexus(d)
            for i in range(12):
                n.says("question %d " % i + "word " * 60)
                tokens = n.tokens()
                same((tokens["budget"], tokens["available"]), (600, 400))
                check(0 < tokens["system"] and tokens["total"] <= 400, "%r", tokens)
                same(tokens["system"] + tokens["tools"] + tokens["messages"], tokens["total"])
            for i, asked in enumerate(p.asked):
                system, sent = language.history(asked)
                same(system, "Answer as a pirate.")
                check(sent[-1][1].startswith("question %d " % i), "%r", sent[-1])
                # Whole turns leave, not halves.
                same([r for r, _ in sent], (["user", "assistant"] * 12)[:len(sent)], "roles")
                check(weight(language, asked) <= 400, "%d tokens sent", weight(language, asked))
            check(len(language.history(p.asked[-1])[1]) >= 5, "too little was sent")
            same(n.count(), 24, "messages")
            same([c.split()[1] for r, c in n.said() if r == "user"], [str(i) for i in range(12)])


def test_each_agent_has_a_budget_of_its_own():
    with Provider(default=echo) as p, Provider(default=echo) as q, Daemon(
            *model_flags(q, name="small", budget=400, reserve=100),
            *model_flags(p, name="large", budget=100000)) as d:
        for i in range(5):
            with Stream(d, "question %d " % i + "word " * 60, agent="large") as s:
                s.answer()
        with Stream(d, "And you?", agent="small") as s:
            s.answer()
        check(weight(OPENAI, q.last) <= 300, "%d tokens sent", weight(OPENAI, q.last))
        same(OPENAI.history(q.last)[1][-1], ("user", "And you?"))
        # What one of them was not sent, the other still is.
        with Stream(d, "And you again?", agent="large") as s:
            s.answer()
        same(len(OPENAI.history(p.last)[1]), 13, "messages sent")


def test_a_question_larger_than_the_budget_is_still_asked():
    with Provider(default=echo) as p, with_model(p, budget=100, reserve=50) as d:
        n = Nexus(d)
        n.says("first")
        long = "word " * 500
        same(n.says(long), "You said: " + long)
        same(OPENAI.history(p.last)[1], [("user", long)])


def test_the_providers_own_counts_are_shown():
    for language in LANGUAGES:
        with Provider(language.answer("short", input=1234, output=77),
                      language.answer("short", input=1400, output=5)) as p, \
                with_model(p, language=language) as d:
            n = Nexus(d)
            n.says("Hello")
            same(n.tokens()["total"], 1234 + 77, "total, as %s counted" % language.kind)
            n.says("Hello")
            same(n.tokens()["total"], 1405, "total, as %s counted" % language.kind)


def test_the_system_prompt_can_come_from_a_file():
    with Folder() as f, Provider(default=echo) as p:
        with open(f("prompt"), "w") as out:
            out.write("You are “terse”.\n")
        with with_model(p, "--set", "chat.system_file=" + f("prompt")) as d:
            n = Nexus(d)
            n.says("Hello")
            same(OPENAI.history(p.last)[0].strip(), "You are “terse”.")
            same(n.context(), {"message_count": 2, "system_prompt": True})
        with with_model(p, "--set", "chat.system=") as d:
            n = Nexus(d)
            n.says("Hello")
            same(OPENAI.history(p.last)[0], None)
            same(n.context(), {"message_count": 2, "system_prompt": False})
            same(n.tokens()["system"], 0)


def test_conversations_are_made_listed_and_ended():
    with Provider(default=echo) as p, with_model(p) as d:
        n = Nexus(d)
        same(n.call("create_agent", {"agent_id": "worker"})["agent_id"], "worker")
        error = n.refused("create_agent", {"agent_id": "worker"})
        same(error.code, -32602)
        worker = n.agent("worker")
        worker.says("My secret is kept")
        check("worker" in json.dumps(n.call("list_agents")), "not listed")
        gate = held(p, "one ")
        sent = later(worker.send, "still at it")
        gate.arrived()
        n.call("destroy_agent", {"agent_id": "worker"})
        same(result(sent)["content"], "one ", "what came before the end")
        p.last.left()
        check("worker" not in json.dumps(n.call("list_agents")), "still listed")
        status, _, _ = n.post(request("get_context"), path="/agent/worker")
        same(status, 404)
        # The id is free again, and what was said is not there.
        n.call("create_agent", {"agent_id": "worker"})
        same(worker.count(), 0, "messages")


def test_compact_makes_room():
    with Provider() as p, with_model(p, budget=100000) as d:
        n = Nexus(d)
        for i in range(6):
            p.play(OPENAI.answer("answer %d " % i + "blah " * 100))
            n.says("question %d " % i + "word " * 100)
        before = n.tokens()["total"]
        p.play(OPENAI.answer("They spoke of six questions."))
        done = n.call("compact")
        check(done["compacted"] is True, "%r", done)
        check(n.tokens()["total"] < before / 2, "%r", n.tokens())
        same(n.count(), 12, "messages")
        p.play(OPENAI.answer("fine"))
        n.says("And now?")
        system, sent = OPENAI.history(p.last)
        check("They spoke of six questions." in json.dumps([system, sent]), "no summary was sent")
        check("question 0" not in json.dumps(sent), "the first turn was sent")
        check("question 5" in json.dumps(sent), "the newest turn was not sent")


def test_pages_of_messages_are_in_order():
    with Provider(default=echo) as p, with_model(p) as d:
        n = Nexus(d)
        for i in range(5):
            n.says("question %d" % i)
        everything = n.said()
        pages = []
        for at in range(0, 12, 3):
            page = n.call("get_messages", {"offset": at, "limit": 3})
            same(page["total"], 10)
            pages += [(m["role"], m["content"]) for m in page["messages"]]
        same(pages, everything)


# ---- asked badly ----


def test_bad_parameters_get_the_words_of_the_specification():
    with Daemon() as d:
        n = Nexus(d)
        for params, words in ((None, "Missing required parameter: content"),
                              ({}, "Missing required parameter: content"),
                              ({"content": None}, "Missing required parameter: content"),
                              ({"content": 5}, "content must be string, got: int"),
                              ({"content": 5.5}, "content must be string, got: float"),
                              ({"content": True}, "content must be string, got: bool"),
                              ({"content": []}, "content must be string, got: list"),
                              ({"content": {}}, "content must be string, got: dict")):
            error = n.refused("send", params)
            same((error.code, error.message, error.status), (-32602, words, 200), repr(params))
        for params in (None, {}, {"request_id": None}, {"request_id": ""}):
            error = n.refused("cancel", params)
            same((error.code, error.message),
                 (-32602, "Missing required parameter: request_id"), repr(params))
        for params in ({"request_id": []}, {"request_id": {}}):
            same(n.refused("cancel", params).code, -32602)
            same(n.refused("send", dict(params, content="x")).code, -32602)
        error = n.refused("unknown")
        same((error.code, error.message), (-32601, "Method not found: unknown"))
        same(n.count(), 0, "messages")
        n.says("Hello")


def test_ids_that_cannot_be():
    with Daemon() as d:
        n = Nexus(d)
        for id in ("", ".", "..", "a b", "a/b", "a%2fb", "é", "x" * 129, 5, [], "a\x00b", "a\nb"):
            same(n.refused("create_agent", {"agent_id": id}).code, -32602, repr(id))
        same(n.refused("create_agent", {"agent_id": "x", "model": "nobody"}).code, -32602)
        same(n.call("create_agent", {"agent_id": "x" * 128})["agent_id"], "x" * 128)
        for path in ("/agent/", "/agent", "/agent/..", "/agent/%2e%2e", "/agent/x/y", "/rpc/", "//",
                     "/agent/nobody", "/agent/nobody?x", "/?x"):
            same(n.post(request("get_context"), path=path)[0], 404, "status for " + path)
        for params in ({"limit": 0}, {"limit": 2001}, {"offset": -1}, {"limit": "x"}):
            same(n.refused("get_messages", params).code, -32602, repr(params))
        for id in (1.5, True, "r" * 200):
            same(n.refused("send", {"content": "x", "request_id": id}).code, -32602, repr(id))
        same(n.count(), 0, "messages")


def test_conversations_do_not_quote_each_other():
    with Daemon() as d:
        n = Nexus(d)
        n.call("create_agent", {"agent_id": "other"})
        n.says("My name is Alice")
        n.agent("other").says("Hello")
        answer = n.agent("other").says("What is my name?")
        check("Alice" not in answer, "%r", answer)


def test_nothing_is_cancelled_that_is_not_under_way():
    with Daemon() as d:
        n = Nexus(d)
        for id in ("never-was", 12):
            r = n.cancel(id)
            same((r["cancelled"], r["request_id"]), (False, id))
        n.send("Hello", "finished")
        same(n.cancel("finished")["cancelled"], False)
        same(n.count(), 2, "messages")


def test_generated_request_ids_differ_and_can_be_cancelled():
    with Provider(default=echo) as p, with_model(p) as d:
        n = Nexus(d)
        ids = {n.send("Hello")["request_id"] for _ in range(5)}
        same(len(ids), 5, "different ids")
        check(all(isinstance(id, str) and re.fullmatch(r"[0-9a-z_]+", id) for id in ids), "%r", ids)
        gate = held(p, "one ")
        with Stream(d, "cancel me") as s:
            s.until("one ")
            gate.arrived()
            same(n.cancel(s.request_id)["cancelled"], True)
            same(s.answer()["content"], "one ")


def test_texts_of_all_kinds_come_through_whole():
    texts = ["", " ", "é漢字🎉", 'quotes " and \\ and \n lines \t\r', "\x00\x01\x1f\x7f",
             "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"), "a" * 300000]
    with Provider(default=echo) as p, with_model(p, budget=1000000) as d:
        n = Nexus(d)
        for text in texts:
            same(n.says(text), "You said: " + text)
            same(OPENAI.history(p.last)[1][-1], ("user", text))
        same([c for r, c in n.said() if r == "user"], texts)


def test_an_agent_that_is_not_configured():
    with Daemon() as d:
        n = Nexus(d)
        with Stream(d, "Hello", agent="nobody") as s:
            try:
                s.answer()
                check(False, "it answered")
            except Refused as why:
                check("nobody" in why.message, "%r", why.message)
        same(n.count(), 0, "messages")
        n.says("Hello")
    with Daemon("--agent", "none") as d:
        n = Nexus(d)
        error = n.refused("send", {"content": "Hello"})
        check("agent" in error.message, "%r", error.message)
        same(n.count(), 0, "messages")
        with Stream(d, "Hello", agent="recall") as s:
            s.answer()
    done = run_koined("--agent", "nobody")
    check(done.returncode != 0 and b"nobody" in done.stderr, "%r", done)


def test_too_many_that_wait_are_refused():
    with Provider(default=echo) as p, with_model(p) as d:
        gate = held(p, "one ")
        n = Nexus(d)
        first = later(n.send, "first")
        gate.arrived()
        waiting = [later(n.send, "number %d" % i) for i in range(80)]
        # 64 wait; the others are told so at once.
        refused = wait_until(lambda: [f for f in waiting if f.done()], "a refusal")
        wait_until(lambda: len([f for f in waiting if f.done()]) == 16, "all refusals")
        for f in refused:
            check(isinstance(f.exception(), Refused), "%r", f.exception())
        gate.open()
        result(first)
        done = [f for f in waiting if f.exception(PATIENCE) is None]
        same(len(done), 64, "answered")
        same(len(p.asked), 65, "times asked")
        n.says("afterwards")


def test_the_agents_that_are_configured_are_listed():
    with Provider() as p, with_model(p, *agent_flags("absent", kind="openai", model="m",
                                                     url="http://127.0.0.1:9")) as d:
        with d.connect() as c:
            agents = {a["name"]: a for a in c.call("chat.agents")["agents"]}
        same(set(agents), {"model", "absent", "recall"})
        same([agents[n]["ok"] for n in ("model", "absent", "recall")], [True, False, True])
        same([agents[n]["default"] for n in ("model", "absent", "recall")], [True, False, False])
        same(agents["model"]["kind"], "openai")


def test_the_names_of_agents_are_told_without_asking_them():
    listening = socket.create_server(("127.0.0.1", 0))
    with listening, Daemon(*agent_flags("silent", kind="openai", model="m",
                                        url="http://127.0.0.1:%d" % listening.getsockname()[1])) as d:
        with d.connect() as c:
            agents = c.call("chat.agents", {"names": True})["agents"]
        same(sorted((a["name"], a["kind"], a["model"], a["default"]) for a in agents),
             [("recall", "recall", "", True), ("silent", "openai", "m", False)])
        check(all("ok" not in a for a in agents), "%r", agents)
        same(select.select([listening], [], [], 0)[0], [], "connections to an agent")


def test_nothing_leaks_over_many_turns():
    with Provider(default=echo) as p, with_model(p) as d:
        n = Nexus(d)

        def some():
            for i in range(10):
                n.says("question")
                with Stream(d, "streamed") as s:
                    s.answer()
                gate = held(p, "one ")
                sent = later(n.send, "cancelled", "c")
                gate.arrived()
                wait_until(lambda: n.cancel("c")["cancelled"], "the turn")
                result(sent)
                gate.open()

        some()
        before = len(descriptors(d.pid))
        some()
        wait_until(lambda: len(descriptors(d.pid)) <= before + 1, "descriptors to be closed")


# ---- those that were ended ----


def test_ended_conversations_are_read_and_purged():
    with Daemon() as d, d.connect() as c:
        n = Nexus(d)
        same(c.call("chat.past"), {"conversations": [], "total": 0}, "at first")
        for words in "The first", "The second":
            n.call("create_agent", {"agent_id": "w"})
            n.agent("w").send(words + " one was here")
            n.call("destroy_agent", {"agent_id": "w"})
        n.call("create_agent", {"agent_id": "other"})
        n.call("destroy_agent", {"agent_id": "other"})
        n.call("create_agent", {"agent_id": "w"})
        past = c.call("chat.past")
        same([(p["conversation"], p["messages"]) for p in past["conversations"]],
             [("other", 0), ("w", 2), ("w", 2)], "the last ended first")
        same(past["total"], 3, "total")
        same(list(past["conversations"][0]), ["number", "conversation", "agent", "messages",
                                              "created_at", "updated_at", "ended_at"], "members")
        same(len(c.call("chat.past", {"conversation": "w"})["conversations"]), 2, "of one name")
        same(len(c.call("chat.past", {"offset": 2})["conversations"]), 1, "a page")
        second, first = [p["number"] for p in past["conversations"][1:]]
        said = c.call("chat.read", {"number": first})
        same((said["number"], said["conversation"], said["total"]), (first, "w", 2))
        same(said["messages"][0]["content"], "The first one was here", "what was said")
        same(len(c.call("chat.read", {"number": first, "offset": 1})["messages"]), 1, "a page")
        same(c.call("chat.purge", {"number": first}), {"purged": 1})
        for method in "chat.read", "chat.purge":
            same(error_code(c, method, {"number": first}), -32001, method)
        same(c.call("chat.read", {"number": second})["messages"][0]["content"],
             "The second one was here", "the other")
        same(c.call("chat.purge", {"before": "2001-01-01T00:00:00Z"}), {"purged": 0})
        same(c.call("chat.purge", {"all": True}), {"purged": 2})
        same(c.call("chat.past")["total"], 0, "at the end")
        same([a["agent_id"] for a in n.call("list_agents")["agents"]], ["w", "default"], "the rest")
        for params in {}, {"all": False}, {"number": 1, "all": True}, {"before": "soon"}:
            same(error_code(c, "chat.purge", params), -32602, "%r" % params)
        same(error_code(c, "chat.past", {"limit": 0}), -32602, "limit")
        # One that goes on is none of these.
        live = c.call("event.list", {"types": ["chat.created"]})
        check(live, "no events")
        for number in range(1, 8):
            same(error_code(c, "chat.purge", {"number": number}), -32001, "number %d" % number)


def error_code(c, method, params):
    return json.loads(c.call_text(request(method, params)))["error"]["code"]


def test_much_is_purged_in_steps_and_others_go_on():
    with Daemon() as d, d.connect() as c, d.connect() as beside:
        n = Nexus(d)
        n.call("create_agent", {"agent_id": "long"})
        for i in range(300):
            n.agent("long").send("message %d" % i)
        n.call("destroy_agent", {"agent_id": "long"})
        c.send(request("chat.purge", {"all": True}) + b"\n")
        beside.call("send", {"content": "hello"})
        same(json.loads(c.read_line())["result"], {"purged": 1})
        same(n.count(), 2, "messages of another")


if __name__ == "__main__":
    main(globals())
