"""One small case a rule, each named after the trap that it stands for."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from rows import frame, row

from solar_rl.protocols import PROTOCOLS

QWEN = ("uis1_eval", "infigui_eval", "uis1_train")
TAP, BACK, WAIT = ("click", 540, 1200), ("navigate_back",), ("wait",)
DOWN, UP, RIGHT, LEFT = (("scroll", way) for way in ("down", "up", "right", "left"))


def verdict(name, expert, pred, **more):
    return PROTOCOLS[name].judge(frame(row(expert, pred, **more))).to_dicts()[0]


def marks(name, expert, pred, **more):
    """Return type match and exact match."""
    found = verdict(name, expert, pred, **more)
    return found["type_match"], found["exact_match"]


def test_four_percent_is_an_ellipse_for_uis1_and_a_circle_for_infigui():
    below, beside = ("click", 540, 1200 + 95), ("click", 540 + 95, 1200)
    assert marks("uis1_eval", TAP, below) == marks("infigui_eval", TAP, below) == (1, 1)
    assert marks("uis1_eval", TAP, beside) == (1, 0)
    assert marks("infigui_eval", TAP, beside) == (1, 1)


def test_fourteen_percent_is_an_ellipse_but_for_guir1s_reward():
    below = ("click", 540, 1200 + 330)
    for name in ("agentcpm_eval_014", "osatlas_ac", "gui_odyssey_official", "guir1_eval"):
        assert marks(name, TAP, below) == (1, 1), name
    assert marks("guir1_reward", TAP, below) == (1, 0)
    assert marks("guir1_reward", TAP, ("click", 540, 1200 + 198)) == (1, 1)


def test_a_box_grows_by_a_fifth_about_its_centre():
    box = (440, 1100, 640, 1300)
    for name in QWEN:
        assert marks(name, TAP, ("click", 659, 1319), boxes=[box], single=box) == (1, 1)
        assert marks(name, TAP, ("click", 662, 1319), boxes=[box], single=box) == (1, 0)


def test_a_whole_screen_container_makes_any_click_exact_for_uis1():
    anywhere, container = ("click", 1000, 2300), (0, 0, 1080, 2400)
    assert marks("uis1_eval", TAP, anywhere, boxes=[container]) == (1, 1)
    assert marks("uis1_eval_asshipped", TAP, anywhere, boxes=[container]) == (1, 0)
    assert marks("solar", TAP, anywhere, boxes=[container]) == (1, 0)


def test_uis1_never_compares_directions():
    assert marks("uis1_eval", DOWN, UP) == (1, 1)
    assert marks("uis1_eval", DOWN, ("scroll", None)) == (1, 1)


def test_uis1s_reward_has_another_convention_across_than_along():
    assert [verdict("uis1_train", way, way)["exact_match_physical"] for way in (DOWN, UP, LEFT, RIGHT)] == [
        1,
        1,
        0,
        0,
    ]
    assert verdict("uis1_train", LEFT, RIGHT)["exact_match_physical"] == 1


def test_infigui_calls_the_real_finger_wrong():
    found = verdict("infigui_eval", DOWN, DOWN)
    assert (found["exact_match"], found["exact_match_physical"]) == (1, 0)
    assert verdict("infigui_eval", DOWN, UP)["exact_match_physical"] == 1


@pytest.mark.parametrize(
    ("pred", "error"),
    [(None, "TypeError"), (("click", 5), "IndexError"), (("click",), "KeyError")],
)
def test_uis1_raises_where_an_argument_is_missing(pred, error):
    assert verdict("uis1_eval", TAP, pred)["error"] == error
    assert marks("uis1_eval", TAP, pred) == (0, 0)


def test_half_a_point_raises_whatever_the_label_and_no_point_only_where_it_is_looked_at():
    assert verdict("uis1_eval", WAIT, ("click", 5))["error"] == "IndexError"
    assert verdict("uis1_eval", WAIT, ("click",))["error"] is None


def test_uis1_rewards_by_degree():
    steps = [None, ("click",), BACK, ("click", 5, 5), TAP]
    rewards = [verdict("uis1_train", TAP, pred)["reward"] for pred in steps]
    assert rewards == pytest.approx([0.0, 0.1, 0.19, 0.55, 1.0])


def test_an_icon_opens_an_app_in_the_evaluations_only():
    icon = [(100, 200, 200, 300), (800, 800, 900, 900)]
    for name, want in {
        "uis1_eval": (1, 1),
        "infigui_eval": (1, 1),
        "uis1_train": (0, 0),
        "uis1_eval_asshipped": (0, 0),
    }.items():
        assert marks(name, ("open_app", "Maps"), ("click", 850, 850), boxes=icon) == want, name
    assert marks("uis1_eval", ("open_app", "Maps"), ("click", 850, 850)) == (0, 0)


def test_an_empty_text_is_in_every_text():
    for name in (*QWEN, "agentcpm_eval_014", "gui_odyssey_official"):
        assert marks(name, ("input_text", "cat"), ("input_text", "")) == (1, 1), name
    assert marks("solar", ("input_text", "cat"), ("input_text", "")) == (1, 0)


def test_a_foreign_key_breaks_agentcpms_schema_and_nobody_elses():
    for name in PROTOCOLS:
        want = 0 if name.startswith("agentcpm") else 1
        box = (500, 1100, 600, 1300)
        assert verdict(name, TAP, TAP, foreign=True, boxes=[box], single=box)["type_match"] == want, name


def test_a_point_beyond_the_screen_has_no_type_for_agentcpm():
    assert marks("agentcpm_eval_014", TAP, ("click", -100, -100)) == (0, 0)
    assert marks("agentcpm_eval_014", TAP, ("click", 1081, 1200)) == (1, 0)  # 1000.9 is cut to 1000


def test_agentcpm_reads_a_labelled_long_press_as_a_click():
    press = ("long_press", 540, 1200)
    assert marks("agentcpm_eval_ac004", press, press) == (0, 0)
    assert marks("agentcpm_eval_ac004", press, TAP) == (1, 1)
    assert verdict("agentcpm_rft", press, press)["reward_type"] == 1.0


def test_agentcpm_takes_waiting_for_finishing():
    assert marks("agentcpm_eval_014", WAIT, ("status", "infeasible")) == (1, 1)
    assert verdict("agentcpm_rft", WAIT, ("status", "infeasible"))["reward_type"] == 0.0


def test_agentcpm_looks_at_the_five_nearest_boxes_or_at_those_that_hold_the_label():
    near = [(500 + i, 1160 + i, 580 - i, 1240 - i) for i in range(5)]
    far = (0, 0, 1080, 1300)
    there = ("click", 900, 400)
    assert marks("agentcpm_eval_ac004", TAP, there, boxes=[far, *near]) == (1, 0)
    assert marks("agentcpm_eval_ac004", TAP, there, boxes=[far, *near[:4]]) == (1, 1)
    assert marks("agentcpm_eval_014", TAP, there, boxes=[far, *near]) == (1, 1)
    assert marks("agentcpm_eval_014", TAP, there, boxes=[(850, 350, 950, 450)]) == (1, 0)


def test_agentcpms_reward_pays_a_miss_by_a_tenth_as_much_as_a_hit():
    box = (500, 1160, 580, 1240)
    hit = verdict("agentcpm_rft", TAP, ("click", 578, 1238), single=box)["reward_args"]
    miss = verdict("agentcpm_rft", TAP, ("click", 648, 1200), single=box)["reward_args"]
    assert hit == pytest.approx(0.995, abs=0.005)
    assert miss == pytest.approx(0.95)


def test_agentcpms_reward_takes_off_for_missing_and_further_keys():
    found = verdict("agentcpm_rft", DOWN, TAP)  # lacks "to"; the point is the scroll's
    assert found["reward_args"] == pytest.approx(1 / 2 - 0.3)
    found = verdict("agentcpm_rft", TAP, ("long_press", 540, 1200))
    assert found["reward_args"] == pytest.approx(1.0 - 0.1)


def test_os_atlas_looks_at_the_first_word_only():
    label = ("input_text", "broadway podcast network")
    assert marks("osatlas_ac", label, ("input_text", "Broadway tickets")) == (1, 1)
    assert marks("osatlas_ac", label, ("input_text", "podcast network broadway")) == (1, 0)
    assert marks("osatlas_ac", ("input_text", " cat"), ("input_text", " dog")) == (1, 1)  # "[" equals "["
    assert verdict("osatlas_ac", label, ("input_text", None))["error"] == "IndexError"


def test_os_atlas_loses_a_minus_sign():
    assert marks("osatlas_ac", ("click", 100, 100), ("click", -100, -100)) == (1, 1)


def test_odyssey_stops_at_the_first_colon_and_counts_case():
    assert marks("gui_odyssey_official", ("input_text", "10:30"), ("input_text", "10:99")) == (1, 1)
    assert marks("gui_odyssey_official", ("input_text", "ABC"), ("input_text", "abc")) == (1, 0)


def test_odyssey_calls_an_unreadable_point_the_right_type():
    found = verdict("gui_odyssey_official", TAP, ("click", 5))
    assert (found["type_match"], found["exact_match"], found["info"]) == (1, 0, "invalid")


def test_an_empty_list_as_box_makes_odysseys_clicks_invalid():
    found = verdict("gui_odyssey_official", TAP, TAP)["with_empty_list_box"]
    assert found == {"type_match": 1, "exact_match": 0, "info": "invalid"}
    assert verdict("gui_odyssey_official", TAP, TAP, single=(0, 0, 900, 1900))["with_empty_list_box"] is None


def test_guir1_counts_a_hit_of_another_type():
    found = verdict("guir1_eval", ("click", 10, 10), None)  # unreadable: the point is (0, 0)
    assert (found["type_match"], found["exact_match"], found["exact_and_type"]) == (0, 1, 0)
    assert verdict("guir1_eval", BACK, BACK)["exact_match"] is None


def test_guir1_loses_apostrophes_signs_and_decimal_points():
    assert marks("guir1_eval", ("input_text", "men's"), ("input_text", "men's")) == (1, 0)
    assert marks("guir1_eval", TAP, TAP, whole=False) == (1, 0)
    assert marks("guir1_reward", ("click", 5, 5), ("click", -5, -5)) == (
        1,
        1,
    )  # both are (0, 0) of the frame or near


def test_guir1s_reward_is_strict_at_the_edge_and_gives_a_fifth_for_format():
    box = (0, 0, 540, 2400)
    assert marks("guir1_reward", TAP, TAP, single=box) == (1, 0)
    assert marks("guir1_reward", TAP, ("click", 530, 1200), single=box) == (1, 1)
    assert verdict("guir1_reward", DOWN, ("scroll", "DOWN"))["reward"] == pytest.approx(0.8)
    assert verdict("guir1_reward", DOWN, ("scroll", "up"))["reward"] == pytest.approx(0.2)


def test_uir1_compares_clicks_alone():
    assert marks("uir1_reward", ("input_text", "cat"), ("input_text", "dog")) == (1, 1)
    assert marks("uir1_reward", DOWN, UP) == (1, 1)
    assert verdict("uir1_reward", TAP, TAP)["dropped"] == "click without a box"


def test_uir1_cannot_read_a_box_with_a_negative_corner():
    assert marks("uir1_reward", TAP, TAP, single=(-1, 0, 900, 2000)) == (1, 0)
    assert marks("uir1_reward", TAP, ("click", -9, 5), single=(-1, 0, 900, 2000)) == (1, 1)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("agentcpm_eval_ac004", ("open_app", "Maps")),
        ("agentcpm_eval_014", ("open_app", "Maps")),
        ("agentcpm_rft", ("open_app", "Maps")),
        ("gui_odyssey_official", WAIT),
        ("gui_odyssey_official", ("open_app", "Maps")),
        ("uir1_reward", WAIT),
        ("uir1_reward", ("long_press", 5, 5)),
        *((name, ("other",)) for name in PROTOCOLS),
    ],
)
def test_a_step_that_cannot_be_said_is_dropped_not_0(name, label):
    found = verdict(name, label, label)
    assert found["dropped"]
    assert found["type_match"] is found["exact_match"] is found["reward"] is None


def test_a_screen_of_another_size_scales():
    box = (667, 1430, 773, 1690)
    for name in PROTOCOLS:
        large = {"screen_w": 1440.0, "screen_h": 3120.0, "boxes": [box], "single": box}
        found = verdict(name, ("click", 720, 1560), ("click", 720, 1560), **large)
        assert found["type_match"] == 1, name
        assert found["exact_match"] in (1, None), name
