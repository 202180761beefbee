"""A small demonstration with one step of every phone action, as the samplers' tests need it."""

import io

from PIL import Image

from solar_rl.actions import Action, Box
from solar_rl.config import PromptConfig
from solar_rl.errors import ActionError
from solar_rl.formats import get_format
from solar_rl.formats.base import Frame
from solar_rl.prompts import build_request
from solar_rl.sampling.base import candidate_seed
from solar_rl.schema import Episode, Screenshot, Step

SIZE = (112, 224)
ACTIONS = (
    Action("open_app", app_name="Alarm Clock"),
    Action("click", x=0.5, y=0.25),
    Action("long_press", x=0.1, y=0.9),
    Action("scroll", direction="down"),
    Action("input_text", text="buy two red apples"),
    Action("press", button="back"),
    Action("wait"),
    Action("finished", status="complete"),
)


def screenshot(shade: int) -> Screenshot:
    data = io.BytesIO()
    image = Image.linear_gradient("L").resize(SIZE).point(lambda v: (v + shade) % 256).convert("RGB")
    image.save(data, "PNG")
    return Screenshot(data.getvalue(), *SIZE)


def make_episode(actions=ACTIONS, *, images=True, box: Box | None = None) -> Episode:
    steps = tuple(
        Step(
            i,
            action,
            *SIZE,
            instruction=f"do {action.action_type}",
            screenshot=screenshot(20 * i) if images else None,
            screen_text=f"[button] {i}",
            target_box=box,
        )
        for i, action in enumerate(actions)
    )
    return Episode("e", "test", "android", "Set an alarm", steps)


def said_by(name: str) -> Episode:
    """The demonstration without the actions that a format lacks."""
    fmt, kept = get_format(name), []
    for action in ACTIONS:
        try:
            fmt.render(action, Frame(*SIZE))
        except ActionError:
            continue
        kept.append(action)
    assert len(kept) >= len(ACTIONS) - 1
    return make_episode(tuple(kept))


def make_requests(episode: Episode, prompt: PromptConfig, n: int = 8, seed: int = 0):
    return [
        build_request(episode, s, prompt, n=n, seed=candidate_seed(seed, "e", s.step_index))
        for s in episode.steps
    ]
