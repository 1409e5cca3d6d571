"""What every skill must declare, whatever it does."""
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

FRONTMATTER = {"name", "description", "license", "allowed-tools", "required-secrets", "secrets-autonomous", "metadata",
               "compatibility", "version", "author", "triggers", "dependencies"}
FUNCTION = {"name", "description", "file", "max_memory_mb", "timeout_sec", "max_file_mb", "max_open_files", "image",
            "files", "input_schema", "output_schema", "warm"}
FOLDERS = sorted(path.parent for path in Path(__file__).parent.glob("*/SKILL.md"))


def functions(folder):
    return yaml.safe_load((folder / "functions.yaml").read_text())["functions"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_frontmatter_has_known_keys_and_the_folders_name(folder):
    _, head, body = (folder / "SKILL.md").read_text().split("---\n", 2)
    keys = yaml.safe_load(head)
    assert set(keys) <= FRONTMATTER and body.strip()
    assert keys["name"] == folder.name and re.fullmatch(r"[a-z0-9-]{1,64}", keys["name"])
    assert 0 < len(keys["description"]) <= 1024


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_functions_and_files_belong_together(folder):
    declared = functions(folder)
    assert all({"name", "max_memory_mb", "timeout_sec"} <= set(function) <= FUNCTION for function in declared)
    assert all(function.get("files", "none") in {"none", "read", "write"} for function in declared)
    assert sorted(function["name"] for function in declared) == sorted(
        path.stem for path in (folder / "functions").iterdir() if path.is_file())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_schemas_are_schemas(folder):
    for function in functions(folder):
        for schema in ("input_schema", "output_schema"):
            jsonschema.Draft202012Validator.check_schema(function[schema])
