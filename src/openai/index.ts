// The OpenAI API over a policy or a checkpoint: the wire, who is let in, and which turn a client's conversation goes on from.
export { type Asked, answer, type ChatModel } from "./answer.ts";
export { callId, placeOfCall, readMessages, toClient } from "./conversation.ts";
export { EndpointError } from "./errors.ts";
export { type KnownTurn, type Match, match, systemChanged, turnOf } from "./match.ts";
export type { Choice, Reply, TokenLogprob } from "./reply.ts";
export { type ChatRequest, toolsOf } from "./request.ts";
export { type Address, answersChat, type ChatServer, EndpointServer, ended, listenChat } from "./server.ts";
