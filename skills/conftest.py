"""Skills are folders of programs, no packages: `load` gives a test the function that the platform would call."""
import importlib.util
import json
from pathlib import Path

import pytest

SKILLS = Path(__file__).parent


@pytest.fixture
def load():
    def load(skill, function):
        path = SKILLS / skill / "functions" / f"{function}.py"
        spec = importlib.util.spec_from_file_location(f"{skill}.{function}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


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
