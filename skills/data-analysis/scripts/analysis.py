"""What an analysis script needs again and again: clean reading, rates with intervals, charts, and one way to write down
what was found, so that summary and report cannot disagree."""
import hashlib
import json
import math
import os
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")

import matplotlib.pyplot as plt  # noqa: E402
import pandas as pd  # noqa: E402

from profile_table import separator  # noqa: E402

INK, MUTED, GRID, ACCENT = "#1f2933", "#6b7683", "#e4e8ec", "#0b6e99"
WIDTH, DPI = 7.4, 160  # inches; dots per inch
Z = 1.959964  # 95%
FEW = 10  # below that a share says little

plt.rcParams.update({
    "font.size": 9, "text.color": INK, "axes.labelcolor": MUTED, "xtick.color": MUTED, "ytick.color": INK,
    "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False, "axes.edgecolor": GRID,
    "xtick.major.size": 0, "ytick.major.size": 0, "axes.axisbelow": True,
})


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read(path, **options):
    """The table without duplicate rows. A column becomes numbers only if each of its filled cells is one."""
    options.setdefault("sep", separator(path))
    table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig", **options)
    table.columns = [name.strip() for name in table.columns]
    table = table.apply(lambda column: column.str.strip())
    found = len(table)
    table = table.drop_duplicates().reset_index(drop=True)
    for name in table.columns:
        filled = table[name] != ""
        numbers = pd.to_numeric(table[name].where(filled), errors="coerce")
        if filled.any() and numbers[filled].notna().all():
            table[name] = numbers
    table.attrs = {"file": str(path), "rows": len(table), "dropped": found - len(table), "sha256": sha256(path)}
    return table


def bands(table, number, limits):
    """[16, 60] gives under 16, 16–59, 60 and over."""
    between = [f"{low:g}–{high - 1:g}" for low, high in zip(limits, limits[1:])]
    labels = [f"under {limits[0]:g}", *between, f"{limits[-1]:g} and over"]
    found = pd.cut(table[number], [-math.inf, *limits, math.inf], right=False, labels=labels)
    return found.astype(object).where(table[number].notna(), "")


def wilson(yes, rows):
    """Both ends of the 95% interval of a share, between 0 and 1."""
    share = yes / rows
    centre, reach = share + Z * Z / (2 * rows), Z * math.sqrt(share * (1 - share) / rows + Z * Z / (4 * rows * rows))
    scale = 1 + Z * Z / rows
    return max(0.0, (centre - reach) / scale), min(1.0, (centre + reach) / scale)


def rates(table, outcome, by, positive="yes"):
    """Per group: rows, yes, share, low and high in per cent. Rows with an empty outcome or group are left out."""
    by = [by] if isinstance(by, str) else list(by)
    known = table[(table[[outcome, *by]].astype(str).replace("nan", "") != "").all(axis=1)]
    said = known[outcome].astype(str).str.lower() == str(positive).lower()
    groups = []
    for cells, yes in said.groupby([known[name] for name in by]):
        rows, count = len(yes), int(yes.sum())
        low, high = wilson(count, rows)
        groups.append({"group": ", ".join(str(cell) for cell in cells), "rows": rows, "yes": count,
                       "share": round(100 * count / rows, 1), "low": round(100 * low, 1), "high": round(100 * high, 1)})
    return groups


def difference(first, second):
    """Points between two groups of `rates`, with Newcombe's 95% interval (his method 10)."""
    one, two = first["yes"] / first["rows"], second["yes"] / second["rows"]
    (low1, high1), (low2, high2) = wilson(first["yes"], first["rows"]), wilson(second["yes"], second["rows"])
    gap = one - two
    low = gap - math.hypot(one - low1, high2 - two)
    high = gap + math.hypot(high1 - one, two - low2)
    return {"points": round(100 * gap, 1), "low": round(100 * low, 1), "high": round(100 * high, 1)}


def bars(labels, path, title, subtitle, draw):
    """A frame that leaves room for long labels; `draw(axes)` puts the bars in."""
    height = 1.3 + 0.36 * len(labels)
    left = min(0.05 + 0.0125 * max(map(len, labels)), 0.42)
    figure = plt.figure(figsize=(WIDTH, height))
    axes = figure.add_axes((left, 0.5 / height, 0.97 - left, 1 - 1.15 / height))
    figure.text(0.012, 1 - 0.14 / height, title, fontsize=12, fontweight="bold", va="top")
    figure.text(0.012, 1 - 0.4 / height, subtitle, fontsize=9, color=MUTED, va="top")
    draw(axes)
    axes.set_yticks(range(len(labels)), labels)
    axes.grid(axis="x", color=GRID)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI)
    plt.close(figure)
    return str(path)


def chart_rates(groups, path, title, subtitle=""):
    ordered = sorted(groups, key=lambda group: group["share"])

    def draw(axes):
        for place, group in enumerate(ordered):
            axes.barh(place, group["share"], height=0.62, color=ACCENT)
            axes.plot([group["low"], group["high"]], [place, place], color=INK, linewidth=1, solid_capstyle="butt")
            axes.text(103, place, f"{group['share']:.1f}%", va="center", fontsize=8.5, fontweight="bold")
            axes.text(117, place, f"{group['yes']:,} of {group['rows']:,}", va="center", fontsize=8.5, color=MUTED)
        axes.set_xlim(0, 140)
        axes.set_xticks(range(0, 101, 20), [f"{tick}%" for tick in range(0, 101, 20)])
        axes.spines["bottom"].set_bounds(0, 100)

    return bars([group["group"] for group in ordered], path, title, subtitle, draw)


def chart_numbers(pairs, path, title, subtitle="", unit=""):
    ordered = list(reversed(list(pairs)))
    most = max(abs(number) for _, number in ordered) or 1

    def draw(axes):
        for place, (_, number) in enumerate(ordered):
            axes.barh(place, number, height=0.62, color=ACCENT)
            axes.text(max(number, 0) + most * 0.015, place, f"{number:,.10g}", va="center", fontsize=8.5, fontweight="bold")
        axes.set_xlim(min(0, *(number for _, number in ordered)) * 1.05, most * 1.18)
        axes.set_xlabel(unit)

    return bars([label for label, _ in ordered], path, title, subtitle, draw)


def report(summary, charts):
    data = "; ".join(f"`{Path(table['file']).name}`, {table['rows']:,} rows ({table['dropped']:,} duplicates left out)"
                     for table in summary["data"])
    lines = [f"# {summary['question']}", "", "## Findings", ""]
    lines += [f"{number}. {finding['statement']}" for number, finding in enumerate(summary["findings"], 1)]
    for chart in charts:
        lines += ["", f"![{Path(chart).stem.replace('-', ' ')}]({chart})"]
    lines += ["", "## What this cannot say", "", *(f"- {limit}" for limit in summary["limits"])]
    lines += ["", "## Data and method", "", f"Data: {data}. Shares are per cent with Wilson's 95% interval.", ""]
    return "\n".join(lines)


def write(folder, question, tables, findings, limits, charts, context=()):
    """`tables`: what `read` gave. `context`: numbers of the text that no table holds, such as a year."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    names = [os.path.relpath(chart, folder) for chart in charts]
    summary = {
        "question": question, "data": [table.attrs for table in tables], "findings": findings, "limits": limits,
        "charts": names, "context": list(context),
    }
    with open(folder / "summary.json", "w", encoding="utf-8") as file:
        json.dump(summary, file, indent=2, ensure_ascii=False, allow_nan=False)
        file.write("\n")
    (folder / "report.md").write_text(report(summary, names), encoding="utf-8")
    return summary
