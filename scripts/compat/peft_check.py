"""Trains an adapter on a server, downloads it with the SDK's command line, loads it in transformers and peft, and compares
log-probabilities. Arguments: the base model's folder, a folder for the download. Prints one JSON line."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import peft
import tinker
import torch
import transformers
from tinker import types

base_folder, out = sys.argv[1], Path(sys.argv[2])
service = tinker.ServiceClient()
model_name = service.get_server_capabilities().supported_models[0].model_name
training = service.create_lora_training_client(base_model=model_name, rank=8, seed=1)
tokenizer = transformers.AutoTokenizer.from_pretrained(base_folder)
texts = [
    "Print the sum of the numbers.",
    "def solve():\n    return sorted(set(map(int, input().split())))\n",
    "Given a list, keep the even numbers and print them in reverse order.",
]
sequences = [tokenizer.encode(text) for text in texts]


def datum(sequence):
    return types.Datum(
        model_input=types.ModelInput.from_ints(sequence[:-1]),
        loss_fn_inputs={"target_tokens": sequence[1:], "weights": [1.0] * (len(sequence) - 1)},
    )


for _ in range(5):
    training.forward_backward([datum(sequence) for sequence in sequences], "cross_entropy").result()
    training.optim_step(types.AdamParams(learning_rate=1e-2)).result()
trainer = training.forward([datum(sequence) for sequence in sequences], "cross_entropy").result()
sampler = training.save_weights_and_get_sampling_client()
path = training.save_state("for-peft").result().path
command = [sys.executable, "-m", "tinker.cli", "checkpoint", "download", path, "--output", str(out)]
subprocess.run(command, check=True, capture_output=True, text=True)
folder = next(file.parent for file in out.rglob("adapter_config.json"))

base = transformers.AutoModelForCausalLM.from_pretrained(base_folder, dtype=torch.float32)
adapted = peft.PeftModel.from_pretrained(base, folder).eval()


def reference(model, sequence):
    with torch.no_grad():
        scores = torch.log_softmax(model(torch.tensor([sequence])).logits[0, :-1].float(), dim=-1)
    return scores[torch.arange(len(sequence) - 1), torch.tensor(sequence[1:])].numpy()


def worst(values):
    return float(max(np.max(np.abs(np.asarray(got) - wanted)) for got, wanted in zip(values, expected)))


expected = [reference(adapted, sequence) for sequence in sequences]
with adapted.disable_adapter():
    moved = worst([reference(adapted, sequence) for sequence in sequences])
result = {
    "tinker": tinker.__version__,
    "peft": peft.__version__,
    "transformers": transformers.__version__,
    "positions": sum(len(sequence) - 1 for sequence in sequences),
    "trainer_differs_by": worst([output["logprobs"].data for output in trainer.loss_fn_outputs]),
    "sampler_differs_by": worst(
        [sampler.compute_logprobs(types.ModelInput.from_ints(sequence)).result()[1:] for sequence in sequences]
    ),
    "adapter_moves_them_by": moved,
}
print(json.dumps(result), flush=True)
sys.exit(0 if max(result["trainer_differs_by"], result["sampler_differs_by"]) <= 1e-4 < moved else 1)
