#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bundle.py PAGE STYLE SCRIPT...: prints the viewer's page as an array of C.

The scripts are ES modules in an order in which each imports only those before it. They become one:
their imports and the word "export" are left out, as are comments and indentation, since every page
has it all. The page allows this script and this style alone, by their hashes, so that nothing else
in it can ever run. What it may connect to, and the data, are filled in by page.c."""
import base64
import hashlib
import re
import sys

LICENCE = "SPDX-License-Identifier: Apache-2.0"


def strip(text):
    text = re.sub(r"^import\s[^;]*;\n", "", text, flags=re.M)
    text = re.sub(r"^export\s+(?!default)", "", text, flags=re.M)
    return strip_lines(re.sub(r"^[ \t]*//.*\n", "", text, flags=re.M))


def strip_lines(text):
    """Texts over several lines would change by this: there are none."""
    return re.sub(r"^[ \t]+|^\n", "", text, flags=re.M)


def digest(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def bundle(page, style, scripts):
    """The page with style and script in it."""
    script = f"\n// {LICENCE}\n" + "".join(strip(s) for s in scripts)
    style = f"\n/* {LICENCE} */\n" + strip_lines(re.sub(r"/\*.*?\*/\n?", "", style, flags=re.S))
    if re.search(r"</script|<!--", script, re.I) or "</style" in style.lower():
        sys.exit("bundle.py: a text would end its element")
    policy = f"default-src 'none'; script-src {digest(script)}; style-src {digest(style)}; img-src data:@CONNECT@"
    for mark, text in (("@POLICY@", policy), ("@STYLE@", style), ("@SCRIPT@", script)):
        if page.count(mark) != 1:
            sys.exit(f"bundle.py: {mark} must be there once")
        page = page.replace(mark, text)
    return page


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def main():
    text = bundle(read(sys.argv[1]), read(sys.argv[2]), [read(p) for p in sys.argv[3:]])
    data = text.encode()
    print("/* Made by the build. */")
    print("static const unsigned char page_text[] = {")
    for at in range(0, len(data), 24):
        print(",".join(map(str, data[at:at + 24])) + ",")
    print("};")


if __name__ == "__main__":
    main()
