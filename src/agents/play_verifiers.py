"""Plays one environment of the `verifiers` package for ./whet: says what tasks it has, and runs rollouts of them against the address of an
episode. Lines of JSON come on standard input and go to what was standard output; what the environment prints goes to standard error.
Verifiers knows two forms: a module with load_environment (up to 0.3), and a taskset that a harness plays (verifiers.v1, from 0.4)."""

import asyncio
import contextlib
import hashlib
import importlib
import importlib.metadata
import importlib.util
import json
import math
import os
import pathlib
import sys
import threading
import traceback


class Refused(Exception):
    """What is said as it stands."""


def said_of(error):
    """An exception in a line, with the place in the environment's own file."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__ and not f.filename.startswith("<")]
    own = [f for f in frames if "site-packages" not in f.filename and "/lib/python" not in f.filename]
    return f"{text} ({own[-1].filename}:{own[-1].lineno})" if own else text


def text_of(content):
    if not isinstance(content, list):
        return content or ""
    parts = [part if isinstance(part, dict) else part.model_dump() for part in content]
    if any(part.get("type") != "text" for part in parts):
        raise Refused("its prompts hold more than text, which this model cannot read")
    return "".join(part["text"] for part in parts)


def messages_of(prompt, system=None):
    """A prompt as a list of role and text."""
    given = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt or [])
    rows = [message if isinstance(message, dict) else message.model_dump() for message in given]
    messages = [{"role": row["role"], "content": text_of(row.get("content"))} for row in rows]
    head = [{"role": "system", "content": text_of(system)}] if system else []
    return head + messages or [{"role": "user", "content": ""}]


def problems_of(rows):
    """(id, messages) pairs: ids as they are given, where they are different ones."""
    ids = [str(name) if name not in (None, "") else "" for name, _ in rows]
    own = all(ids) and len(set(ids)) == len(ids)
    return [{"id": ids[i] if own else str(i), "row": i, "prompt": prompt} for i, (_, prompt) in enumerate(rows)]


class Classic:
    """An environment that load_environment gave."""

    def __init__(self, env):
        self.env = env
        if getattr(env, "requires_group_rollouts", False):
            raise Refused("it scores its rollouts group by group, and episodes are judged one by one here")
        has_test = getattr(env, "eval_dataset", None) is not None or getattr(env, "eval_dataset_source", None) is not None
        try:
            train = env.get_dataset().to_list()
        except ValueError:  # it has data to measure with alone
            train, has_test = env.get_eval_dataset().to_list(), False
        self.rows = {"train": train, "test": env.get_eval_dataset().to_list() if has_test else []}
        self.max_turns = getattr(env, "max_turns", 1)

    def problems(self, split):
        return problems_of([(row.get("example_id"), messages_of(row["prompt"])) for row in self.rows[split]])

    async def play(self, split, row, endpoint):
        from openai import AsyncOpenAI
        from verifiers.clients import OpenAIChatCompletionsClient

        address = {"base_url": endpoint["baseURL"], "api_key": endpoint["apiKey"]}
        async with AsyncOpenAI(**address, timeout=None) as client:
            wrapped = OpenAIChatCompletionsClient(client)
            out = await self.env.run_rollout(self.rows[split][row], wrapped, endpoint["model"], dict(self.env.sampling_args))
        if out.get("error"):
            error = out["error"]
            raise Refused(error.get("error_chain_str") or error.get("error") if isinstance(error, dict) else str(error))
        return out.get("reward"), out.get("metrics") or {}, out.get("stop_condition")

    def serving(self):
        return contextlib.nullcontext()


class Taskset:
    """A taskset and who plays it, of verifiers.v1."""

    def __init__(self, name, args):
        import verifiers.v1 as vf
        from verifiers.v1.configs.select import SelectConfig
        from verifiers.v1.utils.loaders import default_harness_id, env_config_type, load_environment, resolve_env_config

        data = {**args, "taskset": {**args.get("taskset", {}), "id": name}}
        select = SelectConfig.model_validate(data.pop("select", {}))
        fields = env_config_type(name, data.get("id", "")).model_fields.items()
        roles = [role for role, field in fields if isinstance(field.default, vf.AgentConfig)]
        harness = default_harness_id(name)
        for role in roles:
            # On this machine, in a loop that only talks: what runs a model's code wants a box that was asked for.
            own = data[role] = {"runtime": {"type": "subprocess"}, **data.get(role, {})}
            own.setdefault("harness", {"id": "null" if harness == "bash" else harness})
        self.env = load_environment(resolve_env_config(data))
        for role in roles:
            is_here = self.env._agent_specs[role].runtime.type == "subprocess"
            if is_here and self.env._harnesses[role].EXECUTES_CODE:
                raise Refused(
                    f'{role} runs what the model writes, and would do so on this machine. Give it a box: env_args={{"{role}":{{"runtime":{{"type":"docker"}}}}}}'
                )
        played = [role for role in roles if self.env._agent_specs[role].client is None]
        if len(played) != 1:
            raise Refused(
                f'one role learns, and here the policy would play {", ".join(played) or "none"}. Give the others a model: env_args={{"ROLE":{{"model":"…","client":{{"base_url":"…"}}}}}}'
            )
        self.role = played[0]
        self.max_turns = self.env._agent_specs[self.role].max_turns
        tasks = self.env.taskset.select(select)
        if not tasks.bounded:
            raise Refused('it has tasks without end. Say how many: env_args={"select":{"limit":1000}}')
        self.tasks = list(tasks)

    def problems(self, split):
        if split == "test":
            return []
        return problems_of([(t.data.id or t.data.name, messages_of(t.data.prompt, t.data.system_prompt)) for t in self.tasks])

    async def play(self, split, row, endpoint):
        import verifiers.v1 as vf
        from verifiers.v1.clients import ModelContext

        # Keys come from variables there; those with API_KEY in their name are kept from what an agent starts.
        key = f"WHETSTONE_API_KEY_{hashlib.sha256(endpoint['apiKey'].encode()).hexdigest()[:16]}"
        os.environ[key] = endpoint["apiKey"]
        try:
            client = vf.EvalClientConfig(base_url=endpoint["baseURL"], api_key_var=key)
            episode = await self.env.run_episode(self.tasks[row], ModelContext(model=endpoint["model"], client=client))
        finally:
            os.environ.pop(key, None)
        errors = [*episode.errors, *(error for trace in episode.traces if not trace.ok for error in trace.errors)]
        if not episode.ok:
            raise Refused(f"{errors[-1].type}: {errors[-1].message}" if errors else "the episode did not end well")
        trace = next(trace for trace in episode.traces if trace.agent.name == self.role)
        rewards = {name: reward.value for name, reward in trace.rewards.items() if reward is not None}
        return trace.reward, {**rewards, **trace.metrics}, trace.stop_condition

    def serving(self):
        return self.env.serving()


def load(place, name, args):
    """The environment: of a module that is a file, in a folder or installed, or one that verifiers itself brings."""
    # The first is this file's folder, in which nothing is to be found.
    sys.path[:1] = [place] if place else []
    try:
        import verifiers
    except ModuleNotFoundError as error:
        raise Refused(f"this Python has no verifiers package ({error})") from None
    version = importlib.metadata.version("verifiers")
    module = None
    with contextlib.suppress(ModuleNotFoundError, ValueError):
        found = importlib.util.find_spec(name.replace("-", "_"))
        module = found and importlib.import_module(name.replace("-", "_"))
    classic = importlib.util.find_spec("verifiers.clients") is not None
    if hasattr(module, "load_environment"):
        if not classic:
            raise Refused(f"it has load_environment, which verifiers {version} no longer knows. Take an older one: env_packages=verifiers==0.3.1")
        loaded = Classic(module.load_environment(**args))
    elif module is None and classic and isinstance(getattr(verifiers, name, None), type):
        loaded = Classic(getattr(verifiers, name)(**args))
    elif not classic:
        try:
            loaded = Taskset(name, args)
        except ModuleNotFoundError as error:
            raise Refused(f"a module is not installed ({error}). Install it into the Python that env_python names, or name it in env_packages") from None
    else:
        raise Refused(f"no module of that name with load_environment is installed (verifiers {version}; tasksets are played from 0.4 on)")
    digest = hashlib.sha256(f"{version} {json.dumps(args, sort_keys=True)}".encode())
    file = getattr(module, "__file__", None)
    own = pathlib.Path(file) if file else None
    for path in sorted(own.parent.rglob("*.py")) if own and own.name == "__init__.py" else [own] if own else []:
        digest.update(path.read_bytes())
    return loaded, {"version": version, "fingerprint": digest.hexdigest()[:16], "maxTurns": loaded.max_turns}


def plain(reward):
    """JSON has no other numbers."""
    reward = None if reward is None else float(reward)
    return reward if reward is None or math.isfinite(reward) else str(reward)


async def serve(loaded, say):
    loop, lines, running = asyncio.get_running_loop(), asyncio.Queue(), {}

    def read():
        for line in sys.stdin:
            loop.call_soon_threadsafe(lines.put_nowait, json.loads(line))
        loop.call_soon_threadsafe(lines.put_nowait, None)

    async def play(number, split, row, endpoint):
        try:
            reward, metrics, stop = await loaded.play(split, row, endpoint)
            figures = {name: plain(value) for name, value in metrics.items() if isinstance(value, (bool, int, float))}
            say({"id": number, "reward": plain(reward), "metrics": figures, "stop": stop})
        except asyncio.CancelledError:
            say({"id": number, "error": "it was cancelled"})
        except Refused as error:
            say({"id": number, "error": str(error)})
        except Exception as error:
            say({"id": number, "error": said_of(error)})
        finally:
            running.pop(number, None)

    threading.Thread(target=read, daemon=True).start()
    async with loaded.serving():
        while (asked := await lines.get()) is not None:
            if "cancel" in asked:
                if task := running.get(asked["cancel"]):
                    task.cancel()
                continue
            number = asked.pop("id")
            running[number] = asyncio.create_task(play(number, **asked))


def main():
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(message):
        out.write(json.dumps(message, allow_nan=False) + "\n")
        out.flush()

    asked = json.loads(sys.stdin.readline())
    try:
        loaded, facts = load(asked["place"], asked["name"], asked["args"])
        said = {**facts, "problems": loaded.problems("train"), "testProblems": loaded.problems("test")}
    except Refused as error:
        return say({"error": str(error)})
    except Exception as error:
        return say({"error": said_of(error)})
    say(said)
    asyncio.run(serve(loaded, say))


main()
