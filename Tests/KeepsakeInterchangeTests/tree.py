"""Reads property lists with Python's plistlib and writes what they hold as canonical JSON,
for a comparison with another reader.

    python3 tree.py OUTPUT < NAMES       NAMES: one path a line

For the n-th file, it writes OUTPUT/n.json and prints a line: `ok`, or `refused` and why.
"""
import datetime
import hashlib
import json
import plistlib
import struct
import sys

EPOCH = datetime.datetime(2001, 1, 1)


def canonical(value, is_xml):
    if value is None:
        return ["null"]
    if isinstance(value, bool):
        return ["bool", value]
    if isinstance(value, int):
        return ["integer", str(value)]
    if isinstance(value, float):
        return ["number", struct.pack(">d", value).hex() if value == value else "nan"]
    if isinstance(value, str):
        return ["string", value]
    if isinstance(value, (bytes, bytearray)):
        return ["data", hashlib.sha256(value).hexdigest()]
    if isinstance(value, datetime.datetime):
        return ["date", str((value - EPOCH) // datetime.timedelta(microseconds=1))]
    if isinstance(value, plistlib.UID):
        return ["uid", str(value.data)]
    if isinstance(value, list):
        return ["array", [canonical(each, is_xml) for each in value]]
    if isinstance(value, dict):
        # plistlib reads UIDs in binary files only; XML has dictionaries in their place.
        if is_xml and list(value) == ["CF$UID"] and isinstance(value["CF$UID"], int):
            return ["uid", str(value["CF$UID"])]
        return ["dictionary", [[key, canonical(value[key], is_xml)] for key in sorted(value)]]
    raise TypeError(type(value))


def main():
    sys.setrecursionlimit(20_000)
    for number, name in enumerate(sys.stdin.read().splitlines()):
        try:
            with open(name, "rb") as file:
                content = file.read()
            tree = canonical(plistlib.loads(content), not content.startswith(b"bplist"))
            text = json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode()
        except Exception as error:  # Any error counts: the question is whether plistlib reads the file.
            print("refused", type(error).__name__, str(error).replace("\n", " "))
            continue
        with open(f"{sys.argv[1]}/{number}.json", "wb") as file:
            file.write(text)
        print("ok")


main()
