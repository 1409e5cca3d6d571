import csv
import json
from pathlib import Path

import pytest

DATA = Path(__file__).parents[3] / "deploy" / "examples" / "data"


@pytest.fixture
def extract(load, tmp_path):
    module = load("pdf-tables", "extract")

    def extract(name):
        found = module.run({"file": str(DATA / name), "folder": str(tmp_path)})
        tables = []
        for table in found["tables"]:
            with open(table["csv"], encoding="utf-8", newline="") as file:
                tables.append(list(csv.reader(file)))
        return found, tables

    return extract


def test_a_fully_ruled_table_and_two_others_are_found(extract):
    found, tables = extract("countries.pdf")
    assert [(table["page"], table["rows"], table["columns"]) for table in found["tables"]] == [
        (1, 15, 4), (2, 15, 4), (3, 15, 4)]
    assert tables[0][0] == ["Country", "Capital", "Area (sq km)", "Pop. (thousands)"]
    assert tables[1][15] == ["United Kingdom", "London", "243,820", "58,862"]


def test_outer_columns_without_outer_lines_are_kept(extract):
    found, tables = extract("r-datasets.pdf")
    assert found["rows"] == 59 and found["pages"] == 3
    assert tables[0][1] == ["Mazda RX4", "21.0", "6", "160.0", "110", "3.90", "2.620", "16.46", "0", "1", "4", "4"]
    assert tables[2][-1] == ["150", "5.9", "3.0", "5.1", "1.8", "virginica"]


def test_a_body_without_row_lines_is_split_and_headings_spread(extract):
    found, tables = extract("arrests-2009.pdf")
    assert [table["caption"] for table in found["tables"]] == [
        "Table 324. Arrests by Sex and Age: 2009", "Table 325. Arrests by Race: 2009"]
    sex, race = tables
    assert sex[0][4:7] == ["Male Total", "Male Under 18 years", "Male 18 years and over"]
    assert sex[3] == ["Murder and nonnegligent manslaughter", "10.0", "0.9", "9.1", "9.0", "0.9", "8.1", "1.1", "–", "1.0"]
    assert race[1] == ["Total", "10,690,561", "7,389,208", "3,027,153", "150,544", "123,656"]


def test_the_races_add_up_to_the_printed_total(extract):
    rows = extract("arrests-2009.pdf")[1][1][1:]
    numbers = [[int(cell.replace(",", "")) for cell in row[1:]] for row in rows]
    assert all(sum(parts) == total for total, *parts in numbers)


def test_what_is_no_pdf_is_named(load, refused, tmp_path):
    file = tmp_path / "letter.pdf"
    file.write_text("Dear reader")
    assert refused(load("pdf-tables", "extract").run, {"file": str(file)})[0] == "NOT_A_PDF"
    assert refused(load("pdf-tables", "extract").run, {"file": "/nonexistent.pdf"})[0] == "INPUT_VALIDATION_ERROR"


def test_files_are_listed_in_order_with_keys(load, refused, tmp_path):
    module = load("pdf-tables", "list_files")
    assert "no PDF file" in refused(module.run, {"folder": str(tmp_path)})[1]
    (tmp_path / "new").mkdir()
    for name in ("b.PDF", "new/a 1.pdf", "c.txt"):
        (tmp_path / name).write_bytes(b"12345")
    files = module.run({"folder": str(tmp_path)})["files"]
    assert [(file["id"], file["bytes"]) for file in files] == [("b", 5), ("new-a-1", 5)]


def test_the_index_lists_all_tables_and_counts_failures(load, tmp_path):
    table = {"page": 1, "caption": "", "rows": 2, "columns": 3, "csv": "a-1.csv"}
    totals = load("pdf-tables", "summary").run(
        {"files": [{"file": "a.pdf", "pages": 1, "tables": [table], "rows": 2}, None], "folder": str(tmp_path)})
    assert (totals["files"], totals["failed"], totals["tables"], totals["rows"]) == (1, 1, 1, 2)
    assert (tmp_path / "tables.csv").read_text().splitlines()[1] == "a.pdf,1,,2,3,a-1.csv"
    assert json.loads((tmp_path / "tables.json").read_text())["found"][0]["file"] == "a.pdf"


def test_an_agent_extracts_a_folder_with_one_command_and_learns_what_failed(script, tmp_path):
    uploads, outputs = tmp_path / "uploads", tmp_path / "outputs"
    uploads.mkdir()
    (uploads / "countries.pdf").write_bytes((DATA / "countries.pdf").read_bytes())
    (uploads / "broken.pdf").write_text("Dear reader")
    done = script("pdf-tables", "scripts/extract_all.py", uploads, "--folder", outputs)
    assert (done.json["files"], done.json["failed"], done.json["tables"]) == (1, 1, 3), done.stderr
    assert done.json["errors"][0]["code"] == "NOT_A_PDF" and done.json["found"][0]["page"] == 1
    assert len(list(outputs.glob("countries-*.csv"))) == 3 and (outputs / "tables.csv").exists()


def test_the_command_of_the_body_works_as_it_stands(told):
    agent = told("pdf-tables")
    (agent.uploads / "countries.pdf").write_bytes((DATA / "countries.pdf").read_bytes())
    agent.commands[0] += ["--folder", str(agent.outputs)]
    assert agent.run(0).json["tables"] == 3
