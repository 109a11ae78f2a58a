"""Loads an exported adapter and a merged model in transformers and peft, and compares them with what the engine sampled: its greedy
answer and the log-probabilities of its tokens. Arguments: the adapter's folder, the merged model's, the same in bfloat16, a file that
`./whet sample json=true` wrote. Prints one JSON line."""

import json
import sys

import peft
import torch
import transformers

adapter_dir, merged_dir, small_dir, answer_file = sys.argv[1:5]
answer = json.load(open(answer_file))
prompt, tokens = answer["prompt_tokens"], answer["tokens"]
base_dir = json.load(open(f"{adapter_dir}/adapter_config.json"))["base_model_name_or_path"]


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def differs_by(model):
    with torch.no_grad():
        logits = model(torch.tensor([prompt + tokens])).logits[0, len(prompt) - 1 : -1].float()
    scores = torch.log_softmax(logits, dim=-1)[torch.arange(len(tokens)), torch.tensor(tokens)]
    return float((scores - torch.tensor(answer["logprobs"])).abs().max())


def greedy(model):
    ids = torch.tensor([prompt])
    out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=len(tokens), do_sample=False)
    return out[0, len(prompt) :].tolist() == tokens


adapted = peft.PeftModel.from_pretrained(load(base_dir), adapter_dir).eval()
missing = [name for name, weight in adapted.named_parameters() if "lora_B" in name and not weight.any()]
merged, small = load(merged_dir).eval(), load(small_dir).eval()
with adapted.disable_adapter():
    base_differs = differs_by(adapted)
tokenizer = transformers.AutoTokenizer.from_pretrained(merged_dir)
result = {
    "transformers": transformers.__version__,
    "peft": peft.__version__,
    "tokens": len(tokens),
    "adapter_differs_by": differs_by(adapted),
    "merged_differs_by": differs_by(merged),
    "bfloat16_differs_by": differs_by(small),
    "base_differs_by": base_differs,
    "adapter_greedy_same": greedy(adapted),
    "merged_greedy_same": greedy(merged),
    "text_same": tokenizer.decode(tokens, skip_special_tokens=True) == answer["text"],
    "unloaded": missing,
}
print(json.dumps(result), flush=True)
