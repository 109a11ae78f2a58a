import { mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { foldersInMemory } from "../../../../test/support/folders.ts";
import { dropSamplers } from "./samplers.ts";

const newFolder = foldersInMemory();

test("the newest samplers without a name stay, those with one always, of each model", () => {
  const folder = newFolder();
  for (const model of ["model_a", "model_b"]) {
    const place = join(folder, model, "sampler_weights");
    mkdirSync(place, { recursive: true });
    // Their numbers tell no order.
    for (const [age, name] of ["000004", "ss10_seq3", "ss2_seq9", "ss3_seq1", "final"].entries())
      for (const path of [join(place, `${name}.tar.gz`), join(place, `${name}.tar.gz.probe`)]) {
        writeFileSync(path, "");
        utimesSync(path, 1000 + age, 1000 + age);
      }
  }
  const left = (model: string) => readdirSync(join(folder, model, "sampler_weights")).sort();
  dropSamplers(folder, 2);
  for (const model of ["model_a", "model_b"])
    expect(left(model)).toEqual(
      ["000004", "final", "ss2_seq9", "ss3_seq1"].flatMap((name) => [`${name}.tar.gz`, `${name}.tar.gz.probe`]),
    );
  dropSamplers(folder, 0);
  expect(left("model_a")).toEqual(["000004", "final"].flatMap((name) => [`${name}.tar.gz`, `${name}.tar.gz.probe`]));
  dropSamplers(join(folder, "nowhere"), 0);
});
