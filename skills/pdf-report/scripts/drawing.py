"""The report's charts. Numbers and labels are written out, so that a reader needs no ruler."""
import os
import textwrap

os.environ.setdefault("MPLBACKEND", "Agg")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import MaxNLocator  # noqa: E402

INK, MUTED, GRID = "#1f2933", "#6b7683", "#e4e8ec"
COLOURS = ("#0b6e99", "#e08a1e", "#5a8f29", "#8d5aa8", "#b23a48", "#6b7683")
WIDTH = 6.7  # inches, the text width
CLOSE = 24  # more bars than this and their numbers would run into each other
FLAT_LABEL, ROW = 26, 84  # letters of a line of a label beside its bar; letters below all columns together

plt.rcParams.update({
    "font.size": 8.5, "text.color": INK, "axes.labelcolor": MUTED, "xtick.color": INK, "ytick.color": INK,
    "axes.edgecolor": GRID, "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "xtick.major.size": 0, "ytick.major.size": 0,
})


def shown(value, _place=None):
    return f"{value:,.10g}"


def folded(labels, width):
    return [textwrap.fill(str(label), max(width, 4)) for label in labels]


def bars(axes, chart, flat):
    labels, series = chart["labels"], chart["series"]
    thick = 0.8 / len(series)
    draw = axes.barh if flat else axes.bar
    for number, one in enumerate(series):
        places = [place + (number - (len(series) - 1) / 2) * thick for place in range(len(labels))]
        drawn = draw(places, one["values"], thick * 0.92, color=COLOURS[number], label=one.get("name", ""))
        if len(labels) * len(series) <= CLOSE:
            axes.bar_label(drawn, [shown(value) for value in one["values"]], padding=2, fontsize=7.5)
    if flat:
        axes.set_yticks(range(len(labels)), folded(labels, FLAT_LABEL))
        axes.invert_yaxis()
        axes.grid(axis="x", color=GRID)
        axes.margins(x=0.15)
    else:
        axes.set_xticks(range(len(labels)), folded(labels, ROW // len(labels)))
        axes.grid(axis="y", color=GRID)
        axes.margins(y=0.12)


def fit_below(labels):
    """Whether no word of a label is longer than its column is wide."""
    return all(len(word) <= ROW // len(labels) for label in labels for word in str(label).split())


def lines(axes, chart):
    labels = chart["labels"]
    for number, one in enumerate(chart["series"]):
        axes.plot(range(len(labels)), one["values"], color=COLOURS[number], label=one.get("name", ""), linewidth=1.8, marker="o",
                  markersize=3.5)
    step = max(1, len(labels) // 12)
    axes.set_xticks(range(0, len(labels), step), folded(labels[::step], ROW // len(labels[::step])))
    axes.grid(axis="y", color=GRID)
    axes.margins(y=0.12)


def draw(chart, path):
    """Draws a chart into a PNG file. Columns whose labels do not fit below them lie down."""
    flat = chart["kind"] == "bar" or (chart["kind"] == "column" and not fit_below(chart["labels"]))
    count = len(chart["labels"]) * len(chart["series"])
    height = min(8.0, 1.1 + 0.3 * count) if flat else 3.0
    figure, axes = plt.subplots(figsize=(WIDTH, height), layout="constrained")
    if chart["kind"] == "line":
        lines(axes, chart)
    else:
        bars(axes, chart, flat)
    numbers = axes.xaxis if flat else axes.yaxis
    numbers.set_major_formatter(shown)
    numbers.set_major_locator(MaxNLocator(5 if flat else 6))
    numbers.set_label_text(chart.get("unit", ""))
    if len(chart["series"]) > 1:
        figure.legend(loc="outside upper left", ncols=len(chart["series"]), frameon=False)
    figure.savefig(path, dpi=200)
    plt.close(figure)
