"""Tender documents in, paragraphs and requirements out; and the forms that the other scripts share."""
import csv
import hashlib
import json
import re
import sys
from pathlib import Path

MATRIX = ["id", "file", "page", "section", "level", "requirement", "status", "response", "evidence", "owner"]
GAPS = ["id", "file", "page", "section", "level", "requirement", "status", "gap", "action", "owner"]
LEVELS = ("mandatory", "desirable", "optional")
NEEDS = {  # status: what an answer must say besides
    "compliant": ("response", "evidence"), "partial": ("response", "evidence", "gap", "action"), "gap": ("gap", "action"),
    "not-applicable": ("response",),
}
OPEN = "open"  # has no answer yet
INCOMPLETE = {"partial", "gap", OPEN}

WORDS = {  # level: words, and signs of scripts that put no space between words; the first level that is found counts
    "mandatory": (
        r"must|shall|(?:is|are|be) (?:required|obliged) to|(?:is|are) (?:mandatory|required)|will be (?:rejected|excluded)"
        r"|muss|müssen|zwingend|(?:ist|sind) (?:verpflichtet|erforderlich)|doit|doivent|obligatoires?|debe|deben|obligatorio",
        "必须|必須|应当|應當|不得"),
    "desirable": (
        r"should|desirable|preferred|recommended|soll|sollen|sollte|sollten|devrait|devraient|souhaité|debería|deberían", "建议|宜"),
    "optional": (r"(?-i:may)|optional(?:ly)?|kann|können|darf|dürfen|peut|peuvent|puede|pueden", "可以"),
}
WORD = {level: re.compile(rf"\b(?:{words})\b|{joined}", re.I) for level, (words, joined) in WORDS.items()}
SECTION = re.compile(r"(?:(?:section|clause|article|annex|appendix)\s+)?((?:[A-Z]\.)?\d{1,3}(?:\.\d{1,3})*|[A-Z]\.\d{1,3}(?:\.\d{1,3})*)[.):]?\s+(?=\S)",
                     re.I)
ITEM = re.compile(r"(?:\(?[a-z]{1,4}\)|\([0-9]{1,2}\)|[-–•*·▪])\s+")
SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=[^\W\d_a-zäöüéèàç]|[\"“(])|(?<=[。；])")


def fail(code, message):
    print(json.dumps({"code": code, "message": message}), file=sys.stderr)
    raise SystemExit(1)


def load(path, kind):
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        fail("INPUT_VALIDATION_ERROR", f"cannot read {path}: {error}")
    if not isinstance(value, kind):
        fail("INPUT_VALIDATION_ERROR", f"{path} must hold a {'list' if kind is list else 'JSON object'}")
    return value


def save(path, value):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def plain(text):
    return " ".join(text.split())


def text_paragraphs(path):
    """(page, paragraph); a line that begins like a clause begins a new one."""
    begun = []
    for line in [*path.read_text(encoding="utf-8-sig").splitlines(), ""]:
        line = line.strip().lstrip("#").strip()
        if begun and (not line or SECTION.match(line) or ITEM.match(line)):
            yield None, " ".join(begun)
            begun = []
        if line:
            begun.append(line)


def docx_paragraphs(path):
    import docx
    from docx.table import Table

    for part in docx.Document(str(path)).iter_inner_content():
        if isinstance(part, Table):
            for row in part.rows:
                cells = list(dict.fromkeys(cell.text.strip() for cell in row.cells))
                yield None, plain(" | ".join(filter(None, cells)))
        elif part.text.strip():
            yield None, plain(part.text)


def pdf_paragraphs(path, problems):
    import pdfplumber

    with pdfplumber.open(path) as document:
        pages = [page.extract_text_lines() for page in document.pages]
    running = repeated(pages)
    begun, begun_on = [], None
    for number, lines in enumerate(pages, 1):
        if not lines:
            problems.append(f"{path.name}, page {number} has no text: a scan?")
        bottom = None
        for line in lines:
            text = plain(line["text"])
            if re.sub(r"\d+", "#", text) in running:
                continue
            gap = bottom is not None and line["top"] - bottom > 0.6 * (line["bottom"] - line["top"])
            goes_on = bottom is None and begun and not begun[-1].endswith((".", ";", ":", "!", "?"))
            if begun and (SECTION.match(text) or ITEM.match(text) or gap or (bottom is None and not goes_on)):
                yield begun_on, " ".join(begun)
                begun = []
            begun_on = begun_on if begun else number
            begun.append(text)
            bottom = line["bottom"]
    if begun:
        yield begun_on, " ".join(begun)


def repeated(pages):
    """First and last lines that stand on most pages, digits aside: headers and footers."""
    if len(pages) < 3:
        return set()
    counts = {}
    for lines in pages:
        for text in {re.sub(r"\d+", "#", plain(line["text"])) for line in [*lines[:2], *lines[-2:]]}:
            counts[text] = counts.get(text, 0) + 1
    return {text for text, count in counts.items() if count > len(pages) / 2}


def paragraphs(path, problems):
    path = Path(path)
    kind = path.suffix.lower()
    readers = {".txt": text_paragraphs, ".md": text_paragraphs, ".docx": docx_paragraphs}
    if kind not in {*readers, ".pdf"}:
        fail("INPUT_VALIDATION_ERROR", f"{path.name}: allowed are .txt, .md, .docx and .pdf")
    try:
        return list(readers[kind](path) if kind in readers else pdf_paragraphs(path, problems))
    except OSError as error:
        fail("INPUT_VALIDATION_ERROR", f"cannot read {path}: {error.strerror or error}")
    except Exception as error:  # the parsers raise whatever a damaged file makes them stumble over
        fail("INPUT_VALIDATION_ERROR", f"{path.name} is no {kind} file that can be read: {type(error).__name__}: {error}")


def level(text):
    return next((name for name in LEVELS if WORD[name].search(text)), None)


def requirements(found):
    """Each sentence that asks for something; items of a list take their level from the sentence above them."""
    section, lead = "", None
    for page, paragraph in found:
        if number := SECTION.match(paragraph):
            section, lead = number[1], None
        item = ITEM.match(paragraph)
        if item and lead:
            yield {"page": page, "section": section, "level": level(paragraph) or lead[0], "text": paragraph, "lead": lead[1]}
            continue
        lead = None
        for sentence in filter(None, map(str.strip, SENTENCE.split(paragraph))):
            if asked := level(sentence):
                yield {"page": page, "section": section, "level": asked, "text": sentence}
                lead = (asked, sentence) if sentence.endswith(":") else None


def safe(cell):
    """A cell that a spreadsheet would take for a formula is text: the tender is a stranger's."""
    cell = "" if cell is None else str(cell)
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t")) else cell


def write_csv(path, columns, rows):
    with open(path, "w", encoding="utf-8-sig", newline="") as file:  # the mark tells Excel that it is UTF-8
        table = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        table.writeheader()
        table.writerows({name: safe(row.get(name)) for name in columns} for row in rows)


def rows(clauses, answers):
    """Clause and answer as one row."""
    for clause in clauses:
        answer = answers.get(clause["id"], {})
        lead = f"{clause['lead']} " if clause.get("lead") else ""
        yield {**clause, "requirement": lead + clause["text"], "status": OPEN, **answer}
