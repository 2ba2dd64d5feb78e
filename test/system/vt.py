"""
A small terminal: what a person sees of the bytes that a program has written. It knows the sequences
that koine sends, and refuses others, so that none goes unnoticed.

In the last column the cursor stays on the character it has drawn, as terminals have it: whoever
erases from there to the end of the row erases that character.
"""
import re
import unicodedata

SEQUENCE = re.compile(r"\033\[([?]?)([0-9;]*)([A-Za-z])")


def width(char):
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


class Screen:
    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.wraps = True
        self.clear()

    def clear(self):
        self.cells = [[" "] * self.columns for _ in range(self.rows)]
        self.row = self.column = 0
        self.pending = False

    def text(self):
        return ["".join(row).rstrip() for row in self.cells]

    def feed(self, data):
        at = 0
        while at < len(data):
            found = SEQUENCE.match(data, at)
            if found:
                self.obey(*found.groups())
                at = found.end()
            else:
                assert data[at] >= " " or data[at] in "\r\n", "a control: %r" % data[at:at + 20]
                self.put(data[at])
                at += 1

    def put(self, char):
        if char == "\r":
            self.column, self.pending = 0, False
        elif char == "\n":
            self.down()
        elif width(char) == 0:
            self.cells[self.row][max(self.column - 1, 0)] += char
        else:
            self.draw(char)

    def down(self):
        self.pending = False
        if self.row + 1 < self.rows:
            self.row += 1
        else:
            self.cells = self.cells[1:] + [[" "] * self.columns]

    def draw(self, char):
        wide = width(char)
        if self.pending and self.wraps:
            self.column = 0
            self.down()
        self.column = min(self.column, self.columns - wide)
        self.cells[self.row][self.column] = char
        if wide == 2:
            self.cells[self.row][self.column + 1] = ""
        self.pending = self.column + wide >= self.columns
        self.column = min(self.column + wide, self.columns - 1)

    def obey(self, private, numbers, letter):
        n = [int(x) for x in numbers.split(";") if x]
        if private:
            assert letter in "hl", "a sequence that nobody knows: ?%s%s" % (numbers, letter)
            if n == [7]:
                self.wraps = letter == "h"
            elif n == [1049]:
                self.clear()
            else:
                assert n in ([25], [2004]), "a mode that nobody knows: %s" % n
        elif letter == "m":
            pass
        elif letter == "H":
            self.row = min((n[0] if n else 1), self.rows) - 1
            self.column = min((n[1] if len(n) > 1 else 1), self.columns) - 1
            self.pending = False
        elif letter == "K" and n in ([], [0]):
            self.erase(self.row, self.column)
        elif letter == "J" and n in ([], [0]):
            self.erase(self.row, self.column)
            for row in range(self.row + 1, self.rows):
                self.erase(row, 0)
        elif letter == "J" and n == [2]:
            for row in range(self.rows):
                self.erase(row, 0)
        else:
            assert False, "a sequence that nobody knows: %s%s" % (numbers, letter)

    def erase(self, row, column):
        self.cells[row][column:] = [" "] * (self.columns - column)
