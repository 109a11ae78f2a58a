"""Runs tinker-cookbook's own RL trainer against a server: synchronous, or asynchronous up to `lag` steps off policy.

Reads one JSON object from standard input: base_url, model_name, log_path, batches, groups, samples, max_tokens, grade_s, lag (null:
synchronous). Prints one JSON object: what its trainer discarded as too stale, and the versions at work. Problems are numbers: the
prompt of group g of batch b is [1, b, g]. A group is graded in one go that takes grade_s seconds; every other answer is right.
"""

import asyncio
import importlib.metadata
import json
import logging
import sys

import chz
import tinker
from tinker_cookbook import tokenizer_utils
from tinker_cookbook.rl import train
from tinker_cookbook.rl.types import Env, EnvGroupBuilder, RLDataset, RLDatasetBuilder, StepResult

settings = json.load(sys.stdin)


class NumberEnv(Env):
    def __init__(self, prompt):
        self.prompt = prompt

    async def initial_observation(self):
        return tinker.ModelInput.from_ints(self.prompt), []

    async def step(self, action, *, extra=None):
        return StepResult(
            reward=0.0, episode_done=True, next_observation=tinker.ModelInput.empty(), next_stop_condition=[]
        )


class NumberGroup(EnvGroupBuilder):
    def __init__(self, batch, group):
        self.prompt = [1, batch, group]

    async def make_envs(self):
        return [NumberEnv(self.prompt) for _ in range(settings["samples"])]

    async def compute_group_rewards(self, trajectory_group, env_group):
        await asyncio.sleep(settings["grade_s"])
        return [(float(index % 2), {}) for index in range(len(trajectory_group))]


class Numbers(RLDataset):
    def get_batch(self, index):
        return [NumberGroup(index, group) for group in range(settings["groups"])]

    def __len__(self):
        return settings["batches"]


@chz.chz
class NumbersBuilder(RLDatasetBuilder):
    async def __call__(self):
        return Numbers(), None


class Decoder:
    """The trainer prints a few samples; nothing else asks for text."""

    def decode(self, tokens, **_):
        return " ".join(map(str, tokens))


class StaleCounter(logging.Handler):
    count = 0

    def emit(self, record):
        if "too stale" in record.getMessage():
            self.count += 1


stale = StaleCounter()
logging.getLogger("tinker_cookbook.rl.train").addHandler(stale)
tokenizer_utils.register_tokenizer(settings["model_name"], Decoder)
lag = settings["lag"]
config = train.Config(
    learning_rate=1e-4,
    dataset_builder=NumbersBuilder(),
    model_name=settings["model_name"],
    recipe_name="bench_pipeline",
    max_tokens=settings["max_tokens"],
    log_path=settings["log_path"],
    base_url=settings["base_url"],
    eval_every=0,
    save_every=0,
    lora_rank=8,
    num_groups_to_log=0,
    rollout_json_export=False,
    async_config=None
    if lag is None
    else train.AsyncConfig(max_steps_off_policy=lag, groups_per_batch=settings["groups"]),
)
output = sys.stdout
sys.stdout = sys.stderr
asyncio.run(train.main(config))
json.dump(
    {
        "stale": stale.count,
        "versions": [f"{name} {importlib.metadata.version(name)}" for name in ("tinker-cookbook", "tinker")],
    },
    output,
)
