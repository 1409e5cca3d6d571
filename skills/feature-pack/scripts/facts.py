"""The fact table: read, completed and written as people read it. Numbers are exact decimals throughout."""
import json
import re
import sys
from decimal import ROUND_HALF_UP, Decimal

ID = re.compile(r"[a-z][a-z0-9_]*")
PLACE = re.compile(r"\{([a-z0-9_]+)\}")
MAX_FACTS, MAX_BULLET, MAX_TITLE = 40, 140, 90  # characters that two lines of a slide hold


def fail(code, message):
    print(json.dumps({"code": code, "message": message}), file=sys.stderr)
    raise SystemExit(1)


def refuse(message):
    fail("INPUT_VALIDATION_ERROR", message)


DERIVE = {  # name: (how many facts it takes, the rule)
    "sum": (None, lambda values: sum(values)),
    "mean": (None, lambda values: sum(values) / len(values)),
    "difference": (2, lambda values: values[0] - values[1]),
    "percent": (2, lambda values: 100 * values[0] / values[1]),
    "change": (2, lambda values: 100 * (values[0] - values[1]) / values[1]),
}


def derived(fact, values):
    rule, names = next(iter(fact["derive"].items()), (None, None))
    if rule not in DERIVE or not isinstance(names, list) or not names or DERIVE[rule][0] not in (None, len(names)):
        refuse(f"fact {fact['id']}: derive is {fact['derive']}; allowed are sum and mean of facts, difference, percent and change of two")
    missing = [name for name in names if name not in values]
    if missing:
        refuse(f"fact {fact['id']} is derived from {missing}, which must stand above it")
    try:
        return DERIVE[rule][1]([values[name] for name in names])
    except ArithmeticError:
        refuse(f"fact {fact['id']}: {rule} of {names} divides by zero")


def written(value, decimals):
    """12840.5 with 1 decimal is 12,840.5; halves are rounded away from zero."""
    return f"{value.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP):,}"


def with_unit(number, unit):
    return number + ("%" if unit == "%" else f" {unit}" if unit else "")


class Facts:
    """`shown`: id -> the number without its unit; `text`: id -> with it; `values`: id -> rounded as shown."""

    def __init__(self, table):
        self.table = table
        self.shown, self.text, self.values, self.label, self.unit = {}, {}, {}, {}, {}
        exact = {}
        for fact in self.entries():
            name, unit, decimals = fact["id"], fact.get("unit", ""), fact.get("decimals", 0)
            value = derived(fact, exact) if "derive" in fact else fact.get("value")
            if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
                refuse(f"fact {name}: value is {value!r}, allowed is a number, or derive")
            if not isinstance(decimals, int) or not 0 <= decimals <= 6:
                refuse(f"fact {name}: decimals is {decimals!r}, allowed are 0 to 6")
            exact[name] = Decimal(value)
            self.shown[name] = written(exact[name], decimals)
            self.values[name] = float(self.shown[name].replace(",", ""))
            self.text[name] = with_unit(self.shown[name], unit)
            self.label[name], self.unit[name] = fact["label"], unit
        self.check_texts()

    def entries(self):
        missing = [key for key in ("title", "source", "as_of", "facts", "chart", "sections") if not self.table.get(key)]
        if missing:
            refuse(f"the fact table lacks {missing}")
        facts, seen = self.table["facts"], set()
        if len(facts) > MAX_FACTS:
            refuse(f"{len(facts)} facts, at most {MAX_FACTS} are allowed: a reader cannot hold more")
        for fact in facts:
            name = str(fact.get("id", ""))
            if not ID.fullmatch(name) or name in seen or not fact.get("label"):
                refuse(f"fact {name!r} needs an id of its own (a-z, 0-9, _) and a label")
            seen.add(name)
        return facts

    def check_texts(self):
        titles = [self.table["title"], self.table["chart"].get("title", ""), *(part.get("title", "") for part in self.table["sections"])]
        for title in titles:
            if not 0 < len(title) <= MAX_TITLE:
                refuse(f"a title has {len(title)} characters, allowed are 1 to {MAX_TITLE}: {title[:40]!r}")
        chart = self.table["chart"].get("facts", [])
        unknown = [name for name in chart if name not in self.text]
        if unknown or not 2 <= len(chart) <= 12 or len({self.unit[name] for name in chart}) > 1:
            refuse(f"chart.facts is {chart}: allowed are 2 to 12 known facts of one unit")
        for section in self.table["sections"]:
            if not section.get("text") or not 1 <= len(section.get("slide", [])) <= 5:
                refuse(f"section {section.get('title')!r} needs text and 1 to 5 bullets in slide")
            for text in [section["text"], *section["slide"]]:
                self.fill(text)
            for bullet in section["slide"]:
                if len(self.fill(bullet)) > MAX_BULLET:
                    refuse(f"section {section['title']!r}: a bullet has more than {MAX_BULLET} characters")

    def fill(self, text):
        unknown = [name for name in PLACE.findall(text) if name not in self.text]
        if unknown:
            refuse(f"{text[:60]!r} names {unknown}; the facts are {sorted(self.text)}")
        return PLACE.sub(lambda match: self.text[match[1]], text)


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            table = json.load(file, parse_float=Decimal)
    except OSError as error:
        refuse(f"cannot read {path}: {error.strerror}")
    except ValueError as error:
        refuse(f"{path} is no JSON: {error}")
    if not isinstance(table, dict):
        refuse(f"{path} is no JSON object")
    return Facts(table)
