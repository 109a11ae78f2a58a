"""Overfits one sentence with the official SDK, and samples it back.

    TINKER_BASE_URL=http://127.0.0.1:8000 TINKER_API_KEY=tml-local python test/contract/overfit_sdk.py MODEL_NAME

Prints one JSON line: steps, the loss per token reached, and the sampled text. Tokens are the sentence's UTF-8 bytes, so the
model's tokenizer must be byte-level with a byte's own value as its id, as that of test/support/tiny-model.ts is.
"""

import json
import sys

import tinker
from tinker import types

SENTENCE = "Sharpen the saw before you cut: a dull blade makes every board look hard."
PROMPT = "Sharpen"


def main():
    service = tinker.ServiceClient()
    training = service.create_lora_training_client(base_model=sys.argv[1], rank=16)
    tokens = list(SENTENCE.encode())
    datum = types.Datum(
        model_input=types.ModelInput.from_ints(tokens[:-1]),
        loss_fn_inputs={"target_tokens": tokens[1:], "weights": [1.0] * (len(tokens) - 1)},
    )
    loss, steps = float("inf"), 0
    while loss >= 0.05 and steps < 200:
        steps += 1
        update = training.forward_backward([datum], "cross_entropy")
        step = training.optim_step(types.AdamParams(learning_rate=1e-2))
        loss = update.result().metrics["loss:sum"] / (len(tokens) - 1)
        step.result()
    sampler = training.save_weights_and_get_sampling_client()
    sampled = sampler.sample(
        prompt=types.ModelInput.from_ints(list(PROMPT.encode())),
        num_samples=1,
        sampling_params=types.SamplingParams(max_tokens=len(SENTENCE) - len(PROMPT), temperature=0.0),
    ).result()
    text = PROMPT + bytes(sampled.sequences[0].tokens).decode(errors="replace")
    print(json.dumps({"version": tinker.__version__, "steps": steps, "loss_per_token": loss, "text": text, "same": text == SENTENCE}))


main()
