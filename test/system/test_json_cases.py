#!/usr/bin/env python3
"""
The parsing cases of the JSON test suite, each sent as a whole message: y_ must be
read, n_ must not, i_ may be either; the connection goes on after every one.
"""
import json
import os

from harness import SOURCE, Daemon, Http, Length, Skip, check, main, request, same

CASES = os.environ.get("KOINE_JSON_CASES",
                       os.path.join(SOURCE, "..", "shared", "data", "json-parsing"))
PARSE_ERROR = -32700


def cases():
    if not os.path.isdir(CASES):
        raise Skip("no cases at %s" % CASES)
    out = []
    for name in sorted(os.listdir(CASES)):
        if name[:2] in ("y_", "n_", "i_") and name.endswith(".json"):
            with open(os.path.join(CASES, name), "rb") as f:
                out.append((name, f.read()))
    check(len(out) > 250, "only %d cases", len(out))
    return out


def codes(answer):
    answer = json.loads(answer)
    return [a["error"]["code"] for a in (answer if isinstance(answer, list) else [answer])]


def send_cases(framing):
    mark = request("debug.echo", '["after"]', id=0)
    wrong = []
    found = cases()
    with Daemon() as d:
        c = d.connect()
        for name, data in found:
            c.send(framing.wrap(data) + framing.wrap(mark))
            got = codes(framing.read(c))
            parse_error = got == [PARSE_ERROR]
            if name[0] == "y" and parse_error or name[0] == "n" and not parse_error:
                wrong.append("%s: %r" % (name, got))
            same(framing.read(c), b'{"jsonrpc":"2.0","result":["after"],"id":0}', "after " + name)
    check(not wrong, "%s", ", ".join(wrong))


def test_every_case_in_a_frame_is_read_or_refused():
    send_cases(Length)


def test_every_case_in_a_post_is_read_or_refused():
    send_cases(Http)


def test_every_readable_case_is_echoed_with_the_same_meaning():
    with Daemon() as d:
        c = d.connect()
        for name, data in cases():
            if name[0] != "y":
                continue
            c.send(Length.wrap(b'{"jsonrpc":"2.0","method":"debug.echo","id":1,"params":[%s]}'
                               % data))
            same(json.loads(Length.read(c))["result"], [json.loads(data)], name)


if __name__ == "__main__":
    main(globals())
