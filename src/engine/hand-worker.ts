// A hand's thread: takes messages, drives the hand, answers.
import { parentPort, workerData } from "node:worker_threads";
import { Hand, type HandOptions } from "./hand.ts";
import { serve } from "./serve-thread.ts";

await serve(parentPort!, () => new Hand((workerData as { data: HandOptions }).data));
