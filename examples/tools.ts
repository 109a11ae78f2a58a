// ./whet train env=examples/tools.ts model_name=…: questions about a shop, with tools to look things up. Tools of the AI SDK, of Mastra or of
// an MCP client stand here as they are; each episode has a basket of its own.
import { environment } from "whetstone/rl";

const prices: Readonly<Record<string, number>> = { apple: 3, bread: 5, cheese: 8 };
const names = Object.keys(prices);
const item = { type: "object", properties: { name: { type: "string", enum: names } }, required: ["name"] };

export default environment({
  problems: names.flatMap((one) =>
    names.map((other) => ({
      id: `${one}-${other}`,
      total: prices[one]! + prices[other]!,
      prompt: `Put one ${one} and one ${other} into the basket, then say what they cost together.`,
    })),
  ),
  maxTurns: 6,
  tools: () => {
    const basket: string[] = [];
    return {
      price: { description: "The price of an item.", inputSchema: item, execute: ({ name }) => prices[name] },
      add: {
        description: "Puts an item into the basket.",
        inputSchema: item,
        execute: ({ name }) => basket.push(name),
      },
    };
  },
  reward: ({ problem, text, messages }) => {
    const added = messages.filter(({ role }) => role === "tool").length;
    return { reward: Number(text.includes(String(problem.total))), metrics: { results: added } };
  },
});
