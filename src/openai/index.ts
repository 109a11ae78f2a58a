// The OpenAI API over a policy or a checkpoint: the wire, who is let in, and which turn a client's conversation goes on from.
export { type Asked, answer, type ChatModel } from "./answer.ts";
export { EndpointError } from "./errors.ts";
export { type Match, match, type Spoken, turnOf, whyChanged } from "./match.ts";
export { toMessage, toSaid } from "./messages.ts";
export type { Choice, Finish, Reply, TokenLogprob } from "./reply.ts";
export { type ChatRequest, toolsOf } from "./request.ts";
export { type Called, callId, placeOfCall, readMessages, type Said } from "./said.ts";
export { type Address, answersChat, type ChatServer, EndpointServer, ended, listenChat } from "./server.ts";
