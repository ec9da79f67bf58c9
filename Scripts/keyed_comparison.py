"""Compares two keyed archives, in the words of the report of `keepsake convert`."""
import base64
import collections
import datetime
import math
import uuid

from keyed_archives import numbered, same

# Classes whose objects are shown as what they represent: an NSValue as its numbers.
SHOWN_OTHERWISE = {
    "NSValue", "NSColor", "UIColor", "NSIndexPath", "NSIndexSet", "NSMutableIndexSet", "NSMeasurement",
    "NSAttributedString", "NSMutableAttributedString", "NSCountedSet", "NSOrderedSet", "NSMutableOrderedSet",
    "NSString", "NSMutableString", "NSData", "NSMutableData", "NSDate", "NSUUID", "NSURL", "NSNumber",
    "NSDecimalNumber", "NSDecimalNumberPlaceholder", "NSNull", "NSArray", "NSMutableArray", "NSSet", "NSMutableSet",
    "NSDictionary", "NSMutableDictionary",
}
# Those of them that are shown as a single value, and not as a list or a dictionary.
SHOWN_AS_VALUE = {
    "NSValue", "NSColor", "UIColor", "NSString", "NSMutableString", "NSMutableData", "NSDecimalNumberPlaceholder",
}


class Comparison:
    """Where two archives differ, in the words of a report."""

    def __init__(self, old, new, has_objects):
        self.old, self.new = old, new
        self.counts, self.paths = collections.Counter(), {}
        self.work, self.met, self.alone, self.compared = [], set(), [], set()
        self.partners, self.changed, self.by_value = collections.defaultdict(list), set(), set()
        # What is reported when values are written: how often at least.
        self.nils, self.copies = 0, 0
        # Values that came back as another kind, and not as the right one.
        self.misspelled = []
        self.run(has_objects)

    def lose(self, what, path, count=1):
        self.counts[what] += count
        self.paths.setdefault(what, path)

    def run(self, has_objects):
        old, new = self.old, self.new
        if old.plist.get("$archiver") != new.plist.get("$archiver"):
            self.lose("name of another archiver", "$archiver")
        for key, value in old.plist.items():
            if key not in ("$archiver", "$objects", "$top") and new.plist.get(key) != value:
                self.lose("keys beside those of the archive itself", key)
        if old.objects[:1] != new.objects[:1] and old.objects[:1] not in ([], ["$null"]):
            self.lose("object in the place of nil", "$objects[0]")
        self.compare_top(has_objects)
        while self.work:
            self.compare(*self.work.pop())
        self.lose_alone()
        self.lose_sharing(has_objects)
        unreached = old.unreached() - new.unreached()
        if unreached > 0:
            self.lose("objects that nothing refers to", "$objects", unreached)

    def compare_top(self, has_objects):
        top, others, is_field = self.old.top, self.new.top, False
        if not has_objects and top.keys() != others.keys():
            if len(top) == len(others) == 1:
                (key, value), (name, other) = *top.items(), *others.items()
                self.lose(f"key at the top, which comes back as {name}", key)
                self.work.append((value, other, key, False))
                return
            members = self.new.members(self.new.resolve(*others.values())) or {}
            others, is_field = {str(key): value for key, value in members.items()}, True
            for key in top.keys() & others.keys():
                self.lose("values at the top, which come back in a dictionary", key)
        for key, value in top.items():
            if key in others:
                self.work.append((value, others[key], key, is_field))
            else:
                self.leave_out(value, key)

    def compare(self, given, other, path, is_field):
        """`is_field`: what was in a field is in a dictionary now, where every value is an object."""
        a, b = self.old.resolve(given), self.new.resolve(other)
        first, second = self.old.uid(given), self.new.uid(other)
        if first is not None:
            self.compared.add(first)
            if second is not None and (first, second, is_field) in self.met:
                return
            self.met.add((first, second, is_field))
        was, now = self.old.words(given), self.new.words(other)
        if first:
            self.partners[first].append((second, path))
            if was != now:
                self.changed.add(first)
        if is_field and (a is None and now == "NSNull" or a is not None and not isinstance(a, (dict, list))):
            if a is None or same(a, b):
                return
        if was != now:
            self.lose(f"{was}, which comes back as {now}", path)
            if not is_spelled(self.old, a, b):
                self.misspelled.append(f"{path}: {was} came back as {b!r}")
            has_same_keys = isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys()
            is_by_name = not has_same_keys and self.compare_by_name(a, b, path)
            if not is_by_name and self.old.class_of(a) in SHOWN_AS_VALUE:
                self.by_value.add(first)
            if not has_same_keys:
                return
        if isinstance(a, dict) and isinstance(b, dict):
            self.compare_fields(a, b, path)
        elif isinstance(a, list) and isinstance(b, list):
            self.compare_lists(a, b, path, was)
        elif not same(a, b):
            self.lose(f"value of the class {was}", path)

    def compare_lists(self, a, b, path, was):
        if len(a) != len(b):
            self.lose(f"value of the class {was}", path)
            before = len(a)
            a = [element for element in a if not self.old.is_nil(element)]
            self.nils += before - len(a)
            if len(a) != len(b):
                self.alone += [(element, path) for element in a]
                return
        self.work += [(x, y, f"{path}[{i}]", False) for i, (x, y) in enumerate(zip(a, b))]

    def compare_by_name(self, a, b, path):
        """Compares what an object has under the same names. Returns whether it is shown by its fields."""
        others = self.new.members(b)
        if others is None:
            if not self.compare_pairs(a, b, path):
                self.alone.append((a, path))
            return False
        own = self.old.members(a)
        names = self.old.fields(a) if own is None else own
        if own is None:
            others = numbered((str(key), value) for key, value in others.items() if key != ("$class", 0))
        is_by_name = bool(names.keys() & others.keys()) or self.old.class_of(a) not in SHOWN_OTHERWISE
        is_by_name &= isinstance(a, dict)
        for key, value in names.items():
            if key in others:
                self.work.append((value, others[key], f"{path}.{key}", True))
            elif is_by_name and not self.old.is_nil(value):
                self.leave_out(value, f"{path}.{key}")
            else:
                self.nils += is_by_name
                self.alone.append((value, f"{path}.{key}"))
        for key in others.keys() - names.keys():
            if is_by_name:
                self.lose("fields that weren't there", f"{path}.{key}")
        if not names:
            self.alone.append((a, path))
        return is_by_name

    def compare_pairs(self, a, b, path):
        """Compares a dictionary with keys that aren't texts with a list of its pairs, if it is one."""
        lists = [value.get(key) if isinstance(value, dict) else None
                 for value, key in ((a, "NS.keys"), (a, "NS.objects"), (b, "NS.objects"))]
        if any(not isinstance(one, list) or len(one) != len(lists[0]) for one in lists):
            return False
        pairs = [(self.new.resolve(pair) or {}).get("NS.objects", ()) for pair in lists[2]]
        if any(len(pair) != 2 for pair in pairs):
            return False
        for key, value, pair in zip(*lists[:2], pairs):
            self.work += [(key, pair[0], path, False), (value, pair[1], path, False)]
        return True

    def compare_fields(self, a, b, path):
        self.compare_classes(a, b, path)
        own, others = self.old.members(a), self.new.members(b)
        skipped = {"$class"}
        if own is not None and others is not None:
            if own.keys() != others.keys():
                skipped |= {"NS.keys", "NS.objects"}
                for key, value in own.items():
                    if key in others:
                        self.work.append((value, others[key], f"{path}.{key}", False))
                    else:
                        self.leave_out(value, f"{path}.{key}")
                for key in others.keys() - own.keys():
                    self.lose("fields that weren't there", f"{path}.{key}")
            elif all(key[1] == 0 for key in own):  # The order of a dictionary has no meaning.
                places = {name: place for place, name in enumerate(others)}
                order = [places[name] for name in own]
                b = {**b, **{key: [b[key][i] for i in order] for key in ("NS.keys", "NS.objects")}}
        for key in a.keys() - b.keys() - skipped:
            self.lose("fields that aren't shown", f"{path}.{key}")
            self.alone.append((a[key], f"{path}.{key}"))
        for key in b.keys() - a.keys() - skipped:
            self.lose("fields that weren't there", f"{path}.{key}")
        for key in a.keys() & b.keys() - skipped:
            self.work.append((a[key], b[key], f"{path}.{key}", False))

    def compare_classes(self, a, b, path):
        pair = tuple(archive.uid(value.get("$class")) for archive, value in ((self.old, a), (self.new, b)))
        if None in pair or ("class", *pair) in self.met:
            return
        self.met.add(("class", *pair))
        one, other = self.old.described(a), self.new.described(b)
        if one.get("$classname") != other.get("$classname"):
            return
        if one.get("$classes") != other.get("$classes"):
            self.lose(f"list of the classes above {one['$classname'][:80]}", path)
        if one.get("$classhints") and one["$classhints"] != other.get("$classhints"):
            self.lose("hints naming substitute classes", path)
        for key in one.keys() - {"$classname", "$classes", "$classhints"}:
            if other.get(key) != one[key]:
                self.lose("keys beside those of a class", path)

    def leave_out(self, given, path):
        self.lose(f"{self.old.words(given)}, which is left out", path)
        self.compared.add(self.old.uid(given))
        self.alone += [(below, f"{path}.{key}") for key, below in self.old.fields(self.old.resolve(given)).items()]

    def lose_alone(self):
        """Loses the classes of objects that have no counterpart, in what was lost already."""
        while self.alone:
            given, path = self.alone.pop()
            uid, value = self.old.uid(given), self.old.resolve(given)
            if uid is not None:
                if uid in self.compared:
                    continue
                self.compared.add(uid)
                if self.old.has_own_class(value):
                    self.lose(f"{self.old.class_of(value)[:80]}, whose class isn't kept", path)
            below = enumerate(value) if isinstance(value, list) else self.old.fields(value).items()
            self.alone += [(item, f"{path}.{key}") for key, item in below]

    def lose_sharing(self, has_objects):
        owners = collections.Counter()
        for uid, partners in self.partners.items():
            if not self.old.has_own_class(self.old.objects[uid] if uid < len(self.old.objects) else None):
                continue
            numbers = {number for number, _ in partners} - {None}
            count = len(numbers) + sum(number is None for number, _ in partners)
            name, keeps_class = self.old.class_of(self.old.objects[uid])[:80], uid not in self.changed
            if count > 1 and (has_objects or keeps_class or uid in self.by_value):
                self.lose(f"{name}, which comes back as several objects", partners[-1][1], count - 1)
            elif count - (0 in numbers) > 1:  # Nil is no copy.
                self.copies += 1
            for number in numbers if keeps_class else ():
                if owners[number]:
                    self.lose(f"{name}, which comes back as one with another", partners[-1][1])
                owners[number] += 1


def is_spelled(archive, value, other):
    """Whether a value came back as the right text or date, if it came back as one. What has no single form is."""
    name = archive.class_of(value)
    if isinstance(value, dict) and name == "NSDate" and isinstance(value.get("NS.time"), float):
        return is_same_time(value["NS.time"], other)
    if not isinstance(other, str):
        return True
    if isinstance(value, dict):
        if name == "NSUUID" and isinstance(value.get("NS.uuidbytes"), bytes) and len(value["NS.uuidbytes"]) == 16:
            return other == str(uuid.UUID(bytes=value["NS.uuidbytes"])).upper()
        if name == "NSURL" and archive.is_nil(value.get("NS.base")):
            return other == archive.resolve(value.get("NS.relative"))
        if name in ("NSString", "NSMutableString"):
            return other == archive.resolve(value.get("NS.string", value.get("NS.bytes")))
        value = archive.resolve(value.get("NS.data")) if name in ("NSData", "NSMutableData") else None
    return not isinstance(value, bytes) or other == base64.b64encode(value).decode()


def is_same_time(seconds, other):
    """Whether seconds since 2001 came back as a text with milliseconds, as a date, or as a number in a text."""
    start = datetime.datetime(2001, 1, 1)
    if isinstance(other, datetime.datetime):
        # XML has whole seconds, and plistlib has microseconds.
        return any(abs((other - start).total_seconds() - one) < 1e-5 for one in (seconds, math.floor(seconds)))
    if not isinstance(other, str):
        return True
    if not other.endswith("Z"):
        return float(other) == seconds or math.isnan(float(other)) and math.isnan(seconds)
    moment = datetime.datetime.fromisoformat(other[:-1])
    return abs(round((moment - start).total_seconds() * 1000) - seconds * 1000) <= 0.5001
