# SPDX-License-Identifier: Apache-2.0
"""paths_share.py ASSEMBLY: tables of switches that are alike become one, as some compilers make them. Prints how many have gone."""
import re
import sys

text = open(sys.argv[1], encoding="ascii").read()
first, gone = {}, 0
for label, entries in re.findall(r"^(\.L\w+):\n((?:\t\.(?:quad|long)\t\.L\S+\n){4,})", text, re.M):
    alike = first.setdefault(entries.replace(label, "itself"), label)
    if alike != label:
        text = re.sub(re.escape(label) + r"(?=\(|,)", alike, text)
        gone += 1
open(sys.argv[1], "w", encoding="ascii").write(text)
print(gone)
