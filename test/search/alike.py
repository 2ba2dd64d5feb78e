#!/usr/bin/env python3
"""Vectors for the words of alike.txt, as lines of a word and its numbers: words of one line
point about the same way (a cosine near 0.75), all others nowhere in particular.

	alike.py ALIKE.txt OUT
"""
import hashlib
import sys

DIM = 64


def signs(name):
    """64 numbers of one, with signs that only depend on the name."""
    bits = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    return [1 if bits >> i & 1 else -1 for i in range(DIM)]


def main():
    with open(sys.argv[1], encoding="utf-8") as lines, \
            open(sys.argv[2], "w", encoding="utf-8") as out:
        for line in lines:
            shared = signs("line " + line)
            for word in line.split():
                own = signs("word " + word)
                numbers = (f"{a + 0.58 * b:.2f}" for a, b in zip(shared, own))
                print(word, *numbers, file=out)


if __name__ == "__main__":
    main()
