"""Drives a Tinker server with the official Python SDK and reports one JSON line per check.

Reads TINKER_BASE_URL and TINKER_API_KEY. Knows nothing about the engine behind the server: token ids stay small, and every
number is checked against another number from the same server. Exits 0 when every check passed.
"""

import json
import math
import os
import sys
import tarfile
import tempfile
import time
import traceback
import urllib.request

import numpy as np
import official_sdk_newer
import tinker
import tinker.lib.public_interfaces.rest_client
from tinker import types

# No call that fails may take this long: a client that waits for its telemetry needs 30 s.
FAILURE_LIMIT_S = 15.0
ADAM = types.AdamParams(learning_rate=2e-3)
LOSSES = ["cross_entropy", "importance_sampling", "ppo", "cispo", "dro"]

checks = []


def check(function):
    checks.append(function)
    return function


class State:
    """What earlier checks leave for later ones."""


def tokens(seed, count):
    return [int(x) for x in np.random.default_rng(seed).integers(1, 200, count)]


def ce_datum(seed=0, count=12, weights=None):
    sequence = tokens(seed, count + 1)
    return types.Datum(
        model_input=types.ModelInput.from_ints(sequence[:-1]),
        loss_fn_inputs={
            "target_tokens": sequence[1:],
            "weights": [1.0] * count if weights is None else weights,
        },
    )


def rl_datum(logprobs, seed=0):
    count = len(logprobs)
    sequence = tokens(seed, count + 1)
    rng = np.random.default_rng(seed + 1)
    return types.Datum(
        model_input=types.ModelInput.from_ints(sequence[:-1]),
        loss_fn_inputs={
            "target_tokens": sequence[1:],
            "logprobs": [float(x) for x in np.asarray(logprobs) + 0.3 * rng.standard_normal(count)],
            "advantages": [float(x) for x in rng.standard_normal(count)],
        },
    )


def logprobs_of(output, index=0):
    return np.asarray(output.loss_fn_outputs[index]["logprobs"].data, dtype=np.float64)


def expected_loss(name, lp, datum):
    inputs = {key: np.asarray(value.data, dtype=np.float64) for key, value in datum.loss_fn_inputs.items()}
    if name == "cross_entropy":
        return float(np.sum(-inputs["weights"] * lp))
    q, a = inputs["logprobs"], inputs["advantages"]
    r = np.exp(lp - q)
    if name == "importance_sampling":
        return float(-np.sum(r * a))
    if name == "ppo":
        return float(-np.sum(np.minimum(r * a, np.clip(r, 0.8, 1.2) * a)))
    if name == "cispo":
        return float(-np.sum(np.clip(r, 0.0, 4.0) * lp * a))
    return float(-np.sum(lp * a - 0.5 * 0.05 * (lp - q) ** 2))


def close(a, b, tolerance=1e-3):
    return np.allclose(np.asarray(a, dtype=float), np.asarray(b, dtype=float), rtol=tolerance, atol=tolerance)


def fails(call, wanted, text):
    """Asserts that the call raises one of the classes, names the code, and does so at once."""
    started = time.monotonic()
    try:
        call()
    except wanted as error:
        seconds = time.monotonic() - started
        assert seconds < FAILURE_LIMIT_S, f"took {seconds:.1f} s to fail"
        assert text in str(error), f"{type(error).__name__}: {error} lacks {text!r}"
        return
    raise AssertionError("did not fail")


@check
def capabilities(s):
    models = s.service.get_server_capabilities().supported_models
    assert len(models) >= 1
    s.base_model = models[0].model_name
    s.context = models[0].max_context_length
    assert s.context > 16


@check
def create_lora_training_client(s):
    s.training = s.service.create_lora_training_client(base_model=s.base_model, rank=8, seed=3)
    info = s.training.get_info()
    assert info.model_id == s.training.model_id
    assert info.lora_rank == 8 and info.is_lora
    assert info.model_data.model_name == s.base_model


@check
def forward_only(s):
    datum = ce_datum()
    output = s.training.forward([datum, ce_datum(5, 7)], "cross_entropy").result()
    assert [len(logprobs_of(output, i)) for i in range(2)] == [12, 7]
    assert np.all(logprobs_of(output) <= 0)
    total = expected_loss("cross_entropy", logprobs_of(output, 0), datum)
    total += expected_loss("cross_entropy", logprobs_of(output, 1), ce_datum(5, 7))
    assert close(output.metrics["loss:sum"], total), (output.metrics, total)
    s.base_logprobs = logprobs_of(output)


def loss_check(name):
    def run(s):
        datum = ce_datum() if name == "cross_entropy" else rl_datum(s.base_logprobs)
        output = s.training.forward_backward([datum], name).result()
        assert close(logprobs_of(output), s.base_logprobs)
        wanted = expected_loss(name, logprobs_of(output), datum)
        assert close(output.metrics["loss:sum"], wanted), (output.metrics, wanted)

    run.__name__ = f"forward_backward_{name}"
    return run


for loss in LOSSES:
    check(loss_check(loss))


@check
def loss_settings(s):
    datum = rl_datum(s.base_logprobs)
    output = s.training.forward(
        [datum], "ppo", loss_fn_config={"clip_low_threshold": 0.99, "clip_high_threshold": 1.01}
    ).result()
    lp = logprobs_of(output)
    q = np.asarray(datum.loss_fn_inputs["logprobs"].data)
    a = np.asarray(datum.loss_fn_inputs["advantages"].data)
    r = np.exp(lp - q)
    assert close(output.metrics["loss:sum"], -np.sum(np.minimum(r * a, np.clip(r, 0.99, 1.01) * a)))


@check
def soft_targets(s):
    rng = np.random.default_rng(9)
    targets = rng.integers(1, 200, (6, 3)).astype(np.int64)
    weights = rng.random((6, 3)).astype(np.float32)
    datum = types.Datum(
        model_input=types.ModelInput.from_ints(tokens(2, 6)),
        loss_fn_inputs={
            "target_tokens": types.TensorData.from_numpy(targets),
            "weights": types.TensorData.from_numpy(weights),
        },
    )
    output = s.training.forward([datum], "cross_entropy").result()
    tensor = output.loss_fn_outputs[0]["logprobs"]
    assert list(tensor.shape) == [6, 3], tensor.shape
    assert close(output.metrics["loss:sum"], -np.sum(weights.ravel() * np.asarray(tensor.data)))


@check
def optim_step_learns(s):
    before = s.training.forward([ce_datum()], "cross_entropy").result()
    for _ in range(3):
        # Both are submitted before either is awaited.
        update = s.training.forward_backward([ce_datum()], "cross_entropy")
        step = s.training.optim_step(ADAM)
        update.result()
        step.result()
    after = s.training.forward([ce_datum()], "cross_entropy").result()
    assert after.metrics["loss:sum"] < before.metrics["loss:sum"]


@check
def chunked_batch(s):
    data = [ce_datum(i % 7, 2) for i in range(1030)]
    output = s.training.forward(data, "cross_entropy").result()
    assert len(output.loss_fn_outputs) == 1030
    for i in (0, 1023, 1024, 1029):
        assert close(logprobs_of(output, i), logprobs_of(output, i % 7))


@check
def save_and_load_state(s):
    s.saved = s.training.save_state("resume-here").result().path
    assert s.saved == f"tinker://{s.training.model_id}/weights/resume-here"
    s.saved_logprobs = logprobs_of(s.training.forward([ce_datum()], "cross_entropy").result())

    def next_step(client):
        client.forward_backward([ce_datum(1)], "cross_entropy").result()
        client.optim_step(ADAM).result()
        return logprobs_of(client.forward([ce_datum()], "cross_entropy").result())

    continued = next_step(s.training)
    results = {}
    for optimizer in (True, False):
        fresh = s.service.create_lora_training_client(base_model=s.base_model, rank=8)
        load = fresh.load_state_with_optimizer if optimizer else fresh.load_state
        load(s.saved).result()
        assert close(logprobs_of(fresh.forward([ce_datum()], "cross_entropy").result()), s.saved_logprobs, 1e-4)
        results[optimizer] = next_step(fresh)
    assert close(results[True], continued, 1e-4), "the optimizer's state did not come back"
    assert not close(results[False], continued, 1e-4), "without the optimizer the step should differ"


@check
def create_training_client_from_state(s):
    for create in (
        s.service.create_training_client_from_state,
        s.service.create_training_client_from_state_with_optimizer,
    ):
        client = create(s.saved)
        assert client.get_info().lora_rank == 8
        assert close(logprobs_of(client.forward([ce_datum()], "cross_entropy").result()), s.saved_logprobs, 1e-4)


@check
def sample(s):
    s.sampler = s.training.save_weights_and_get_sampling_client()
    prompt = types.ModelInput.from_ints(tokens(4, 6))
    params = types.SamplingParams(max_tokens=8, seed=11, temperature=1.0)
    s.prompt, s.params = prompt, params
    first = s.sampler.sample(prompt, num_samples=3, sampling_params=params).result()
    assert len(first.sequences) == 3
    for sequence in first.sequences:
        assert 1 <= len(sequence.tokens) <= 8
        assert len(sequence.logprobs) == len(sequence.tokens)
        assert all(value <= 0 for value in sequence.logprobs)
        assert sequence.stop_reason in ("stop", "length")
        assert len(sequence.tokens) == 8 or sequence.stop_reason == "stop"
    again = s.sampler.sample(prompt, num_samples=3, sampling_params=params).result()
    assert [q.tokens for q in again.sequences] == [q.tokens for q in first.sequences], "same seed, other tokens"
    assert len({tuple(q.tokens) for q in first.sequences}) > 1, "the samples of one request are all the same"
    s.first = first


@check
def stop_tokens(s):
    whole = s.first.sequences[0].tokens
    stop = whole[min(2, len(whole) - 1)]
    params = types.SamplingParams(max_tokens=8, seed=11, temperature=1.0, stop=[stop])
    sequence = s.sampler.sample(s.prompt, num_samples=3, sampling_params=params).result().sequences[0]
    assert sequence.stop_reason == "stop"
    assert list(sequence.tokens) == list(whole[: list(whole).index(stop) + 1])


@check
def stop_strings(s):
    params = types.SamplingParams(max_tokens=24, seed=5, temperature=1.0, stop=["e", " "])
    for sequence in s.sampler.sample(s.prompt, num_samples=4, sampling_params=params).result().sequences:
        assert sequence.stop_reason in ("stop", "length")
    bare = types.SamplingParams(max_tokens=4, seed=5, stop="\n\n")
    s.sampler.sample(s.prompt, num_samples=1, sampling_params=bare).result()


@check
def greedy(s):
    params = types.SamplingParams(max_tokens=6, temperature=0.0)
    sequences = s.sampler.sample(s.prompt, num_samples=2, sampling_params=params).result().sequences
    assert sequences[0].tokens == sequences[1].tokens


@check
def prompt_logprobs(s):
    output = s.sampler.sample(
        s.prompt, num_samples=1, sampling_params=s.params, include_prompt_logprobs=True, topk_prompt_logprobs=3
    ).result()
    values = list(output.prompt_logprobs)
    assert len(values) == 6 and values[0] is None and all(v <= 0 for v in values[1:])
    assert output.topk_prompt_logprobs[0] is None
    for row in output.topk_prompt_logprobs[1:]:
        assert len(row) == 3 and row[0][1] >= row[1][1] >= row[2][1]
    computed = s.sampler.compute_logprobs(s.prompt).result()
    assert computed[0] is None and close(computed[1:], values[1:])


@check
def sampler_agrees_with_trainer(s):
    sequence = tokens(0, 13)
    sampler = s.training.save_weights_and_get_sampling_client()
    computed = sampler.compute_logprobs(types.ModelInput.from_ints(sequence)).result()
    trained = logprobs_of(s.training.forward([ce_datum()], "cross_entropy").result())
    assert close(computed[1:], trained), (computed[1:], trained)


@check
def a_sampler_is_frozen(s):
    s.training.forward_backward([ce_datum(8)], "cross_entropy").result()
    s.training.optim_step(types.AdamParams(learning_rate=0.1)).result()
    again = s.sampler.sample(s.prompt, num_samples=3, sampling_params=s.params).result()
    assert [q.tokens for q in again.sequences] == [q.tokens for q in s.first.sequences]
    for old, new in zip(s.first.sequences, again.sequences):
        assert close(old.logprobs, new.logprobs, 1e-4)


@check
def named_sampler_weights(s):
    s.sampler_path = s.training.save_weights_for_sampler("for-sampling").result().path
    assert s.sampler_path == f"tinker://{s.training.model_id}/sampler_weights/for-sampling"
    now = s.training.save_weights_and_get_sampling_client()
    named = s.service.create_sampling_client(model_path=s.sampler_path)
    assert close(named.compute_logprobs(s.prompt).result()[1:], now.compute_logprobs(s.prompt).result()[1:], 1e-4)
    assert named.get_base_model() == s.base_model
    base = s.service.create_sampling_client(base_model=s.base_model)
    assert not close(base.compute_logprobs(s.prompt).result()[1:], now.compute_logprobs(s.prompt).result()[1:], 1e-4)


@check
def many_samples_at_once(s):
    params = types.SamplingParams(max_tokens=2, temperature=1.0)
    futures = [s.sampler.sample(s.prompt, num_samples=1, sampling_params=params) for _ in range(100)]
    assert all(1 <= len(f.result().sequences[0].tokens) <= 2 for f in futures)


@check
def rest_listings(s):
    rest, run = s.rest, s.training.model_id
    listing = rest.list_training_runs(limit=100).result()
    assert run in [r.training_run_id for r in listing.training_runs]
    assert listing.cursor.total_count >= len(listing.training_runs)
    one = rest.get_training_run(run).result()
    assert one.base_model == s.base_model and one.lora_rank == 8 and not one.corrupted
    assert one.last_checkpoint.tinker_path == s.saved
    assert one.last_sampler_checkpoint.tinker_path == s.sampler_path
    assert rest.get_training_run_by_tinker_path(s.saved).result().training_run_id == run
    ids = {c.checkpoint_id for c in rest.list_checkpoints(run).result().checkpoints}
    assert {"weights/resume-here", "sampler_weights/for-sampling"} <= ids, ids
    everything = rest.list_user_checkpoints(limit=1000).result().checkpoints
    assert s.saved in [c.tinker_path for c in everything]
    info = rest.get_weights_info_by_tinker_path(s.saved).result()
    assert info.base_model == s.base_model and info.lora_rank == 8 and info.is_lora


@check
def rest_sessions(s):
    session = s.training.model_id.split(":")[0]
    assert session in s.rest.list_sessions(limit=1000).result().sessions
    found = s.rest.get_session(session).result()
    assert s.training.model_id in found.training_run_ids and len(found.sampler_ids) >= 1
    sampler = s.rest.get_sampler(found.sampler_ids[0]).result()
    assert sampler.base_model == s.base_model


@check
def rest_publish_and_ttl(s):
    def state():
        return [c for c in s.rest.list_checkpoints(s.training.model_id).result().checkpoints if c.tinker_path == s.saved][0]

    s.rest.publish_checkpoint_from_tinker_path(s.saved).result()
    assert state().public
    s.rest.unpublish_checkpoint_from_tinker_path(s.saved).result()
    assert not state().public
    s.rest.set_checkpoint_ttl_from_tinker_path(s.saved, 3600).result()
    assert state().expires_at is not None
    s.rest.set_checkpoint_ttl_from_tinker_path(s.saved, None).result()
    assert state().expires_at is None


def rest_archive(s):
    answer = s.rest.get_checkpoint_archive_url_from_tinker_path(s.sampler_path).result()
    with tempfile.NamedTemporaryFile() as file:
        with urllib.request.urlopen(answer.url) as body:
            file.write(body.read())
        file.flush()
        with tarfile.open(file.name) as archive:
            assert sum(member.size for member in archive.getmembers()) > 0


# The SDK dropped archives in 0.36.0.
if hasattr(tinker.lib.public_interfaces.rest_client.RestClient, "get_checkpoint_archive_url"):
    check(rest_archive)

official_sdk_newer.register(check, sys.modules[__name__])


@check
def rest_delete(s):
    path = s.training.save_state("to-delete").result().path
    s.rest.delete_checkpoint_from_tinker_path(path).result()
    ids = {c.checkpoint_id for c in s.rest.list_checkpoints(s.training.model_id).result().checkpoints}
    assert "weights/to-delete" not in ids
    fails(lambda: s.rest.get_weights_info_by_tinker_path(path).result(), tinker.NotFoundError, "checkpoint-not-found")
    s.rest.delete_checkpoint(s.training.model_id, "sampler_weights/for-sampling").result()
    # A name is free again once its checkpoint is gone.
    s.training.save_state("to-delete").result()


@check
def overwrite(s):
    name = "again-and-again"
    s.training.save_state(name).result()
    fails(lambda: s.training.save_state(name).result(), tinker.TinkerError, "checkpoint-exists")
    s.training.save_state(name, overwrite=True).result()


@check
def failures_are_quick(s):
    service, training = s.service, s.training
    fails(
        lambda: service.create_lora_training_client(base_model="no/such-model", rank=8),
        tinker.BadRequestError,
        "unknown-base-model",
    )
    fails(
        lambda: service.create_training_client_from_state(f"tinker://{training.model_id}/weights/never"),
        tinker.NotFoundError,
        "checkpoint-not-found",
    )
    fails(
        lambda: training.load_state(f"tinker://{training.model_id}/weights/never").result(),
        tinker.TinkerError,
        "checkpoint-not-found",
    )
    fails(
        lambda: service.create_sampling_client(model_path=f"tinker://{training.model_id}/sampler_weights/never"),
        tinker.NotFoundError,
        "checkpoint-not-found",
    )
    outside = types.Datum(
        model_input=types.ModelInput.from_ints([1, 2, 2_000_000_000]),
        loss_fn_inputs={"target_tokens": [2, 3, 4], "weights": [1.0, 1.0, 1.0]},
    )
    fails(lambda: training.forward([outside], "cross_entropy").result(), tinker.BadRequestError, "token-range")
    fails(
        lambda: training.forward([ce_datum(0, 12, [1.0] * 5)], "cross_entropy").result(), tinker.TinkerError, "tensor"
    )
    # SDK versions that write JSON refuse NaN themselves, and leave a hole in this client's numbers: so a client of its own.
    other = service.create_lora_training_client(base_model=s.base_model, rank=8)
    fails(
        lambda: other.forward([ce_datum(0, 12, [math.nan] * 12)], "cross_entropy").result(),
        (tinker.TinkerError, ValueError),
        "",
    )
    fails(
        lambda: training.forward_backward([ce_datum()], "ppo").result(), tinker.BadRequestError, "loss-inputs"
    )
    fails(lambda: training.save_state("no/slashes").result(), tinker.BadRequestError, "checkpoint-name")
    fails(
        lambda: s.sampler.sample(
            s.prompt, num_samples=1, sampling_params=types.SamplingParams(max_tokens=s.context)
        ).result(),
        tinker.BadRequestError,
        "context-length",
    )
    fails(lambda: s.rest.get_training_run("nobody:train:0").result(), tinker.NotFoundError, "unknown-model")
    # What failed left no gap that the next request would wait for.
    started = time.monotonic()
    training.forward([ce_datum()], "cross_entropy").result()
    assert time.monotonic() - started < FAILURE_LIMIT_S


@check
def wrong_key(s):
    other = tinker.ServiceClient(api_key="tml-someone-else")
    fails(lambda: other.get_server_capabilities(), tinker.AuthenticationError, "api-key")


def main():
    s = State()
    s.service = tinker.ServiceClient(user_metadata={"purpose": "contract"})
    s.rest = s.service.create_rest_client()
    failed = 0
    for function in checks:
        started = time.monotonic()
        error = None
        try:
            function(s)
        except BaseException as problem:  # noqa: BLE001 - a check that fails must not end the others
            error = "".join(traceback.format_exception(problem))[-3000:]
            failed += 1
        line = {"check": function.__name__, "ok": error is None, "seconds": round(time.monotonic() - started, 3)}
        print(json.dumps({**line, **({"error": error} if error else {})}), flush=True)
    print(json.dumps({"version": tinker.__version__, "checks": len(checks), "failed": failed}), flush=True)
    sys.stdout.flush()
    os._exit(1 if failed else 0)


main()
