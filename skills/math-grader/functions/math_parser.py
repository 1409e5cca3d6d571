"""Question and answer as text in, tree and exact number out. Nothing is ever evaluated as code."""
import json
import re
import sys
from fractions import Fraction

MAX_LENGTH = 200
MAX_OPERATORS = 30  # keeps the tree within the nesting that JSON readers accept
MAX_EXPONENT = 12

TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?|\.\d+)|(\*\*|[-+*/^()]))")
SAME = str.maketrans({"×": "*", "·": "*", "⋅": "*", "÷": "/", ":": "/", "−": "-", "–": "-"})
NUMBER = r"(?:\d+(?:\.\d+)?|\.\d+)"
MIXED = re.compile(r"([-+]?)(\d+)\s+(\d+)/(\d+)")
FRACTION = re.compile(rf"([-+]?)({NUMBER})\s*/\s*({NUMBER})")
PLAIN = re.compile(rf"([-+]?)({NUMBER})\s*(%?)")


class Unreadable(Exception):
    """Says what stands where."""


def fail(code, message):
    print(json.dumps({"code": code, "message": message}), file=sys.stderr)
    raise SystemExit(1)


def tokens(text):
    text = re.sub(r"\s*=\s*\??\s*$", "", text.translate(SAME)).rstrip()
    at, found = 0, []
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            raise Unreadable(f"{text[at:].strip()[:20]!r} is neither a number nor one of + - * / ^ ( )")
        found.append("^" if match[2] == "**" else match[1] or match[2])
        at = match.end()
    if sum(token in "+-*/^" for token in found) > MAX_OPERATORS or found.count("(") > MAX_OPERATORS:
        raise Unreadable(f"more than {MAX_OPERATORS} operators or brackets")
    return found


class Question:
    """Recursive descent: sum > product > sign > power > number or brackets."""

    def __init__(self, text):
        self.rest = tokens(text)[::-1]

    def next_is(self, symbols):
        return self.rest and self.rest[-1] in symbols

    def tree(self):
        tree = self.sum()
        if self.rest:
            raise Unreadable(f"{self.rest[-1]!r} stands where the question should end")
        return tree

    def sum(self):
        left = self.product()
        while self.next_is("+-"):
            left = [self.rest.pop(), left, self.product()]
        return left

    def product(self):
        left = self.sign()
        while self.next_is("*/"):
            left = [self.rest.pop(), left, self.sign()]
        return left

    def sign(self):
        if self.next_is("+-"):
            return ["neg", self.sign()] if self.rest.pop() == "-" else self.sign()
        return self.power()

    def power(self):
        base = self.atom()
        if not self.next_is("^"):
            return base
        self.rest.pop()
        exponent = self.atom()
        if not (isinstance(exponent, str) and exponent.isdigit() and int(exponent) <= MAX_EXPONENT):
            raise Unreadable(f"an exponent must be a whole number from 0 to {MAX_EXPONENT}")
        return ["^", base, exponent]

    def atom(self):
        if not self.rest:
            raise Unreadable("the question ends where a number should stand")
        token = self.rest.pop()
        if token == "(":
            tree = self.sum()
            if not self.next_is(")"):
                raise Unreadable("a bracket is not closed")
            self.rest.pop()
            return tree
        if token in "+-*/^)":
            raise Unreadable(f"{token!r} stands where a number should stand")
        return str(Fraction(token))


def answer(text):
    """Whole number, decimal, fraction, mixed number or percentage as a reduced fraction."""
    text = text.translate(SAME).strip().removeprefix("=").strip()
    try:
        if match := MIXED.fullmatch(text):
            value = int(match[2]) + Fraction(int(match[3]), int(match[4]))
        elif match := FRACTION.fullmatch(text):
            value = Fraction(match[2]) / Fraction(match[3])
        elif match := PLAIN.fullmatch(text):
            value = Fraction(match[2]) / (100 if match[3] else 1)
        else:
            raise Unreadable(f"{text[:40]!r} is no number; write 12, 0.75, 3/4, 1 1/2 or 75%")
    except ZeroDivisionError:
        raise Unreadable(f"{text[:40]!r} divides by zero") from None
    return str(-value if match[1] == "-" else value)


def run(input):
    parsed = {name: input[name] for name in ("id", "student") if name in input}
    parsed["question"] = input["question"]
    for name in ("question", "answer"):
        if len(input.get(name, "")) > MAX_LENGTH:
            fail("INPUT_VALIDATION_ERROR", f"the {name} is longer than {MAX_LENGTH} characters")
    try:
        parsed["tree"] = Question(input["question"]).tree()
    except Unreadable as error:
        fail("INVALID_QUESTION", f"{input['question'][:60]!r}: {error}")
    if "answer" in input:
        try:
            parsed["answer"] = answer(input["answer"])
        except Unreadable as error:
            fail("UNPARSEABLE_ANSWER", str(error))
    return parsed
