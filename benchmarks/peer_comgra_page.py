"""Records with Comgra what its page is measured with; runs in the peer's own environment. Started by ``page_peer.py``.

python peer_comgra_page.py NAME FOLDER STEPS

The networks are those of our recordings: the demo, a number of the sequences in each of Comgra's iterations, and the
transformer. Like ours they keep raw values of five samples, the transformer of one: with five, a single step takes a
quarter of an hour and 700 MB on the disk, and the page that shows it 15 GB of memory. Comgra is told the output of
every module, and its singular values are switched off, as in `peer_comgra.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "src"))  # for the network of the demo, which is plain torch

import peer_comgra
import torch
from comgra.objects import DecisionMakerForRecordingsFrequencyPerType
from comgra.recorder import ComgraRecorder
from torch.nn.functional import binary_cross_entropy
from training import select

from endoscope.demo import task
from endoscope.demo.network import Network

BATCH, WIDTH = 32, 32


class RecordedDemo:
    """The recurrent network of the demo. Modules run once per iteration, so one iteration reads one number."""

    def __init__(self, folder: Path) -> None:
        torch.manual_seed(0)
        self.model = Network(WIDTH, activate_last=True)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.003)
        self.recorder = ComgraRecorder(
            comgra_root_path=folder,
            group="group",
            trial_id="suspect",
            decision_maker_for_recordings=DecisionMakerForRecordingsFrequencyPerType(min_training_steps_difference=1),
            max_num_batch_size_to_record=peer_comgra.SAMPLES,
            calculate_svd_and_other_expensive_operations_of_parameters=False,
        )
        self.recorder.track_module("model", self.model)
        self.steps = 0

    def _register(self, name: str, tensor: torch.Tensor, **kind: bool) -> torch.Tensor:
        self.recorder.register_tensor(name, tensor, recording_type="neuron", record_per_batch_index=True, **kind)
        return tensor

    def step(self) -> None:
        model, recorder = self.model, self.recorder
        kind = list(task.LENGTHS)[self.steps % len(task.LENGTHS)]
        numbers = task.make_numbers(BATCH, task.LENGTHS[kind], torch.Generator().manual_seed(self.steps))
        targets = task.is_positive(numbers.cumsum(dim=1))
        recorder.start_batch(self.steps, BATCH, type_of_execution=kind.replace(" ", "-"))
        state = torch.zeros(BATCH, WIDTH)
        last = numbers.shape[1] - 1
        for place, number in enumerate(numbers.unbind(dim=1)):
            recorder.start_iteration()
            read = self._register("reader", model.reader(self._register("numbers", number, is_input=True)))
            state = self._register("memory", model.memory(read, state))
            said = state
            for name, layer in model.answer.named_children():
                said = self._register(f"answer.{name}", layer(said))
            said = self._register("probability", model.probability(said))
            target = self._register("target", targets[:, place], is_target=True)
            loss = binary_cross_entropy(said, target)
            recorder.register_tensor("loss", loss, is_loss=True)
            if place == last:
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                recorder.record_current_gradients("gradients")
            recorder.finish_iteration()
        recorder.finish_batch()
        self.steps += 1


def main() -> None:
    name, folder, steps = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    recorded: RecordedDemo | peer_comgra.Recorded
    if name == "demo":
        recorded = RecordedDemo(folder)
    else:
        peer_comgra.SAMPLES = 1
        recorded = peer_comgra.Recorded(select(name)[0], folder, "raw", raw=True)
    for number in range(steps):
        recorded.step()
        print(f"Comgra: {name}, step {number + 1} of {steps}", file=sys.stderr, flush=True)
    recorded.recorder.finalize()


if __name__ == "__main__":
    main()
