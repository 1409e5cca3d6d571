#!/usr/bin/env python3
"""Writes the scenario of `make demo-agent`: what a model could have answered to deploy/examples/titanic-analysis.yaml.

    scenarios/titanic.py >SCENARIO.json

The agent's program is skills/data-analysis/references/example.py with the names of the passenger list.
"""
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
UPLOAD = "/mnt/user-data/uploads/titanic.csv"
OUTPUTS = "/mnt/user-data/outputs"
SKILL = "/mnt/skills/data-analysis"
CHARTS = ("survival-by-class-and-sex.png", "survival-by-age.png")
NAMES = {
    "/mnt/user-data/uploads/passengers.csv": UPLOAD,
    '["class", "sex"]': '["passengerClass", "sex"]',
}


def program():
    text = (ROOT / "skills/data-analysis/references/example.py").read_text()
    for old, new in NAMES.items():
        if old not in text:
            raise SystemExit(f"the skill's example does not have {old!r} any more")
        text = text.replace(old, new)
    return text


def call(tool, /, **arguments):
    return {"name": tool, "arguments": arguments}


def bash(description, command):
    return call("bash", description=description, command=command)


def turns(user, *answers):
    """One rule for each turn of the agent whose task contains `user`."""
    for turn, (text, calls) in enumerate(answers):
        when = {"system": "You are an agent", "user": user, "turn": turn}
        size = len(text) + len(json.dumps(calls))
        yield {"when": when, "answer": {"text": text, "toolCalls": calls, "usage": [2000 + 400 * turn, size // 4], "pauseMs": 40}}


def lead():
    check = call(
        "task", description="Check the figures", subagent_type="checker",
        prompt=f"Check the delivery in {OUTPUTS} with {SKILL}/scripts/check_analysis.py and report what it says.",
        acceptance_criteria=[f"file:{OUTPUTS}/summary.json json-valid", f"rerun:python3 {SKILL}/scripts/check_analysis.py {OUTPUTS}"],
    )
    files = [f"{OUTPUTS}/{name}" for name in (*CHARTS, "summary.json", "report.md")]
    return turns(
        "Analyse which factors",
        ("I begin with the skill that fits.", [call("skill", name="data-analysis"), call("ls", path="/mnt/user-data/uploads")]),
        ("First a look at every column.", [bash("profile the table", f"python3 {SKILL}/scripts/profile_table.py {UPLOAD}"),
                                            call("read_file", path=f"{SKILL}/references/example.py")]),
        ("Now the program.", [call("write_todos", todos=[
            {"content": "write and run the analysis", "status": "in_progress"},
            {"content": "have the figures checked", "status": "pending"},
            {"content": "deliver", "status": "pending"}]),
            call("write_file", description="the analysis", path="/mnt/user-data/workspace/analyse.py", content=program())]),
        ("", [bash("run the analysis", "cd /mnt/user-data/workspace && python3 analyse.py")]),
        ("Another agent checks what I made.", [check]),
        ("", [call("present_files", description="deliver", paths=files), call("read_file", path=f"{OUTPUTS}/report.md")]),
        ("Sex and class decided together: women of the first class survived far more often than men of the third. Age mattered "
         "less. The figures, their intervals and what the table cannot tell are in report.md; summary.json holds the numbers "
         "behind every sentence, and the check of the skill found nothing wrong with them.", []),
    )


def checker():
    return turns(
        "Check the delivery",
        ("", [bash("check the figures", f"python3 {SKILL}/scripts/check_analysis.py {OUTPUTS}")]),
        ("The check says ok: every number of report.md stands in summary.json.", []),
    )


if __name__ == "__main__":
    probe = {"answer": {"text": "ready", "toolCalls": [], "usage": [1, 1]}}
    print(json.dumps({"rules": [*lead(), *checker(), probe]}, indent=1))
