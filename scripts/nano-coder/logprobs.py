"""Log-probabilities that transformers computes with nano-coder; a test compares the embedded engine with them.

python3 scripts/nano-coder/logprobs.py > test/starter/golden/nano-coder-logprobs.json
"""

import json

import torch
import transformers

import corpus

FOLDER = corpus.ROOT / "models" / "nano-coder"


def main() -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(FOLDER)
    network = transformers.AutoModelForCausalLM.from_pretrained(FOLDER, dtype=torch.float32)
    rows = [json.loads(line) for line in (corpus.ROOT / "data" / "starter" / "test.jsonl").read_text().splitlines()]
    cases = []
    for row in (rows[0], rows[200], rows[-1]):
        message = {"role": "user", "content": corpus.question(row["problem"], row["starter_code"])}
        text = tokenizer.apply_chat_template([message], add_generation_prompt=True, tokenize=False)
        tokens = tokenizer(text + f"```python\n{row['solutions'][0]}\n```<|im_end|>")["input_ids"]
        with torch.no_grad():
            table = network(torch.tensor([tokens])).logits[0].log_softmax(-1)
        picked = table[:-1].gather(-1, torch.tensor(tokens[1:])[:, None])[:, 0]
        cases.append(
            {
                "id": row["id"],
                "promptTokens": len(tokenizer(text)["input_ids"]),
                "tokens": tokens,
                # Of tokens 1, 2, …; the first token has none.
                "logprobs": [round(value, 6) for value in picked.tolist()],
            }
        )
    versions = {"transformers": transformers.__version__, "torch": torch.__version__}
    print(json.dumps({"madeBy": "scripts/nano-coder/logprobs.py", **versions, "cases": cases}))


if __name__ == "__main__":
    main()
