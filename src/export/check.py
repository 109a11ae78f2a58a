"""Loads what was exported with the libraries at hand. Arguments: the folder, the base model's folder or "" (then an adapter is only read),
"load" to put the weights into a model. Prints one JSON line: what was checked, and what is wrong."""

import importlib.metadata
import importlib.util
import json
import os
import sys

folder, base, load = sys.argv[1], sys.argv[2], sys.argv[3] == "load"
os.environ["HF_HUB_OFFLINE"] = "1"
checked, wrong, missing = [], [], []
has = lambda name: importlib.util.find_spec(name) is not None
version = lambda name: "%s %s" % (name, importlib.metadata.version(name))
is_adapter = os.path.exists(os.path.join(folder, "adapter_config.json"))
tensors = [name for name in sorted(os.listdir(folder)) if name.endswith(".safetensors")]


def finite_answer(model):
    import torch

    with torch.no_grad():
        logits = model(torch.tensor([[1, 2, 3]])).logits
    return logits, bool(torch.isfinite(logits).all())


def read_tensors():
    from safetensors import safe_open

    count = 0
    for name in tensors:
        with safe_open(os.path.join(folder, name), "numpy" if has("numpy") else "pt") as file:
            count += len(list(file.keys()))
    checked.append("%s reads %d tensors" % (version("safetensors"), count))


def load_adapter():
    import peft
    import torch
    import transformers
    from safetensors.torch import load_file

    model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    adapted = peft.PeftModel.from_pretrained(model, folder).eval()
    ours = load_file(os.path.join(folder, "adapter_model.safetensors"))
    theirs = peft.get_peft_model_state_dict(adapted, save_embedding_layers=False)
    lost = sorted(set(ours) ^ set(theirs))
    unequal = [name for name in ours if name in theirs and not torch.equal(ours[name].float(), theirs[name].float())]
    if lost or unequal:
        wrong.append("%s takes other tensors: %s" % (version("peft"), ", ".join((lost + unequal)[:3])))
    logits, finite = finite_answer(adapted)
    with adapted.disable_adapter():
        plain, _ = finite_answer(adapted)
    if not finite:
        wrong.append("its answers are not finite numbers")
    learned = any(tensor.abs().max() > 1e-4 for name, tensor in ours.items() if "lora_B" in name)
    if learned and torch.equal(logits, plain):
        wrong.append("the adapter changes nothing")
    checked.append("%s loads it onto the base model: %d tensors, each where it belongs" % (version("peft"), len(ours)))


def load_model():
    import torch
    import transformers

    model, info = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    for key in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if info[key]:
            wrong.append("%s has %s: %s" % (version("transformers"), key.replace("_", " "), ", ".join(map(str, list(info[key])[:3]))))
    if not finite_answer(model.eval())[1]:
        wrong.append("its answers are not finite numbers")
    checked.append("%s loads it: no weight is missing or left over" % version("transformers"))


try:
    if has("safetensors"):
        read_tensors()
    else:
        missing.append("safetensors")
    needed = ["torch", "transformers", *(["peft"] if is_adapter else [])]
    missing += [name for name in needed if not has(name)]
    if load and not missing and (base or not is_adapter):
        load_adapter() if is_adapter else load_model()
except Exception as error:
    wrong.append("%s: %s" % (type(error).__name__, str(error).strip().split("\n")[0][:300]))
print(json.dumps({"checked": checked, "wrong": wrong, "missing": missing}), flush=True)
