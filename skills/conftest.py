"""Skills are folders of programs, no packages: `load` gives a test the function that the platform would call, `script`
starts a program as an agent would, and `told` gives the very commands of a skill's body."""
import importlib.util
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

SKILLS = Path(__file__).parent


@pytest.fixture
def load(monkeypatch):
    def load(skill, function, folder="functions"):
        path = SKILLS / skill / folder / f"{function}.py"
        monkeypatch.syspath_prepend(path.parent)
        spec = importlib.util.spec_from_file_location(f"{skill}.{function}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    known = set(sys.modules)
    yield load
    for name in set(sys.modules) - known:  # two skills may call a helper the same
        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(SKILLS):
            del sys.modules[name]


@pytest.fixture
def script(tmp_path):
    """script(skill, file, argument...) starts it in an empty folder; `.json` is what it printed, if that is JSON."""

    return lambda skill, file, *arguments: start(tmp_path, SKILLS / skill / file, *map(str, arguments))


def start(folder, *command):
    done = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=120)
    try:
        done.json = json.loads(done.stdout)
    except ValueError:
        done.json = None
    return done


class Told:
    """The commands in a SKILL.md, with /mnt/skills and /mnt/user-data where the test has them."""

    def __init__(self, folder, skill):
        self.folder = folder
        self.uploads, self.workspace, self.outputs = (folder / name for name in ("uploads", "workspace", "outputs"))
        for part in (self.uploads, self.workspace, self.outputs):
            part.mkdir(exist_ok=True)
        text = (SKILLS / skill / "SKILL.md").read_text().replace("\\\n", " ")
        self.commands = [shlex.split(self.here(line)) for line in re.findall(r"^ {4,}python3 (/mnt/skills/.*)$", text, re.M)]

    def here(self, text):
        return text.replace("/mnt/skills/", f"{SKILLS}/").replace("/mnt/user-data/", f"{self.folder}/")

    def run(self, number, **words):
        """Runs one of them; `words` stand for the words in capitals."""
        return start(self.workspace, *(words.get(part, part) for part in self.commands[number]))


@pytest.fixture
def told(tmp_path):
    return lambda skill: Told(tmp_path, skill)


@pytest.fixture
def refused(capsys):
    """Calls a function that must end by itself, and returns the code and message of its structured error."""

    def refused(call, *arguments):
        with pytest.raises(SystemExit) as end:
            call(*arguments)
        assert end.value.code == 1
        error = json.loads(capsys.readouterr().err.splitlines()[-1])
        return error["code"], error["message"]

    return refused
