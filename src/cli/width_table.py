#!/usr/bin/env python3
"""Makes width_table.h: which characters take no column of a terminal, and which two."""
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


def ranges(wanted):
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


print("""/* Made by width_table.py from Unicode %s. */
#pragma once

#include <stdint.h>

struct range {
	uint32_t first;
	uint32_t last;
};

%s

%s""" % (unicodedata.unidata_version, table("no_column", ranges(0)), table("two_columns", ranges(2))))
