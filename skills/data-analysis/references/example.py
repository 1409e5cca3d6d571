"""A whole analysis: which passengers survived? Change names and paths, keep the order."""
import sys
from pathlib import Path

sys.path.insert(0, "/mnt/skills/data-analysis/scripts")
import analysis  # noqa: E402

SOURCE, OUTPUTS = sys.argv[1:] or ("/mnt/user-data/uploads/passengers.csv", "/mnt/user-data/outputs")
OUTPUTS = Path(OUTPUTS)

table = analysis.read(SOURCE)
table["age_band"] = analysis.bands(table, "age", [16, 60])

by_sex = {group["group"]: group for group in analysis.rates(table, "survived", "sex")}
by_both = analysis.rates(table, "survived", ["class", "sex"])
by_age = analysis.rates(table, "survived", "age_band")
women, men = by_sex["female"], by_sex["male"]
gap = analysis.difference(women, men)
best, worst = max(by_both, key=lambda group: group["share"]), min(by_both, key=lambda group: group["share"])
without_age = int(table["age"].isna().sum())
for group in [women, men, *by_both, *by_age]:
    print(group)
print("women against men:", gap)

findings = [
    {"statement": f"{women['share']}% of the women survived and {men['share']}% of the men: {gap['points']} points between them "
                  f"(95% interval {gap['low']} to {gap['high']}).",
     "figures": {"women": women, "men": men, "gap": gap}},
    {"statement": f"Class and sex together say more than either: from {worst['share']}% ({worst['group']}) to {best['share']}% "
                  f"({best['group']}).",
     "figures": {"groups": by_both}},
    {"statement": "By age: " + ", ".join(f"{group['group']} {group['share']}%" for group in by_age) + ".",
     "figures": {"groups": by_age, "limits": [16, 59, 60]}},
]
charts = [
    analysis.chart_rates(by_both, OUTPUTS / "survival-by-class-and-sex.png",
                         f"From {worst['share']}% to {best['share']}% survived", "by class and sex; lines are 95% intervals"),
    analysis.chart_rates(by_age, OUTPUTS / "survival-by-age.png", "Survival by age",
                         f"{without_age:,} passengers without an age are left out"),
]
few = ", ".join(group["group"] for group in [*by_both, *by_age] if group["rows"] < analysis.FEW)
limits = [
    f"The age of {without_age:,} passengers is not known; they are left out where age matters.",
    "The table says who survived, not why: cabins, boats and crew are not in it.",
]
if few:
    limits.append(f"Fewer than {analysis.FEW} passengers are in: {few}. Their share says little.")
analysis.write(OUTPUTS, "Which passengers survived?", [table], findings, limits, charts, context=[without_age])
