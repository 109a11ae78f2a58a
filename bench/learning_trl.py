"""TRL's side of `./whet bench learning`: GRPOTrainer on the bundled model and problems, on the CPU.

    python learning_trl.py SETTINGS.json

One JSON line per evaluation: the seconds of training so far (loading and evaluating not counted), completions drawn, Pass@1 per part.
Ends when the target is reached. The same model, problems, rank, learning rate, optimizer and budget as the other side. Programs run
in worker processes without a sandbox, which costs less time than any sandbox.
"""

import json
import multiprocessing
import pathlib
import random
import re
import sys
import time

ROOT = pathlib.Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "scripts" / "starter"), str(ROOT / "scripts" / "nano-coder")]
import corpus
import runner

FENCE = re.compile(r"```[^\n`]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)


def grade(job):
    """Whether the answer has a code block, and whether the last one passes every test."""
    answer, function, tests = job
    blocks = FENCE.findall(answer + "\n")
    return (True, runner.passes(blocks[-1], function, json.loads(tests))) if blocks else (False, False)


def read(file):
    return [json.loads(line) for line in pathlib.Path(file).read_text().splitlines()]


def main():
    given = json.loads(pathlib.Path(sys.argv[1]).read_text())
    pool = multiprocessing.get_context("fork").Pool(given["threads"])  # before torch has threads

    import torch
    import transformers
    import trl
    from datasets import Dataset
    from peft import LoraConfig

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(given["threads"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(given["model"])
    model = transformers.AutoModelForCausalLM.from_pretrained(given["model"], dtype=torch.float32)
    rows = {corpus.prompt(row["problem"], row["starter_code"]): row for row in read(given["train"])}
    test = read(given["test"])
    order = list(rows)
    random.Random(given["seed"]).shuffle(order)

    def graded(texts, problems):
        jobs = [(text, row["metadata"]["func_name"] or "", row["tests"]) for text, row in zip(texts, problems, strict=True)]
        return pool.map(grade, jobs, chunksize=4)

    def reward(prompts, completions, **_):
        return [float(right) - (0.0 if formed else given["format_coef"]) for formed, right in graded(completions, [rows[prompt] for prompt in prompts])]

    class Clock(transformers.TrainerCallback):
        """Evaluates between steps, with the clock stopped."""

        seconds, started = 0.0, None

        def on_step_begin(self, args, state, control, **_):
            self.started = self.started or time.perf_counter()

        def on_step_end(self, args, state, control, **_):
            step = state.global_step
            if step < given["first_eval"] or (step - given["first_eval"]) % given["eval_every"] != 0:
                return
            self.seconds += time.perf_counter() - self.started
            right = evaluate()
            say(step=step, seconds=self.seconds, completions=step * given["prompts"] * given["samples"], **right)
            control.should_training_stop = right["rate"] >= given["target"]
            self.started = time.perf_counter()

    @torch.inference_mode()
    def evaluate():
        model.eval()
        prompts = [corpus.prompt(row["problem"], row["starter_code"]) for row in test]
        batch = tokenizer(prompts, return_tensors="pt", padding=True, padding_side="left", add_special_tokens=False)
        out = model.generate(**batch, max_new_tokens=given["max_tokens"], do_sample=False)
        texts = tokenizer.batch_decode(out[:, batch["input_ids"].shape[1] :], skip_special_tokens=True)
        model.train()
        grades = graded(texts, test)
        parts = {}
        for row, (_, right) in zip(test, grades, strict=True):
            parts.setdefault(row["part"], []).append(right)
        return {"rate": sum(right for _, right in grades) / len(grades), "parts": {part: sum(some) / len(some) for part, some in parts.items()}}

    def say(**values):
        print(json.dumps(values), flush=True)

    arguments = trl.GRPOConfig(
        output_dir=given["folder"], seed=given["seed"], max_steps=given["steps"], learning_rate=given["learning_rate"],
        lr_scheduler_type="constant", adam_beta1=0.9, adam_beta2=0.95, adam_epsilon=1e-12, max_grad_norm=0.0, optim="adamw_torch",
        per_device_train_batch_size=given["prompts"] * given["samples"], gradient_accumulation_steps=1, num_generations=given["samples"],
        max_completion_length=given["max_tokens"], temperature=1.0, top_k=0, beta=0.0, scale_rewards="none", shuffle_dataset=False,
        gradient_checkpointing=False, bf16=False, use_cpu=True, report_to="none", save_strategy="no", logging_strategy="no", disable_tqdm=True,
    )
    trainer = trl.GRPOTrainer(
        model=model, args=arguments, reward_funcs=reward, processing_class=tokenizer, callbacks=[Clock()],
        train_dataset=Dataset.from_list([{"prompt": prompt} for prompt in order]),
        peft_config=LoraConfig(r=given["rank"], lora_alpha=given["rank"], target_modules="all-linear", task_type="CAUSAL_LM"),
    )
    model = trainer.model
    say(versions={"trl": trl.__version__, "torch": torch.__version__, "transformers": transformers.__version__})
    trainer.train()
    pool.terminate()


if __name__ == "__main__":
    main()
