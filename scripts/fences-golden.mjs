// Writes test/golden/fences.json: random texts, and the fenced blocks that CommonMark's reference implementation finds in them.
// npm install --prefix /tmp/commonmark commonmark@0.31.2 && node scripts/fences-golden.mjs /tmp/commonmark/node_modules/commonmark
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const folder = resolve(process.argv[2]);
const { Parser } = createRequire(import.meta.url)(folder);
const { version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
const wanted = 1500;

let state = 20_261_118;
const below = (count) => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 2 ** 32) * count);
};
const pick = (list) => list[below(list.length)];

const before = [
  "",
  "",
  "",
  " ",
  "  ",
  "   ",
  "    ",
  "     ",
  "\t",
  "> ",
  ">",
  "- ",
  "1. ",
  "2) ",
  "* ",
  "  - ",
  "+\t",
  "- \t",
];
const bodies = [
  "```",
  "```",
  "```",
  "```py",
  "````",
  "~~~",
  "~~~ x",
  "``",
  "text",
  "text",
  "",
  "",
  "# h",
  "---",
  "===",
  "* * *",
];
const rare = [
  "<!--",
  "-->",
  "<!-- x -->",
  "<script>",
  "x</script>",
  "<pre>",
  "x</pre>",
  "<?",
  "?>",
  "<!A",
  "<![CDATA[",
  "]]>",
  "``` `",
  "-",
  "10.",
  "1.",
  "\tcode",
  "``` a\tb ",
];

const line = () => {
  let text = "";
  for (let depth = below(4); depth > 0; depth--) text += pick(before);
  return text + (below(4) === 0 ? pick(rare) : pick(bodies));
};

/** The info and content of every fenced block. */
function blocksOf(text) {
  const blocks = [];
  const walker = new Parser().parse(text).walker();
  for (let step = walker.next(); step; step = walker.next())
    if (step.entering && step.node.type === "code_block" && step.node._isFenced)
      blocks.push([step.node.info, step.node.literal]);
  return blocks;
}

const cases = [];
while (cases.length < wanted) {
  const text = Array.from({ length: 2 + below(9) }, line).join("\n");
  const blocks = blocksOf(text);
  // A fence with a language inside an open block begins it again: the one thing that is read in another way.
  if (blocks.length === 0 || blocks.some(([, content]) => /^\s*`{3,}[ \t]*[^`\s]/m.test(content))) continue;
  cases.push([text, blocks]);
}
const head = { madeBy: `commonmark ${version}, scripts/fences-golden.mjs`, fields: "[text, [info, content][]][]" };
const rows = cases.map((one) => JSON.stringify(one)).join(",\n");
writeFileSync(
  new URL("../test/golden/fences.json", import.meta.url),
  `${JSON.stringify(head).slice(0, -1)},"cases":[\n${rows}\n]}\n`,
);
