#!/usr/bin/env python3
"""
Cases of RFC 8259's grammar, each sent as a whole message: JSON must be read, what is not JSON must not, and what
the grammar allows but a reader may limit may be either; the connection goes on after every one.

KOINE_JSON_CASES names a folder with more of them: files y_*.json, n_*.json and i_*.json.
"""
import json
import os

from harness import Http, Length, check, main, request, same, shared

CASES = os.environ.get("KOINE_JSON_CASES")
PARSE_ERROR = -32700

VALUES = rb"""true|false|null|0|-0|1|-1|10|1234567890|0.0|1.5|-0.5|1e1|1E1|1e+1|1E-1|0e0|0e+1|1.25e-3|123456789012345678
""|"a"|" "|"\""|"\\"|"\/"|"\b\f\n\r\t"|"\u0000"|"\u0041"|"\u00e9"|"\uD834\udd1e"|"\uFFFF"|"\u2028"|"\\u0000"|"\\n"
"/* no comment */"|"// none"|[]|[ ]|[1]|[1,2]|[[]]|[[],[[]]]|[null,true,"x",1.5,{}]|{}|{ }|{"":0}|{"a":{}}|{"a":[1,{"b":2}]}
{"a":1,"b":2}|{"a":1,"a":2}|{"a":1,"a":1}|{"\u0061":1}|{"a\u0000b":1}|{"min":-1.0e+28,"max":1.0e+28}"""
UTF8 = ["\x7f", "\u00a0", "\u00e9", "\u03c0", "\u200b", "\u2028", "\u2029", "\u2064", "\ufdd0", "\ufffe", "\uffff",
        "\U0001d11e", "\U0001fffe", "\U0010ffff", "\u20ac\U0001f600"]
SPACES = [b" ", b"\n", b"\r\n", b"\t", b" \t\r\n "]

NOT_VALUES = rb"""tru|True|TRUE|truee|nul|Null|nulll|fals|undefined|NaN|-NaN|Infinity|-Infinity|Inf|+1|+Inf|-|--1|- 1|-a|01|-01|00|012
1.|-1.|.1|-.1|.|1.e1|1.2.3|1..2|0.e1|1e|1E|1e+|1e-|1ee2|1e1.5|1e1e1|0x1|0x1f|1_000|1,000|1 000|1a|1+2|1-|1f|1 2|1#
"|"a|a"|'a'|'a|"a"b|"a""b"|"\"|"\x41"|"\a"|"\u"|"\u1"|"\u12"|"\u123"|"\u123g"|"\U0041"|"\'"|"\0"|"\ "|a|abc|`a`
[|]|[[|]]|[1|[1,|[1,]|[,1]|[,]|[,,]|[1,,2]|[1 2]|[1 true]|[1;2]|[1:2]|[1}|[1]]|[1]x|["a|["a"|["a",|[1,2|[-]|[*]|[a]|[']|[""x]|[{]|[{}|[]]|[][]|[]1
{|}|{{|{}}|{]|{,}|{1}|{"a"}|{"a":}|{"a":1|{"a":1,|{"a":1,}|{"a":1,,"b":2}|{,"a":1}|{"a" 1}|{"a"::1}|{"a",1}|{"a":1 "b":2}|{"a":1;"b":2}
{a:1}|{1:1}|{null:1}|{'a':1}|{"a":'b'}|{["a"]:1}|{"a":a}|{"a":1}}|{"a":1}x|{"a":1}{}|{"a":"b|{"a|{"a":[}|{"a":1]|{"a"|{":1}|{"a":1 true}
/**/|1/**/|//|1//x|[1/*x*/]|{"a":1}/**/|{"a":1}//|{"a":1}/|{"a":1}#|#|*|,|:|<null>|<.>|\|\u000A""|&|@|%|(1)|[1}{"""
NOT_BYTES = [b"", b" ", b"\n", b"\xef\xbb\xbf", b"\xef\xbb", b"\xe9", b"[\xff]", b"[1\xe5]", b"1e1\xe5", b"\x00", b"[1\x00]", b"[\x0b1]",
             b"[1,\x0c2]", b"\x0c[]", b"[\xc2\xa01]", b"[\xe2\x81\xa0]", b"\xe2\x81\xa0[]", b"\xef\xbc\x91", b'"\x00"', b'"\x01"', b'"\x1f"',
             b'"a\nb"', b'"a\tb"', b'"a\rb"', b'"\\\x00"', b'"\\\t"', b'"\\\xf0\x9f\x8c\x80"', b'"\\u\xe5"', b'"\\\xe5"',
             b'[' * 100000, b'[{"":' * 50000, b'{"a":' * 5000, b'{\xf0\x9f\x87\xa8:1}', b'["x"', b'["x\xe2\x80\x9d]']

EITHER = [b"1e400", b"-1e400", b"1e-400", b"123456789012345678901234567890", b"-123456789012345678901234567890", b"1" * 400, b"0." + b"1" * 400,
          rb'"\ud800"', rb'"\udc00"', rb'"\ud800\u0041"', rb'"\ud800\ud800"', rb'"\udc00\ud800"', rb'"\ud800x"', rb'{"\udfaa":0}',
          b'"\x80"', b'"\xff"', b'"\xc0\xaf"', b'"\xe0\x80\xaf"', b'"\xed\xa0\x80"', b'"\xf4\xbf\xbf\xbf"', b'"\xfc\x83\xbf\xbf\xbf\xbf"', b'"\xe2\x82"',
          b'"\xe9"', b"\xff\xfe[\x00]\x00", b"[\x00\"\x00a\x00\"\x00]\x00", b"\x00[\x00]", b"\xef\xbb\xbf{}", b"[" * 500 + b"]" * 500]


def own_cases():
    """Each value alone, in an array, as a member, and with space around it."""
    values = [v for line in VALUES.splitlines() for v in line.split(b"|")] + [b'"%s"' % c.encode() for c in UTF8]
    readable = [*values, *(space + v + space for space in SPACES for v in values[::7]),
                *(form % v for v in values for form in (b"[%s]", b'{"a":%s}'))]
    wrong = [v for line in NOT_VALUES.splitlines() for v in line.split(b"|")] + NOT_BYTES
    return [("%s %.40r" % (kind, data), data)
            for kind, some in (("y", readable), ("n", wrong), ("i", EITHER)) for data in some]


def cases():
    out = own_cases()
    for name in sorted(os.listdir(CASES) if CASES else []):
        if name[:2] in ("y_", "n_", "i_") and name.endswith(".json"):
            with open(os.path.join(CASES, name), "rb") as f:
                out.append((name, f.read()))
    return out


def codes(answer):
    answer = json.loads(answer)
    return [a["error"]["code"] for a in (answer if isinstance(answer, list) else [answer])]


def send_cases(framing):
    mark = request("debug.echo", '["after"]', id=0)
    wrong = []
    found = cases()
    with shared() as d:
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
    with shared() as d:
        c = d.connect()
        for name, data in cases():
            if name[0] != "y":
                continue
            c.send(Length.wrap(b'{"jsonrpc":"2.0","method":"debug.echo","id":1,"params":[%s]}'
                               % data))
            same(json.loads(Length.read(c))["result"], [json.loads(data)], name)


if __name__ == "__main__":
    main(globals())
