// Reads `.env` as people write it: with a byte-order mark or CRLF, `export`, quotes, comments, `${OTHER}`. Nothing of a value is ever
// part of a message: it may be a key.

interface EnvText {
  values: Map<string, string>;
  /** Lines that set nothing, and why; without what stands there. */
  problems: { line: number; what: string }[];
}

const namePattern = /^[A-Za-z_][A-Za-z0-9_.-]*$/;

/** The variables of a `.env` text. `lookup` gives those that `${X}` may name besides the ones above it; they win. */
export function readEnvText(text: string, lookup: (name: string) => string | undefined = () => undefined): EnvText {
  const values = new Map<string, string>();
  const problems: EnvText["problems"] = [];
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/);
  const expand = (value: string) =>
    value.replaceAll(/\$\{([A-Za-z_]\w*)(?::?-([^}]*))?\}/g, (_, name: string, otherwise: string | undefined) => {
      const known = lookup(name) ?? values.get(name);
      return known || (otherwise ?? known ?? "");
    });
  for (let index = 0; index < lines.length; index++) {
    const line = index + 1;
    const content = lines[index]!.trim().replace(/^export\s+/, "");
    if (content === "" || content.startsWith("#")) continue;
    const equals = content.indexOf("=");
    const name = content.slice(0, Math.max(0, equals)).trim();
    if (equals < 0) problems.push({ line, what: 'has no "="' });
    else if (!namePattern.test(name)) problems.push({ line, what: 'has no name of a variable before its "="' });
    else {
      const rest = content.slice(equals + 1).trim();
      const quote = /^["'`]/.exec(rest)?.[0];
      if (quote === undefined) {
        values.set(name, expand(rest.replace(/(?:^|\s)#.*$/, "").trim()));
        continue;
      }
      const found = quotedValue(rest, quote, lines, index);
      if (found === undefined) {
        problems.push({ line, what: `opens a quote (${quote}) that is never closed` });
        continue;
      }
      index = found.lastLine;
      values.set(name, quote === '"' ? expandEscaped(found.value, expand) : found.value);
    }
  }
  return { values, problems };
}

/** What stands between the quotes; it may go on over several lines. */
function quotedValue(
  rest: string,
  quote: string,
  lines: readonly string[],
  first: number,
): { value: string; lastLine: number } | undefined {
  let body = rest.slice(1);
  for (let lastLine = first; ; ) {
    for (let at = 0; at < body.length; at++) {
      if (body[at] === "\\" && quote === '"') at++;
      else if (body[at] === quote) return { value: body.slice(0, at), lastLine };
    }
    lastLine++;
    if (lastLine >= lines.length) return undefined;
    body += `\n${lines[lastLine]}`;
  }
}

const escapes: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t" };

/** Escapes of double quotes; `\$` keeps a dollar sign from being read as a name. */
function expandEscaped(value: string, expand: (text: string) => string): string {
  return value
    .split(/(\\[\s\S])/)
    .map((part) => {
      if (!part.startsWith("\\")) return expand(part);
      const letter = part[1]!;
      return escapes[letter] ?? (/["\\$`]/.test(letter) ? letter : part);
    })
    .join("");
}
