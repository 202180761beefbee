"""A trained model goes up with a card that says what made it, in one commit, without states, paths or tokens."""

import json
from dataclasses import dataclass, field

import pytest
import yaml
from loopback_hub import TOKEN

from solar_rl.errors import InputError
from solar_rl.store.card import figure
from solar_rl.store.checkpoint_card import render_checkpoint_card
from solar_rl.store.hub import dataset_release, publish_release
from solar_rl.store.provenance import changed_fields, made_by, prompt_of, read_record

REPO = "owner/policy"
SENT = {"README.md", "config.json", "model.safetensors", "preprocessor_config.json", "training.json"}


@dataclass
class Recipe:
    dataset: str
    credit: str = "solar"
    output_dir: str = "runs"
    hub_token: str | None = None
    learning_rate: float = 1e-6
    templates: list = field(default_factory=list)
    model_name_or_path: str = "m"


def leave_run(folder, dataset, start="Qwen/Qwen2.5-VL-7B-Instruct", credit="step_local"):
    """Leave what a training run leaves."""
    folder.mkdir()
    for name in ("config.json", "preprocessor_config.json"):
        (folder / name).write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "training_args.bin").write_bytes(b"a pickle with paths")
    (folder / "checkpoint-2").mkdir()
    (folder / "checkpoint-2" / "optimizer.pt").write_bytes(b"state")
    recipe = Recipe(str(dataset), credit, "/home/me/out", TOKEN, 1e-5)
    record = {"credit": credit, "dataset": "small 1.0.0", "groups": {"kept": 9, "no spread": 3}}
    record |= {"steps": 24, "margin": [{"step": 0, "margin": 0.1}, {"step": 24, "margin": 1.25}]}
    record |= {"log": [{"step": 24, "loss": 0.5, "reward": 0.25}], "warnings": []}
    record |= made_by(dataset, start, recipe)
    (folder / "training.json").write_text(json.dumps(record))
    return folder


@pytest.fixture
def run(tmp_path, built):
    return leave_run(tmp_path / "out", built)


def test_the_record_says_what_made_it_without_paths_or_tokens(run, built):
    text = (run / "training.json").read_text()
    assert TOKEN not in text and str(built) not in text and "/home/me" not in text
    made = json.loads(text)["made_by"]
    assert made["dataset"]["name"] == "small" and made["dataset"]["commit"] is None
    assert made["recipe"] == {"credit": "step_local", "learning_rate": 1e-5}
    assert made["starts_from"] == {"model": "Qwen/Qwen2.5-VL-7B-Instruct", "local": False, "made_by": None}
    assert made["code"]["solar-rl"] and prompt_of(run)["format"] == "json"
    assert prompt_of("Qwen/Qwen2.5-VL-7B-Instruct") is None
    assert read_record(run / "checkpoint-2") == read_record(run)
    assert changed_fields(Recipe("d", templates=["/a/b.yaml", 1])) == {"templates": ["b.yaml", 1]}


def test_the_card_names_dataset_recipe_code_and_base(run, built):
    card = render_checkpoint_card(run, "policy")
    made = json.loads((run / "training.json").read_text())["made_by"]
    assert "base_model: Qwen/Qwen2.5-VL-7B-Instruct\n" in card and "pipeline_tag: image-text-to-text" in card
    assert f"small 1.0.0 (build `{made['dataset']['build_id']}`)" in card
    assert "it was read from a folder" in card and "credit step_local" in card
    assert f"solar-rl {made['code']['solar-rl']}" in card
    assert "+0.100 at update 0, +1.250 at update 24" in card and "9 kept, 3 no spread" in card
    assert "learning_rate: 1.0e-05" in card and "Nothing was measured" in card
    assert figure(24) + " updates from" in card


def test_the_recipe_is_named_with_what_it_sets_and_nothing_that_a_dataclass_fills_in(run, built):
    recipe = Recipe(str(built), "step_local", learning_rate=1e-5, templates=["filled in"])
    said = {"recipe": "phone_cpu/baseline_step_local", "written": {"credit", "dataset", "hub_token", "seed"}}
    made = made_by(built, "Qwen/Qwen2.5-VL-7B-Instruct", recipe, **said)["made_by"]
    assert (made["recipe_name"], made["recipe"]) == (
        "phone_cpu/baseline_step_local",
        {"credit": "step_local"},
    )
    made["recipe"] |= {"logging_steps": 1, "save_strategy": "no", "report_to": [], "seed": 3}
    record = json.loads((run / "training.json").read_text()) | {"made_by": made}
    (run / "training.json").write_text(json.dumps(record))
    card = render_checkpoint_card(run, REPO)
    assert "| recipe | `phone_cpu/baseline_step_local`, credit step_local" in card
    assert yaml.safe_load(card.partition("```yaml\n")[2].partition("```")[0]) == {
        "credit": "step_local",
        "seed": 3,
    }
    assert f"hf download {REPO} --local-dir" in card
    assert "hf download OWNER/NAME" in render_checkpoint_card(run, "policy")


def test_a_later_stage_names_the_stages_before_it(run, built, tmp_path):
    later = leave_run(tmp_path / "stage2", built, start=str(run), credit="solar")
    card = render_checkpoint_card(later, "policy")
    assert "base_model: Qwen/Qwen2.5-VL-7B-Instruct" in card
    assert "| starts from | `out` |" in card
    assert "credit step_local, from `Qwen/Qwen2.5-VL-7B-Instruct`" in card


def test_a_dataset_of_the_hub_is_named_by_its_commit(hub, env, built, tmp_path):
    done = publish_release(dataset_release(built), "owner/small")
    card = render_checkpoint_card(leave_run(tmp_path / "out", "owner/small"), "policy")
    assert f"`owner/small@{done.commit}`" in card and "datasets:\n- owner/small\n" in card


def test_it_goes_up_in_one_commit_without_what_is_no_part_of_it(hub, run, solar):
    plan = json.loads(solar("publish", run, "--repo", REPO, "--dry-run", "--json").stdout)
    assert {each["path"] for each in plan["send"]} == SENT and hub.repos == {}
    said = solar("publish", run, "--repo", REPO, "--tag", "v1")
    assert "created the repository" in said.stdout and TOKEN not in said.stdout + said.stderr
    files = hub.files(REPO, kind="models")
    assert set(files) == SENT and files["model.safetensors"] == b"weights"
    assert hub.repo(REPO, "models").tags == {"v1": hub.repo(REPO, "models").branches["main"]}
    assert not (run / "README.md").exists(), "the run's folder stays as it is"
    again = solar("publish", run, "--repo", REPO, "--tag", "v1")
    assert "nothing to do" in again.stdout
    (run / "model.safetensors").write_bytes(b"others")
    assert "a tag never moves" in solar("publish", run, "--repo", REPO, "--tag", "v1", code=2).stderr
    assert "no tag asked for" in solar("publish", run, "--repo", REPO).stdout


def test_reports_of_evaluate_go_on_the_card(run, solar, tmp_path):
    solar("evaluate", "--sampler", "expert", "--suite", "phone_steps", "--limit", 1, "--out", tmp_path / "a")
    played = ("--suite", "phone", "--limit", 1, "--suite.tasks", "[short]")
    solar("evaluate", "--sampler", "expert", *played, "--out", tmp_path / "b")
    card = render_checkpoint_card(run, "p", [tmp_path / "a" / "report.json", tmp_path / "b" / "report.json"])
    assert "### Suite phone_steps" in card and "| solar |" in card and "100.0 % (100.0-100.0)" in card
    assert "### Suite phone\n" in card and "| short | 1 |" in card
    with pytest.raises(InputError, match="no report of"):
        render_checkpoint_card(run, "p", [run / "config.json"])


def test_a_person_s_notes_stay_and_a_machine_s_card_goes(run):
    (run / "README.md").write_text("---\ntags:\n- generated_from_trainer\n---\n# Model card for out\n")
    assert "Model card for out" not in render_checkpoint_card(run, "p")
    (run / "README.md").write_text("---\nlicense: mit\n---\nTrained on a rainy day.\n")
    assert "## Notes\n\nTrained on a rainy day." in render_checkpoint_card(run, "p")


def test_a_token_anywhere_stops_it(hub, run, solar):
    (run / "config.json").write_text(json.dumps({"key": TOKEN}))
    done = solar("publish", run, "--repo", REPO, code=1)
    assert "holds an access token" in done.stderr and TOKEN not in done.stderr
    assert hub.repos == {}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda run: (run / "training.json").unlink(), "nobody can say what made this checkpoint"),
        (lambda run: (run / "model.safetensors").unlink(), "no weights in this folder"),
        (lambda run: (run / "training.json").write_text("{"), "can't be read as JSON"),
    ],
)
def test_what_is_no_checkpoint_is_refused(hub, run, solar, change, said):
    change(run)
    assert said in solar("publish", run, "--repo", REPO, "--type", "model", code=2).stderr
    assert hub.repos == {}


def test_reports_are_for_models(hub, built, solar, tmp_path):
    done = solar("publish", built, "--repo", "owner/small", "--report", tmp_path / "r.json", code=2)
    assert "goes with --type model" in done.stderr
