import csv
import json
import subprocess
from pathlib import Path

import pytest

SHEET = Path(__file__).parent.parent / "testdata" / "class-7.csv"


@pytest.fixture
def parser(load):
    return load("math-grader", "math_parser")


def test_a_sheet_becomes_rows(load):
    rows = load("math-grader", "split_sheet").run({"file": str(SHEET)})["rows"]
    assert len(rows) == 25
    assert rows[0] == {"id": "a1", "student": "Ada", "question": "1/2 + 1/3", "answer": "5/6"}


def test_semicolons_a_byte_order_mark_and_missing_ids_are_fine(load, tmp_path):
    sheet = tmp_path / "sheet.csv"
    sheet.write_text("\ufeffStudent;Question;Answer\nAda;1 + 1;2\n;;\n", encoding="utf-8")
    rows = load("math-grader", "split_sheet").run({"file": str(sheet)})["rows"]
    assert rows == [{"id": "r1", "student": "Ada", "question": "1 + 1", "answer": "2"}]


@pytest.mark.parametrize("text, word", [
    ("student,answer\nAda,2\n", "lacks ['question']"),
    ("id,student,question,answer\na,Ada,1,1\na,Ben,1,1\n", "two rows"),
    ("student,question,answer\n,1+1,2\n", "no student"),
])
def test_a_bad_sheet_is_named(load, refused, tmp_path, text, word):
    sheet = tmp_path / "sheet.csv"
    sheet.write_text(text)
    code, message = refused(load("math-grader", "split_sheet").run, {"file": str(sheet)})
    assert code == "INPUT_VALIDATION_ERROR" and word in message


def test_a_missing_sheet_is_named(load, refused):
    code, message = refused(load("math-grader", "split_sheet").run, {"file": "/nonexistent.csv"})
    assert code == "INPUT_VALIDATION_ERROR" and "No such file" in message


@pytest.mark.parametrize("question, tree", [
    ("1 + 2 * 3", ["+", "1", ["*", "2", "3"]]),
    ("8 - 3 - 2", ["-", ["-", "8", "3"], "2"]),
    ("-2^2", ["neg", ["^", "2", "2"]]),
    ("(1 + 2) ÷ 0.75 = ?", ["/", ["+", "1", "2"], "3/4"]),
])
def test_a_question_becomes_a_tree(parser, question, tree):
    assert parser.run({"question": question})["tree"] == tree


@pytest.mark.parametrize("text, value", [
    ("12", "12"), ("0.50", "1/2"), ("3/6", "1/2"), ("1 1/2", "3/2"), ("-1 1/2", "-3/2"),
    ("75%", "3/4"), ("= −2", "-2"), ("1:4", "1/4"), ("+.5", "1/2"),
])
def test_an_answer_becomes_an_exact_number(parser, text, value):
    assert parser.run({"question": "1", "answer": text})["answer"] == value


@pytest.mark.parametrize("text", ["", "?", "twenty", "1e3", "1/0", "0x10", "12 apples", "__import__('os')"])
def test_an_answer_that_is_no_number_ends_with_its_code(parser, refused, text):
    assert refused(parser.run, {"question": "1", "answer": text})[0] == "UNPARSEABLE_ANSWER"


@pytest.mark.parametrize("question", ["", "1 +", "(1", "1)", "a + 1", "2^0.5", "2^99", "1" + "+1" * 40, "open('x')"])
def test_a_question_that_cannot_be_read_ends_with_its_code(parser, refused, question):
    assert refused(parser.run, {"question": question, "answer": "1"})[0] == "INVALID_QUESTION"


def test_the_report_counts_unreadable_answers_as_wrong(load, tmp_path):
    rows = [{"student": "Ada"}, {"student": "Ada"}, {"student": "Ben"}]
    results = [{"student": "Ada", "right": True}, None, {"student": "Ben", "right": False}]
    summary = load("math-grader", "report").run(
        {"results": results, "rows": rows, "passMark": 50, "folder": str(tmp_path)})
    with open(tmp_path / "grades.csv", newline="") as file:
        assert list(csv.reader(file)) == [["student", "score"], ["Ada", "50"], ["Ben", "0"]]
    assert summary["answers"] == {"total": 3, "right": 1, "wrong": 1, "unreadable": 1}
    assert summary["passed"] == ["Ada"]
    assert json.loads((tmp_path / "summary.json").read_text())["scores"] == {"Ada": 50, "Ben": 0}


def test_a_report_without_rows_counts_what_was_checked(load, tmp_path):
    results = [{"student": "Ada", "right": True}, None]
    summary = load("math-grader", "report").run({"results": results, "passMark": 60, "folder": str(tmp_path)})
    assert summary["scores"] == {"Ada": 100}


def test_an_agent_grades_a_sheet_with_one_command(script, tmp_path):
    done = script("math-grader", "scripts/grade.py", SHEET, "--pass-mark", "60", "--folder", tmp_path / "outputs")
    assert done.json["answers"]["total"] == 25, done.stderr
    assert len(done.json["wrong"]) == done.json["answers"]["wrong"]
    assert len(done.json["unreadable"]) == done.json["answers"]["unreadable"] and all(row["reason"] for row in done.json["unreadable"])
    assert (tmp_path / "outputs" / "grades.csv").read_text().startswith("student,score\n")


def test_python_and_node_work_out_the_same(load, parser, tmp_path):
    questions = [row["question"] for row in load("math-grader", "split_sheet").run({"file": str(SHEET)})["rows"]]
    trees = [parser.run({"question": question})["tree"] for question in [*questions, "-(1/3)^3 - 2/7", "0.1 + 0.2", "9^12 * 9^12 / 7"]]
    validator = SHEET.parent.parent / "functions" / "math_validator.mjs"
    program = f"import {{ run }} from {json.dumps(validator.as_uri())};" \
              "let text = ''; for await (const part of process.stdin) text += part;" \
              "console.log(JSON.stringify(JSON.parse(text).map((tree) => run({ tree }).expected)));"
    node = subprocess.run(["node", "--input-type=module", "-e", program], input=json.dumps(trees), capture_output=True, text=True, check=True)
    evaluate = load("math-grader", "grade", "scripts").evaluate
    assert [str(evaluate(tree)) for tree in trees] == json.loads(node.stdout)


def test_the_command_of_the_body_works_as_it_stands(told):
    agent = told("math-grader")
    (agent.uploads / "SHEET.csv").write_text(SHEET.read_text())
    agent.commands[0] += ["--folder", str(agent.outputs)]
    assert agent.run(0).json["passMark"] == 60
