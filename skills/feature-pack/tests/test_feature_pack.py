import json
from pathlib import Path

import pytest
from pptx import Presentation
from pptx.util import Inches

FACTS = Path(__file__).parent.parent / "references" / "facts.json"


@pytest.fixture
def pack(script, tmp_path):
    facts, outputs = tmp_path / "facts.json", tmp_path / "outputs"

    def pack(change=lambda table: None, build=True):
        table = json.loads(FACTS.read_text())
        change(table)
        facts.write_text(json.dumps(table))
        return script("feature-pack", f"scripts/{'build' if build else 'check'}_pack.py", facts, outputs)

    pack.outputs = outputs
    return pack


def test_the_example_is_built_and_all_its_numbers_agree(pack):
    done = pack()
    assert done.json["ok"] and done.returncode == 0, done.stdout + done.stderr
    assert done.json["compared"] >= 40
    article = (pack.outputs / "article.md").read_text()
    assert "128,450 visits, 33.5% more than the 96,200" in article  # 32,250 / 96,200 = 0.33524
    assert "Of 109,210 loans, 33,040 were e-books (30.3%)" in article
    assert "open 52.5 hours each week" in article


def test_slides_are_as_wide_as_a_screen_and_nothing_stands_outside_or_on_something_else(pack):
    pack()
    deck = Presentation(pack.outputs / "deck.pptx")
    assert deck.slide_width == Inches(13.333) and len(deck.slides) == 5
    for slide in deck.slides:
        boxes = [(shape.left, shape.top, shape.left + shape.width, shape.top + shape.height) for shape in slide.shapes]
        assert all(0 <= left < right <= deck.slide_width and 0 <= top < bottom <= deck.slide_height
                   for left, top, right, bottom in boxes)
        for number, (left, top, right, bottom) in enumerate(boxes):
            assert all(right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
                       for other in boxes[number + 1:])
    chart = next(shape.chart for shape in deck.slides[2].shapes if shape.has_chart)
    assert list(chart.plots[0].series[0].values) == [14870, 33040, 61300]


def test_a_number_that_changed_in_the_table_is_found_in_all_products(pack):
    pack()
    problems = pack(lambda table: table["facts"][5].update(value=33041), build=False).json["problems"]
    text = "\n".join(problems)
    for place in ("deck.pptx, slide 2: Loans of e-books is 33,040, the table says 33,041", "deck.pptx, slide 3: Loans of e-books",
                  "deck.pptx, slide 5: 33,040 is no fact", "chart.png: Loans of e-books", "article.md does not say loans_ebook"):
        assert place in text


def test_two_numbers_that_were_swapped_in_a_table_are_found(pack):
    pack()
    article = pack.outputs / "article.md"
    text = article.read_text()
    text = text.replace("printed books | 61,300", "printed books | X").replace("audio books | 14,870", "audio books | 61,300")
    article.write_text(text.replace("printed books | X", "printed books | 14,870"))
    assert len(pack(build=False).json["problems"]) == 2


def test_a_number_typed_into_the_deck_is_found(pack):
    pack()
    deck = Presentation(pack.outputs / "deck.pptx")
    deck.slides[3].shapes[1].text_frame.text = "128,450 visits, 33.5 more, open 52.5 hours, 7 days"
    deck.save(pack.outputs / "deck.pptx")
    problems = pack(build=False).json["problems"]
    assert "deck.pptx, slide 4: 33.5 is no fact of the table" in problems
    assert "deck.pptx, slide 4: 7 is no fact of the table" in problems


def test_a_number_typed_into_a_text_fails_the_build_unless_it_is_a_literal(pack):
    def typed(table):
        table["sections"][0]["text"] += " It has 3 floors."

    assert pack(typed).json["problems"] == ["article.md, line 7: 3 is no fact of the table"]
    assert pack(lambda table: (typed(table), table.update(literals=["3"]))).json["ok"]


def test_what_is_damaged_is_named(pack):
    pack()
    (pack.outputs / "deck.pptx").write_bytes(b"PK\x03\x04")
    (pack.outputs / "chart.png").write_bytes(b"")
    problems = "\n".join(pack(build=False).json["problems"])
    assert "deck.pptx cannot be read" in problems and "chart.png cannot be read" in problems


@pytest.mark.parametrize("change, word", [
    (lambda table: table["sections"][0].update(text="{nobody} came"), "['nobody']"),
    (lambda table: table["facts"][0].update(value="96,200"), "allowed is a number"),
    (lambda table: table["facts"][1].update(id="visits_before"), "an id of its own"),
    (lambda table: table["facts"][2].update(derive={"power": ["visits", "visits"]}), "allowed are sum"),
    (lambda table: table["facts"][2].update(derive={"sum": ["loans"]}), "must stand above it"),
    (lambda table: table["facts"][0].update(value=0), "divides by zero"),
    (lambda table: table["chart"].update(facts=["visits", "growth"]), "of one unit"),
    (lambda table: table["sections"][0].update(slide=["x" * 141]), "140 characters"),
    (lambda table: table["chart"].update(title="x" * 91), "91 characters"),
    (lambda table: table["sections"][0].update(slide=[]), "1 to 5 bullets"),
    (lambda table: table.pop("source"), "lacks ['source']"),
])
def test_a_bad_table_is_refused_with_what_is_allowed(pack, change, word):
    done = pack(change)
    error = json.loads(done.stderr.splitlines()[-1])
    assert done.returncode == 1 and error["code"] == "INPUT_VALIDATION_ERROR" and word in error["message"]


def test_halves_are_rounded_away_from_zero_and_exactly(load, monkeypatch):
    facts = load("feature-pack", "facts", "scripts")
    cases = [("2.675", 2, "2.68"), ("0.5", 0, "1"), ("-1234.5", 0, "-1,235"), ("1e3", 0, "1,000")]
    assert [facts.written(facts.Decimal(value), decimals) for value, decimals, _ in cases] == [text for _, _, text in cases]


def test_the_commands_of_the_body_work_as_they_stand(told):
    agent = told("feature-pack")
    (agent.workspace / "facts.json").write_text(FACTS.read_text())
    assert [agent.run(number).json["ok"] for number in range(len(agent.commands))] == [True, True]
