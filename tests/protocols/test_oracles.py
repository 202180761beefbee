"""Agreement with the peers' own code: every verdict of the shared oracles, and the exact number compared."""

import json
from collections import Counter
from pathlib import Path

import pytest

from solar_rl.judging import judge_file
from solar_rl.protocols import PROTOCOLS

ORACLES = Path(__file__).parents[3] / "shared" / "oracles"
CASES = ORACLES / "cases.jsonl"
COMPARED = {
    "uis1_eval": 1606,
    "uis1_eval_asshipped": 1605,
    "infigui_eval": 1606,
    "uis1_train": 1606,
    "agentcpm_eval_ac004": 1601,
    "agentcpm_eval_014": 1596,
    "agentcpm_rft": 1597,
    "osatlas_ac": 1593,
    "gui_odyssey_official": 1594,
    "guir1_eval": 1606,
    "guir1_reward": 1592,
    "uir1_reward": 1605,
}
"""Cases of each protocol that aren't sensitive to the grid of the answer's coordinates."""

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not CASES.is_file(), reason="the shared oracles are absent"),
]


@pytest.mark.parametrize("name", COMPARED)
def test_every_verdict_agrees(name):
    lines = (ORACLES / f"verdicts_{name}.jsonl").read_text().splitlines()
    judged = list(judge_file(CASES, name))
    compared = 0
    for ours, line in zip(judged, lines, strict=True):
        theirs = json.loads(line)
        if theirs.pop("quantisation_sensitive", False):
            continue
        compared += 1
        # They leave out reward and dropped where there is none; everything else is there on both sides.
        wanted = {"reward": None, "dropped": None} | theirs
        assert (
            ours == pytest.approx(wanted)
            if not any(isinstance(v, dict) for v in wanted.values())
            else ours == wanted
        )
    assert compared == COMPARED[name]


def test_every_peer_has_an_oracle():
    assert set(COMPARED) == set(PROTOCOLS) - {"solar"}


def test_solar_judges_every_case():
    verdicts = list(judge_file(CASES, "solar"))
    assert len(verdicts) == 1606
    assert Counter(verdict["dropped"] for verdict in verdicts) == {None: 1606}
    exact = {verdict["case_id"] for verdict in verdicts if verdict["exact_match"]}
    cases = [json.loads(line) for line in CASES.read_text().splitlines()]
    right = {case["case_id"] for case in cases if case["prediction"] == case["expert"]}
    assert right <= exact
    unreadable = {case["case_id"] for case in cases if case["prediction"] is None}
    assert not unreadable & exact


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_case_alone_is_judged_as_among_all(name, tmp_path):
    """One case a file takes other paths through the columns than 1,606: every 40th case."""
    lines, together = CASES.read_text().splitlines(), list(judge_file(CASES, name))
    for number in range(0, len(lines), 40):
        alone = tmp_path / "case.jsonl"
        alone.write_text(lines[number])
        assert list(judge_file(alone, name)) == [together[number]]
