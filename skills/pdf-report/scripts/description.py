"""A description in Markdown or JSON in, one form of it out: title, summary, chapters and appendix, made of blocks."""
import json
import re
import sys
from pathlib import Path

META = re.compile(r"(Subtitle|Author|Date):\s*(.+)")
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)\s*")
CAPTION = re.compile(r"Table:\s*(.+)")
RULE = re.compile(r"\|?\s*:?-{3,}:?\s*(\|\s*:?-{3,}:?\s*)*\|?\s*")
BULLET, NUMBERED = re.compile(r"[-*+]\s+(.+)"), re.compile(r"\d{1,3}[.)]\s+(.+)")
BLOCKS = {"text": str, "heading": str, "bullets": list, "numbered": list, "table": dict, "chart": dict, "image": dict,
          "code": str, "page_break": bool}
KINDS = ("bar", "column", "line")
MAX_COLUMNS, MAX_LABELS, MAX_SERIES = 10, 40, 6


def fail(code, message):
    print(json.dumps({"code": code, "message": message}), file=sys.stderr)
    raise SystemExit(1)


def refuse(message):
    fail("INPUT_VALIDATION_ERROR", message)


def cells(line):
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]


class Markdown:
    """Reads line by line; each `take_…` leaves `self.at` behind what it took."""

    def __init__(self, text):
        self.lines, self.at = text.splitlines(), 0
        self.found = {"title": "", "summary": [], "chapters": [], "appendix": []}
        self.blocks, self.caption, self.in_appendix = self.found["summary"], "", False

    def read(self):
        while self.at < len(self.lines):
            line = self.lines[self.at].rstrip()
            self.at += 1
            if line.strip():
                self.line(line)
        return self.found

    def line(self, line):
        if line.startswith("```"):
            return self.fence(line[3:].strip())
        if line.startswith("#"):
            return self.heading(line)
        meta = META.fullmatch(line) if not self.found["chapters"] and not self.blocks else None
        if meta:
            self.found[meta[1].lower()] = meta[2]
        elif CAPTION.fullmatch(line):
            self.caption = CAPTION.fullmatch(line)[1]
        elif image := IMAGE.fullmatch(line):
            self.blocks.append({"image": {"caption": image[1], "path": image[2]}})
        elif self.at < len(self.lines) and "|" in line and RULE.fullmatch(self.lines[self.at]):
            self.table(line)
        elif BULLET.match(line):
            self.blocks.append({"bullets": self.items(BULLET)})
        elif NUMBERED.match(line):
            self.blocks.append({"numbered": self.items(NUMBERED)})
        else:
            self.blocks.append({"text": self.paragraph(line)})

    def heading(self, line):
        marks, _, title = line.partition(" ")
        title = title.strip().rstrip("#").strip()
        if marks == "#" and title.lower().startswith("appendix"):
            self.in_appendix = True
        elif marks == "#" and not self.found["title"]:
            self.found["title"] = title
        elif marks == "##":
            chapter = {"title": title, "blocks": []}
            self.found["appendix" if self.in_appendix else "chapters"].append(chapter)
            self.blocks = chapter["blocks"]
        elif marks == "###":
            self.blocks.append({"heading": title})
        else:
            refuse(f"line {self.at}: {line[:40]!r}; allowed are one # title, ## chapters, ### sections and # Appendix")

    def fence(self, kind):
        start, inner = self.at, []
        while self.at < len(self.lines) and not self.lines[self.at].startswith("```"):
            inner.append(self.lines[self.at])
            self.at += 1
        if self.at == len(self.lines):
            refuse(f"line {start}: this ``` is never closed")
        self.at += 1
        if kind != "chart":
            return self.blocks.append({"code": "\n".join(inner)})
        try:
            self.blocks.append({"chart": json.loads("\n".join(inner))})
        except ValueError as error:
            refuse(f"line {start}: the chart is no JSON: {error}")

    def table(self, head):
        rows = []
        self.at += 1
        while self.at < len(self.lines) and "|" in self.lines[self.at]:
            rows.append(cells(self.lines[self.at]))
            self.at += 1
        self.blocks.append({"table": {"caption": self.caption, "columns": cells(head), "rows": rows}})
        self.caption = ""

    def items(self, mark):
        """Items of a list; an indented line goes on with the one before."""
        self.at -= 1
        found = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if item := mark.match(line.strip()):
                found.append(item[1])
            elif found and line.startswith((" ", "\t")) and line.strip():
                found[-1] += " " + line.strip()
            else:
                break
            self.at += 1
        return found

    def paragraph(self, first):
        parts = [first.strip()]
        while self.at < len(self.lines):
            line = self.lines[self.at].strip()
            if not line or line.startswith(("#", "```", "![", "|")) or BULLET.match(line) or CAPTION.fullmatch(line):
                break
            parts.append(line)
            self.at += 1
        return " ".join(parts)


def check_chart(chart, where):
    labels, series = chart.get("labels"), chart.get("series")
    if chart.get("kind") not in KINDS:
        refuse(f"{where}: kind is {chart.get('kind')!r}, allowed are {', '.join(KINDS)}")
    if not isinstance(labels, list) or not 1 <= len(labels) <= MAX_LABELS:
        refuse(f"{where}: labels must be a list of 1 to {MAX_LABELS}")
    if not isinstance(series, list) or not 1 <= len(series) <= MAX_SERIES:
        refuse(f"{where}: series must be a list of 1 to {MAX_SERIES}")
    for one in series:
        values = one.get("values") if isinstance(one, dict) else None
        if not isinstance(values, list) or len(values) != len(labels) or not all(
                isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
            refuse(f"{where}: each series has one number for each of the {len(labels)} labels")


def check_table(table, where):
    columns, rows = table.get("columns"), table.get("rows")
    if not isinstance(columns, list) or not 1 <= len(columns) <= MAX_COLUMNS:
        refuse(f"{where}: a table has 1 to {MAX_COLUMNS} columns; split a wider one")
    if not isinstance(rows, list) or not rows:
        refuse(f"{where}: the table has no rows")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, list) or len(row) != len(columns):
            refuse(f"{where}: row {number} has not the {len(columns)} cells that the head has")


def check_blocks(blocks, where, folder):
    if not isinstance(blocks, list):
        refuse(f"{where}: blocks must be a list")
    for number, block in enumerate(blocks, 1):
        here = f"{where}, block {number}"
        if not isinstance(block, dict) or len(block) != 1 or next(iter(block)) not in BLOCKS:
            refuse(f"{here}: a block has one key of {', '.join(BLOCKS)}")
        (kind, value), = block.items()
        if not isinstance(value, BLOCKS[kind]):
            refuse(f"{here}: {kind} must be of type {BLOCKS[kind].__name__}")
        if kind == "chart":
            check_chart(value, here)
        elif kind == "table":
            check_table(value, here)
        elif kind == "image":
            value["path"] = str(folder / value.get("path", ""))
            if not Path(value["path"]).is_file():
                refuse(f"{here}: the image {value['path']} is not there")


def check(report, folder):
    if not isinstance(report, dict) or not report.get("title") or not report.get("chapters"):
        refuse("a report needs a title and at least one chapter")
    summary = report.get("summary") or []
    summary = [summary] if isinstance(summary, str) else summary
    report["summary"] = [{"text": block} if isinstance(block, str) else block for block in summary]
    check_blocks(report["summary"], "summary", folder)
    for part in ("chapters", "appendix"):
        for chapter in report.setdefault(part, []):
            if not isinstance(chapter, dict) or not chapter.get("title"):
                refuse(f"each of {part} needs a title")
            check_blocks(chapter.get("blocks"), repr(chapter["title"]), folder)
    return report


def read(path):
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        refuse(f"cannot read {path}: {error.strerror}")
    except UnicodeDecodeError as error:
        refuse(f"{path} is not UTF-8: byte {error.start}")
    if path.suffix.lower() != ".json":
        return check(Markdown(text).read(), path.parent)
    try:
        return check(json.loads(text), path.parent)
    except ValueError as error:
        refuse(f"{path} is no JSON: {error}")
