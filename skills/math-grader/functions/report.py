"""Results of a class in, grades.csv and summary.json out."""
import csv
import json
import os

OUTPUTS = "/mnt/user-data/outputs"


def percent(part, whole):
    """Whole per cent, halves up."""
    return (200 * part + whole) // (2 * whole)


def count(results, rows):
    """Per student: answers in all, and right ones."""
    total, right = {}, {}
    for row in rows or results:
        total[row["student"]] = total.get(row["student"], 0) + 1
    for result in results:
        right[result["student"]] = right.get(result["student"], 0) + result["right"]
    return total, right


def run(input):
    results = [result for result in input["results"] if result is not None]
    total, right = count(results, input.get("rows"))
    scores = {student: percent(right.get(student, 0), total[student]) for student in sorted(total)}
    folder = input.get("folder", OUTPUTS)
    grades, summary_file = os.path.join(folder, "grades.csv"), os.path.join(folder, "summary.json")
    with open(grades, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["student", "score"])
        table.writerows(scores.items())
    correct = sum(right.values())
    summary = {
        "students": len(scores),
        "passMark": input["passMark"],
        "passed": sorted(student for student, score in scores.items() if score >= input["passMark"]),
        "answers": {
            "total": sum(total.values()),
            "right": correct,
            "wrong": len(results) - correct,
            "unreadable": sum(total.values()) - len(results),
        },
        "scores": scores,
    }
    with open(summary_file, "w", encoding="utf-8") as file:
        json.dump(summary, file, indent=2, ensure_ascii=False)
        file.write("\n")
    return {**summary, "files": [grades, summary_file]}
