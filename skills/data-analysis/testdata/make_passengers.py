"""Makes passengers.csv: invented people, and rates that are known because they are put in.

The groups and their sizes only resemble those of the Titanic; no line is taken from a real passenger list.
"""
import csv
import random
from pathlib import Path

GROUPS = {  # (class, sex): (passengers, survivors)
    ("1st", "female"): (40, 38), ("1st", "male"): (50, 17),
    ("2nd", "female"): (30, 26), ("2nd", "male"): (50, 8),
    ("3rd", "female"): (60, 30), ("3rd", "male"): (120, 18),
}
WITHOUT_AGE, DUPLICATES = 60, 3
SURNAMES = ("Ashby", "Brandt", "Corell", "Dahl", "Ekman", "Farrow", "Grieve", "Holm", "Ibsen", "Jarvis")
FIRST = {"female": ("Ada", "Berit", "Clara", "Edith", "Greta"), "male": ("Arne", "Bruno", "Carl", "Emil", "Georg")}
TARGET = Path(__file__).parent / "passengers.csv"


def rows():
    dice = random.Random(1912)
    people = [{"class": place, "sex": sex, "survived": "yes" if number < survivors else "no"}
              for (place, sex), (count, survivors) in GROUPS.items() for number in range(count)]
    dice.shuffle(people)
    for number, person in enumerate(people):
        person["name"] = f"{dice.choice(SURNAMES)}, {dice.choice(FIRST[person['sex']])} {number + 1}"
        person["age"] = "" if number < WITHOUT_AGE else str(min(80, max(1, round(dice.gauss(31, 14)))))
    dice.shuffle(people)
    return [*people, *people[:DUPLICATES]]


if __name__ == "__main__":
    with open(TARGET, "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, ["name", "survived", "sex", "age", "class"], lineterminator="\n")
        table.writeheader()
        table.writerows(rows())
