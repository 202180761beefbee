"""Options of the builder: which tasks, which seeds go into which split, and how pages are touched."""

from __future__ import annotations

from itertools import combinations

from pydantic import Field, model_validator

from solar_rl.config import Config

from .doing import ActionSpace
from .env import MAX_STEPS, Text
from .experts import EXPERTS
from .tasks import LEFT_OUT, SUITE


class MiniWobOptions(Config):
    """Which demonstrations are recorded."""

    tasks: tuple[str, ...] = SUITE
    """Tasks that are demonstrated."""
    unseen_tasks: tuple[str, ...] = ()
    """Those of ``tasks`` that are held out: only their test episodes are recorded."""
    train_episodes: int = Field(default=20, ge=0)
    """Training episodes of each task: seeds 100000, 100001, ..."""
    validation_episodes: int = Field(default=3, ge=0)
    """The same for the validation split: seeds 50000, 50001, ..."""
    test_episodes: int = Field(default=3, ge=0)
    """The same for the test split: seeds 0, 1, ..., on which agents are measured in closed loop too."""
    train_seed: int = Field(default=100_000, ge=0)
    """First seed of the training split."""
    validation_seed: int = Field(default=50_000, ge=0)
    """First seed of the validation split."""
    test_seed: int = Field(default=0, ge=0)
    """First seed of the test split."""
    action_space: ActionSpace = "dom"
    """dom: a click is a scripted click on the element on top at the point; pointer: the mouse is pressed."""
    wait_ms: int = Field(default=0, ge=0, le=10_000)
    """Pause after each action; pages with delays need 300 to 500, those named -nodelay none."""
    scale: float = Field(default=2.0, ge=1.0, le=4.0)
    """Pixels of a screenshot for one of the page: 2 gives 320 x 420."""
    text: Text = "elements"
    """The page as text: every element with its tag and box, or a short list of what it says, with the very points that
    the expert then touches."""
    pictures: bool = True
    """Whether screens are drawn; without, there is only their text."""
    thoughts: bool = False
    """Record a thought with each step: a verb and the name of what is touched."""
    max_steps: int = Field(default=MAX_STEPS, ge=1)
    """Longest demonstration."""

    @model_validator(mode="after")
    def _fits(self) -> MiniWobOptions:
        for name in self.tasks:
            if name in LEFT_OUT:
                raise ValueError(f"task '{name}' is left out: {LEFT_OUT[name]}")
            if name not in EXPERTS:
                raise ValueError(f"task '{name}' has no expert; there are: {', '.join(sorted(EXPERTS))}")
        strangers = set(self.unseen_tasks) - set(self.tasks)
        if strangers or len(set(self.tasks)) < len(self.tasks):
            raise ValueError("tasks must differ from each other, and unseen_tasks be among them")
        for (one, first), (other, second) in combinations(self.seeds().items(), 2):
            if set(first) & set(second):
                raise ValueError(f"seeds of {one} and {other} overlap: {first} and {second}")
        return self

    def seeds(self) -> dict[str, range]:
        """Return the seeds of each split."""
        return {
            "train": range(self.train_seed, self.train_seed + self.train_episodes),
            "validation": range(self.validation_seed, self.validation_seed + self.validation_episodes),
            "test": range(self.test_seed, self.test_seed + self.test_episodes),
        }
