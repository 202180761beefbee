"""The fences: folder ``datasets/`` never shadows the package, a wheel holds what a checkout holds, start-up is light."""

import ast
import importlib.machinery
import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from solar_rl.config import load_dataset_config, validate_config
from solar_rl.shipped import shipped_module
from solar_rl.train.keys import read_settings
from solar_rl.train.launch import recipe_names

ROOT = Path(__file__).parent.parent
SITE = sysconfig.get_paths()["purelib"]
HUGGING_FACE = str(Path(SITE, "datasets", "__init__.py"))
PROBE = "import importlib.util as u; print(u.find_spec('datasets').origin)"
IGNORED = {".venv", ".venv-vllm", ".git", "__pycache__", "build", "dist", "demo", "runs"}
DATASETS = sorted(ROOT.glob("datasets/*/dataset.yaml"))
RECIPES = [ROOT / "recipes" / f"{name}.yaml" for name in recipe_names()]
LONG_FILES = {
    "tests/core/oracle.py": "the whole method once more in plain Python, to be read in one go",
    "tests/store/test_validate.py": "one damaged dataset for every check",
}
"""Python files over 400 lines, each with the reason."""


def sources(pattern: str = "*.py") -> list[Path]:
    return [path for path in sorted(ROOT.rglob(pattern)) if not IGNORED & set(path.relative_to(ROOT).parts)]


def python(*arguments: object, cwd: Path = ROOT, **env: str) -> str:
    """Run this Python in a clean environment and return what it printed."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, env=clean | env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# --- the datasets/ trap ------------------------------------------------------------------------------


def test_folder_datasets_holds_only_yaml_and_cards():
    strangers = {p.name for p in ROOT.joinpath("datasets").rglob("*") if p.is_file()} - {
        "dataset.yaml",
        "README.md",
    }
    assert not strangers


def test_nothing_else_in_the_checkout_is_named_datasets():
    assert not [path for path in sources("datasets.*") if path.suffix.startswith((".py", ".so"))]
    assert [path for path in sources("datasets") if path != ROOT / "datasets"] == []


@pytest.mark.parametrize(
    "first", ["", ".", "datasets", "recipes", "builders", "tests", "solar_rl", "scripts"]
)
def test_datasets_is_hugging_face_from_python_c(first):
    """``python -c`` has '' first on sys.path; PYTHONPATH may put any of our folders before site-packages."""
    env = {"PYTHONPATH": first} if first else {}
    assert python("-c", PROBE, **env) == HUGGING_FACE


def test_datasets_is_hugging_face_from_python_m():
    out = python("-m", "timeit", "-n1", "-r1", "-s", PROBE, "pass")
    assert out.splitlines()[0] == HUGGING_FACE


def test_datasets_is_hugging_face_from_a_script_in_the_root(tmp_path):
    """A script's own folder comes first on sys.path: here one that holds a copy of datasets/."""
    for path in ROOT.joinpath("datasets").rglob("*"):
        if path.is_file():
            copy = tmp_path / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    (tmp_path / "datasets").mkdir(exist_ok=True)
    script = tmp_path / "launch.py"
    script.write_text(PROBE)
    assert python(script, cwd=tmp_path) == HUGGING_FACE


@pytest.mark.parametrize("launcher", [["-m", "pytest"], [Path(sysconfig.get_path("scripts"), "pytest")]])
def test_datasets_is_hugging_face_from_pytest(launcher, tmp_path):
    test = tmp_path / "test_probe.py"
    test.write_text(
        f"def test_it():\n    import importlib.util as u\n    assert u.find_spec('datasets').origin == {HUGGING_FACE!r}\n"
    )
    options = ["-q", "-p", "no:cacheprovider", "-c", ROOT / "pyproject.toml", "--rootdir", ROOT]
    assert "1 passed" in python(*launcher, *options, test)


def test_datasets_is_hugging_face_in_this_run():
    assert importlib.util.find_spec("datasets").origin == HUGGING_FACE


def test_datasets_is_hugging_face_with_any_folder_of_ours_first():
    """Whatever is launched from wherever: each folder of the checkout as the first path root."""
    folders = {path.parent for path in sources()} | {ROOT, ROOT / "datasets"}
    for folder in folders:
        spec = importlib.machinery.PathFinder.find_spec("datasets", [str(folder), SITE])
        assert spec.origin == HUGGING_FACE, folder


def test_the_trap_is_real(tmp_path):
    """With an __init__.py in it the folder would win: the probes above can fail."""
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "__init__.py").touch()
    assert python("-c", PROBE, cwd=tmp_path) != HUGGING_FACE


def test_tools_are_told_about_the_trap():
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert tool["pytest"]["ini_options"]["testpaths"] == ["tests"]
    assert "datasets" in tool["pytest"]["ini_options"]["norecursedirs"]
    assert "datasets" in tool["ruff"]["lint"]["isort"]["known-third-party"]
    assert any(
        one.get("follow_untyped_imports") and "datasets.*" in one["module"]
        for one in tool["mypy"]["overrides"]
    )
    assert tool["hatch"]["build"]["targets"]["wheel"]["packages"] == ["solar_rl"]


# --- the wheel ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel_names(wheel) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_wheel_puts_nothing_generic_into_site_packages(wheel_names):
    top = {name.split("/")[0] for name in wheel_names}
    assert {name for name in top if not name.endswith(".dist-info")} == {"solar_rl"}


@pytest.mark.parametrize("kind", ["builders", "recipes", "datasets"])
def test_wheel_ships_every_file_of(kind, wheel_names):
    ours = {
        str(path.relative_to(ROOT))
        for path in sources("*")
        if path.is_file() and path.is_relative_to(ROOT / kind)
    }
    assert ours, f"{kind}/ is empty"
    assert {f"solar_rl/_shipped/{name}" for name in ours} <= wheel_names


def test_wheel_holds_all_of_solar_rl_and_the_licence(wheel_names):
    package = ROOT / "solar_rl"
    ours = {
        str(path.relative_to(ROOT))
        for path in sources("*")
        if path.is_file() and path.is_relative_to(package)
    }
    assert ours <= wheel_names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in wheel_names)


def test_wheel_holds_no_leftovers(wheel_names):
    assert not [name for name in wheel_names if re.search(r"__pycache__|\.pyc$|/tests/|\.parquet$", name)]


# --- start-up ----------------------------------------------------------------------------------------

HEAVY = {
    "torch",
    "vllm",
    "duckdb",
    "datasets",
    "transformers",
    "trl",
    "accelerate",
    "peft",
    "polars",
    "pyarrow",
    "matplotlib",
}


def test_import_loads_nothing_heavy():
    loaded = json.loads(python("-c", "import json, sys, solar_rl; print(json.dumps(list(sys.modules)))"))
    assert not HEAVY & set(loaded)


HELP_OF_EVERY_VERB = """
import contextlib, io, json, sys
from solar_rl.cli import app, main
verbs = [name for name in app if not name.startswith("-")]
found = {}
for words in [[], *([verb] for verb in verbs)]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main([*words, "--help"])
    found[" ".join(words)] = [printed.getvalue(), list(sys.modules)]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def help_pages() -> dict[str, list]:
    return json.loads(python("-c", HELP_OF_EVERY_VERB))


def test_help_of_every_verb_loads_nothing_heavy(help_pages):
    assert len(help_pages) > 7
    for verb, (_, modules) in help_pages.items():
        assert not HEAVY & set(modules), f"solar-rl {verb} --help"


def test_help_of_every_verb_has_an_example(help_pages):
    for verb, (text, _) in help_pages.items():
        assert not verb or f"solar-rl {verb} " in text, verb


# --- what is shipped parses --------------------------------------------------------------------------


def test_datasets_and_recipes_are_shipped():
    assert DATASETS
    assert RECIPES


def test_shipped_datasets_have_names_of_their_own():
    names = [load_dataset_config(path).name for path in DATASETS]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("path", DATASETS, ids=lambda path: path.parent.name)
def test_shipped_dataset_parses(path):
    config = load_dataset_config(path)
    blocks = config.source.sources or {config.source.builder: config.source}
    for name, block in blocks.items():
        options = shipped_module("builders", block.builder or name).BUILDER.Options
        validate_config(options, block.options, where=str(path))
    assert (path.parent / "README.md").exists(), "a dataset ships its card"


@pytest.mark.train
@pytest.mark.parametrize("path", RECIPES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_shipped_recipe_has_known_keys(path):
    assert read_settings(path, [])["dataset"], "a recipe names the dataset it trains on"


# --- the sources -------------------------------------------------------------------------------------


def imported_packages(path: Path) -> set[str]:
    """The top-level names that a file imports absolutely, anywhere in it."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 0}
    return {name.split(".")[0] for name in names}


@pytest.mark.parametrize("folder", ["solar_rl", "builders", "recipes"])
def test_every_import_is_a_declared_dependency(folder):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {name: lines for name, lines in project["optional-dependencies"].items() if name != "dev"}
    lines = [*project["dependencies"], *(line for extra in extras.values() for line in extra)]
    declared = {re.match(r"[\w.-]+", line).group().lower().replace("_", "-") for line in lines}
    owners = metadata.packages_distributions()
    for path in sources():
        if not path.is_relative_to(ROOT / folder):
            continue
        for name in imported_packages(path) - set(sys.stdlib_module_names) - {"solar_rl"}:
            found = {owner.lower().replace("_", "-") for owner in owners.get(name, [name])}
            assert found & declared, f"{path.relative_to(ROOT)} imports {name}"


def test_every_folder_of_code_is_a_package():
    """Without an __init__.py neither mypy nor import-linter would look into it."""
    folders = {
        path.parent for path in sources() if path.relative_to(ROOT).parts[0] in {"solar_rl", "builders"}
    }
    assert not [str(folder) for folder in folders if not (folder / "__init__.py").exists()]


def undocumented(tree: ast.AST) -> list[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, kinds) and not node.name.startswith("_"):
            found += [] if ast.get_docstring(node) else [node.name]
            found += undocumented(node) if isinstance(node, ast.ClassDef) else []
    return found


@pytest.mark.parametrize("folder", ["solar_rl", "builders", "recipes"])
def test_everything_public_has_a_docstring(folder):
    missing = {}
    for path in sources():
        if path.is_relative_to(ROOT / folder):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            names = undocumented(tree) + ([] if ast.get_docstring(tree) else ["the module"])
            missing |= {str(path): names} if names else {}
    assert not missing


def test_make_has_every_command_that_is_documented():
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    documented = {
        target
        for path in [
            ROOT / "README.md",
            ROOT / "CONTRIBUTING.md",
            ROOT / ".ci" / "run",
            *ROOT.glob("docs/*.md"),
        ]
        for target in re.findall(
            r"(?:^|`)make ([a-z-]+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE
        )
    }
    assert {"check", "test"} <= documented <= known


def test_long_files_have_a_reason():
    lines = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in sources()
    }
    assert not {name for name, count in lines.items() if count > 400} - set(LONG_FILES)


def test_no_file_names_a_machine():
    """Paths of one machine, hosts of registries: another user has neither."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    paths = r"(?<![\w.~-])/(?:(?:work|root|opt)/|tmp/(?:solar|pytest))"
    hosts = r"pythonhosted|\bpypi\.org|download\.pytorch|registry\.npmjs|deb\.debian"
    pattern = re.compile(f"{paths}|{hosts}".encode())
    named = [
        (name, hit.group().decode())
        for name in listed
        if (ROOT / name).is_file() and ROOT / name != Path(__file__)
        for hit in [pattern.search((ROOT / name).read_bytes())]
        if hit
    ]
    assert not named
