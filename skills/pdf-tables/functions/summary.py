"""What was found in each file in, an index of all tables out."""
import csv
import json
import os

COLUMNS = ["file", "page", "caption", "rows", "columns", "csv"]


def run(input):
    folder = input.get("folder", "/mnt/user-data/outputs")
    done = [found for found in input["files"] if found is not None]
    tables = [{"file": found["file"], **table} for found in done for table in found["tables"]]
    totals = {
        "files": len(done),
        "failed": len(input["files"]) - len(done),
        "tables": len(tables),
        "rows": sum(table["rows"] for table in tables),
    }
    listed, index = os.path.join(folder, "tables.csv"), os.path.join(folder, "tables.json")
    with open(listed, "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(tables)
    with open(index, "w", encoding="utf-8") as file:
        json.dump({**totals, "found": tables}, file, indent=2, ensure_ascii=False)
        file.write("\n")
    return {**totals, "index": [listed, index]}
