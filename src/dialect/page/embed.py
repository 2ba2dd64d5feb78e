"""Makes a C file of the page's files: embed.py FILE... OUTPUT. The same files make the same bytes."""
import gzip
import os
import sys

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}


def main(files, output):
    arrays = []
    rows = []
    for number, path in enumerate(sorted(files, key=os.path.basename)):
        name = os.path.basename(path)
        with open(path, "rb") as f:
            text = f.read()
        packed = gzip.compress(text, 9, mtime=0)
        digits = ",".join(str(b) for b in packed)
        arrays.append("static const unsigned char file_%d[] = {%s};\n" % (number, digits))
        rows.append('\t{"%s", "%s", file_%d, sizeof(file_%d)},\n'
                    % (name, TYPES[os.path.splitext(name)[1]], number, number))
    with open(output, "w", encoding="ascii") as f:
        f.write('#include "dialect/page/page.h"\n\n%s\n' % "".join(arrays))
        f.write("const struct page_asset page_assets[] = {\n%s};\n\n" % "".join(rows))
        f.write("const unsigned page_n_assets = %d;\n" % len(rows))


main(sys.argv[1:-1], sys.argv[-1])
