import json

import pytest

TABLE = """name, survived ,sex,age,class
Ann,yes,female,29,1st
Ben,no,male,61,1st
Carl,no,male,,3rd
Ann,yes,female,29,1st
Dora,YES,female,15,3rd
Ed,,male,40,3rd
"""


@pytest.fixture
def cleaned(load, tmp_path):
    source = tmp_path / "table.csv"
    source.write_text(TABLE)
    return load("csv-report", "clean").run({
        "file": str(source), "outcome": "survived", "number": "age", "limits": [16, 60],
        "target": str(tmp_path / "clean.csv"),
    })


def stats(load, cleaned, by=("class", "sex")):
    groups = load("csv-report", "groups").run({"file": cleaned["file"], "by": list(by)})["groups"]
    one = load("csv-report", "group_stats")
    return [one.run({"file": cleaned["file"], "group": group, "outcome": "survived", "number": "age"}) for group in groups]


def test_cleaning_drops_duplicates_and_rows_without_outcome(cleaned, tmp_path):
    assert (cleaned["rows"], cleaned["dropped"]) == (4, 2)
    assert cleaned["missing"] == {"age": 1, "age_band": 1}
    assert (tmp_path / "clean.csv").read_text().splitlines()[1:] == [
        "Ann,1,female,29,1st,16–59", "Ben,0,male,61,1st,60 and over", "Carl,0,male,,3rd,", "Dora,1,female,15,3rd,under 16"]


def test_a_missing_column_is_named(load, refused, tmp_path):
    source = tmp_path / "table.csv"
    source.write_text("a,b\n1,2\n")
    code, message = refused(load("csv-report", "clean").run, {"file": str(source), "outcome": "survived"})
    assert code == "INPUT_VALIDATION_ERROR" and "lacks ['survived']" in message


def test_groups_are_ordered_and_named(load, cleaned):
    groups = load("csv-report", "groups").run({"file": cleaned["file"], "by": ["class", "sex"], "names": {"male": "men"}})
    assert [group["id"] for group in groups["groups"]] == ["1st-female", "1st-male", "3rd-female", "3rd-male"]
    assert groups["groups"][1]["label"] == "1st, men"


def test_too_many_groups_are_refused(load, refused, tmp_path):
    table = tmp_path / "many.csv"
    table.write_text("id\n" + "".join(f"{number}\n" for number in range(101)))
    assert "101 groups" in refused(load("csv-report", "groups").run, {"file": str(table), "by": ["id"]})[1]


def test_whole_numbers_have_no_decimals_so_that_they_stay_as_they_are(load, cleaned):
    first = stats(load, cleaned)[0]
    assert json.dumps(first["share"]) == "100" and json.dumps(first["median"]) == "29"
    assert first["low"] == 20.7 and first["high"] == 100


def test_the_interval_is_wilsons(load):
    low, high = load("csv-report", "group_stats").wilson(10, 100)
    assert (round(low, 4), round(high, 4)) == (0.0552, 0.1744)


def test_charts_and_report_are_made(load, cleaned, tmp_path):
    given = {"outcome": "survived", "number": "age", "unit": "years", "cases": "passengers", "source": "a test",
             "folder": str(tmp_path)}
    found = [*stats(load, cleaned), None]
    charts = load("csv-report", "charts").run({"file": cleaned["file"], "stats": found, **given})["charts"]
    summary = load("csv-report", "report").run(
        {"title": "Who <survived>?", "clean": cleaned, "stats": found, "charts": charts, **given})
    assert (summary["rows"], summary["positive"], summary["share"]) == (4, 2, 50)
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in ("shares.png", "age.png"))
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    assert len(json.loads((tmp_path / "summary.json").read_text())["groups"]) == 4


def test_an_agent_makes_the_report_with_one_command(script, tmp_path):
    (tmp_path / "table.csv").write_text(TABLE)
    done = script("csv-report", "scripts/make_report.py", tmp_path / "table.csv", "--outcome", "survived", "--by", "class,sex", "--number",
                  "age", "--unit", "years", "--title", "Who survived?", "--source", "a test", "--workspace", tmp_path, "--folder",
                  tmp_path / "outputs")
    assert (done.json["rows"], done.json["positive"], done.json["dropped"]) == (4, 2, 2), done.stderr
    assert sorted(path.name for path in (tmp_path / "outputs").iterdir()) == ["age.png", "report.pdf", "shares.png", "summary.json"]
    missing = script("csv-report", "scripts/make_report.py", tmp_path / "table.csv", "--outcome", "alive", "--by", "class", "--title", "t",
                     "--source", "s", "--workspace", tmp_path, "--folder", tmp_path)
    assert missing.returncode == 1 and "lacks ['alive']" in missing.stderr


def test_the_command_of_the_body_works_as_it_stands(told):
    agent = told("csv-report")
    (agent.uploads / "FILE.csv").write_text(TABLE)
    agent.commands[0] += ["--workspace", str(agent.workspace), "--folder", str(agent.outputs)]
    assert agent.run(0).json["rows"] == 4
