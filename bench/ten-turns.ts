// The environment of `./whet bench episodes`: conversations of ten turns, each a little longer than the one before.
import { environment } from "whetstone/rl";

export default environment({
  problems: Array.from({ length: 8 }, (_, index) => ({
    id: `ten-turns-${index}`,
    prompt: `You are given a list a of integers. Keep only the numbers that are at least ${10 + index}. Return the resulting list.`,
  })),
  maxTurns: 10,
  async run({ chat }) {
    let length = 0;
    while (true) {
      length += (await chat.reply()).text.length;
      chat.user(`That is attempt of ${length} characters. Write it again.`);
      if (chat.messages.length >= 20) return length / 1000;
    }
  },
});
