#!/usr/bin/env python3
"""
Models behind HTTP, well and badly behaved: whatever a provider does, the client gets an
answer or a clear error, the next question works, and nothing is left behind.
"""
import json
import os
import socket

from harness import (Daemon, Folder, check, descriptors, main, peak_rss, same,
                     wait_until)
from nexus_client import Nexus, Refused, Stream, later, result
from provider import (ANTHROPIC, LANGUAGES, OPENAI, Provider, Reply, agent_flags, close, cut,
                      dribble, endless, event, head, joined, model_flags, plain, raw, shred,
                      silence)

SECRET = "sk-very-secret-0123456789"
MIB = 1 << 20


def with_model(provider, language=OPENAI, *args, env=None, announced=(), clock=None, **keys):
    return Daemon(*model_flags(provider, language, **keys), *args, env=env, announced=announced, clock=clock)


def bytes_of(reply):
    return joined(reply.steps)


# ---- well behaved ----


def test_what_is_asked():
    for language in LANGUAGES:
        with Provider(language.answer("Hello!")) as p, \
                with_model(p, language, "--set", "chat.system=Be brief.", key_env="TEST_KEY",
                           env={"TEST_KEY": SECRET}) as d:
            n = Nexus(d)
            same(n.says("Hi"), "Hello!")
            asked = p.last
            same((asked.method, asked.path), ("POST", language.path))
            same(asked.headers[language.key_header], language.key(SECRET))
            check(asked.headers["content-type"].startswith("application/json"), "%r", asked.headers)
            same(language.history(asked), ("Be brief.", [("user", "Hi")]))
            same((asked.json["model"], asked.json["stream"]), ("scripted", True))
            if language is OPENAI:
                same(asked.json["stream_options"], {"include_usage": True})
            else:
                check(asked.headers["anthropic-version"], "no version")
                check(asked.json["max_tokens"] > 0, "no max_tokens")
            check(SECRET.encode() not in d.log(), "the key is in the log")


def test_urls_with_a_path_and_unix_sockets():
    with Folder() as f:
        for path, want in (("", "/v1/chat/completions"), ("/", "/v1/chat/completions"),
                           ("/v1", "/v1/chat/completions"), ("/v1/", "/v1/chat/completions"),
                           ("/at/v1/", "/at/v1/chat/completions"),
                           ("/other/place", "/other/place")):
            with Provider(OPENAI.answer("ok")) as p, with_model(p, url=p.url + path) as d:
                same(Nexus(d).says("Hi"), "ok")
                same(p.last.path, want, "path for %r" % path)
        with Provider(OPENAI.answer("ok"), unix=f("model.sock")) as p, with_model(p) as d:
            same(Nexus(d).says("Hi"), "ok")
            same(p.last.path, "/v1/chat/completions")


def test_a_question_without_text_is_not_sent_where_it_cannot_be():
    with Provider(default=ANTHROPIC.answer("ok")) as p, with_model(p, ANTHROPIC) as d:
        n = Nexus(d)
        for words in "", "  \n":
            error = n.refused("send", {"content": words})
            check("requires text in every message" in error.message, "%r", error.message)
        same(len(p.asked), 0, "requests")
        same(n.says("Hi"), "ok")
        check("requires text" in n.refused("send", {"content": " "}).message, "%r", "later")
        same(n.says("Hi again"), "ok")


def test_of_several_choices_the_first_by_number_is_taken():
    def chunk(*choices):
        return event({"choices": [{"index": i, "delta": {"content": text}}
                                  for i, text in choices]})

    with Provider() as p, with_model(p) as d:
        p.play(OPENAI.reply(chunk((1, "b"), (0, "A")), chunk((1, "c")), chunk((0, "B")),
                            OPENAI.finish(), OPENAI.done))
        same(Nexus(d).says("Hi"), "AB")
        p.play(plain(200, {"choices": [{"index": 1, "message": {"content": "second"}},
                                       {"index": 0, "message": {"content": "first"},
                                        "finish_reason": "stop"}]}))
        same(Nexus(d).says("Hi"), "first")


def test_keys_from_a_file_and_from_a_command():
    with Folder() as f, Provider(default=OPENAI.answer("ok")) as p:
        with open(f("key"), "w") as out:
            out.write(SECRET + "\n")
        os.chmod(f("key"), 0o600)
        with with_model(p, key_file=f("key")) as d:
            same(Nexus(d).says("Hi"), "ok")
            same(p.last.headers["authorization"], "Bearer " + SECRET)
        with with_model(p, key_command="printf '%s\\nmore' from-a-command") as d:
            same(Nexus(d).says("Hi"), "ok")
            same(p.last.headers["authorization"], "Bearer from-a-command")
        asked = len(p.asked)
        with with_model(p, key_file=f("key")) as d:
            for mode in (0o640, 0o604, 0o666):
                os.chmod(f("key"), mode)
                error = Nexus(d).refused("send", {"content": "Hi"})
                same(error.code, -32603)
                check("key" in error.message and SECRET not in error.message, "%r", error.message)
            os.unlink(f("key"))
            same(Nexus(d).refused("send", {"content": "Hi"}).code, -32603)
        with with_model(p, key_command="echo oops >&2; exit 3") as d:
            same(Nexus(d).refused("send", {"content": "Hi"}).code, -32603)
        with with_model(p, key_env="NO_SUCH_VARIABLE",
                        announced=["agent unavailable  agent=model "]) as d:
            error = Nexus(d).refused("send", {"content": "Hi"})
            check("NO_SUCH_VARIABLE" in error.message, "%r", error.message)
        same(len(p.asked), asked, "asked without a key")


def test_streams_cut_anywhere_read_the_same():
    text = ("plain ", "“é漢字” ", "🎉 ", 'a "quote" \\ \n')
    for language in LANGUAGES:
        whole = bytes_of(language.answer(*text, input=9, output=4))
        crlf = whole.replace(b"\n", b"\r\n")
        cr = whole.replace(b"\n", b"\r")
        comments = whole.replace(b"data: ", b": a comment\nid: 7\nretry: 10\ndata:")
        for name, data, size in (("bytes", whole, 1), ("threes", whole, 3), ("sevens", whole, 7),
                                 ("CRLF", crlf, 1), ("CRLF in sevens", crlf, 7),
                                 ("CRLF at once", crlf, len(crlf)), ("CR", cr, 5),
                                 ("CR at once", cr, len(cr)), ("comments", comments, 11),
                                 ("a mark", b"\xef\xbb\xbf" + whole, 13),
                                 ("at once", whole, len(whole))):
            for framing in ("chunked", "close"):
                if framing == "close" and size < 7:
                    continue
                with Provider(Reply(*shred(data, size), framing=framing)) as p:
                    check_text(p, language, "".join(text), "%s %s %s" % (
                        language.kind, name, framing))


def check_text(p, language, want, what):
    """One daemon for all of them: the url is a setting, so each gets its own provider; a Unix
    socket's path can stay the same, but a start is cheap."""
    with with_model(p, language) as d:
        same(Nexus(d).says("Hi"), want, what)


def test_data_of_several_lines_is_one():
    pretty = json.dumps(json.loads(OPENAI.text("spread").decode()[len("data: "):]), indent=1)
    data = b"".join(b"data: " + one.encode() + b"\n" for one in pretty.split("\n")) + b"\n"
    with Provider(Reply(data, OPENAI.finish(), OPENAI.done)) as p, with_model(p) as d:
        same(Nexus(d).says("Hi"), "spread")


def servers():
    """Streams as servers of many kinds write them; each says Hello."""
    chunk, text, end = OPENAI.chunk, OPENAI.text("Hello"), [OPENAI.finish(), OPENAI.done]
    return {
        "members that are null": Reply(chunk({"role": "assistant", "content": None}, usage=None),
                                       text, chunk({}, "stop", usage=None), OPENAI.done),
        "no choices at first": Reply(event({"choices": [], "prompt_filter_results": [{}]}), text,
                                     *end),
        "a role in each piece": Reply(chunk({"role": "assistant", "content": "Hel"}),
                                      chunk({"role": "assistant", "content": "lo"}),
                                      chunk({"role": "assistant", "content": ""}, "stop"),
                                      OPENAI.done),
        "text in the last piece": Reply(chunk({"content": "Hel"}), chunk({"content": "lo"}, "stop"),
                                        OPENAI.done),
        "thoughts": Reply(chunk({"reasoning_content": "hm"}),
                          chunk({"reasoning": "hm", "content": None}), text, *end),
        "signs of life": Reply(b": PROCESSING\n\n: PROCESSING\n\n", text, *end),
        "no space": Reply(joined([text, *end]).replace(b"data: ", b"data:")),
        "no stream": plain(200, {"object": "chat.completion", "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "Hello"},
             "finish_reason": "stop"}]}),
        "another reason": Reply(text, chunk({}, "eos_token"), OPENAI.done),
        "counts out of reason": Reply(text, OPENAI.finish(10 ** 30, -7), OPENAI.done),
        "more after the end": Reply(text, *end, OPENAI.text("never")),
        "to be continued first": Reply(raw(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"
                                           b"Content-Type: text/event-stream\r\n"
                                           b"Connection: close\r\n\r\n" +
                                           joined([text, *end])), close),
    }


def test_servers_of_many_kinds():
    with Provider() as p, with_model(p) as d:
        n = Nexus(d)
        for name, script in servers().items():
            p.play(script)
            same(n.says("Hi"), "Hello", name)
        check(n.tokens()["total"] < 1000, "%r", n.tokens())


def test_refusals_of_many_kinds():
    with Provider() as p, with_model(p) as d:
        for status, body in ((404, {"error": "no such model"}), (422, {"detail": "no such model"}),
                             (400, {"object": "error", "message": "no such model"}),
                             (400, {"error": {"message": "no such model"}})):
            p.play(plain(status, body))
            error = Nexus(d).refused("send", {"content": "Hi"})
            check("no such model" in error.message, "%r", error.message)
        # What a provider says goes to people's terminals, and it may say a lot.
        p.play(plain(400, {"error": {"message": "a\x00b\x1b[31mred\n" + "long " * 100000}}))
        words = Nexus(d).refused("send", {"content": "Hi"}).message
        check(len(words) < 70000, "%d letters", len(words))
        check(not any(ord(c) < 32 for c in words), "%.80r", words)


def test_slow_bytes_are_no_failure():
    data = bytes_of(OPENAI.answer("slow but sure"))
    with Provider(Reply(dribble(data, 0.004, n=2))) as p, with_model(p, idle_timeout=2) as d:
        same(Nexus(d).says("Hi"), "slow but sure")


TOOL = {"name": "weather", "description": "What the sky does",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}


def test_tool_calls_are_put_together_and_answered():
    for language in LANGUAGES:
        first = language.reply(
            language.opening, language.text("Let me look. "),
            *language.tool_call(0, "call_a", "weather", '{"ci', 'ty":"Gh', 'ent é"}'),
            *language.tool_call(1, "call_b", "weather", '{}'),
            language.finish(stop="tools"), language.done)
        with Provider(first, language.answer("It rains.")) as p, with_model(p, language) as d:
            with Stream(d, "How is the weather?", tools=[TOOL]) as s:
                r = s.answer()
            same((r["content"], r["stop"]), ("Let me look. ", "tools"))
            same(r["tool_calls"], [
                {"id": "call_a", "name": "weather", "arguments": {"city": "Ghent é"}},
                {"id": "call_b", "name": "weather", "arguments": {}}])
            offered = p.last.json["tools"]
            check("weather" in json.dumps(offered), "%r", offered)
            answer = give_results(d, {"id": "call_a"},
                                  {"id": "call_b", "content": "no city", "failed": True})
            check("result" in answer, "%r", answer)
            same((answer["result"]["content"], answer["result"]["stop"]), ("It rains.", "end"))
            check_results(language, p.last.json["messages"])
            same([m["role"] for m in Nexus(d).messages()],
                 ["user", "assistant", "tool", "tool", "assistant"])


def check_results(language, messages):
    if language is OPENAI:
        messages = [m for m in messages if m["role"] != "system"]
        same([m["role"] for m in messages], ["user", "assistant", "tool", "tool"])
        calls = messages[1]["tool_calls"]
        same([c["id"] for c in calls], ["call_a", "call_b"])
        same(json.loads(calls[0]["function"]["arguments"]), {"city": "Ghent é"})
        same([(m["tool_call_id"]) for m in messages[2:]], ["call_a", "call_b"])
        check("rain" in messages[2]["content"], "%r", messages[2])
        return
    same([m["role"] for m in messages], ["user", "assistant", "user"])
    uses = [b for b in messages[1]["content"] if b["type"] == "tool_use"]
    same([(b["id"], b["input"]) for b in uses], [("call_a", {"city": "Ghent é"}), ("call_b", {})])
    results = [b for b in messages[2]["content"] if b["type"] == "tool_result"]
    same([b["tool_use_id"] for b in results], ["call_a", "call_b"])
    same([bool(b.get("is_error")) for b in results], [False, True])


def calls_tools(language, *ids):
    """A script that says a word and calls tools."""
    return language.reply(
        language.opening, language.text("Let me look. "),
        *[step for at, id in enumerate(ids)
          for step in language.tool_call(at, id, "weather", '{"city":"Ghent"}')],
        language.finish(stop="tools"), language.done)


def give_results(d, *results, **params):
    """The answer to results, or the error."""
    with d.connect() as c:
        c.send(json.dumps({"jsonrpc": "2.0", "method": "chat.stream", "id": 5, "params": dict(
            {"tools": [TOOL], "tool_results": [dict({"content": "rain"}, **r) for r in results]},
            **params)}).encode() + b"\n")
        answer = {}
        while "id" not in answer:
            answer = json.loads(c.read_line())
        return answer


def spoiling():
    """For each language: a daemon that waits for the results of two calls. The provider refuses
    what real ones refuse: a history that is spoilt once is spoilt for good."""
    for language in LANGUAGES:
        with Provider(calls_tools(language, "call_a", "call_b"),
                      default=lambda asked: language.answer("fine")) as p, \
                with_model(p, language) as d:
            with Stream(d, "How is the weather?", tools=[TOOL]) as s:
                same(s.answer()["stop"], "tools")
            yield d, Nexus(d)


def test_a_question_instead_of_the_results_goes_on():
    for _, n in spoiling():
        same(n.says("Never mind."), "fine")
        same(n.says("And now?"), "fine")


def test_results_that_nobody_waits_for_do_not_spoil_the_conversation():
    for results in (["call_x"], ["call_a", "call_b", "call_x"]):
        for d, n in spoiling():
            give_results(d, *[{"id": id} for id in results])
            same(n.says("And now?"), "fine", "after results of %r" % results)
            give_results(d, {"id": "call_a"}, {"id": "call_b"})  # too late
            same(n.says("And then?"), "fine")


def test_some_of_the_results_do_not_spoil_the_conversation():
    for d, n in spoiling():
        give_results(d, {"id": "call_a"})  # may be refused, or the other be made up
        same(n.says("And now?"), "fine")


def test_tools_within_a_budget():
    for language in LANGUAGES:
        with Provider() as p, with_model(p, language, budget=500, reserve=100) as d:
            for i in range(12):
                id = "call_%d" % (i % 2)  # some providers count anew in each answer
                p.play(calls_tools(language, id),
                       language.answer("It rains. " + "word " * (i * 7)))
                with Stream(d, "How is the weather? %d " % i + "word " * 20, tools=[TOOL]) as s:
                    same(s.answer()["stop"], "tools")
                answer = give_results(d, {"id": id, "content": "rain " * (i * 3)})
                check("result" in answer, "%s, %d: %r", language.kind, i, answer)


def test_empty_questions_and_words_that_are_only_blanks():
    for language in LANGUAGES:
        def answer(asked):
            last = language.history(asked)[1][-1][1]
            return {"a": language.answer(" "),
                    "b": Reply(language.opening, language.text("\n "), cut)
                    }.get(last, language.answer("fine"))

        with Provider(default=answer) as p, with_model(p, language) as d:
            n = Nexus(d)
            for text in ("", "  ", "a", "b"):
                try:
                    n.send(text)
                except Refused as error:
                    same(error.code, -32603)
                # Providers refuse a history with an empty message, but not this one.
                same(n.says("And now?"), "fine", "%s after %r" % (language.kind, text))


def test_a_conversation_may_change_its_agent():
    with Provider() as p, Provider() as q, Daemon(
            *model_flags(q, ANTHROPIC, "second"), *model_flags(p, OPENAI, "first")) as d:
        p.play(calls_tools(OPENAI, "call_a"))
        with Stream(d, "How is the weather?", agent="first", tools=[TOOL]) as s:
            same(s.answer()["stop"], "tools")
        q.play(ANTHROPIC.answer("It rains."), ANTHROPIC.answer("It still rains."))
        answer = give_results(d, {"id": "call_a"}, agent="second")
        same(answer.get("result", answer).get("content"), "It rains.")
        with Stream(d, "Really?", agent="second") as s:
            same(s.answer()["content"], "It still rains.")
        with Stream(d, "Hm?", agent="recall") as s:
            s.answer()
        p.play(OPENAI.answer("Yes."))
        with Stream(d, "Tell me", agent="first") as s:
            same(s.answer()["content"], "Yes.")


def test_usage_counts_what_was_cached():
    with Provider(ANTHROPIC.answer("Hello", input=3, output=7, cache_read=1000,
                                   cache_written=200)) as p, with_model(p, ANTHROPIC) as d:
        with Stream(d, "Hi") as s:
            same(s.answer()["tokens"], {"input": 1203, "output": 7, "cache_read": 1000,
                                        "cache_written": 200})
    with Provider(OPENAI.answer("Hello", input=3, output=7)) as p, with_model(p) as d:
        with Stream(d, "Hi") as s:
            tokens = s.answer()["tokens"]
            same((tokens["input"], tokens["output"]), (3, 7))


def test_an_answer_that_hit_its_limit_says_so():
    for language in LANGUAGES:
        with Provider(language.answer("cut sho", stop="length")) as p, with_model(p, language) as d:
            with Stream(d, "Hi") as s:
                r = s.answer()
            same((r["content"], r["stop"]), ("cut sho", "length"))


def test_an_empty_answer_is_an_answer():
    for language in LANGUAGES:
        with Provider(language.answer(), language.answer("", ""), language.answer("next")) as p, \
                with_model(p, language) as d:
            n = Nexus(d)
            same([n.says("Hi") for _ in range(3)], ["", "", "next"])
            # Providers refuse a history with an empty message.
            check(all(text for _, text in language.history(p.last)[1]), "%r", p.last.json)


def test_streams_that_end_without_the_last_word():
    for language in LANGUAGES:
        for last in (close, None, cut):
            steps = [language.opening, language.text("all of it"), language.finish()]
            with Provider(Reply(*steps, *([last] if last else []),
                                framing="close" if last is close else "chunked"),
                          language.answer("next")) as p, with_model(p, language) as d:
                n = Nexus(d)
                same(n.says("Hi"), "all of it", "%s, %s" % (language.kind, last))
                same(n.says("Hi"), "next")


# ---- badly behaved, once and then well ----


def test_a_refusal_before_the_first_byte_is_tried_again():
    for language in LANGUAGES:
        for name, bad in (("429", plain(429, language.refusal("slow down", "rate_limit_error"),
                                        ("Retry-After", "0"))),
                          ("500", plain(500, language.refusal("oops", "api_error"))),
                          ("503", plain(503, "busy", kind="text/plain")),
                          ("529", plain(529, language.refusal("busy", "overloaded_error"))),
                          ("cut before the headers", Reply(cut))):
            with Provider(bad, language.answer("second try")) as p, \
                    with_model(p, language, retries=2, clock=0) as d:
                said = later(Nexus(d).says, "Hi")
                d.hurry(said.done, "the answer")
                same(result(said), "second try", "%s after %s" % (language.kind, name))
                same(len(p.asked), 2, "times asked after " + name)
                same(p.asked[0].body, p.asked[1].body, "what was asked again")


def test_retry_after_is_heeded():
    with Provider(plain(429, OPENAI.refusal("slow down"), ("Retry-After", "1")),
                  OPENAI.answer("ok")) as p, with_model(p, retries=1) as d:
        n = Nexus(d)
        sent = later(n.send, "Hi", "r1")
        p.wait_asked(1)
        p.asked[0].ended.wait()
        # Meanwhile others are served, and it can be cancelled.
        same(n.count(), 1, "messages")
        same(result(sent)["content"], "ok")
        p.play(plain(503, "busy", ("Retry-After", "50")))
        sent = later(n.send, "Hi", "r2")
        p.wait_asked(3)
        wait_until(lambda: n.cancel("r2")["cancelled"], "the turn")
        same(result(sent), {"content": "", "request_id": "r2", "cancelled": True})
        # Nobody waits for an hour.
        p.play(plain(503, "busy", ("Retry-After", "3600")))
        check("3600" in n.refused("send", {"content": "Hi"}).message, "not told how long")
        same(len(p.asked), 4, "times asked")


def test_retries_come_to_an_end():
    with Provider(default=plain(503, OPENAI.refusal("at capacity"), ("Retry-After", "0"))) as p, \
            with_model(p, retries=2) as d:
        n = Nexus(d)
        error = n.refused("send", {"content": "Hi"})
        same(error.code, -32603)
        check("503" in error.message or "at capacity" in error.message, "%r", error.message)
        same(len(p.asked), 3, "times asked")


def test_after_the_first_byte_nothing_is_tried_again():
    for language in LANGUAGES:
        with Provider(Reply(language.opening, language.text("half "), cut),
                      language.answer("again")) as p, with_model(p, language, retries=3) as d:
            n = Nexus(d)
            same(n.refused("send", {"content": "Hi"}).code, -32603)
            same(len(p.asked), 1, "times asked")
            same(n.says("Hi"), "again")


def test_refusals_that_trying_again_would_not_help():
    for language in LANGUAGES:
        for status in (400, 401, 403, 404):
            with Provider(plain(status, language.refusal("no, because of %s" % SECRET)),
                          language.answer("next")) as p, \
                    with_model(p, language, retries=3, key_env="TEST_KEY",
                               env={"TEST_KEY": SECRET}) as d:
                n = Nexus(d)
                error = n.refused("send", {"content": "Hi"})
                same(error.code, -32603)
                check(str(status) in error.message or "no, because of" in error.message,
                      "%r", error.message)
                check(SECRET not in error.message, "the key is in the error: %r", error.message)
                check(SECRET.encode() not in d.log(), "the key is in the log")
                same(len(p.asked), 1, "times asked")
                same(n.says("Hi"), "next")


# ---- badly behaved for good ----


def failures(language):
    """Name, script, and the text that came before it failed."""
    text = [language.opening, language.text("half ")]
    return (
        ("cut before the headers", Reply(cut), ""),
        ("cut after the headers", Reply(head, cut), ""),
        ("cut in mid-stream", Reply(*text, cut), "half "),
        ("cut in mid-line", Reply(*text, b'data: {"choi', cut), "half "),
        ("cut in mid-letter", Reply(*text, language.text("é").split(b"\xa9")[0], cut), "half "),
        ("an end in mid-stream", Reply(*text), "half "),
        ("an error in mid-stream", Reply(*text, language.failure("the model burst")), "half "),
        ("an error at once", Reply(language.failure("the model burst")), ""),
        ("not JSON", Reply(*text, b"data: {nonsense\n\n", language.finish(), language.done),
         "half "),
        ("JSON of another kind", Reply(b"data: [1,2,3]\n\ndata: 7\n\ndata: \"x\"\n\n"), ""),
        ("wrong types", Reply(b'data: {"choices":{"0":7},"type":9,"delta":[]}\n\n'), ""),
        ("HTML", plain(200, "<html><body>Welcome to the proxy</body></html>",
                       kind="text/html"), ""),
        ("an empty answer", plain(200, b""), ""),
        ("an empty stream", Reply(), ""),
        ("a line of 10 MB", Reply(*text, b"data: ", *[b"x" * MIB] * 10, b"\n\n"), "half "),
        ("binary", plain(200, os.urandom(5000), kind="application/octet-stream"), ""),
        ("no HTTP", Reply(raw(b"SSH-2.0-OpenSSH_9.2\r\n"), close), ""),
        ("a redirect", plain(302, "", ("Location", "http://127.0.0.1:9/elsewhere")), ""),
        ("a lie about the length", Reply(raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream"
                                             b"\r\nContent-Length: 9999\r\n\r\n" +
                                             joined(text)), close), "half "),
        ("a broken chunk", Reply(raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                                     b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"), close), ""),
        ("endless headers", Reply(raw(b"HTTP/1.1 200 OK\r\n"), endless(b"X-Y: z\r\n" * 1000)), ""),
    )


def test_whatever_a_provider_does_there_is_an_error_and_the_next_question_works():
    for language in LANGUAGES:
        with Provider() as p, with_model(p, language) as d:
            n = Nexus(d)
            turns = []
            descriptors_before = None
            for name, script, text in failures(language):
                p.play(script, language.answer("next"))
                question = "question: " + name
                with Stream(d, question) as s:
                    try:
                        r = s.answer()
                        check(False, "%s: answered %r", name, r)
                    except Refused as error:
                        same(error.code, -32603, "code for " + name)
                        check(len(error.message) > 15, "%s: %r", name, error.message)
                same(s.text, text, "what came before " + name)
                check_kept(n, name, question, text)
                same(n.says("and now?"), "next", "the answer after " + name)
                d.alive()
                turns.append(name)
                if descriptors_before is None:
                    descriptors_before = len(descriptors(d.pid))
            same(len(p.asked), 2 * len(turns), "times asked")
            wait_until(lambda: len(descriptors(d.pid)) <= descriptors_before + 1,
                       "descriptors to be closed")
            check(peak_rss(d.pid) < 100 * MIB, "%d MiB at its peak", peak_rss(d.pid) >> 20)


def check_kept(n, name, question, text):
    """What came before a failure is a message of its turn, marked."""
    tail = n.messages()[-2 if text else -1:]
    same([m["content"] for m in tail], [question, text] if text else [question], name)


def test_the_providers_own_words_are_passed_on():
    for language in LANGUAGES:
        with Provider(Reply(language.opening, language.text("half "),
                            language.failure("the model burst")),
                      plain(400, language.refusal("too many tokens"))) as p, \
                with_model(p, language) as d:
            n = Nexus(d)
            for words in ("the model burst", "too many tokens"):
                error = n.refused("send", {"content": "Hi"})
                check(words in error.message, "%r", error.message)
                check(error.message.startswith("Internal error: ProviderError: "), "%r",
                      error.message)


def test_nobody_is_there():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))  # bound and not listening: refused
        flags = agent_flags("model", kind="openai", model="m", retries=1,
                            url="http://127.0.0.1:%d" % s.getsockname()[1])
        with Daemon("--agent", "model", *flags) as d:
            n = Nexus(d)
            for _ in range(2):
                error = n.refused("send", {"content": "Hi"})
                same(error.code, -32603)
                check("onnect" in error.message, "%r", error.message)
            same(n.count(), 2, "messages")
            d.alive()
    with Folder() as f:
        for path in ("none.sock", "file"):
            open(f("file"), "w").close()
            with Daemon("--agent", "model", *agent_flags("model", kind="openai", model="m",
                                                         retries=0, url="unix:" + f(path))) as d:
                same(Nexus(d).refused("send", {"content": "Hi"}).code, -32603)


def test_a_provider_that_was_down_is_used_when_it_is_up():
    with Folder() as f:
        with Daemon("--agent", "model", *agent_flags("model", kind="openai", model="m", retries=0,
                                                     url="unix:" + f("m.sock"))) as d:
            n = Nexus(d)
            n.refused("send", {"content": "Hi"})
            with Provider(OPENAI.answer("up again"), unix=f("m.sock")):
                same(n.says("Hi"), "up again")


def test_silence_ends_at_its_limit():
    for name, script in (("nothing at all", Reply(silence)), ("only headers", Reply(head, silence)),
                         ("half an answer", Reply(OPENAI.text("half "), silence))):
        with Provider(script, OPENAI.answer("next")) as p, with_model(p, idle_timeout=1) as d:
            n = Nexus(d)
            error = n.refused("send", {"content": "Hi"})
            same(error.code, -32603)
            check("second" in error.message or "time" in error.message.lower(), "%s: %r", name,
                  error.message)
            p.asked[0].left()
            same(n.says("Hi"), "next")


def test_an_answer_without_end_stops_at_its_limits():
    # In time: a word now and then, for ever.
    with Provider(Reply(dribble(OPENAI.text("on and ") * 1000, 0.05, n=200)),
                  OPENAI.answer("next")) as p, with_model(p, total_timeout=1) as d:
        n = Nexus(d)
        same(n.refused("send", {"content": "Hi"}).code, -32603)
        p.asked[0].left()
        same(n.says("Hi"), "next")
    # In bytes: as fast as it is taken.
    with Provider(Reply(endless(OPENAI.text("on and on " * 1000))), OPENAI.answer("next")) as p, \
            with_model(p) as d:
        with Stream(d, "Hi") as s:
            r = s.answer()
        same(r["stop"], "length")
        check(7 * MIB < len(r["content"]) <= 8 * MIB, "%d bytes", len(r["content"]))
        p.asked[0].left()
        check(peak_rss(d.pid) < 150 * MIB, "%d MiB at its peak", peak_rss(d.pid) >> 20)
        same(Nexus(d).says("Hi"), "next")


def test_an_endless_stream_can_be_cancelled():
    with Provider(Reply(OPENAI.text("word "), endless(b": nothing to say\n\n")),
                  OPENAI.answer("next")) as p, with_model(p) as d:
        n = Nexus(d)
        with Stream(d, "Hi", request_id="r") as s:
            s.until("word ")
            d.alive()
            same(n.cancel("r")["cancelled"], True)
            same(s.answer()["content"], "word ")
        p.asked[0].left()
        same(n.says("Hi"), "next")


def test_a_cancel_is_heeded_wherever_the_provider_is():
    for name, script in (("nothing at all", Reply(silence)), ("only headers", Reply(head, silence)),
                         ("in mid-line", Reply(b"data: {", silence))):
        with Provider(script, OPENAI.answer("next")) as p, with_model(p) as d:
            n = Nexus(d)
            sent = later(n.send, "Hi", "r")
            p.wait_asked(1)
            same(n.cancel("r")["cancelled"], True, name)
            same(result(sent), {"content": "", "request_id": "r", "cancelled": True}, name)
            p.asked[0].left()
            same(n.says("Hi"), "next")


if __name__ == "__main__":
    main(globals())
