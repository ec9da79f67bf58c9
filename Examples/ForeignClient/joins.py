"""How two values of one key become one: docs/PROTOCOL.md, "State" and what follows it.

All of it is pure: JSON in, JSON out. A join may be repeated, late, or in any order, and ends the same.
"""

import base64

# If two rules occur under one key in one generation, the later one in this list wins.
RULES = ["max", "min", "latest", "union", "counter", "best", "set", "dictionary", "optional", "later"]
MOST_WITHDRAWN = 64


class UnknownForm(Exception):
    """A value that says by its only key what it is, and has none that this client knows, or two."""


def only(table):
    """The one key of a table and what stands there."""
    if not isinstance(table, dict) or len(table) != 1:
        raise UnknownForm(f"expected one key: {str(table)[:80]}")
    return next(iter(table.items()))


def order(scalar):
    """A sort key: numbers (a whole one just below the equal fraction), then strings, then bytes."""
    kind, value = only(scalar)
    if kind == "int":
        return (0, value, False)
    if kind == "double":
        return (0, float(value), True)
    if kind == "string":
        return (1, value.encode(), False)
    if kind == "data":
        return (2, base64.b64decode(value), False)
    raise UnknownForm(f"unknown kind of scalar: {kind}")


def by_order(pairs):
    """The values of (scalar, value) pairs, by the scalar's order; what comes twice is joined."""
    joined = {}
    for scalar, value in pairs:
        place = order(scalar)
        if place in joined and value is not None:
            value = join_values(joined[place][1], value)
        joined[place] = (scalar, value)
    return [joined[place] for place in sorted(joined)]


def state(generation, value):
    """What a cell holds, without what is empty."""
    return {"generation": generation, "value": value} if generation else {"value": value}


def join(left, right):
    """Two states of a cell, each with its generation; either may be None."""
    if left is None or right is None:
        return left or right
    generations = left.get("generation", 0), right.get("generation", 0)
    if generations[0] != generations[1]:
        return left if generations[0] > generations[1] else right
    return state(generations[0], join_values(left["value"], right["value"]))


def join_values(left, right):
    (rule, ours), (other, theirs) = only(left), only(right)
    for name in (rule, other):
        if name not in RULES:
            raise UnknownForm(f"unknown rule: {name}")
    if rule != other:
        return left if RULES.index(rule) > RULES.index(other) else right
    return {rule: JOINS[rule](ours, theirs)}


def join_latest(left, right):
    def rank(side):
        stamp = side["stamp"]
        return (stamp["caughtUp"], stamp["milliseconds"], stamp["writer"], order(side["value"]))

    return max(left, right, key=rank)


def join_union(left, right):
    return [scalar for scalar, _ in by_order((scalar, None) for scalar in left + right)]


def join_counter(left, right):
    entries = {}
    for entry in left + right:
        known = entries.get(entry["writer"], {"plus": 0, "minus": 0})
        both = {side: max(known[side], entry[side]) for side in ("plus", "minus")}
        entries[entry["writer"]] = {"writer": entry["writer"], **both}
    return [entries[writer] for writer in sorted(entries)]


def join_best(left, right):
    def precedes(side, other):
        if side["order"] != other["order"]:
            return side["order"] == "descending"
        entry, others = side.get("entry"), other.get("entry")
        if not entry or not others:
            return bool(entry)
        scores = order(entry["score"]), order(others["score"])
        if scores[0] != scores[1]:
            return scores[0] > scores[1] if side["order"] == "descending" else scores[0] < scores[1]
        rest = [(one["dateMilliseconds"], base64.b64decode(one["payload"])) for one in (entry, others)]
        return rest[0] < rest[1]

    first = right if precedes(right, left) else left
    joined = {key: first[key] for key in ("order", "entry") if first.get(key) is not None}
    withdrawn = {(one["generation"], one["id"]) for side in (left, right) for one in side.get("withdrawn") or []}
    if withdrawn:
        kept = sorted(sorted(withdrawn, reverse=True)[:MOST_WITHDRAWN])
        joined["withdrawn"] = [{"generation": generation, "id": name} for generation, name in kept]
    if left.get("cleared") or right.get("cleared"):
        joined["cleared"] = True
    return joined


def ranges(pairs):
    """Ranges in order, with a gap between two of them."""
    merged = []
    for first, last in sorted(pairs):
        if merged and first <= merged[-1][1] + 1:
            merged[-1][1] = max(merged[-1][1], last)
        else:
            merged.append([first, last])
    return merged


def additions(side):
    """Of each writer: what is seen, and what stands (number -> element). What stands counts as seen."""
    table = {}
    for entry in side:
        standing = {one["number"]: one["element"] for one in entry.get("standing") or []}
        table[entry["writer"]] = (ranges([*entry["seen"], *([number, number] for number in standing)]), standing)
    return table


def join_set(left, right):
    ours, theirs = additions(left), additions(right)
    joined = []
    for writer in sorted({*ours, *theirs}):
        sides = [table.get(writer, ([], {})) for table in (ours, theirs)]
        standing = {}
        for (_, mine), (seen, other) in (sides, sides[::-1]):
            for number, element in mine.items():
                if number in other:
                    standing[number] = max(element, other[number], key=order)
                elif not any(first <= number <= last for first, last in seen):
                    standing[number] = element
        entry = {"writer": writer, "seen": ranges(sides[0][0] + sides[1][0])}
        if standing:
            entry["standing"] = [{"number": number, "element": standing[number]} for number in sorted(standing)]
        joined.append(entry)
    return joined


def join_dictionary(left, right):
    pairs = by_order((entry["key"], entry["value"]) for entry in left + right)
    return [{"key": key, "value": value} for key, value in pairs]


def join_optional(left, right):
    return (left or right) if left is None or right is None else join_values(left, right)


def join_later(left, right):
    standing = {}
    for one in left + right:
        known = standing.get(one["id"])
        if known:  # No device writes two values with one id, but all must reach the same result.
            greater = max(known, one, key=lambda side: (side["rule"].encode(), base64.b64decode(side["content"])))
            over = sorted({*(known.get("over") or []), *(one.get("over") or [])})
            one = {**greater, **({"over": over} if over else {})}
        standing[one["id"]] = one
    gone = {name for one in standing.values() for name in one.get("over") or []}
    left = [name for name in standing if name not in gone] or list(standing)
    return [standing[name] for name in sorted(left)]


JOINS = {
    "max": lambda left, right: max(left, right, key=order),
    "min": lambda left, right: min(left, right, key=order),
    "latest": join_latest,
    "union": join_union,
    "counter": join_counter,
    "best": join_best,
    "set": join_set,
    "dictionary": join_dictionary,
    "optional": join_optional,
    "later": join_later,
}


def join_versions(left, right):
    """Two records of one version: what it covers grows, `provisional` is lifted, labels come from whoever has them."""
    if left is None:
        return right
    joined = {**left, "covers": sorted({*(left.get("covers") or []), *(right.get("covers") or [])})}
    joined["provisional"] = bool(left.get("provisional") and right.get("provisional"))
    own = {key: value for key, value in (left.get("metadata") or {}).items() if value}
    labels = {**(right.get("metadata") or {}), **own}
    if labels:
        joined["metadata"] = labels
    return joined


# The form in which a value is shown to people.


def plain(value):
    rule, held = only(value)
    if rule in ("max", "min"):
        return only(held)[1]
    if rule == "latest":
        return only(held["value"])[1]
    if rule == "union":
        return [only(scalar)[1] for scalar in held]
    if rule == "counter":
        return sum(entry["plus"] - entry["minus"] for entry in held)
    if rule == "set":
        return [only(element)[1] for element in elements(held)]
    if rule == "dictionary":
        return {str(only(entry["key"])[1]): plain(entry["value"]) for entry in held}
    if rule == "optional":
        return None if held is None else plain(held)
    if rule == "best":
        return only(held["entry"]["score"])[1] if held.get("entry") else None
    return None  # a rule of a later release is unknown


def elements(held):
    standing = [(element, None) for _, table in additions(held).values() for element in table.values()]
    return [element for element, _ in by_order(standing)]
