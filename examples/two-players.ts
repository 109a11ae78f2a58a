// ./whet train env=examples/two-players.ts: the model plays with itself. Two players who cannot talk must say the same word.
import { environment } from "whetstone/rl";

const topics = ["animals", "colours", "cities", "tools", "fruit", "numbers", "sports", "metals"];

export default environment({
  problems: topics.map((topic) => ({
    id: topic,
    prompt: `Topic: ${topic}. Say one word; your partner must say the same.`,
  })),
  maxTurns: 4,
  async run({ chat }) {
    const partner = chat.fork(); // a conversation of its own from here on; its turns are trained on too
    for (let round = 1; round <= 4; round++) {
      const [mine, theirs] = await Promise.all([chat.reply(), partner.reply()]);
      if (mine.text.trim() === theirs.text.trim()) return { reward: 1 / round, correct: true, metrics: { round } };
      chat.user(`Your partner said ${theirs.text}. Again.`);
      partner.user(`Your partner said ${mine.text}. Again.`);
    }
    return 0;
  },
});
