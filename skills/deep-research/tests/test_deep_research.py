import json
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent / "references" / "report.md"
TEXTS = {  # id: (address, text, claims)
    "s1": ("https://example.org/trial",
           "Orchard frost trial. Open blossom: 10% was lost after 30 minutes at −2.2 °C.\nSome dies at about -2 °C and most of it\n"
           "at -4 °C. Closed buds stand more. Sprinkling did no harm.",
           ["Some dies at about -2 °C and most of it at -4 °C.", "10% was lost after 30 minutes at -2.2 °C", "Sprinkling did no harm."]),
    "s2": ("https://example.com/notes", "Growers’ notes. The trial’s figures hold; closed buds stand more, wet blossom suffers sooner.",
           ["The trial's figures hold; closed buds stand more, wet blossom suffers sooner"]),
    "s3": ("https://example.net/advice", "We advise against sprinkling above 0 °C.", ["advise against sprinkling above 0 °C"]),
}


@pytest.fixture
def research(script, tmp_path):
    """The example's report with its sources, saved one by one as delegates would."""
    folder, report = tmp_path / "research", tmp_path / "report.md"
    for name, (url, text, quotes) in TEXTS.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "text.md").write_text(text + "\n\n" + "More of the page. " * 20)
        (folder / name / "claims.json").write_text(json.dumps([{"claim": "It says so.", "quote": quote} for quote in quotes]))
        assert script("deep-research", "scripts/save_source.py", folder / name, "--url", url, "--title", name).returncode == 0
    report.write_text(EXAMPLE.read_text())

    def check(*more):
        return script("deep-research", "scripts/check_citations.py", report, folder, *more)

    check.folder, check.report = folder, report
    return check


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_example_holds(research):
    done = research()
    assert done.json["ok"] and done.returncode == 0, done.json["problems"]
    assert done.json["sources"][0] == "- [s1] s1, https://example.org/trial"


@pytest.mark.parametrize("old, new, problem", [
    (" [s1]. Closed", ". Closed", "line 5: no source for 'Open blossom dies in part"),
    ("suffers sooner [s2]", "suffers sooner", 'line 9: no source for "The growers\' association'),
    ("suffers sooner [s2]", "suffers sooner [s9]", "[s9] is no source; there are s1, s2, s3"),
    ("10% of open", "20% of open", "line 9: no quote of s1 holds the number 20"),
    ("\n## Open", "\nEveryone agrees.\n\n## Open", "line 14: no source for 'Everyone agrees.'"),
    ("above 0 °C [s3]", "above 0 °C [s1]", "s3 is cited nowhere"),
    ("- [s3] Growers' advice", "- Growers' advice", "s3 is not listed"),
])
def test_a_report_that_says_more_than_its_sources_is_found(research, old, new, problem):
    edit(research.report, old, new)
    done = research()
    assert done.returncode == 1 and any(problem in found for found in done.json["problems"]), done.json["problems"]


def test_a_source_that_was_never_fetched_is_found(research):
    (research.folder / "s2" / "source.json").unlink()
    (research.folder / "s3" / "text.md").unlink()
    problems = "\n".join(research().json["problems"])
    assert "s2: source.json is missing" in problems and "s3: text.md is missing" in problems


def test_a_text_that_was_changed_to_hold_a_quote_is_found(research):
    edit(research.folder / "s3" / "text.md", "above 0 °C", "above 5 °C")
    problems = "\n".join(research().json["problems"])
    assert "s3: text.md is not what was fetched from https://example.net/advice" in problems
    assert "s3: its text does not hold the quote" in problems


def test_a_quote_that_was_bent_is_found(research):
    edit(research.folder / "s1" / "claims.json", "did no harm", "did harm")
    assert research().json["problems"] == ["s1: its text does not hold the quote 'Sprinkling did harm.'"]


def test_too_few_hosts_are_told(research):
    assert research("--min-sources", "4").json["problems"] == ["3 different hosts, wanted are 4"]


def test_code_tables_and_headings_are_no_claims_but_rows_are(research):
    edit(research.report, "\n## Open", "\n```\nx = 7\n```\n\n| loss | at |\n|---|---|\n| 10 | 30 [s1] |\n| 11 | 30 |\n\n## Open")
    assert research().json["problems"] == ["line 21: no source for '| 11 | 30 |'"]


def test_claims_that_are_no_claims_are_named(research):
    (research.folder / "s1" / "claims.json").write_text('{"claim": 1}')
    (research.folder / "s2" / "claims.json").write_text('[1, {"claim": "x"}]')
    problems = "\n".join(research().json["problems"])
    assert "s1: claims.json is missing or cannot be read: it must be a list" in problems
    assert "s2: claim 1 needs claim and quote" in problems and "s2: claim 2 needs" in problems


@pytest.mark.parametrize("paragraph, found", [
    ("One [s1]. Two [s2]. Three.", ["One [s1].", "Two [s2].", "Three."]),
    ("At 2.5 m, as Dr. Dahl et al. Found [s1]. [s2] Next", ["At 2.5 m, as Dr. Dahl et al. Found [s1]. [s2]", "Next"]),
    ("Is it? Yes! (See there)", ["Is it?", "Yes!", "(See there)"]),
])
def test_a_paragraph_is_cut_into_sentences(load, paragraph, found):
    assert list(load("deep-research", "check_citations", "scripts").sentences(paragraph)) == found


@pytest.mark.parametrize("name, url, text, word", [
    ("s1", "https://example.org", "Not found", "at least 200"),
    ("s1", "ftp://example.org", "x" * 300, "no address"),
    ("S 1", "https://example.org", "x" * 300, "allowed are a-z"),
    ("s1", "https://example.org", None, "save the fetched text first"),
])
def test_what_is_no_source_is_not_saved(script, tmp_path, name, url, text, word):
    (tmp_path / name).mkdir()
    if text is not None:
        (tmp_path / name / "text.md").write_text(text)
    done = script("deep-research", "scripts/save_source.py", tmp_path / name, "--url", url, "--title", "t")
    error = json.loads(done.stderr.splitlines()[-1])
    assert done.returncode == 1 and error["code"] == "INPUT_VALIDATION_ERROR" and word in error["message"]
    assert not (tmp_path / name / "source.json").exists()


def test_the_commands_of_the_body_work_as_they_stand(told):
    agent = told("deep-research")
    for name, (url, text, quotes) in TEXTS.items():
        folder = agent.workspace / "research" / name
        folder.mkdir(parents=True)
        (folder / "text.md").write_text(text + "\n" * 200)
        (folder / "claims.json").write_text(json.dumps([{"claim": "It says so.", "quote": quote} for quote in quotes]))
        agent.commands[0][1] = str(folder)
        assert agent.run(0, URL=url, TITLE=name, DATE="2026-10-31").returncode == 0
    (agent.outputs / "report.md").write_text(EXAMPLE.read_text())
    assert agent.run(1).json["ok"] and "s1, 2026-10-31" in agent.run(1).json["sources"][0]
