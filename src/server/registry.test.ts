import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Registry } from "./registry.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "whetstone-registry-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const sessionFields = { tags: [], userMetadata: {}, sdkVersion: "0" };
const modelFields = {
  baseModel: "m",
  lora: { rank: 8, trainAttn: true, trainMlp: true, trainUnembed: true },
  userMetadata: {},
};

test("sessions, models, step counts and samplers come back after a restart; a trained model is lost, a fresh one is not", () => {
  const registry = new Registry(dir);
  const session = registry.createSession(sessionFields);
  const { record: trained } = registry.createModel(session.id, 0, modelFields);
  const { record: fresh } = registry.createModel(session.id, 1, modelFields);
  registry.touch(trained);
  registry.recordStep(trained, 2);
  registry.recordStep(trained, 4);
  registry.createSampler(session.id, 0, { baseModel: "m" });
  registry.createSampler(session.id, 1, { baseModel: "m", snapshotOf: trained.id });
  registry.setProject(session.id, "p");
  registry.close();
  appendFileSync(join(dir, "registry.jsonl"), '{"event":"session","rec');

  for (let restart = 0; restart < 2; restart++) {
    const again = new Registry(dir);
    expect(again.session(session.id).projectId).toBe("p");
    expect(again.model(trained.id)).toMatchObject({ state: "lost", appliedSteps: 2, lastAppliedSequence: 4 });
    expect(again.model(fresh.id)).toMatchObject({ state: "live", appliedSteps: 0 });
    expect(again.samplers.map((sampler) => sampler.id)).toEqual([`${session.id}:sample:0`]);
    again.close();
  }
});

test("creating with the same numbers is creating the same thing", () => {
  const registry = new Registry(dir);
  const session = registry.createSession(sessionFields);
  const first = registry.createModel(session.id, 3, modelFields);
  const second = registry.createModel(session.id, 3, modelFields);
  expect(first.created).toBe(true);
  expect(second).toEqual({ record: first.record, created: false });
  expect(first.record.id).toBe(`${session.id}:train:3`);
  registry.close();
});

test("unknown ids are refused with their codes", () => {
  const registry = new Registry(dir);
  expect(() => registry.session("nope")).toThrow(expect.objectContaining({ code: "server/unknown-session" }));
  expect(() => registry.model("nope")).toThrow(expect.objectContaining({ code: "server/unknown-model" }));
  expect(() => registry.createModel("nope", 0, modelFields)).toThrow(
    expect.objectContaining({ code: "server/unknown-session" }),
  );
  registry.close();
});
