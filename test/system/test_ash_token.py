#!/usr/bin/env python3
"""ash's signed context: who has a valid one is who it says, and nobody else is served."""
import base64
import hashlib
import hmac
import json
import time

from ash_client import RPCError
from harness import Daemon, Failure, Folder, check, main, run_koined, same
from test_ash import Ash

SECRET = bytes(range(1, 33))
HEADER = {"alg": "HS256", "typ": "ASH_CONTEXT", "ver": 1}
METHODS = {"memory.search": {"query": "tea"}, "memory.add": {"content": "x"}, "memory.list": {},
           "memory.delete": {"memory_id": "1234"}, "config.reload": {}}


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def pack(header, claims, secret=SECRET):
    """Three parts; header and claims are JSON, or bytes as they are."""
    parts = [encode(p if isinstance(p, bytes) else json.dumps(p, separators=(",", ":")).encode())
             for p in (header, claims)]
    text = ".".join(parts)
    return text + "." + encode(hmac.new(secret, text.encode(), hashlib.sha256).digest())


def claims(user="ann", chat=None, age=0, life=900, **more):
    now = int(time.time())
    out = {"ver": 1, "sub": user, "iat": now - age, "exp": now - age + life, "jti": "5f", **more}
    if chat:
        out["chat_id"] = chat
    return out


def token(*args, secret=SECRET, **more):
    return pack(HEADER, claims(*args, **more), secret)


def guarded(secret=None, **opts):
    return Daemon("--set", "ash.context_secret=" + (secret or SECRET.hex()), **opts)


def code_of(ash, method, **params):
    """The code in the words of a refusal."""
    try:
        answer = ash.call(method, **params)
    except RPCError as error:
        same((error.code, error.data), (-32602, None), "error")
        start, _, rest = error.message.partition(")")
        check(start.startswith("Invalid context token (") and rest.startswith(": ") and len(rest) > 4,
              "words: %r", error.message)
        return start[len("Invalid context token ("):]
    raise Failure("%s was answered: %.100r" % (method, answer))


def test_no_call_is_served_without_a_token():
    with guarded() as d:
        ash = Ash(d)
        for method, params in METHODS.items():
            for given in ({}, {"context_token": None}, {"context_token": ""}, {"user_id": "ann"}):
                same(code_of(ash, method, **params, **given), "missing", method)
        same(ash.contents(context_token=token()), [])


def test_every_call_is_served_with_one():
    with guarded() as d:
        ash = Ash(d)
        made = ash.add("I like tea", context_token=token())
        same(ash.found("tea", context_token=token()), ["I like tea"])
        same(ash.contents(context_token=token()), ["I like tea"])
        same(ash.call("config.reload", context_token=token()), {"success": True})
        same(ash.delete(made["id"][:8], context_token=token()), True)


def test_identity_comes_from_the_token_alone():
    with guarded() as d:
        ash = Ash(d)
        ann, bob = token("ann", "c1"), token("bob", "c2")
        made = ash.add("ann's own", user_id="bob", chat_id="c2", context_token=ann)["id"]
        ash.add("of ann's chat", user_id="bob", chat_id="c2", shared=True, context_token=ann)
        same(ash.contents(user_id="ann", chat_id="c1", context_token=bob), [])
        same(ash.found("ann own chat", user_id="ann", chat_id="c1", context_token=bob), [])
        same(ash.delete(made, user_id="ann", context_token=bob), False)
        same(set(ash.contents(user_id="bob", context_token=ann)), {"ann's own", "of ann's chat"})
        same(ash.contents(context_token=token("ann")), ["ann's own"])
        same(ash.contents(context_token=token("eve", "c1")), ["of ann's chat"])


def test_the_kind_of_chat_comes_from_the_token_too():
    with guarded() as d:
        ash = Ash(d)
        dm = token("ann", "dm", chat_type="private")
        club = token("ann", "club", chat_type="group")
        ash.add("to myself", context_token=dm, chat_type="group")
        ash.add("in the club", context_token=club)
        same(ash.contents(context_token=club, chat_type="private"), ["in the club"])
        same(ash.found("myself club", context_token=club), ["in the club"])
        same(set(ash.contents(context_token=dm, chat_type="group")), {"to myself", "in the club"})
        same(ash.contents(context_token=dm, this_chat=True), ["to myself"])


def test_bad_tokens_and_what_is_said_of_them():
    good = token()
    header, body, signature = good.split(".")
    rows = [
        ("format", ["x", "a.b", "a.b.c.d", good + ".", "..", good + ".x", header + "." + body + "."]),
        ("decode", ["a.b.c", "!!.%s.%s" % (body, signature), "%s.é.%s" % (header, signature),
                    pack(b"{", claims()), pack(HEADER, b"[]"), pack(HEADER, b""), pack(b"5", b"{}"),
                    pack(HEADER, b"[" * 5000)]),
        ("header", [pack(dict(HEADER, alg="none"), claims()), pack(dict(HEADER, typ="JWT"), claims()),
                    pack({}, claims()), pack(dict(HEADER, alg=5), claims()),
                    pack(dict(HEADER, alg="HS256\0"), claims())]),
        ("signature", [token(secret=b"another"), good[:-1], header + "." + body + ".AAAA",
                       pack(HEADER, claims("bob")).rsplit(".", 1)[0] + "." + signature]),
        ("claims", [token(age=1000, life=900), pack(HEADER, {}), token(""), token(5),
                    pack(HEADER, {"sub": "ann"}), pack(HEADER, {"sub": "ann", "exp": "soon"}),
                    token(age=-600)]),
    ]
    with guarded() as d:
        ash = Ash(d)
        for code, bad in rows:
            for text in bad:
                same(code_of(ash, "memory.list", context_token=text), code, "code of %.90r" % text)
        try:
            ash.call("memory.list", context_token=5)
            raise Failure("a number is no token")
        except RPCError as error:
            same(error.code, -32602, "code")


def test_clocks_may_differ_by_half_a_minute():
    with guarded() as d:
        ash = Ash(d)
        # Ten seconds to spare, for a slow machine.
        for good in (token(age=920, life=900), token(age=-20)):
            same(ash.contents(context_token=good), [])
        for bad in (token(age=940, life=900), token(age=-60)):
            same(code_of(ash, "memory.list", context_token=bad), "claims")


def test_a_secret_is_hex_or_base64url_or_text():
    rows = [(SECRET.hex(), SECRET), (SECRET.hex().upper(), SECRET), (encode(SECRET), SECRET),
            (base64.urlsafe_b64encode(SECRET).decode(), SECRET),
            (encode(bytes([255, 254] * 16)), bytes([255, 254] * 16)),
            ("correct horse battery staple now", b"correct horse battery staple now"),
            ("  padded secret  ", b"padded secret"),
            # What looks like another form may be meant as it stands.
            ("cafe0123", b"cafe0123"), ("plain-text_secret000", b"plain-text_secret000")]
    for written, secret in rows:
        with guarded(written) as d:
            same(Ash(d).contents(context_token=token(secret=secret)), [])
            same(code_of(Ash(d), "memory.list", context_token=token(secret=b"x")), "signature")


def test_the_secret_may_come_from_the_environment():
    for name in ("ASH_CONTEXT_TOKEN_SECRET", "KOINE_ASH_CONTEXT_SECRET"):
        with Daemon(env={name: SECRET.hex()}) as d:
            same(Ash(d).contents(context_token=token()), [])
            same(code_of(Ash(d), "memory.list"), "missing")


def test_a_blank_secret_is_not_none():
    with Folder() as f:
        done = run_koined("--root", f.path, "--set", "ash.context_secret=  ")
        check(done.returncode != 0 and b"ash.context_secret is blank" in done.stderr, "%r", done)


def test_the_secret_stays_when_the_settings_are_read_again():
    with Folder() as f:
        def write(secret):
            with open(f("conf"), "w") as out:
                out.write("[ash]\ncontext_secret = %s\n" % secret)
        write("first secret")
        with Daemon("--config", f("conf")) as d:
            write("other words")
            mine = token(secret=b"first secret")
            same(Ash(d).call("config.reload", context_token=mine), {"success": True})
            same(Ash(d).contents(context_token=mine), [])


def test_the_secret_is_told_to_nobody():
    long = "tellnobody" * 60
    for args in (["--set", "ash.context_secret=" + long], ["--set", "ash.context_secret=tellnobody"]):
        done = run_koined("--check", "--root", "/nonexistent", *args)
        check(b"tellnobody" not in done.stdout + done.stderr, "%r", done.stdout + done.stderr)
    with guarded("tellnobody at all", announced=[]) as d:
        same(code_of(Ash(d), "memory.list", context_token="a.b.c"), "decode")
        check(b"tellnobody" not in d.log(), "in the log")


def test_koines_own_socket_wants_none():
    with guarded() as d:
        Ash(d).add("ann's", context_token=token())
        same([m["content"] for m in d.connect().call("memory.list")], ["ann's"])


if __name__ == "__main__":
    main(globals())
