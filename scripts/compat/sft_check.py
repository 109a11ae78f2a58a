"""Trains an exported adapter in PEFT on the batches that a run of `./whet sft` trained on, with torch's Adam, and compares the loss of
every step. Arguments: a file with {"adapter", "adam", "clip", "steps": [{"loss", "rows": [{"prompt", "answer"}]}], "ids"} and the folder of
the tokenizer. Prints one JSON line."""

import json
import sys

import peft
import torch
import transformers

spec = json.load(open(sys.argv[1]))
config = json.load(open(f"{spec['adapter']}/adapter_config.json"))
torch.manual_seed(0)
base = transformers.AutoModelForCausalLM.from_pretrained(config["base_model_name_or_path"], dtype=torch.float32)
model = peft.PeftModel.from_pretrained(base, spec["adapter"], is_trainable=True)
trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
adam = spec["adam"]
optimizer = torch.optim.Adam(trained.values(), lr=adam["learningRate"], betas=(adam["beta1"], adam["beta2"]), eps=adam["eps"])


def loss_of(row):
    """As Hugging Face's trainers have it: labels are the tokens, and -100 where nothing is learned."""
    tokens = torch.tensor([row["prompt"] + row["answer"]])
    labels = tokens.clone()
    labels[0, : len(row["prompt"])] = -100
    return model(tokens, labels=labels).loss * len(row["answer"])


differ, losses = 0.0, []
for step in spec["steps"]:
    total = sum(loss_of(row) for row in step["rows"])
    count = sum(len(row["answer"]) for row in step["rows"])
    mean = float(total.detach()) / count
    losses.append(mean)
    differ = max(differ, abs(mean - step["loss"]))
    optimizer.zero_grad()
    total.backward()
    optimizer.step()

# The tokens and what is learned of them, by the model's own template where it has one.
tokenizer = transformers.AutoTokenizer.from_pretrained(sys.argv[2])
same = None
if tokenizer.chat_template and spec.get("messages"):
    same = []
    for row, messages in zip(spec["steps"][0]["rows"], spec["messages"]):
        prompt = tokenizer.apply_chat_template(messages[:-1], add_generation_prompt=True, tokenize=True, return_dict=False, enable_thinking=False)
        same.append(list(prompt) == row["prompt"])
result = {
    "transformers": transformers.__version__,
    "peft": peft.__version__,
    "steps": len(losses),
    "first": losses[0],
    "last": losses[-1],
    "differs_by": differ,
    "trained": len(trained),
    "names_lm_head": any("lm_head" in name for name in trained),
    "prompts_same": same,
}
print(json.dumps(result), flush=True)
