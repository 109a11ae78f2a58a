"""Checks of what SDK versions after 0.25.0 brought. Each has the first version that it fits; older ones leave it out."""

import base64
import importlib.util
import json
import pickle
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import numpy as np
import tinker
from tinker import types

VERSION = tuple(int(part) for part in tinker.__version__.split(".")[:3])
HAS_TORCH = importlib.util.find_spec("torch") is not None


def register(check, tools):
    """Adds the checks that fit this version. `tools`: tokens, ce_datum, rl_datum, logprobs_of, close, fails of official_sdk.py."""
    tokens, ce_datum, rl_datum = tools.tokens, tools.ce_datum, tools.rl_datum
    logprobs_of, close, fails = tools.logprobs_of, tools.close, tools.fails

    def since(*version, torch=False):
        return check if VERSION >= version and (HAS_TORCH or not torch) else lambda function: function

    @since(0, 26, 0)
    def sequences_have_ids_of_their_own(s):
        first = s.sampler.sample(s.prompt, num_samples=3, sampling_params=s.params).result()
        again = s.sampler.sample(s.prompt, num_samples=3, sampling_params=s.params).result()
        ids = [sequence.sequence_id for sequence in [*first.sequences, *again.sequences]]
        assert all(ids) and len(set(ids)) == 6, ids

    @since(0, 24, 1)
    def a_pickled_client_takes_samples(s):
        clone = pickle.loads(pickle.dumps(s.sampler))
        for _ in range(2):
            output = clone.sample(s.prompt, num_samples=3, sampling_params=s.params).result()
            assert [q.tokens for q in output.sequences] == [q.tokens for q in s.first.sequences]
        other = types.SamplingParams(max_tokens=8, seed=12, temperature=1.0)
        output = clone.sample(s.prompt, num_samples=3, sampling_params=other).result()
        assert [q.tokens for q in output.sequences] != [q.tokens for q in s.first.sequences], "an earlier sample came back"

    @since(0, 32, 0)
    def a_client_from_a_handle_takes_samples(s):
        from tinker.lib.public_interfaces.sampling_client import SamplingClient

        handle = s.sampler.get_sampler_handle()
        fields = json.loads(base64.urlsafe_b64decode(handle + "=" * (-len(handle) % 4)))
        assert fields["holder"]["api_key"] is None
        clone = SamplingClient.from_sampler_handle(handle)
        output = clone.sample(s.prompt, num_samples=3, sampling_params=s.params).result()
        assert [q.tokens for q in output.sequences] == [q.tokens for q in s.first.sequences]

    @since(0, 24, 1)
    def seeds_of_64_bits(s):
        def sample(seed):
            params = types.SamplingParams(max_tokens=8, seed=seed, temperature=1.0)
            return [list(q.tokens) for q in s.sampler.sample(s.prompt, num_samples=4, sampling_params=params).result().sequences]

        large = 2**64 - 1
        assert sample(large) == sample(large)
        assert sample(large) != sample(large - 1), "neighbours beyond 2^53 are one seed"

    @since(0, 31, 0)
    def likeliest_tokens_of_a_sample(s):
        output = s.sampler.sample(s.prompt, num_samples=2, sampling_params=s.params, topk_sample_logprobs=3).result()
        for sequence in output.sequences:
            rows = sequence.topk_logprobs
            assert len(rows) == len(sequence.tokens)
            for row, token, logprob in zip(rows, sequence.tokens, sequence.logprobs):
                assert len(row) == 3 and row[0][1] >= row[1][1] >= row[2][1]
                for other, value in row:
                    assert other != token or close(value, logprob, 1e-3)
                assert logprob <= row[0][1] + 1e-4

    @since(0, 31, 0)
    def scored_prompt_tokens(s):
        prompt = tokens(4, 6)
        wanted = np.full((5, 2), -1, dtype=np.int64)
        wanted[:, 0] = prompt[1:]
        wanted[2, 1] = 7
        output = s.sampler.sample(
            types.ModelInput.from_ints(prompt),
            num_samples=1,
            sampling_params=types.SamplingParams(max_tokens=1),
            include_prompt_logprobs=True,
            target_prompt_logprobs=types.TensorData.from_numpy(wanted),
        ).result()
        scores = np.asarray(output.target_prompt_logprobs.tolist(), dtype=float).reshape(5, 2)
        assert close(scores[:, 0], list(output.prompt_logprobs)[1:], 1e-5)
        assert scores[2, 1] < 0 and np.all(np.delete(scores[:, 1], 2) == 0)

    @since(0, 31, 0)
    def alternative_prompt_tokens(s):
        output = s.sampler.sample(
            s.prompt,
            num_samples=1,
            sampling_params=types.SamplingParams(max_tokens=1, temperature=1.0, seed=3),
            prompt_alt_tokens_k=4,
        ).result()
        drawn = output.prompt_alt_tokens
        ids, scores = np.asarray(drawn.tokens.tolist()).reshape(5, 4), np.asarray(drawn.logprobs.tolist()).reshape(5, 4)
        assert np.all(scores <= 0) and len(set(ids.ravel().tolist())) > 4
        scored = s.sampler.sample(
            s.prompt,
            num_samples=1,
            sampling_params=types.SamplingParams(max_tokens=1),
            target_prompt_logprobs=types.TensorData.from_numpy(ids.astype(np.int64)),
        ).result()
        assert close(np.asarray(scored.target_prompt_logprobs.tolist()).reshape(5, 4), scores, 1e-5)

    @since(0, 31, 0)
    def only_the_last_prompt_logprobs(s):
        output = s.sampler.sample(
            s.prompt,
            num_samples=1,
            sampling_params=types.SamplingParams(max_tokens=1),
            include_prompt_logprobs=True,
            prompt_logprobs_last_n=2,
        ).result()
        values = list(output.prompt_logprobs)
        assert [value is None or np.isnan(value) for value in values] == [True, True, True, True, False, False], values

    @since(0, 27, 1)
    def an_empty_stop_list_stops_nothing(s):
        params = types.SamplingParams(max_tokens=64, seed=2, temperature=1.0, stop=[])
        for sequence in s.sampler.sample(s.prompt, num_samples=4, sampling_params=params).result().sequences:
            assert sequence.stop_reason == "length" and len(sequence.tokens) == 64

    @since(0, 34, 0)
    def gspo(s):
        # Another model: what came before has moved the weights of this one.
        base = s.service.create_lora_training_client(base_model=s.base_model, rank=8)
        lp = logprobs_of(base.forward([ce_datum()], "cross_entropy").result())
        datum = rl_datum(lp)
        mask = [0.0] * 4 + [1.0] * 8
        inputs = {**datum.loss_fn_inputs, "sequence_ratio_mask": types.TensorData(data=mask, dtype="float32", shape=[12])}
        datum = types.Datum(model_input=datum.model_input, loss_fn_inputs=inputs)
        q, a = (np.asarray(datum.loss_fn_inputs[name].data) for name in ("logprobs", "advantages"))
        ratio = np.exp(np.mean((lp - q)[4:]))
        for low, high in ((0.8, 1.2), (0.999, 1.001)):
            config = {"clip_low_threshold": low, "clip_high_threshold": high}
            output = base.forward_backward([datum], "gspo", loss_fn_config=config).result()
            wanted = -np.sum(np.minimum(ratio * a, np.clip(ratio, low, high) * a))
            assert close(output.metrics["loss:sum"], wanted), (output.metrics, wanted)

    @check
    def cross_entropy_without_weights(s):
        with_ones = s.training.forward([ce_datum()], "cross_entropy").result()
        plain = ce_datum()
        plain = types.Datum(
            model_input=plain.model_input, loss_fn_inputs={"target_tokens": plain.loss_fn_inputs["target_tokens"]}
        )
        assert close(s.training.forward([plain], "cross_entropy").result().metrics["loss:sum"], with_ones.metrics["loss:sum"])

    @since(0, 24, 1, torch=True)
    def custom_loss(s):
        def loss(data, logprobs):
            total = sum((lp * lp).sum() for lp in logprobs)
            return total, {"mine": float(total)}

        before = s.training.forward([ce_datum(3)], "cross_entropy").result()
        output = s.training.forward_backward_custom([ce_datum(3)], loss).result()
        wanted = float(np.sum(logprobs_of(before) ** 2))
        assert close(output.metrics["mine"], wanted)
        if VERSION >= (0, 30, 1):
            assert close(output.metrics["loss:sum"], wanted) and "surrogate_loss:sum" in output.metrics
        s.training.optim_step(types.AdamParams(learning_rate=0.0)).result()

    @since(0, 35, 0)
    def what_this_server_lacks_is_refused_at_once(s):
        datum = rl_datum(s.base_logprobs)
        fails(
            lambda: s.training.forward_backward([datum], "stable_reinforce").result(), tinker.BadRequestError, "unknown-loss"
        )
        fails(lambda: s.training.optim_step(types.DimuonParams(learning_rate=1e-3)).result(), tinker.BadRequestError, "optimizer")
        # Neither left a gap.
        s.training.forward([ce_datum()], "cross_entropy").result()

    @since(0, 27, 1)
    def checkpoints_carry_metadata(s):
        path = s.training.save_state("with-metadata", user_metadata={"a": "b"}).result().path
        listed = {c.tinker_path: c for c in s.rest.list_checkpoints(s.training.model_id).result().checkpoints}
        assert listed[path].user_metadata == {"a": "b"}

    @check
    def a_checkpoint_is_deleted_by_its_bare_name(s):
        s.training.save_state("bare").result()
        s.rest.delete_checkpoint(s.training.model_id, "bare").result()
        listed = [c.checkpoint_id for c in s.rest.list_checkpoints(s.training.model_id).result().checkpoints]
        assert "weights/bare" not in listed

    @since(0, 28, 0)
    def external_weights(s):
        saved = s.training.save_weights_external("files").result()
        assert saved.path == f"tinker://{s.training.model_id}/external_weights/files"
        listed = {c.tinker_path: c.checkpoint_type for c in s.rest.list_checkpoints(s.training.model_id).result().checkpoints}
        assert listed[saved.path] == "external"
        urls = s.rest.get_external_weights_urls(saved.path).result()
        assert urls.expires.tzinfo is not None and len(urls.urls) >= 1
        for name, url in urls.urls.items():
            with urllib.request.urlopen(url) as body:
                assert len(body.read()) > 0
            wrong = url.replace(name, f"{name}x")
            fails(lambda: urllib.request.urlopen(wrong), urllib.error.HTTPError, "403")
        s.rest.delete_checkpoint_from_tinker_path(saved.path).result()

    @since(0, 28, 0)
    def the_command_line_downloads(s):
        # Up to 0.35.0 it takes weights for sampling (as an archive), from then on training state.
        path = s.saved if VERSION >= (0, 36, 0) else s.training.save_weights_for_sampler("for-download").result().path
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "tinker.cli", "checkpoint", "download", path, "--output", folder]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stdout + done.stderr
            assert any(file.is_file() and file.stat().st_size > 0 for file in Path(folder).rglob("*")), done.stdout

    @since(0, 26, 2)
    def copied_weights(s):
        with_project = VERSION >= (0, 34, 0)
        copy = (s.rest.copy_weights(s.saved, "project-a") if with_project else s.service.copy_weights(s.saved)).result()
        assert copy != s.saved
        client = s.service.create_training_client_from_state(copy)
        assert close(logprobs_of(client.forward([ce_datum()], "cross_entropy").result()), s.saved_logprobs, 1e-4)
        if with_project:
            assert s.rest.copy_weights(s.saved, "project-a").result() not in (copy, s.saved)
            runs = s.rest.list_training_runs(project_id="project-a").result().training_runs
            assert copy.split("/")[2] in [run.training_run_id for run in runs]

    @since(0, 36, 0)
    def sessions_are_found(s):
        session = s.training.model_id.split(":")[0]
        search = lambda **fields: [  # noqa: E731
            found.session_id for found in s.rest.search_sessions(types.SessionSearchRequest(**fields)).result().sessions
        ]
        assert session in search(user_metadata={"purpose": "contract"})
        assert search(session_id=session) == [session]
        assert search(user_metadata={"purpose": "nothing"}) == []

    @since(0, 32, 0)
    def storage_is_counted(s):
        usage = s.rest.get_current_checkpoint_storage_usage().result()
        assert usage.data[0].checkpoint_count >= 1 and usage.data[0].size_bytes > 0

    @since(0, 27, 2)
    def closing_finishes_the_session(s):
        with tinker.ServiceClient() as service:
            client = service.create_lora_training_client(base_model=s.base_model, rank=8)
            session = client.model_id.split(":")[0]
        fails(lambda: service_after(session), urllib.error.HTTPError, "410")

    def service_after(session):
        import os

        request = urllib.request.Request(
            f"{os.environ['TINKER_BASE_URL']}/api/v1/session_heartbeat",
            data=json.dumps({"session_id": session, "type": "session_heartbeat"}).encode(),
            headers={"X-API-Key": os.environ["TINKER_API_KEY"], "Content-Type": "application/json"},
        )
        return urllib.request.urlopen(request)
