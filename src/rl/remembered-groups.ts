// What the journal has of groups: their answers, further turns, side effects and verdicts.
import type { Arrays, EventOf, JournalEntry, RunEvent } from "../runs/events.ts";
import type { RecordedGroup } from "../runs/turns.ts";
import type { Place } from "./rollout.ts";

/** A turn that an earlier process wrote down, with its tokens. */
export interface RememberedTurn {
  sampled: EventOf<"turn-sampled">;
  arrays(): Arrays;
}

/** What the journal has of a group, its tokens included unless they were thinned away. */
export interface RememberedGroup extends RecordedGroup {
  hasArrays: boolean;
  arrays(): Arrays;
  turns: RememberedTurn[];
  /** What side effects gave, by sample and key. */
  effects: Map<string, unknown>;
}

/** Names a group. */
export const placeKey = ({ phase, batch, group }: Place): string => `${phase} ${batch} ${group}`;

/** Takes what an event says of a group; `groups` are by their keys. */
export function rememberGroup(
  groups: Map<string, RememberedGroup>,
  event: RunEvent,
  { arrays, hasArrays }: Pick<JournalEntry, "arrays" | "hasArrays">,
): void {
  switch (event.type) {
    case "group-sampled":
      groups.set(placeKey(event), { sampled: event, arrays, hasArrays, graded: [], turns: [], effects: new Map() });
      break;
    case "turn-sampled":
      groups.get(placeKey(event))?.turns.push({ sampled: event, arrays });
      break;
    case "side-effect":
      groups.get(placeKey(event))?.effects.set(`${event.sample} ${event.key}`, event.value);
      break;
    case "graded": {
      const group = groups.get(placeKey(event));
      if (group) group.graded[event.sample] = event;
      break;
    }
  }
}

/** Whether a group is there with every verdict. */
export const isJudged = (group: RememberedGroup | undefined): group is RememberedGroup =>
  group?.sampled.samples.every((_, sample) => group.graded[sample] !== undefined) ?? false;
