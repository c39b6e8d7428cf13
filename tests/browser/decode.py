# SPDX-License-Identifier: Apache-2.0
"""Reads the data of a page of `culprit view`."""
import base64
import gzip
import json
import re
import struct


def numbers(data):
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(value)
            value = shift = 0
    return values


def decode(path):
    """(header, columns by name)"""
    with open(path, encoding="utf-8") as file:
        html = file.read()
    data = re.search(r'<script type="text/plain" id="data">([A-Za-z0-9+/=]*)</script>', html).group(1)
    data = gzip.decompress(base64.b64decode(data))
    size = struct.unpack("<I", data[:4])[0]
    header, columns, at = json.loads(data[4:4 + size]), {}, 4 + size
    for name, count, length in header["columns"]:
        columns[name] = numbers(data[at:at + length])
        assert len(columns[name]) == count, name
        at += length
    assert at == len(data)
    return header, columns
