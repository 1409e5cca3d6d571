"""Skills are folders of programs, no packages: `load` gives a test the function that the platform would call, `script`
starts a program as an agent would."""
import importlib.util
import json
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

    def script(skill, file, *arguments):
        command = [sys.executable, SKILLS / skill / file, *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        try:
            done.json = json.loads(done.stdout)
        except ValueError:
            done.json = None
        return done

    return script


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
