#!/usr/bin/env python3
"""Does every claim have a source, and does the source say so? check_citations.py REPORT.md FOLDER [--min-sources N]

FOLDER holds one folder per source with text.md, source.json and claims.json. Prints {"ok", "problems", "sources"};
the exit code is 1 if there are problems.
"""
import argparse
import hashlib
import json
import re
import sys
import unicodedata
from pathlib import Path
from urllib.parse import urlsplit

CITATION = re.compile(r"\[([a-z][a-z0-9-]{0,30})\](?!\()")
NUMBER = re.compile(r"(?<![\w.,/-])[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\w|[.,]\d)")
FREE = {"method", "methods", "open questions", "limits", "sources", "references", "contents"}
LISTED = {"sources", "references"}
NO_PROSE = re.compile(r"^(#|```|!\[|\|[\s:|-]+\|?$|---+$)")
SAME = str.maketrans({"“": '"', "”": '"', "„": '"', "’": "'", "‘": "'", "–": "-", "—": "-", "−": "-", "\u00ad": None})
MAX_QUOTE = 500
SHORTENED = re.compile(r"(?:^|[\s(])(?:[A-Z]|Dr|Prof|Mr|Mrs|Ms|St|No|Fig|Eq|vs|cf|al|ca|approx|e\.g|i\.e)\.$")
SENTENCE = re.compile(r"(?<=[.!?\]])\s+(?=[A-Z0-9“\"(])")


def plain(text):
    """Letters as they are read: other quotation marks, hyphens and line breaks make no other quote."""
    return " ".join(unicodedata.normalize("NFKC", text).translate(SAME).split()).lower()


class Source:
    """A source's folder: what is wrong with it, and what its quotes say."""

    def __init__(self, folder):
        self.id, self.problems, self.quotes, self.about = folder.name, [], "", {}
        text = self.load(folder / "text.md", lambda path: path.read_bytes()) or b""
        self.about = self.load(folder / "source.json", self.json(dict)) or {}
        if text and self.about and hashlib.sha256(text).hexdigest() != self.about.get("sha256"):
            self.problems.append(f"{self.id}: text.md is not what was fetched from {self.about.get('url')}")
        self.claims = self.load(folder / "claims.json", self.json(list)) or []
        self.check_claims(plain(text.decode("utf-8", "replace")))

    def load(self, path, read):
        try:
            return read(path)
        except (OSError, ValueError) as error:
            self.problems.append(f"{self.id}: {path.name} is missing or cannot be read: {error}")
            return None

    @staticmethod
    def json(kind):
        def read(path):
            value = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(value, kind):
                raise ValueError(f"it must be a {kind.__name__}")
            return value
        return read

    def check_claims(self, text):
        quotes = []
        for number, claim in enumerate(self.claims, 1):
            quote = claim.get("quote") if isinstance(claim, dict) else None
            if not isinstance(quote, str) or not quote.strip() or not claim.get("claim"):
                self.problems.append(f"{self.id}: claim {number} needs claim and quote")
            elif len(quote) > MAX_QUOTE:
                self.problems.append(f"{self.id}: the quote of claim {number} has {len(quote)} characters, allowed are {MAX_QUOTE}")
            elif plain(quote) not in text:
                self.problems.append(f"{self.id}: its text does not hold the quote {quote[:60]!r}")
            else:
                quotes.append(plain(quote))
        self.quotes = "\n".join(quotes)

    def host(self):
        return urlsplit(self.about.get("url", "")).hostname or self.about.get("url", self.id)

    def line(self):
        dated = f", {self.about['published']}" if self.about.get("published") else ""
        return f"- [{self.id}] {self.about.get('title', '?')}{dated}, {self.about.get('url', '?')}"


def paragraphs(text):
    """(line, section, paragraph); items of a list and rows of a table are paragraphs of their own."""
    section, begun, start, fenced = "", [], 0, False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        line = line.strip()
        fence = line.startswith("```")
        new = not line or fenced or NO_PROSE.match(line) or re.match(r"[-*+]\s|\d+[.)]\s|\|", line)
        if new and begun:
            yield start, section, " ".join(begun)
            begun = []
        if fence:
            fenced = not fenced
        elif not fenced and line.startswith("#"):
            section = line.lstrip("#").strip().lower()
        elif line and not fenced and not NO_PROSE.match(line):
            start = start if begun else number
            begun.append(line)


def sentences(paragraph):
    """Ends after . ! ? or a citation before a capital letter; not after an abbreviation."""
    begun = ""
    for part in SENTENCE.split(paragraph):
        begun = f"{begun} {part}".strip()
        if not SHORTENED.search(begun):
            yield begun
            begun = ""
    if begun:
        yield begun


def numbers(text):
    """Numbers of prose, without those of addresses, list marks and citations."""
    text = re.sub(r"https?://\S+|`[^`]*`|\[[^\]]*\]|^\s*\d+[.)]\s", " ", text)
    return [match.translate(SAME).replace(",", "") for match in NUMBER.findall(text)]


def check_paragraph(line, paragraph, sources):
    for name in CITATION.findall(paragraph):
        if name not in sources:
            yield f"line {line}: [{name}] is no source; there are {', '.join(sources) or 'none'}"
    for sentence in sentences(paragraph):
        names = CITATION.findall(sentence)
        if not names:
            yield f"line {line}: no source for {sentence[:60]!r}"
        cited = [sources[name] for name in names if name in sources]
        held = {number.lstrip("-") for source in cited for number in numbers(source.quotes)}
        for number in numbers(sentence) if cited else []:
            if number.lstrip("-") not in held:
                yield f"line {line}: no quote of {', '.join(source.id for source in cited)} holds the number {number}"


def check_report(text, sources):
    cited, listed, claims = set(), set(), 0
    for line, section, paragraph in paragraphs(text):
        names = set(CITATION.findall(paragraph))
        if section in LISTED:
            listed |= names
        if section in FREE:
            continue
        if paragraph.startswith("|") and not numbers(paragraph):
            continue  # the head of a table
        claims += 1
        cited |= names
        yield from check_paragraph(line, paragraph, sources)
    if not claims:
        yield "the report claims nothing"
    for name in sources:
        if name not in cited:
            yield f"{name} is cited nowhere: use it, or remove its folder"
        elif name not in listed:
            yield f"{name} is not listed below '## Sources'"


def run(input):
    try:
        text = Path(input["report"]).read_text(encoding="utf-8")
        folders = sorted(path for path in Path(input["folder"]).iterdir() if path.is_dir())
    except (OSError, UnicodeDecodeError) as error:
        return {"ok": False, "problems": [f"cannot read: {error}"], "sources": []}
    sources = {folder.name: Source(folder) for folder in folders}
    problems = [problem for source in sources.values() for problem in source.problems]
    problems += check_report(text, sources)
    hosts, wanted = {source.host() for source in sources.values()}, input.get("min_sources") or 3
    if len(hosts) < wanted:
        problems.append(f"{len(hosts)} different hosts, wanted are {wanted}")
    return {"ok": not problems, "problems": problems, "sources": [source.line() for source in sources.values()]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("report")
    parser.add_argument("folder")
    parser.add_argument("--min-sources", type=int, default=3)
    verdict = run(vars(parser.parse_args()))
    print(json.dumps(verdict, indent=1, ensure_ascii=False))
    sys.exit(not verdict["ok"])
