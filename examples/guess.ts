// ./whet train env=examples/guess.ts learning_rate=1e-3 max_steps=60: the model learns to find a number with four guesses.
import { environment } from "whetstone/rl";

export default environment({
  problems: Array.from({ length: 10 }, (_, n) => ({ id: `${n + 1}`, secret: n + 1, prompt: "Guess my number, 1–10." })),
  maxTurns: 4,
  async run({ problem: { secret }, chat }) {
    let off = 20;
    for await (const { text } of chat) {
      const guess = Number(text.match(/\d+/)?.[0] ?? 99);
      off = Math.min(off, Math.abs(guess - secret));
      if (off > 0) chat.user(guess < secret ? "Higher." : "Lower.");
    }
    return 1 / (1 + off);
  },
});
