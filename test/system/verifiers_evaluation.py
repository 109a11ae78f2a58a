# Measures a model over the OpenAI API with verifiers' own evaluation. Arguments: FOLDER and MODULE of an environment, MAX_TOKENS. Prints the
# reward of each row of its data, in their order.
import asyncio
import json
import os
import sys

folder, module, most = sys.argv[1:]
sys.path.insert(0, folder)
url, model = os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_MODEL"]
sampling = {"temperature": 0.0, "max_tokens": int(most)}
try:
    import verifiers as vf
    from openai import AsyncOpenAI
    from verifiers.clients import OpenAIChatCompletionsClient

    env = vf.load_environment(module)
    given = asyncio.run(env.evaluate(OpenAIChatCompletionsClient(AsyncOpenAI()), model, sampling))
    rewards = {str(row["example_id"]): row["reward"] for row in given["outputs"]}
except ModuleNotFoundError:  # from 0.4 on
    from verifiers.v1.cli.eval.runner import run_eval
    from verifiers.v1.configs.cli.eval import EvalConfig

    config = EvalConfig.model_validate(
        {
            "env": {"taskset": {"id": module}, "agent": {"harness": {"id": "null"}, "runtime": {"type": "subprocess"}}},
            "model": model,
            "client": {"base_url": url, "api_key_var": "OPENAI_API_KEY"},
            "sampling": sampling,
            "num_rollouts": 1,
            "rich": None,
            "push": False,
            "output_dir": os.path.join(folder, "out"),
        }
    )
    episodes = asyncio.run(run_eval(config))
    rewards = {episode.task.data.name: episode.traces[0].reward for episode in episodes}
print(json.dumps(rewards))
