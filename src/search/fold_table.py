#!/usr/bin/env python3
"""Writes fold_table.h: what a letter becomes without case and diacritics.

Run by hand when Unicode grows (the result is committed):

	python3 src/search/fold_table.py >src/search/fold_table.h
"""
import unicodedata

RANGES = [(0x00C0, 0x024F), (0x0370, 0x058F), (0x1E00, 0x1FFF)]
# Letters that Unicode does not take apart, but people do.
OWN = {"ø": "o", "đ": "d", "ħ": "h", "ı": "i", "ł": "l", "ŋ": "n", "ŧ": "t", "ð": "d",
       "þ": "th", "æ": "ae", "œ": "oe", "ß": "ss", "ĸ": "k", "ƒ": "f", "ƀ": "b", "ɓ": "b",
       "ǝ": "e", "ẞ": "ss", "ς": "σ", "ё": "е"}


def fold(c):
    bare = "".join(x for x in unicodedata.normalize("NFKD", c) if not unicodedata.combining(x))
    folded = unicodedata.normalize("NFKD", bare.casefold())
    return "".join(OWN.get(x, x) for x in folded if not unicodedata.combining(x)).replace("ʼ", "")


def main():
    long = {}
    print("/* Made by fold_table.py from Unicode", unicodedata.unidata_version + ". */")
    print("#pragma once\n\n#include <stdint.h>\n")
    for first, last in RANGES:
        print(f"/* U+{first:04X} to U+{last:04X}; 0: see fold_long. */")
        print(f"static const uint16_t fold_{first:04x}[] = {{")
        row = []
        for c in range(first, last + 1):
            to = fold(chr(c)) if unicodedata.category(chr(c))[0] in "LM" else chr(c)
            if len(to) > 1:
                long[c] = to
            row.append(f"0x{ord(to) if len(to) == 1 else 0:04x}")
        for i in range(0, len(row), 12):
            print("\t" + ", ".join(row[i:i + 12]) + ",")
        print("};\n")
    for c in list(range(0xFB00, 0xFB07)) + [0x2116, 0x2122]:
        long[c] = fold(chr(c))
    print("/* Letters that become two or three, in order. */")
    print("static const struct fold_long {\n\tuint16_t from;\n\tuint16_t to[3];\n} fold_long[] = {")
    for c, to in sorted(long.items()):
        print(f"\t{{0x{c:04x}, {{" + ", ".join(f"0x{ord(x):04x}" for x in to[:3]) + "}},")
    print("};")


main()
