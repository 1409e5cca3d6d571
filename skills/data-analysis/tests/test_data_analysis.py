import csv
import json
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SKILL = Path(__file__).parent.parent
TABLE = SKILL / "testdata" / "passengers.csv"


@pytest.fixture
def analysis(load):
    return load("data-analysis", "analysis", "scripts")


@pytest.fixture
def delivered(tmp_path, monkeypatch):
    """What the example of the skill delivers, run as an agent's script would run."""
    source, outputs = tmp_path / "passengers.csv", tmp_path / "outputs"
    shutil.copy(TABLE, source)
    text = (SKILL / "references" / "example.py").read_text().replace("/mnt/skills/data-analysis", str(SKILL))
    (tmp_path / "analyse.py").write_text(text)
    monkeypatch.setattr("sys.argv", ["analyse.py", str(source), str(outputs)])
    runpy.run_path(str(tmp_path / "analyse.py"))
    return outputs


def test_the_table_is_what_its_generator_makes():
    made = runpy.run_path(str(SKILL / "testdata" / "make_passengers.py"))["rows"]()
    with open(TABLE, encoding="utf-8", newline="") as file:
        assert list(csv.DictReader(file)) == made


def test_the_profile_says_what_each_column_is(script):
    found = script("data-analysis", "scripts/profile_table.py", TABLE).json
    kinds = {name: column["kind"] for name, column in found["columns"].items()}
    assert kinds == {"name": "identifier", "survived": "yes/no", "sex": "category", "age": "number", "class": "category"}
    assert found["rows"] == 353 and "3 rows repeat another row" in found["notes"]
    assert any(re.fullmatch(r"age is empty in \d+ rows \(1\d\.\d%\)", note) for note in found["notes"])


def test_a_column_that_is_almost_numbers_is_told(script, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("price;only\n" + "".join(f"{number};x\n" for number in range(40)) + "n/a;x\n")
    found = script("data-analysis", "scripts/profile_table.py", table).json
    assert "price holds numbers but for ['n/a']" in found["notes"] and "only has one value only" in found["notes"]


def test_a_table_of_one_column_is_a_table(script, tmp_path):
    (tmp_path / "x.csv").write_text("answer\nyes\nno\n")
    assert script("data-analysis", "scripts/profile_table.py", tmp_path / "x.csv").json["columns"]["answer"]["kind"] == "yes/no"


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00\x01", b"a,b\n"])
def test_what_is_no_table_is_named(script, tmp_path, content):
    (tmp_path / "x.csv").write_bytes(content)
    done = script("data-analysis", "scripts/profile_table.py", tmp_path / "x.csv")
    assert done.returncode == 1 and json.loads(done.stderr.splitlines()[-1])["code"] == "INPUT_VALIDATION_ERROR"


def test_rates_are_those_that_were_put_in(analysis):
    table = analysis.read(TABLE)
    assert table.attrs["rows"] == 350 and table.attrs["dropped"] == 3
    groups = runpy.run_path(str(SKILL / "testdata" / "make_passengers.py"))["GROUPS"]
    found = {tuple(group["group"].split(", ")): (group["rows"], group["yes"])
             for group in analysis.rates(table, "survived", ["class", "sex"])}
    assert found == groups


def test_intervals_agree_with_published_examples(analysis):
    # Newcombe (1998), Statistics in Medicine 17:873-890, Table II: 56/70 against 48/80, method 10.
    gap = analysis.difference({"yes": 56, "rows": 70}, {"yes": 48, "rows": 80})
    assert (gap["points"], gap["low"], gap["high"]) == (20.0, 5.2, 33.4)


def test_the_example_delivers_what_the_check_accepts(delivered, script):
    done = script("data-analysis", "scripts/check_analysis.py", delivered)
    assert done.json["ok"] and done.returncode == 0, done.json["problems"]
    assert done.json["numbers"] > 10
    summary = json.loads((delivered / "summary.json").read_text())
    assert summary["findings"][0]["figures"]["women"]["share"] == 72.3  # 94 of 130
    assert "72.3% of the women survived and 19.5% of the men" in (delivered / "report.md").read_text()


def test_the_table_and_a_number_that_changed_are_found(delivered, script, tmp_path):
    report = delivered / "report.md"
    report.write_text(report.read_text().replace("72.3%", "74.3%"))
    (tmp_path / "passengers.csv").write_text("a\n1\n")
    (delivered / "survival-by-age.png").unlink()
    done = script("data-analysis", "scripts/check_analysis.py", delivered)
    assert done.returncode == 1
    text = "\n".join(done.json["problems"])
    assert "report.md says 74.3" in text and "has changed since the analysis" in text and "is no image" in text


def test_a_statement_that_its_figures_do_not_hold_is_found(delivered, script):
    summary = json.loads((delivered / "summary.json").read_text())
    summary["findings"][1]["statement"] += " That is 3 times as much."
    (delivered / "summary.json").write_text(json.dumps(summary))
    problems = script("data-analysis", "scripts/check_analysis.py", delivered).json["problems"]
    assert problems == ["finding 2 says 3, which is none of its figures"]


@pytest.mark.parametrize("text, found", [
    ("1,309 of 2,224 (58.9%)", ["1,309", "2,224", "58.9"]),
    ("3rd class, cabin B5, 95% interval, `analyse2.py`", []),
    ("- minus −3.5 points, in 1912.", ["−3.5", "1912"]),
    ("1. one\n2. two ![chart 7](b-7.png)", []),
])
def test_numbers_of_prose_are_found(load, text, found):
    assert [written for written, _, _ in load("data-analysis", "check_analysis", "scripts").numbers(text)] == found


def test_plain_numbers_are_drawn_in_order(analysis, tmp_path):
    path = analysis.chart_numbers([("north", 1200), ("south", -30)], tmp_path / "n.png", "Sales", unit="EUR")
    assert Path(path).read_bytes().startswith(b"\x89PNG")


def test_the_commands_of_the_body_work_as_they_stand(told):
    agent = told("data-analysis")
    shutil.copy(TABLE, agent.uploads / "FILE.csv")
    assert agent.run(0).json["rows"] == 353
    example = agent.here((SKILL / "references" / "example.py").read_text()).replace("passengers.csv", "FILE.csv")
    (agent.workspace / "analyse.py").write_text(example)
    subprocess.run([sys.executable, "analyse.py"], cwd=agent.workspace, check=True, stdout=subprocess.DEVNULL)
    assert agent.run(1).json["ok"]
    made = agent.run(2).json
    assert (made["headings"], made["figures"], made["missing_letters"]) == (3, 2, [])


def test_the_titanic_case_comes_to_the_known_figures(told):
    agent = told("data-analysis")
    shutil.copy(SKILL.parents[1] / "deploy" / "examples" / "data" / "titanic.csv", agent.uploads / "FILE.csv")
    example = agent.here((SKILL / "references" / "example.py").read_text()).replace("passengers.csv", "FILE.csv").replace('"class"', '"passengerClass"')
    (agent.workspace / "analyse.py").write_text(example)
    subprocess.run([sys.executable, "analyse.py"], cwd=agent.workspace, check=True, stdout=subprocess.DEVNULL)
    verdict = agent.run(1).json
    assert verdict["ok"], verdict["problems"]
    figures = [finding["figures"] for finding in json.loads((agent.outputs / "summary.json").read_text())["findings"]]
    assert (figures[0]["women"]["yes"], figures[0]["women"]["rows"]) == (339, 466)
    assert (figures[0]["men"]["yes"], figures[0]["men"]["rows"]) == (161, 843)
    assert {group["group"]: group["share"] for group in figures[1]["groups"]}["1st, female"] == 96.5
