"""What a log tells doesn't hang on how an update is cut into micro-batches."""

import pytest
import torch

from solar_rl.train.figures import PolicyFigures, Window

pytestmark = pytest.mark.train


def same(values: torch.Tensor) -> torch.Tensor:
    return values


def figures_of(cuts: list[slice], metrics_of) -> dict[str, float]:
    """Gather 16 answers in micro-batches and return what is logged."""
    made = torch.Generator().manual_seed(3)
    stored = -torch.rand(16, 6, generator=made)
    now = stored + 0.7 * torch.randn(16, 6, generator=made)
    mask = (torch.rand(16, 6, generator=made) < 0.8).long()
    mask[4:8] = 0  # a micro-batch of four with nothing in play
    valid = torch.tensor([1, 0, -1, 1] * 4)
    window, metrics = Window(), {}
    for cut in cuts:
        metrics.update(
            {name: [*metrics.get(name, []), value] for name, value in metrics_of(now[cut], mask[cut]).items()}
        )
        window.take(PolicyFigures.of(now[cut], stored[cut], mask[cut], valid[cut]), metrics, same)
    window.close(metrics, same, same)
    return {name: sum(values) / len(values) for name, values in metrics.items()}


def noted(now: torch.Tensor, mask: torch.Tensor) -> dict[str, float]:
    """Note what TRL notes of a micro-batch: a mean over its tokens, 0 where there are none."""
    mean = ((now * mask).sum() / mask.sum().clamp(min=1)).item()
    return {"entropy": mean, "clip_ratio/low_min": 0.5 if mask.any() else float("nan")}


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_figures_do_not_hang_on_the_micro_batch(size):
    whole = figures_of([slice(0, 16)], noted)
    cut = figures_of([slice(k, k + size) for k in range(0, 16, size)], noted)
    assert cut == pytest.approx(whole, rel=1e-5)
    assert whole["policy/sample_share"] < 0.5 < whole["policy/ratio_max"] - 2


def test_a_window_without_a_token_in_play_tells_nothing():
    none = torch.zeros(2, 3)
    window, metrics = Window(), {"entropy": [0.0], "kl": [0.0]}
    window.take(PolicyFigures.of(none, none, none.long(), torch.tensor([1, 0])), metrics, same)
    window.close(metrics, same, same)
    assert metrics == {}


def test_a_closed_window_begins_anew():
    window, metrics = Window(), {}
    window.note("data/in_play", 3.0, 4.0)
    window.close(metrics, same, same)
    assert metrics == {"data/in_play": [0.75]}
    window.close(after := {}, same, same)
    assert after == {}
