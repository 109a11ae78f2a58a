// What an episode has come to, as its chats, its endpoint and its verdict share it. An episode that is begun again has a new one.
import type { StopReason } from "../../runs/events.ts";
import type { Conversation, Turn } from "../conversation.ts";
import { EpisodeLog } from "./episode-log.ts";

/** Limits of one episode. */
export interface EpisodeLimits {
  maxTurns: number;
  maxToolCalls: number;
  /** Aborted when the episode is over. */
  signal: AbortSignal;
}

export class EpisodeState {
  readonly conversation: Conversation;
  readonly limits: EpisodeLimits;
  readonly log = new EpisodeLog();
  /** Given for single turns. */
  readonly rewards = new Map<Turn, number>();
  toolCalls = 0;
  toolErrors = 0;
  /** Answers with a call that could not be read. */
  malformed = 0;
  /** Time in which an answer was awaited. */
  sampledMs = 0;
  /** Why it ended. */
  stop: StopReason = "done";

  constructor(conversation: Conversation, limits: EpisodeLimits) {
    this.conversation = conversation;
    this.limits = limits;
  }

  /** The turns whose answers were delivered: only those count. */
  get delivered(): Turn[] {
    return this.conversation.turns.filter(({ isDelivered }) => isDelivered);
  }
}
