"""
A small terminal: what a person sees of the bytes that a program has written. It knows the sequences
that koine sends, by itself and by ncurses for an xterm, and refuses others, so that none goes unnoticed.

In the last column the cursor stays on the character it has drawn, as terminals have it: whoever
erases from there to the end of the row erases that character.
"""
import re
import unicodedata

SEQUENCE = re.compile(r"\033\[([?]?)([0-9;]*)([A-Za-z@])")
OTHERS = re.compile(r"\033\(B|\033M")
UNFINISHED = re.compile(r"\033(\(|\[[?]?[0-9;]*)?$")
# Cursors that blink, titles that are kept: nothing of it is seen.
UNSEEN = ([12], [12, 25], [25], [2004])


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
        self.first, self.last = 0, self.rows - 1
        self.char = " "
        self.cells = [[" "] * self.columns for _ in range(self.rows)]
        self.row = self.column = 0
        self.pending = False

    def text(self):
        return ["".join(row).rstrip() for row in self.cells]

    def feed(self, data):
        at = 0
        while at < len(data):
            found = SEQUENCE.match(data, at)
            other = OTHERS.match(data, at)
            if found:
                self.obey(*found.groups())
                at = found.end()
            elif other:
                if other.group() == "\033M":
                    self.up()
                at = other.end()
            elif UNFINISHED.match(data, at):
                return
            else:
                assert data[at] >= " " or data[at] in "\r\n\b", "a control: %r" % data[at:at + 20]
                self.put(data[at])
                at += 1

    def put(self, char):
        if char == "\r":
            self.column, self.pending = 0, False
        elif char == "\n":
            self.down()
        elif char == "\b":
            self.go(self.row, self.column - 1)
        elif width(char) == 0:
            self.cells[self.row][max(self.column - 1, 0)] += char
        else:
            self.draw(char)

    def down(self):
        self.pending = False
        if self.row == self.last:
            self.scroll(self.first, 1)
        elif self.row + 1 < self.rows:
            self.row += 1

    def up(self):
        self.pending = False
        if self.row == self.first:
            self.scroll(self.first, -1)
        elif self.row > 0:
            self.row -= 1

    def scroll(self, first, by):
        """Rows from `first` to the last of the region go up (or down), empty ones follow."""
        part = self.cells[first:self.last + 1]
        empty = [[" "] * self.columns for _ in range(min(abs(by), len(part)))]
        part = part[len(empty):] + empty if by > 0 else empty + part[:len(part) - len(empty)]
        self.cells[first:self.last + 1] = part

    def go(self, row, column):
        self.row = min(max(row, 0), self.rows - 1)
        self.column = min(max(column, 0), self.columns - 1)
        self.pending = False

    def draw(self, char):
        wide = width(char)
        if self.pending and self.wraps:
            self.column = 0
            self.down()
        self.char = char
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
                assert n in UNSEEN, "a mode that nobody knows: %s" % n
        elif letter == "m":
            pass
        elif letter == "t":
            assert n in ([22, 0, 0], [23, 0, 0]), "a sequence that nobody knows: %st" % numbers
        elif letter in MOVES:
            MOVES[letter](self, (n[0] if n else 0) or 1)
        elif letter == "H":
            self.go((n[0] if n else 1) - 1, (n[1] if len(n) > 1 else 1) - 1)
        elif letter == "K" and n in ([], [0]):
            self.erase(self.row, self.column)
        elif letter == "K" and n == [1]:
            self.cells[self.row][:self.column + 1] = [" "] * (self.column + 1)
        elif letter == "J" and n in ([], [0]):
            self.erase(self.row, self.column)
            for row in range(self.row + 1, self.rows):
                self.erase(row, 0)
        elif letter == "J" and n == [2]:
            for row in range(self.rows):
                self.erase(row, 0)
        elif letter == "r":
            self.first, self.last = (n[0] - 1, n[1] - 1) if n else (0, self.rows - 1)
            self.go(0, 0)
        elif letter in "lh" and n == [4]:
            assert letter == "l", "characters that push others away"
        else:
            assert False, "a sequence that nobody knows: %s%s" % (numbers, letter)

    def repeat(self, n):
        for _ in range(n):
            self.draw(self.char)

    def shift(self, by):
        """Characters from the cursor on go right (or left)."""
        row = self.cells[self.row]
        rest = [" "] * by + row[self.column:] if by > 0 else row[self.column - by:] + [" "] * -by
        row[self.column:] = rest[:self.columns - self.column]

    def blank(self, n):
        end = min(self.column + n, self.columns)
        self.cells[self.row][self.column:end] = [" "] * (end - self.column)

    def erase(self, row, column):
        self.cells[row][column:] = [" "] * (self.columns - column)


MOVES = {
    "A": lambda s, n: s.go(s.row - n, s.column),
    "B": lambda s, n: s.go(s.row + n, s.column),
    "C": lambda s, n: s.go(s.row, s.column + n),
    "D": lambda s, n: s.go(s.row, s.column - n),
    "G": lambda s, n: s.go(s.row, n - 1),
    "d": lambda s, n: s.go(n - 1, s.column),
    "L": lambda s, n: s.scroll(s.row, -n),
    "M": lambda s, n: s.scroll(s.row, n),
    "S": lambda s, n: s.scroll(s.first, n),
    "T": lambda s, n: s.scroll(s.first, -n),
    "P": lambda s, n: s.shift(-n),
    "@": lambda s, n: s.shift(n),
    "X": lambda s, n: s.blank(n),
    "b": lambda s, n: s.repeat(n),
}
