import csv
import json

import docx
import pytest
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

TEXT = """1 Scope
The town buys street lamps. Work starts on 3 May 2027.

2.1 The bidder must hold a certificate to
ISO 9001. It should name two references.

2.2 The bidder shall provide:
(a) a plan of the works;
(b) a list of staff.

2.3 Bidders may offer variants.
"""
PAGES = [
    ["Town of Aven - Tender 7", "4.1 Lamps must burn for 50,000 hours. Their poles should be", "galvanised."],
    ["Town of Aven - Tender 7", "4.2 =SUM(A1) shall not be used in price", "sheets.", "Prices are in euro."],
    ["Town of Aven - Tender 7", "4.3 Late offers will be rejected."],
]


@pytest.fixture
def tender(tmp_path):
    """One tender in three documents: text, PDF and DOCX."""
    (tmp_path / "tender.txt").write_text(TEXT)
    canvas = Canvas(str(tmp_path / "annex.pdf"), pagesize=A4)
    for number, lines in enumerate(PAGES, 1):
        for place, line in enumerate(lines):
            canvas.drawString(70, 780 - (40 if place else 0) - 14 * place, line)
        canvas.drawString(500, 30, f"Page {number} of 3")
        canvas.showPage()
    canvas.save()
    document = docx.Document()
    document.add_heading("5 Terms", 1)
    document.add_paragraph("5.1 Invoices shall be paid within 30 days.")
    table = document.add_table(rows=1, cols=2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "Warranty", "must be five years"
    document.add_paragraph("5.2 Der Bieter muss eine Bürgschaft stellen. 投标人必须提供证书。")
    document.save(tmp_path / "terms.docx")
    return [tmp_path / name for name in ("tender.txt", "annex.pdf", "terms.docx")]


@pytest.fixture
def bid(tender, script, tmp_path):
    clauses, answers, outputs = tmp_path / "clauses.json", tmp_path / "answers.json", tmp_path / "outputs"

    class Bid:
        @staticmethod
        def read():
            return script("bid-response", "scripts/read_tender.py", *tender, "--to", clauses)

        @staticmethod
        def answer(**changes):
            found = json.loads(clauses.read_text())["clauses"]
            given = {clause["id"]: {"status": "compliant", "response": f"We do: {clause['text']}", "evidence": "fact: told by the user"}
                     for clause in found}
            given.update(changes)
            answers.write_text(json.dumps({name: answer for name, answer in given.items() if answer}))

        @staticmethod
        def write():
            return script("bid-response", "scripts/write_bid.py", clauses, answers, "--to", outputs, "--title", "Lamps for Aven")

        @staticmethod
        def check():
            return script("bid-response", "scripts/check_bid.py", clauses, outputs)

    Bid.clauses, Bid.answers, Bid.outputs = clauses, answers, outputs
    Bid.read()
    return Bid


def rows(path):
    with open(path, encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


GAP = {"status": "gap", "gap": "no certificate for site B", "action": "order the audit", "owner": "quality"}


def test_requirements_of_all_three_kinds_of_documents_are_found(bid):
    done = bid.read()
    assert done.json["levels"] == {"mandatory": 11, "desirable": 2, "optional": 1} and done.json["problems"] == []
    found = [(clause["file"], clause["page"], clause["section"], clause["level"], clause["text"])
             for clause in json.loads(bid.clauses.read_text())["clauses"]]
    assert found == [
        ("tender.txt", None, "2.1", "mandatory", "2.1 The bidder must hold a certificate to ISO 9001."),
        ("tender.txt", None, "2.1", "desirable", "It should name two references."),
        ("tender.txt", None, "2.2", "mandatory", "2.2 The bidder shall provide:"),
        ("tender.txt", None, "2.2", "mandatory", "(a) a plan of the works;"),
        ("tender.txt", None, "2.2", "mandatory", "(b) a list of staff."),
        ("tender.txt", None, "2.3", "optional", "2.3 Bidders may offer variants."),
        ("annex.pdf", 1, "4.1", "mandatory", "4.1 Lamps must burn for 50,000 hours."),
        ("annex.pdf", 1, "4.1", "desirable", "Their poles should be galvanised."),
        ("annex.pdf", 2, "4.2", "mandatory", "4.2 =SUM(A1) shall not be used in price sheets."),
        ("annex.pdf", 3, "4.3", "mandatory", "4.3 Late offers will be rejected."),
        ("terms.docx", None, "5.1", "mandatory", "5.1 Invoices shall be paid within 30 days."),
        ("terms.docx", None, "5.1", "mandatory", "Warranty | must be five years"),
        ("terms.docx", None, "5.2", "mandatory", "5.2 Der Bieter muss eine Bürgschaft stellen."),
        ("terms.docx", None, "5.2", "mandatory", "投标人必须提供证书。"),
    ]


def test_a_full_answer_becomes_draft_matrix_and_an_exact_gap_list(bid):
    bid.answer(C001=GAP, C004={"status": "partial", "response": "A draft of the plan.", "evidence": "fact: plan of 2025",
                               "gap": "dates", "action": "plan the dates"})
    assert bid.write().json["statuses"] == {"compliant": 12, "partial": 1, "gap": 1, "not-applicable": 0, "open": 0}
    done = bid.check()
    assert done.json == {"ok": True, "problems": [], "clauses": 14, "mandatory_gaps": ["C001", "C004"]}, done.json
    gaps = (bid.outputs / "gaps.csv").read_text(encoding="utf-8-sig").splitlines()
    assert gaps[0] == "id,file,page,section,level,requirement,status,gap,action,owner"
    assert gaps[1] == ("C001,tender.txt,,2.1,mandatory,2.1 The bidder must hold a certificate to ISO 9001.,gap,"
                       "no certificate for site B,order the audit,quality")
    assert rows(bid.outputs / "clause-matrix.csv")[3]["requirement"] == "2.2 The bidder shall provide: (a) a plan of the works;"
    draft = docx.Document(bid.outputs / "draft.docx")
    texts = [paragraph.text for paragraph in draft.paragraphs]
    assert texts[0] == "Lamps for Aven" and "Gap: no certificate for site B" in texts
    assert draft.tables[0].rows[1].cells[3].text == "1" and draft.tables[1].rows[1].cells[0].text == "C001"


def test_what_was_not_answered_is_open_in_all_products(bid):
    bid.answer(C010=None)
    assert bid.write().json["gaps"] == 1
    assert bid.check().json["problems"] == ["C010 (mandatory) has no answer"]
    assert rows(bid.outputs / "gaps.csv")[0]["status"] == "open"


@pytest.mark.parametrize("answer, problem", [
    ({"status": "compliant", "response": "Yes."}, "C002 is compliant and lacks evidence"),
    ({"status": "gap", "gap": "none yet"}, "C002 is gap and lacks action"),
    ({"status": "compliant", "response": "Yes.", "evidence": "our long experience"}, "C002: evidence is 'our long experience'"),
    ({"status": "compliant", "response": "Yes.", "evidence": "/mnt/user-data/uploads/no-such-file.pdf, page 2"},
     "C002: the evidence /mnt/user-data/uploads/no-such-file.pdf is not there"),
])
def test_an_answer_without_what_it_needs_is_found(bid, answer, problem):
    bid.answer(C002=answer)
    bid.write()
    problems = bid.check().json["problems"]
    assert len(problems) == 1 and problems[0].startswith(problem)


def test_evidence_that_is_there_holds(bid, load, tmp_path, monkeypatch):
    (tmp_path / "iso.pdf").write_bytes(b"%PDF")
    bid.answer(C001={"status": "compliant", "response": "Yes.", "evidence": f"{tmp_path}/iso.pdf, page 2"})
    bid.write()
    check = load("bid-response", "check_bid", "scripts")
    monkeypatch.setattr(check, "VIRTUAL", f"{tmp_path}/")
    assert check.run({"clauses": str(bid.clauses), "folder": str(bid.outputs)})["ok"]


def test_clauses_that_were_lost_changed_or_invented_are_found(bid):
    record = json.loads(bid.clauses.read_text())
    record["clauses"][9]["text"] = "4.3 Late offers will be welcome."
    del record["clauses"][0]
    record["clauses"].append({**record["clauses"][0], "id": "X001", "text": "It should name nine references."})
    bid.clauses.write_text(json.dumps(record))
    bid.answer()
    bid.write()
    problems = "\n".join(bid.check().json["problems"])
    assert "C010: annex.pdf does not say '4.3 Late offers will be welcome.'" in problems
    assert "tender.txt asks '2.1 The bidder must hold a certificate to ISO 9001.', which is no clause" in problems
    assert "X001: tender.txt does not say" in problems


def test_a_clause_that_was_added_by_a_reader_is_taken(bid):
    record = json.loads(bid.clauses.read_text())
    record["clauses"].append({"id": "X001", "file": "annex.pdf", "page": 2, "section": "4.2", "level": "mandatory", "text": "Prices are in euro."})
    bid.clauses.write_text(json.dumps(record))
    bid.answer()
    bid.write()
    assert bid.check().json["ok"]


def test_a_tender_that_has_changed_since_is_found(bid, tender):
    bid.answer()
    bid.write()
    tender[0].write_text(TEXT.replace("ISO 9001", "ISO 14001"))
    assert bid.check().json["problems"] == ["tender.txt has changed or is gone since it was read: run read_tender.py again"]


def test_products_that_were_edited_are_found(bid):
    bid.answer(C001=GAP)
    bid.write()
    gaps, matrix = bid.outputs / "gaps.csv", bid.outputs / "clause-matrix.csv"
    matrix.write_text(matrix.read_text(encoding="utf-8-sig").replace("30 days", "90 days"))
    gaps.write_text(gaps.read_text(encoding="utf-8-sig").replace("id,file", "no,file"))
    draft = docx.Document(bid.outputs / "draft.docx")
    for paragraph in draft.paragraphs:
        if paragraph.text.startswith("C003"):
            paragraph.clear()
    draft.save(bid.outputs / "draft.docx")
    problems = "\n".join(bid.check().json["problems"])
    assert "gaps.csv: the header is no,file," in problems and "clause-matrix.csv: C011 is not what" in problems
    assert "draft.docx lacks C003" in problems and "C001 is gap and missing in gaps.csv" in problems


def test_a_formula_of_a_stranger_is_text_in_the_matrix(load):
    safe = load("bid-response", "tender", "scripts").safe
    assert safe("=1+1") == "'=1+1" and safe("@x") == "'@x" and safe("4.2 =SUM(A1)") == "4.2 =SUM(A1)" and safe(None) == ""


@pytest.mark.parametrize("answers, word", [
    ({"C999": {"status": "gap"}}, "which is no clause"),
    ({"C001": {"status": "fine"}}, "allowed are compliant, partial, gap, not-applicable"),
    ({"C001": "yes"}, "allowed are compliant"),
])
def test_a_bad_answer_is_refused(bid, answers, word):
    bid.answers.write_text(json.dumps(answers))
    done = bid.write()
    assert done.returncode == 1 and word in json.loads(done.stderr.splitlines()[-1])["message"]


@pytest.mark.parametrize("name, content, word", [
    ("x.pdf", b"no pdf", "is no .pdf file"), ("x.docx", b"PK", "is no .docx file"), ("x.xls", b"", "allowed are .txt"),
    ("x.txt", b"\xff\xfe\xfa", "is no .txt file"),
])
def test_a_document_that_cannot_be_read_is_named(script, tmp_path, name, content, word):
    (tmp_path / name).write_bytes(content)
    done = script("bid-response", "scripts/read_tender.py", tmp_path / name, "--to", tmp_path / "c.json")
    assert done.returncode == 1 and word in json.loads(done.stderr.splitlines()[-1])["message"]


def test_a_page_without_text_is_told(script, tmp_path):
    canvas = Canvas(str(tmp_path / "scan.pdf"))
    canvas.showPage()
    canvas.save()
    problems = script("bid-response", "scripts/read_tender.py", tmp_path / "scan.pdf", "--to", tmp_path / "c.json").json["problems"]
    assert problems[0] == "scan.pdf, page 1 has no text: a scan?"


def test_the_commands_of_the_body_work_as_they_stand(told, tender):
    agent = told("bid-response")
    (agent.uploads / "TENDER.pdf").write_bytes(tender[1].read_bytes())
    (agent.uploads / "ANNEX.docx").write_bytes(tender[2].read_bytes())
    assert agent.run(0).json["clauses"] == 8
    clauses = json.loads((agent.workspace / "clauses.json").read_text())["clauses"]
    (agent.workspace / "answers.json").write_text(json.dumps({clause["id"]: GAP for clause in clauses}))
    assert agent.run(1).json["gaps"] == 8 and agent.run(2).json["ok"]
