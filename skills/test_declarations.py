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
TOOLS = {"bash", "ls", "read_file", "write_file", "str_replace", "glob", "grep", "view_image", "present_files", "task",
         "skill", "write_todos", "web_search", "web_fetch"}
ROOT = Path(__file__).parent
PACKAGES = set(re.findall(r"^([a-z0-9-]+)==", (ROOT.parent / "images/python/requirements.txt").read_text(), re.M))
FOLDERS = sorted(path.parent for path in ROOT.glob("*/SKILL.md"))


def functions(folder):
    declared = folder / "functions.yaml"
    return yaml.safe_load(declared.read_text())["functions"] if declared.exists() else []


def head_and_body(folder):
    _, head, body = (folder / "SKILL.md").read_text().split("---\n", 2)
    return yaml.safe_load(head), body


def programs(folder):
    return {path for part in ("functions", "scripts", "references") for path in (folder / part).glob("*") if path.is_file()}


every_skill = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


@every_skill
def test_the_frontmatter_has_known_keys_and_the_folders_name(folder):
    keys, body = head_and_body(folder)
    assert set(keys) <= FRONTMATTER and body.strip()
    assert keys["name"] == folder.name and re.fullmatch(r"[a-z0-9-]{1,64}", keys["name"])
    assert 0 < len(keys["description"]) <= 1024 and not set("<>") & set(keys["description"])


@every_skill
def test_an_agent_is_told_when_to_use_it_and_finds_it_by_words(folder):
    keys, _ = head_and_body(folder)
    assert "Use when" in keys["description"]
    assert len(keys["triggers"]) >= 2 and all(isinstance(word, str) and word == word.lower() for word in keys["triggers"])
    assert set(keys.get("allowed-tools", [])) <= TOOLS


@every_skill
def test_what_it_depends_on_is_in_the_python_image(folder):
    keys, _ = head_and_body(folder)
    assert set(keys.get("dependencies", [])) <= PACKAGES
    imported = "\n".join(path.read_text() for path in programs(folder) if path.suffix == ".py")
    for module, package in {"PIL": "pillow", "docx": "python-docx", "matplotlib": "matplotlib", "pandas": "pandas", "pptx": "python-pptx",
                            "pdfplumber": "pdfplumber", "pypdfium2": "pypdfium2", "reportlab": "reportlab"}.items():
        used = re.search(rf"^\s*(?:import|from) {module}\b", imported, re.M) is not None
        assert used == (package in keys.get("dependencies", [])), package


@every_skill
def test_a_body_is_short_and_its_paths_lead_somewhere(folder):
    _, body = head_and_body(folder)
    assert len(body) <= 6_000, "an agent reads the whole of it: put details into references"
    named = re.findall(r"/mnt/skills/([a-z0-9-]+)/([\w./-]*\w)", body)
    assert all((ROOT / skill / path).is_file() for skill, path in named), named
    assert all(re.match(r"/mnt/(?:user-data(?:/(?:uploads|workspace|outputs))?|skills)(?:/|$)", path)
               for path in re.findall(r"(?<![\w.])/(?:mnt|home|tmp|root)[\w./-]*", body))


@every_skill
def test_every_script_and_reference_is_told_of(folder):
    _, body = head_and_body(folder)
    scripts = [path for path in programs(folder) if path.parent.name != "functions"]
    others = "\n".join(path.read_text() for path in scripts)
    for path in scripts:
        assert path.name in body or re.search(rf"\b(?:import|from) {path.stem}\b", body + others), path


@every_skill
def test_functions_and_files_belong_together(folder):
    declared = functions(folder)
    assert all({"name", "max_memory_mb", "timeout_sec"} <= set(function) <= FUNCTION for function in declared)
    assert all(function.get("files", "none") in {"none", "read", "write"} for function in declared)
    assert all((folder / function["file"]).is_file() for function in declared if "file" in function)
    assert sorted(function["name"] for function in declared if "file" not in function) == sorted(
        path.stem for path in (folder / "functions").glob("*") if path.is_file())


@every_skill
def test_schemas_are_schemas(folder):
    for function in functions(folder):
        for schema in ("input_schema", "output_schema"):
            jsonschema.Draft202012Validator.check_schema(function[schema])
