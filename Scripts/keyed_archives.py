"""Keyed archives as plistlib reads them, and random ones."""
import collections
import plistlib
import random
import struct

# Classes that values without classes stand for: where those above them are the usual ones, no class is lost.
VALUES = {
    "NSArray": [], "NSDictionary": [], "NSString": [], "NSNull": [], "NSDate": [], "NSData": [], "NSSet": [],
    "NSUUID": [], "NSURL": [], "NSNumber": ["NSValue"], "NSDecimalNumber": ["NSNumber", "NSValue"],
}


def is_keyed(path):
    try:
        with open(path, "rb") as file:
            archive = plistlib.load(file)
    except Exception:  # Not every file in the folder is a property list; only the readable ones are compared.
        return None
    return archive if isinstance(archive, dict) and "$objects" in archive and "$top" in archive else None


class Archive:
    def __init__(self, plist):
        self.plist = plist
        self.objects = plist["$objects"]
        self.top = plist["$top"]

    def uid(self, value):
        """Returns the number of the object that a value refers to; None for a value in place."""
        if isinstance(value, dict) and list(value) == ["CF$UID"]:
            return value["CF$UID"]
        return value.data if isinstance(value, plistlib.UID) else None

    def resolve(self, value):
        uid = self.uid(value)
        if uid is None:
            return value
        return self.objects[uid] if 0 < uid < len(self.objects) else None

    def described(self, value):
        """Returns the description of an object's class; None for a value without one."""
        return self.resolve(value["$class"]) if isinstance(value, dict) and "$class" in value else None

    def class_of(self, value):
        described = self.described(value)
        return described.get("$classname") if isinstance(described, dict) else None

    def has_own_class(self, value):
        """Whether an object has a class that its value wouldn't show."""
        described = self.described(value)
        if not isinstance(described, dict):
            return False
        name, classes = described.get("$classname"), described.get("$classes", [])
        above = classes[1:] if classes[:1] == [name] else classes
        return above != VALUES.get(name, [None]) + ["NSObject"]

    def is_nil(self, given):
        value = self.resolve(given)
        return value is None or value == "$null" or self.class_of(value) == "NSNull"

    def words(self, given):
        """Returns how a report calls a value."""
        value, place = self.resolve(given), "" if self.uid(given) is not None else " in place"
        if value is None:
            return "nil"
        if isinstance(value, (bool, int, float)):
            return "number" if place else "NSNumber"
        if isinstance(value, dict):
            return self.class_of(value)[:80] if "$class" in value else "dictionary" + place
        return {str: "text", bytes: "data", list: "list"}.get(type(value), "date") + place

    def fields(self, value):
        """Returns what an object has, by the names that are shown: $name for the key $$name, but for numbers."""
        fields = value.items() if isinstance(value, dict) else ()
        return numbered(
            (key[1:] if key.startswith("$$") and not key.lstrip("$").isdigit() else key, item)
            for key, item in fields if key != "$class")

    def members(self, value):
        """Returns what is in a dictionary of Foundation's whose keys are texts or whole numbers; None for others."""
        keys, values = (value.get(key) if isinstance(value, dict) else None for key in ("NS.keys", "NS.objects"))
        if not isinstance(keys, list) or not isinstance(values, list) or len(keys) != len(values):
            return None
        names = [self.resolve(key) for key in keys]
        if any(isinstance(name, bool) or not isinstance(name, (str, int)) for name in names):
            return None
        return numbered(zip((str(name) for name in names), values))

    def note_fields(self, found):
        """Adds the fields of each object to what was found of its class."""
        for value in self.objects:
            name = self.class_of(value)
            if name:
                found[name].add(frozenset(key for key in value if key != "$class"))

    def unreached(self):
        """Returns how many objects nothing leads to."""
        reached, work = {0}, list(self.top.values())
        while work:
            value = work.pop()
            uid = self.uid(value)
            if uid is not None:
                if uid in reached or uid >= len(self.objects):
                    continue
                reached.add(uid)
                value = self.objects[uid]
            work.extend(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
        return len(self.objects) - len(reached)


def numbered(pairs):
    """Returns values by name, and by how often it occurred before."""
    counts, result = collections.Counter(), {}
    for name, value in pairs:
        result[Name((name, counts[name]))] = value
        counts[name] += 1
    return result


class Name(tuple):
    def __str__(self):
        return self[0]


def same(one, other):
    """Whether two values that contain no others are the same, bit by bit."""
    if isinstance(one, float) and isinstance(other, float):
        return struct.pack(">d", one) == struct.pack(">d", other)
    return type(one) is type(other) and one == other


class Random:
    """An archive of random objects, that refer to each other at random: also such as no archiver writes.

    In most of them, no object leads back to itself: the others can't be written as values, and compare nothing there.
    """

    LISTS = ["NSArray"], ["NSMutableArray", "NSArray"], ["NSSet"], ["NSMutableSet", "NSSet"], ["Bag", "NSArray"]
    OWN = ["Hero", "Actor"], ["Hero"], ["Hero", "Other"], ["Sword", "Thing"]
    TEXTS = ["a", "b", "key", "$x", "", "$class", "1", "caf\u00e9", "cafe\u0301", "{1, 2}", "$0", "$null"]
    KEYS = ["x", "y", "_a", "", "$$class", "$0", "$1", "$$0", "$$y", "NS.objects", "NS.keys", "caf\u00e9", "cafe\u0301"]
    NUMBERS = [
        0, 1, -5, 2**40, 2**63, 2**64 - 1, True, False, 1.5, -0.0, 0.0, 1e300, float("inf"), float("nan"),
        struct.unpack(">d", bytes.fromhex("7ff8000000000123"))[0],
    ]

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.objects, self.classes = ["$null"], {}
        count = self.random.randint(2, 25)
        self.places, self.leads_back = range(1, count + 1), self.random.random() < 0.2
        self.objects += [None] * count
        for self.place in self.places:
            self.objects[self.place] = self.an_object()

    def plist(self):
        choice = self.random.random
        top = {self.random.choice(["root", "root", "data"]): plistlib.UID(1)}
        if choice() < 0.2:
            top["second"] = plistlib.UID(self.random.choice(self.places))
        if choice() < 0.1:
            top["third"] = 7
        archiver = "NSKeyedArchiver" if choice() < 0.9 else "Another"
        beside = {"more": 1} if choice() < 0.05 else {}
        return {"$version": 100_000, "$archiver": archiver, "$top": top, "$objects": self.objects, **beside}

    def reference(self):
        places = self.places if self.leads_back else self.places[self.place:]
        return plistlib.UID(self.random.choice(places) if places and self.random.random() < 0.95 else 0)

    def references(self, count):
        return [self.reference() for _ in range(count)]

    def of_class(self, names, fields):
        if tuple(names) not in self.classes or self.random.random() < 0.05:
            self.classes[tuple(names)] = len(self.objects)
            self.objects.append({"$classname": names[0], "$classes": [*names, "NSObject"]})
        return {**fields, "$class": plistlib.UID(self.classes[tuple(names)])}

    def an_object(self):
        choose, count = self.random.choice, self.random.randint(0, 4)
        if self.place == 1 and self.random.random() < 0.8:  # Much is reached from it.
            return self.own()
        kind = choose([
            self.plain, self.plain, self.own, self.own, self.of_foundation, self.of_foundation,
            lambda: self.of_class(choose(self.LISTS), {"NS.objects": self.references(count)}),
            lambda: self.of_class(
                choose([["NSDictionary"], ["NSMutableDictionary", "NSDictionary"]]),
                {"NS.keys": self.references(count), "NS.objects": self.references(count)}),
        ])
        return kind()

    def plain(self):
        return self.random.choice([*self.TEXTS, *self.NUMBERS, b"data"])

    def of_foundation(self):
        choose = self.random.choice
        names, fields = choose([
            (["NSMutableData", "NSData"], {"NS.data": b"data"}), (["NSNull"], {}),
            (["NSMutableString", "NSString"], {"NS.string": choose(self.TEXTS)}),
            (["NSDate"], {"NS.time": choose([0.0, 1.5, -1e9, 1e12, -0.0, float("nan")])}),
            (["NSUUID"], {"NS.uuidbytes": bytes(range(16))}),
            (["NSURL"], {"NS.base": self.reference(), "NS.relative": self.reference()}),
            (["NSValue"], {"NS.pointval": self.reference(), "NS.special": 1}),
            (["NSValue"], {"$0": self.reference(), "$1": 5}),
            (["NSCountedSet", "NSMutableSet", "NSSet"], {
                "NS.count": 1, "NS.object0": self.reference(), "NS.count0": 2}),
            (["NSOrderedSet"], {"NS.object.0": self.reference(), "NS.object.1": self.reference()}),
            (["UIColor"], {"UIRed": 0.5, "UIGreen": 0.25, "UIBlue": 1.0, "UIAlpha": 1.0}),
            (["UIColor"], {"UIRed": 0.5, "UIGreen": 0.25, "UIBlue": 1.0, "UIOther": self.reference()}),
            (["NSIndexPath"], {"NSIndexPathLength": 1, "NSIndexPathValue": choose([3, self.reference()])}),
        ])
        return self.of_class(names, fields)

    def own(self):
        fields = {}
        for _ in range(self.random.randint(0, 5)):
            fields[self.random.choice(self.KEYS)] = self.random.choice([
                self.reference(), self.reference(), self.reference(), self.plain(), self.plain(),
                [self.reference(), self.plain()], {"p": self.reference(), "q": self.plain()},
            ])
        return self.of_class(self.random.choice(self.OWN), fields)


def write_random(folder, count, seed):
    """Writes random archives, the same ones for the same seed."""
    folder.mkdir()
    for number in range(count):
        plist = Random(f"{seed} {number}").plist()
        with open(folder / f"random {seed} {number}", "wb") as file:
            plistlib.dump(plist, file, fmt=plistlib.FMT_BINARY, sort_keys=False)
