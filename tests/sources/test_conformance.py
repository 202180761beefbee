"""The conformance test: it passes what keeps the contract, and names the promise that a builder breaks."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest
from PIL import Image

from solar_rl.builder import load_builder
from solar_rl.cli import main
from solar_rl.config import SourceConfig
from solar_rl.conformance import Finding, conform
from solar_rl.conformance.damage import DAMAGES
from solar_rl.errors import ConfigError
from solar_rl.interchange import write_episodes
from solar_rl.schema import Episode

PAGE = Path(__file__).parents[2] / "docs" / "builders.md"


class Run(NamedTuple):
    code: int
    out: str
    err: str


def solar(*arguments: object) -> Run:
    out, err, code = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = int(stop.code or 0)
    return Run(code, out.getvalue(), err.getvalue())


@pytest.fixture
def one_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no other process, which takes a second, unless the test is about that."""
    about_it = "works_in_another_process" in BROKEN.get(request.node.callspec.params.get("builder"), ())
    if not about_it:
        monkeypatch.setattr("solar_rl.conformance.repeating._elsewhere", lambda *arguments: [])


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with three good files."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    folder = tmp_path / "my sample"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.txt").write_text(json.dumps({"wish": f"do {name}"}))
    return folder


def findings(builder: str, path: Path | None, **options: object) -> list[Finding]:
    return list(conform(SourceConfig(builder=builder, path=str(path) if path else None, options=options)))


def verdicts(found: list[Finding], *kinds: str) -> set[str]:
    return {finding.name for finding in found if finding.verdict in kinds}


def test_a_good_builder_passes_everything(sample: Path) -> None:
    found = findings("faulty_builders:Good", sample)
    assert verdicts(found, "warn", "fail", "skip") == set()
    assert len(found) == len({finding.name for finding in found}) > 20
    damage = next(finding for finding in found if finding.name == "damage_gives_rejects")
    assert damage.detail == f"{2 * len(DAMAGES)} damaged copies read"


BROKEN = {
    "Nameless": {"has_a_plain_name"},
    "PlainOptions": {"options_are_a_config"},
    "Deaf": {"refuses_unknown_options", "refuses_a_missing_path"},
    "Twice": {"shards_are_fixed"},
    "Unstable": {"shards_are_fixed"},
    "Lost": {"source_files_exist"},
    "Greedy": {"recognises_nothing_else"},
    "Timid": {"recognises_nothing_else"},
    "Lister": {"yields_one_by_one"},
    "Stranger": {"yields_episodes_and_rejects"},
    "Pixels": {"points_lie_in_the_unit_square"},
    "PixelBoxes": {"boxes_lie_in_the_unit_square"},
    "Gap": {"episodes_are_well_formed"},
    "BrokenImage": {"images_decode"},
    "Shouting": {"rejects_are_well_formed"},
    "Raising": {"reads_the_sample"},
    "Fragile": {"damage_gives_rejects"},
    "Silent": {"what_is_cut_off_is_told"},
    "Counting": {
        "reads_the_same_again",
        "reads_shards_in_any_order",
        "reads_a_shard_alone",
        "works_in_another_process",
    },
    "Remembering": {"reads_shards_in_any_order", "reads_a_shard_alone"},
    "Hashing": {"works_in_another_process"},
    "Littering": {"leaves_the_sample_alone"},
    "Local": {"works_in_another_process"},
}


@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize("builder", BROKEN)
def test_a_broken_promise_is_named(builder: str, sample: Path) -> None:
    found = findings(f"faulty_builders:{builder}", sample)
    failed = verdicts(found, "fail")
    assert BROKEN[builder] <= failed
    assert failed - BROKEN[builder] <= {"reads_the_same_again", "shards_are_fixed"}
    assert all(finding.detail and finding.faults for finding in found if finding.verdict == "fail")


def test_what_could_be_better_is_a_warning(sample: Path) -> None:
    assert verdicts(findings("faulty_builders:Homeless", sample), "warn", "fail") == {"says_its_homepage"}
    assert verdicts(findings("faulty_builders:Unlisted", sample), "warn", "fail") == {
        "source_files_are_listed"
    }


def test_pixels_are_asked_about(sample: Path) -> None:
    found = {finding.name: finding for finding in findings("faulty_builders:Pixels", sample)}
    assert "divided by the screen's size?" in found["points_lie_in_the_unit_square"].detail


def test_a_damaged_sample_is_the_users_to_see(sample: Path) -> None:
    (sample / "b.txt").write_text("{")
    found = {finding.name: finding for finding in findings("faulty_builders:Good", sample)}
    assert found["reads_the_sample"].detail.startswith("2 episodes, 1 rejects")
    (sample / "a.txt").write_text("{")
    (sample / "c.txt").write_text("{")
    assert "reads_the_sample" in verdicts(findings("faulty_builders:Good", sample), "fail")


def test_a_large_sample_is_not_copied(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solar_rl.conformance.damage.MAX_SAMPLE", 10)
    assert verdicts(findings("faulty_builders:Good", sample), "skip") == {"damage_gives_rejects"}


def test_what_cannot_be_tried_is_the_users_error(sample: Path) -> None:
    for builder, path in [
        ("nobody:Here", sample),
        ("faulty_builders:Nobody", sample),
        ("ui_s1", sample / "no"),
    ]:
        with pytest.raises(ConfigError):
            findings(builder, path)


def test_rejects_that_are_cut_off_too_hide_no_new_one(tmp_path: Path) -> None:
    good = {
        "platform": "android",
        "goal": "tap",
        "coordinates": "unit",
        "screen_width": 90,
        "screen_height": 160,
    }
    good["steps"] = [{"action": {"action_type": "click", "x": 0.5, "y": 0.5}}]
    lines = [json.dumps({"episode_id": f"e{i}", **good}) for i in range(6)]
    lines += [json.dumps({"episode_id": f"b{i}", **good, "goal": 7}) for i in range(6)]
    (tmp_path / "tail.jsonl").write_text("".join(f"{line}\n" for line in lines))
    found = {finding.name: finding for finding in findings("jsonl", tmp_path / "tail.jsonl")}
    assert found["what_is_cut_off_is_told"].verdict == "ok"


# --- the verb ----------------------------------------------------------------------------------------


def test_the_verb_lists_checks_and_exits_by_them(sample: Path) -> None:
    good = solar("validate", "--builder", "faulty_builders:Good", sample)
    assert (good.code, good.err) == (0, "")
    assert re.search(r"^ok +reads_a_shard_alone", good.out, re.MULTILINE)
    assert re.search(r"^all \d+ checks passed$", good.out, re.MULTILINE)
    bad = solar("validate", "--builder", "faulty_builders:Silent", sample)
    assert (bad.code, bad.err.count("\n")) == (1, 1)
    assert re.search(r"^FAIL what_is_cut_off_is_told .*no reject more", bad.out, re.MULTILINE)
    rows = json.loads(solar("validate", "--builder", "faulty_builders:Homeless", sample, "--json").out)
    assert {row["name"] for row in rows if row["verdict"] == "warn"} == {"says_its_homepage"}
    assert all(row["passed"] for row in rows)


def test_the_verb_refuses_what_makes_no_sense(sample: Path) -> None:
    assert solar("validate").code == 2
    assert solar("validate", sample, "--sampler.n", "4").code == 2
    assert solar("validate", "--builder", "faulty_builders:Good").code == 2
    run = solar("validate", "--builder", "faulty_builders:Good", sample, "--prompt.level", "low")
    assert (run.code, "can't set 'prompt.level'" in run.err) == (2, True)


def test_the_verb_finds_a_builder_in_the_current_folder(
    sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (Path(__file__).parent / "faulty_builders.py").read_text()
    (sample.parent / "fresh_module.py").write_text(source)
    monkeypatch.chdir(sample.parent)
    monkeypatch.setattr("sys.path", ["", *__import__("sys").path])
    assert solar("validate", "--builder", "fresh_module:Good", "my sample").code == 0


# --- the documents and what is shipped ---------------------------------------------------------------


def test_the_example_of_the_documents_conforms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL).group(1)
    (tmp_path / "taps_of_the_page.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "folder"
    folder.mkdir()
    Image.new("RGB", (90, 160)).save(folder / "0.png")
    tap = {"shot": "0.png", "x": 45, "y": 40, "box": [20, 30, 70, 60]}
    for name in "ab":
        (folder / f"{name}.json").write_text(json.dumps({"goal": name, "taps": [tap, tap]}))
    found = findings("taps_of_the_page:Taps", folder)
    assert verdicts(found, "warn", "fail", "skip") == set()


def test_the_documents_name_every_check(sample: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    for finding in [*findings("faulty_builders:Good", sample), *findings("faulty_builders:Unlisted", sample)]:
        assert f"`{finding.name}`" in text


def test_the_phone_conforms() -> None:
    assert verdicts(findings("phone", None, episodes=4), "fail") == set()


def test_the_interchange_format_conforms(tmp_path: Path) -> None:
    phone = load_builder(SourceConfig(builder="phone", options={"episodes": 2}))
    episodes = (item for shard in phone.shards() for item in phone.read(shard) if isinstance(item, Episode))
    write_episodes(episodes, tmp_path / "lines")
    assert verdicts(findings("jsonl", tmp_path / "lines"), "fail") == set()


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("builder", "file", "lines"),
    [
        ("android_control", "androidcontrol_tfrecord", None),
        ("android_control_jsonl", "androidcontrol_test_actions/androidcontrol_test_part.jsonl", 20),
        ("ui_s1", "ui_s1/android_control_evaluation_std_part.jsonl", 20),
        ("ui_s1", "ui_s1/android_control_train_example.jsonl", 20),
    ],
)
def test_shipped_builders_conform_on_real_files(
    builder: str, file: str, lines: int | None, tmp_path: Path, shared: Path
) -> None:
    path = shared / file
    if lines is not None:
        head = path.read_bytes().splitlines(keepends=True)[:lines]
        path = tmp_path / path.name
        path.write_bytes(b"".join(head))
    assert verdicts(findings(builder, path), "fail") == set()
