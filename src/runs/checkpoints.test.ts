import { expect, test } from "vitest";
import { LiveCheckpoints } from "./checkpoints.ts";
import type { NewEvent, RunEvent } from "./events.ts";

const saved = (name: string, step: number): NewEvent => ({
  type: "saved",
  record: { name, step, dataset_offset: 8 * step },
  start: 0,
  end: 1,
});
const resumed = (checkpoint: string, version: number): NewEvent => ({
  type: "resumed",
  version,
  checkpoint,
  datasetOffset: 8 * version,
  model: "m",
});
const rewound = (to: number): NewEvent => ({ type: "rewound", to, reason: "test" });

function live(...events: NewEvent[]): string[] {
  const checkpoints = new LiveCheckpoints();
  for (const event of events) checkpoints.take({ ...event, at: 0 } as RunEvent);
  return checkpoints.records.map(({ name, step }) => `${name} ${step}`);
}

test.each<[what: string, events: NewEvent[], expected: string[]]>([
  ["all that was saved", [saved("a", 2), saved("b", 4)], ["a 2", "b 4"]],
  ["none after the step that was gone back to", [saved("a", 2), saved("b", 4), rewound(3)], ["a 2"]],
  ["the one that was gone back to", [saved("a", 2), saved("b", 4), rewound(4)], ["a 2", "b 4"]],
  ["none where the run went back to its start", [saved("a", 2), rewound(0)], []],
  ["what is saved since", [saved("a", 2), rewound(0), saved("a", 2)], ["a 2"]],
  ["none that a start found lost", [saved("a", 2), saved("b", 4), resumed("a", 2)], ["a 2"]],
  ["two ends of one run", [saved("final", 4), resumed("final", 4), saved("final", 6)], ["final 4", "final 6"]],
  ["the end that the server still has", [saved("final", 4), saved("final", 6), resumed("final", 4)], ["final 4"]],
])("the checkpoints that count: %s", (_, events, expected) => {
  expect(live(...events)).toEqual(expected);
});
