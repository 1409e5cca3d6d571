import json
from pathlib import Path

import pdfplumber
import pytest
from PIL import Image
from reportlab.pdfgen.canvas import Canvas

EXAMPLES = Path(__file__).parent.parent / "references"
LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"


@pytest.fixture
def build(script, tmp_path):
    def build(description, name="report.json"):
        text = description if isinstance(description, str) else json.dumps(description)
        (tmp_path / name).write_text(text)
        return script("pdf-report", "scripts/build_report.py", tmp_path / name, tmp_path / "out" / "report.pdf")

    build.pdf = tmp_path / "out" / "report.pdf"
    return build


@pytest.fixture
def check(script, build):
    return lambda *more: script("pdf-report", "scripts/check_report.py", build.pdf, *more)


def pages(pdf):
    with pdfplumber.open(pdf) as document:
        return [page.extract_text() or "" for page in document.pages]


def chapter(title, *blocks):
    return {"title": title, "blocks": list(blocks)}


def test_the_example_in_markdown_becomes_a_report(build, check, tmp_path):
    made = build((EXAMPLES / "report.md").read_text(), "report.md").json
    assert (made["pages"], made["headings"], made["figures"], made["tables"]) == (6, 6, 2, 1)
    assert check("--render", tmp_path / "pages").json == {"ok": True, "problems": [], "pages": 6, "headings": 6}
    assert len(list((tmp_path / "pages").glob("page-*.png"))) == 6
    found = pages(build.pdf)
    assert found[0].splitlines()[0] == "Water in the town of Aven"
    assert "1 Where the water goes" in found[1] and found[1].rstrip().endswith("2")
    assert "Table 1 Losses by district, 2025" in found[3] and "Figure 2" in found[4]
    assert found[5].startswith("Appendix A: How losses were measured")


def test_the_example_in_json_becomes_a_report(build, check):
    assert build((EXAMPLES / "report.json").read_text()).json["pages"] == 5
    assert check().json["ok"]


def test_a_long_report_has_right_page_numbers_and_no_overlaps(build, check):
    text = {"text": "Some **bold** words, *slanted* ones and `code * here`. " * 30}
    rows = [[f"row {number}", LONG, number * 1000.5, "a longer cell that has to go on in a second line, or a third"] for number in range(90)]
    chapters = [chapter(f"Chapter on the {number} things that a reader must know before the others are read at all, and why", text,
                        {"heading": f"Section {number} <with> & signs"}, text, {"bullets": ["one", LONG * 3, "three"]}, {"heading": LONG}, text)
                for number in range(14)]
    chapters[3]["blocks"] += [{"table": {"caption": "Long & wide", "columns": ["name", "word", "number", "remark"], "rows": rows}}]
    made = build({"title": "A " + "very " * 40 + "long title", "chapters": chapters,
                  "appendix": [chapter("Code", {"code": "x = 1\n" * 150 + "y" * 300})]}).json
    assert made["pages"] > 25 and made["headings"] == 14 * 3 + 1
    verdict = check().json
    assert verdict["ok"], verdict["problems"]


def test_charts_of_each_kind_with_long_labels_and_negative_numbers(build, check):
    series = [{"name": "before", "values": [3, -2, 5.25]}, {"name": "after", "values": [1000000, 4, -7]}]
    charts = [{"chart": {"kind": kind, "title": kind, "labels": [LONG[:50], "b", "c"], "series": series, "unit": "EUR"}}
              for kind in ("bar", "column", "line")]
    many = {"chart": {"kind": "bar", "labels": [f"l{n}" for n in range(40)], "series": [{"values": list(range(40))}]}}
    assert build({"title": "Charts", "chapters": [chapter("All", *charts, many)]}).json["figures"] == 4
    assert check().json["ok"]


def test_an_image_beside_the_description_keeps_its_shape(build, tmp_path):
    Image.new("RGB", (100, 400), "#0b6e99").save(tmp_path / "tower.png")
    build("# T\n\n## C\n\n![A tower](tower.png)\n", "report.md")
    with pdfplumber.open(build.pdf) as document:
        image = document.pages[2].images[0]
        assert image["height"] == pytest.approx(4 * image["width"], rel=0.01)
        assert "Figure 1 A tower" in document.pages[2].extract_text()


def test_letters_that_the_font_lacks_are_told(build):
    made = build({"title": "T", "chapters": [chapter("C", {"text": "π ≥ 3, naïve, 水"})]}).json
    assert made["missing_letters"] == ["水"]


def test_markup_of_a_stranger_stays_text(build):
    build({"title": "<b>T</b>", "chapters": [chapter("C", {"text": "<img src='/etc/passwd'/> <b>x [a](javascript:x) & **open"})]})
    assert "<img src='/etc/passwd'/> <b>x [a](javascript:x) & **open" in pages(build.pdf)[2]


@pytest.mark.parametrize("text, word", [
    ("## C\n\ntext\n", "needs a title"),
    ("# T\n\n## C\n\n```chart\n{\n```\n", "line 5: the chart is no JSON"),
    ("# T\n\n## C\n\n```\nnever\n", "line 5: this ``` is never closed"),
    ("# T\n\n## C\n\n#### D\n", "line 5"),
    ("# T\n\n## C\n\n![x](gone.png)\n", "gone.png is not there"),
    ('# T\n\n## C\n\n```chart\n{"kind": "pie", "labels": ["a"], "series": [{"values": [1]}]}\n```\n', "allowed are bar, column, line"),
    ('# T\n\n## C\n\n```chart\n{"kind": "bar", "labels": ["a"], "series": [{"values": ["1"]}]}\n```\n', "one number for each"),
    ("# T\n\n## C\n\n| a | b |\n|---|---|\n| 1 |\n", "row 1 has not the 2 cells"),
])
def test_a_bad_description_is_named_with_its_place(build, text, word):
    done = build(text, "report.md")
    error = json.loads(done.stderr.splitlines()[-1])
    assert done.returncode == 1 and error["code"] == "INPUT_VALIDATION_ERROR" and word in error["message"]


def forge(path, page):
    """A report of three pages: cover, contents that say `page` for the chapter on page 3, the chapter."""
    path.parent.mkdir(exist_ok=True)
    canvas = Canvas(str(path))
    for number, lines in enumerate([["Cover"], ["Contents", f"1 Rain . . . . {page}"], ["1 Rain", "wet"]], 1):
        if number == 3:
            canvas.bookmarkPage("rain")
            canvas.addOutlineEntry("1 Rain", "rain")
        for place, line in enumerate(lines):
            canvas.drawString(100, 700 - 20 * place, line)
        canvas.drawString(500, 30, str(number))
        yield canvas, number
        canvas.showPage()
    canvas.save()


def test_a_wrong_page_number_in_the_contents_is_found(build, check):
    list(forge(build.pdf, 3))
    assert check().json["problems"] == []
    list(forge(build.pdf, 4))
    assert check().json["problems"] == ["the contents say page 4 for '1 Rain', it stands on page 3"]


def test_overlaps_margins_and_empty_pages_are_found(build, check):
    for canvas, number in forge(build.pdf, 3):
        if number == 3:
            canvas.drawString(104, 698, "Snow")
            canvas.drawString(580, 400, "outside")
            canvas.showPage()
    problems = check().json["problems"]
    assert any("overlap" in problem for problem in problems) and any("margin" in problem for problem in problems)
    assert any(problem.startswith("page 4 of 4: nothing on it") for problem in problems)


def test_what_is_no_pdf_is_named(build, check):
    build.pdf.parent.mkdir()
    build.pdf.write_bytes(b"%PDF-1.7\nnothing")
    done = check()
    assert done.returncode == 1 and "cannot be read as a PDF" in done.json["problems"][0]


def test_the_commands_of_the_body_work_as_they_stand(told):
    agent = told("pdf-report")
    (agent.workspace / "report.md").write_text((EXAMPLES / "report.md").read_text())
    assert agent.run(0).json["pages"] == 6 and agent.run(1).json["ok"]
    assert (agent.workspace / "pages" / "page-01.png").exists()
