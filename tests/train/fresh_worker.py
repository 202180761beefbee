"""One process of several, for test_fresh_processes: train one step on known answers, and write down every row."""

import json
import sys
from collections import Counter
from pathlib import Path

import torch
from fresh_dataset import Known, fresh_trainer

from solar_rl.policy import answer_ids
from solar_rl.train.anchor import Anchor
from solar_rl.train.data import Crediting
from solar_rl.train.fresh import TrainerSampler
from solar_rl.train.recipe import leave_processes


class Canned(TrainerSampler):
    """Asks together with the other processes, as always, but is told the dataset's answers."""

    def __init__(self, trainer, known: Known) -> None:
        super().__init__(trainer)
        self.known, self.sizes = known, []

    def _generate(self, asked, repeats):
        self.sizes.append(len(asked))
        seen, ids, logprobs = Counter(), [], []
        for request in asked:
            key = (request.episode.episode_id, request.step.step_index, request.first)
            answer = next(iter(self.known.sample([request])))[min(seen[key], request.n - 1)]
            seen[key] += 1
            ids.append(list(answer.token_ids))
            logprobs.append(list(answer.logprobs))
        return ids, logprobs


def main(dataset: str, policy: str, out: str, readings: int) -> None:
    torch.set_num_threads(1)
    trainer = fresh_trainer(
        Path(dataset),
        Path(policy),
        Path(out),
        Crediting("solar", "log_success", anchor="none"),
        anchor=Anchor(0.1, lambda text: answer_ids(trainer.policy, text)),
        steps_per_generation=readings,
        gradient_accumulation_steps=readings,
    )
    trainer.sampler = Canned(trainer, Known(Path(dataset)))
    trainer.train()
    rank = trainer.accelerator.process_index
    logs = [entry for entry in trainer.state.log_history if "loss" in entry]
    rows = [row for row in trainer._replayed if row["answer"] is not None and row["reward"] is not None]
    names = ("episode_id", "step_index", "candidate_index", "reward", "advantage", "weight", "in_play")
    found = {"rows": [[row[name] for name in names] for row in rows], "sizes": trainer.sampler.sizes}
    found |= {"loss": logs[0]["loss"], "grad_norm": logs[0]["grad_norm"]}
    found |= {"world": trainer.accelerator.num_processes}
    Path(out, f"rank-{rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
    leave_processes()
