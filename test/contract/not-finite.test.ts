// NaN and infinity are refused wherever a number is taken. JSON has no word for them: they become null, which servers take for "not
// given", and a run trained with the default instead.
import { expect, test } from "vitest";
import type { TrainConfig } from "whetstone/rl";
import { ServiceClient } from "whetstone/tinker";
import { checkAdam } from "../../src/engine/adam.ts";
import { SimulatedEngine, simulatedModelName } from "../../src/engine/simulated/engine.ts";
import { defaultAdamParams, defaultSamplingParams, encodeText, routes } from "../../src/protocol/index.ts";
import { snake } from "../../src/protocol/message.ts";
import { presetConfig } from "../../src/rl/config.ts";
import { resolveSettings } from "../../src/rl/given-settings.ts";
import { call, key, start } from "../support/tinker-server.ts";

const bad = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
const adamKeys = Object.keys(defaultAdamParams) as (keyof typeof defaultAdamParams)[];
const drawKeys = ["temperature", "topK", "topP", "maxTokens", "seed"] as const;

test("the client sends none, and what follows is not held up by a number that was never sent", async () => {
  const server = await start();
  const service = new ServiceClient({ baseUrl: server.url, apiKey: key });
  const training = await service.createLoraTrainingClient({ baseModel: simulatedModelName, rank: 8 });
  for (const value of bad) {
    for (const name of adamKeys)
      await expect(training.optimStep({ [name]: value }), `${name}=${value}`).rejects.toMatchObject({
        code: "client/invalid-input",
        message: expect.stringMatching(new RegExp(`adam_params.${snake(name)}.*${value}.* Nothing was sent`)),
      });
    const data = [{ modelInput: [1, 2], lossFnInputs: { target_tokens: [2, 3], weights: [1, 1] } }];
    const config = { clip_low_threshold: value };
    await expect(training.forwardBackward(data, "ppo", { lossFnConfig: config })).rejects.toMatchObject({
      code: "client/invalid-input",
    });
  }
  expect((await training.optimStep({ learningRate: 0.5 })).metrics).toMatchObject({ step: 1, learning_rate: 0.5 });
  const sampler = await service.createSamplingClient({ baseModel: simulatedModelName });
  for (const value of bad)
    for (const name of drawKeys) {
      const asked = sampler.sample({ prompt: [1, 2], samplingParams: { maxTokens: 2, [name]: value } });
      await expect(asked, `${name}=${value}`).rejects.toMatchObject({ code: "client/invalid-input" });
    }
  await expect(
    service.createLoraTrainingClient({ baseModel: simulatedModelName, rank: Number.NaN }),
  ).rejects.toMatchObject({
    code: "client/invalid-input",
  });
  await service.close();
  for (const options of [{ maxRetries: Number.NaN }, { timings: { stuckMs: Number.NaN } }])
    expect(() => new ServiceClient({ baseUrl: server.url, apiKey: key, ...options })).toThrow(
      /(maxRetries|stuckMs) is NaN/,
    );
});

test("the server takes no null for a number: an SDK writes NaN so", async () => {
  const server = await start();
  const { body: session } = await call(server, "/create_session", { tags: [] });
  const model = {
    session_id: session.session_id,
    model_seq_id: 0,
    base_model: simulatedModelName,
    lora_config: { rank: 8 },
  };
  const { body: created } = await call(server, "/create_model", model);
  const { body: sampling } = await call(server, "/create_sampling_session", {
    session_id: session.session_id,
    sampling_session_seq_id: 0,
    base_model: simulatedModelName,
  });
  const modelId = (await call(server, "/retrieve_future", { request_id: created.request_id })).body.model_id;
  // A request with a place of its own is refused in its place, so that the next one is not waited for in vain.
  let seq = 0;
  const answerOf = async (path: string, body: object) => {
    const { body: accepted } = await call(server, path, body);
    if (accepted.request_id === undefined) return JSON.stringify(accepted);
    return JSON.stringify((await call(server, "/retrieve_future", { request_id: accepted.request_id })).body);
  };
  const refused =
    /is wrong: null is what JSON makes of NaN and infinity; send a finite number.*server\/invalid-message/;
  for (const name of adamKeys) {
    const adam = { model_id: modelId, seq_id: ++seq, adam_params: { [snake(name)]: null } };
    expect(await answerOf("/optim_step", adam), name).toMatch(refused);
  }
  const data = [{ model_input: { chunks: [] }, loss_fn_inputs: {} }];
  const forward = { data, loss_fn: "ppo", loss_fn_config: { clip_low_threshold: null } };
  const pass = { model_id: modelId, seq_id: ++seq, forward_backward_input: forward };
  expect(await answerOf("/forward_backward", pass)).toMatch(/clip_low_threshold.*invalid-message/);
  for (const name of ["temperature", "top_p"]) {
    const prompt = { chunks: [{ type: "encoded_text", tokens: [1] }] };
    const params = { sampling_params: { max_tokens: 2, [name]: null }, seq_id: 1 };
    const body = { sampling_session_id: sampling.sampling_session_id, prompt, ...params };
    expect(await answerOf("/asample", body), name).toMatch(refused);
  }
});

test("messages with such a number have no text", () => {
  for (const value of bad)
    for (const name of adamKeys) {
      const adamParams = { ...defaultAdamParams, [name]: value };
      const message = { modelId: "m", seqId: 1, adamParams };
      expect(() => encodeText(routes.optimStep.request, message), `${name}=${value}`).toThrow(
        expect.objectContaining({ code: "protocol/invalid-message" }),
      );
    }
  expect(defaultSamplingParams).toMatchObject({ temperature: 1, topK: -1, topP: 1 });
});

test("the engines take no step with them", async () => {
  const { eps, ...others } = defaultAdamParams;
  const settings = { ...others, epsilon: eps };
  const engine = new SimulatedEngine();
  await engine.createModel("m", { baseModel: simulatedModelName, rank: 8, seed: 0 } as never);
  for (const value of bad)
    for (const name of Object.keys(settings)) {
      const wrong = { ...settings, [name]: value };
      expect(() => checkAdam(wrong), `${name}=${value}`).toThrow(expect.objectContaining({ code: "engine/adam" }));
      await expect(engine.optimStep("m", wrong)).rejects.toMatchObject({ code: "engine/adam" });
    }
});

/** Every number of the config, also those inside others and those that are not set. */
const numbers = Object.entries(presetConfig("nano")).filter(
  ([name, value]) => typeof value === "number" || /^(price_|budget$)/.test(name),
);

test.each(numbers.map(([name]) => name))("whetstone/rl refuses %s that is no finite number", (name) => {
  for (const value of bad)
    expect(() => resolveSettings({ [name]: value } as Partial<TrainConfig>), `${name}=${value}`).toThrow(
      expect.objectContaining({ code: "config/bad-value", message: expect.stringContaining(name) }),
    );
});

test("numbers inside settings of the loss count, too", () => {
  for (const value of bad)
    expect(() => resolveSettings({ loss_fn_config: { clip_low_threshold: value } })).toThrow(/loss_fn_config/);
});
