#!/usr/bin/env python3
"""
Makes width_table.h: which characters take no column of a terminal, which two, and which two on some
terminals; and with the word "invisible" base/invisible_table.h: which of them are invisible.
"""
import sys
import unicodedata

FIRST = 0xA0


def width(c):
    """0, 1 or 2; None for what is not assigned, and belongs to its neighbours."""
    char = chr(c)
    category = unicodedata.category(char)
    if category in ("Cn", "Co", "Cs"):
        return None
    # The soft hyphen is drawn; signs that stand before Arabic numbers are, too.
    if c == 0xAD or category == "Cf" and (0x600 <= c <= 0x605 or c in (0x6DD, 0x70F, 0x8E2)):
        return 1
    if category in ("Mn", "Me", "Cf") or 0x1160 <= c <= 0x11FF:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


# Unicode's Default_Ignorable_Code_Point, as far as it is no format character (Cf).
IGNORABLE = ((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2065, 0x2065),
             (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0xE0000, 0xE0FFF))
# Format characters that are drawn: they stand before numbers.
DRAWN = (0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD)
BRAILLE_BLANK = 0x2800


def invisible(c):
    """Whether nobody sees it, or knows what a terminal makes of it: spaces that are none, too."""
    category = unicodedata.category(chr(c))
    if category == "Cf":
        return c not in DRAWN
    return (category in ("Cn", "Co", "Cs", "Zs", "Zl", "Zp") or c == BRAILLE_BLANK or
            any(first <= c <= last for first, last in IGNORABLE))


def maybe_wide(c):
    """Whether some terminals give it two columns, and others one."""
    if invisible(c) or width(c) != 1:
        return False
    return c >= 0x1F000 or unicodedata.east_asian_width(chr(c)) == "A"


def ranges(wanted, width=width):
    out = []
    last = None
    for c in range(FIRST, 0x110000):
        found = width(c)
        if found is None:
            continue
        if found == wanted and last == wanted:
            out[-1][1] = c
        elif found == wanted:
            out.append([c, c])
        last = found
    return out


def table(name, rows):
    lines = ["static const struct range %s[] = {" % name]
    for i in range(0, len(rows), 4):
        lines.append("\t" + " ".join("{0x%04x, 0x%04x}," % tuple(r) for r in rows[i:i + 4]))
    return "\n".join(lines + ["};"])


def header(words, include, *tables):
    return "/* Made by %s from Unicode %s. */\n#pragma once\n\n#include \"%s\"\n\n%s" % (
        words, unicodedata.unidata_version, include, "\n\n".join(tables))


if sys.argv[1:] == ["invisible"]:
    print(header("cli/kit/width_table.py invisible", "base/utf8.h", table("invisible", ranges(True, invisible))))
else:
    print(header("width_table.py", "base/utf8.h", table("no_column", ranges(0)),
                 table("two_columns", ranges(2)), table("maybe_two", ranges(True, maybe_wide))))
