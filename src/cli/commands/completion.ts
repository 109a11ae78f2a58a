// `./whet completion SHELL`: a script with which the shell completes commands, their keys and the values of choices. It follows from the
// commands' schemas, so that a new command, key or value needs nothing here.
import { ConfigError } from "../../core/errors.ts";
import { whet } from "../../core/program.ts";
import { choicesOf, isSwitch } from "../arguments/options.ts";
import { type Command, helpOf } from "../command.ts";
import { commands as table } from "../commands.ts";

interface Word {
  /** A command, or a key with its "=". */
  text: string;
  about: string;
  /** What may stand behind the "="; none: a file is completed. */
  values: readonly string[];
}

interface Known {
  commands: Word[];
  keys: Map<string, Word[]>;
}

const shells: Readonly<Record<string, { write: (known: Known) => string; use: string }>> = {
  bash: { write: bash, use: `source <(${whet} completion bash)` },
  zsh: { write: zsh, use: `source <(${whet} completion zsh)` },
  fish: { write: fish, use: `${whet} completion fish | source` },
};

export const command: Command = {
  help: () =>
    helpOf({
      usage: `completion ${Object.keys(shells).join("|")}`,
      about: [
        "Prints a script for the shell; Tab then completes commands, keys, the values of choices, runs and files. Put one of these into the",
        "shell's start file:",
        ...Object.values(shells).map(({ use }) => `  ${use}`),
      ],
    }),
  async run(args) {
    const shell = args.length === 1 && Object.hasOwn(shells, args[0]!) ? shells[args[0]!] : undefined;
    if (!shell)
      throw new ConfigError(
        "config/shell",
        `${whet} completion wants one of ${Object.keys(shells).join(", ")}, not "${args.join(" ")}".`,
      );
    console.log(shell.write(await collect()));
    return 0;
  },
};

async function collect(): Promise<Known> {
  const commands: Word[] = [{ text: "help", about: "a command's keys", values: [] }];
  const keys = new Map<string, Word[]>();
  for (const [name, { summary, load }] of Object.entries(table)) {
    commands.push({ text: name, about: summary, values: [] });
    keys.set(name, keysOf((await load()).command));
  }
  keys.set(
    "completion",
    Object.keys(shells).map((text) => ({ text, about: "a shell", values: [] })),
  );
  return { commands, keys };
}

/** A command's keys, each with its values: of a choice, of a switch. */
function keysOf({ keys = {} }: Command): Word[] {
  return Object.entries(keys).map(([key, field]) => ({
    text: `${key}=`,
    about: field.description ?? "",
    values: isSwitch(field) ? ["true", "false"] : choicesOf(field),
  }));
}

/** Where a run can stand, the shell lists those of the usual folder. */
const isRun = ({ text }: Word) => text === "run=";
const takeRuns = (keys: Known["keys"]) =>
  [...keys].flatMap(([name, words]) => (words.some(isRun) ? [name] : [])).join("|");
const runNames = "latest $(command ls ~/code-rl-logs 2>/dev/null)";

/** What is written for each key of each command. */
const forEachKey = (keys: Known["keys"], write: (name: string, word: Word) => readonly string[]) =>
  [...keys].flatMap(([name, words]) => words.flatMap((word) => write(name, word)));

/** Quoted for any of the three: single quotes, without what would end them. */
const quoted = (text: string) => `'${text.replaceAll(/['\\]/g, "’").replaceAll(/[\r\n]+/g, " ")}'`;
const list = (words: readonly Word[]) => words.map(({ text }) => text).join(" ");

function bash({ commands, keys }: Known): string {
  const cases = [...keys].map(([name, words]) => `    ${name}) words=${quoted(list(words))} ;;`);
  const values = forEachKey(keys, (name, { text, values }) =>
    values.length > 0 ? [`      "${name} ${text}") values=${quoted(values.join(" "))} ;;`] : [],
  );
  return `# Completion of whet for bash.
_whet() {
  # "=" and "@" split words here, so the line is read instead.
  local line=\${COMP_LINE:0:COMP_POINT} current command words values runs rest
  local -a typed
  read -ra typed <<< "$line"
  [[ $line == *[[:space:]] ]] && typed+=("")
  current=\${typed[\${#typed[@]}-1]}
  command=\${typed[1]}
  [[ $command == help && \${#typed[@]} -gt 2 ]] && command=
  COMPREPLY=()
  if (( \${#typed[@]} <= 2 )) || [[ -z $command ]]; then
    mapfile -t COMPREPLY < <(compgen -W ${quoted(list(commands))} -- "$current")
    return
  fi
  case $command in
${cases.join("\n")}
    *) words= ;;
  esac
  case $command in
    ${takeRuns(keys)}) runs="${runNames}" ;;
    *) runs= ;;
  esac
  if [[ $current == *=* || $current == @* ]]; then
    # A value or a config file; bash replaces what stands after the last "=" or "@".
    rest=\${current#*[=@]}
    values=
    case "$command \${current%%=*}=" in
${values.join("\n")}
      *" run=") values=$runs ;;
    esac
    if [[ -n $values && $current != @* ]]; then
      mapfile -t COMPREPLY < <(compgen -W "$values" -- "$rest")
      [[ $current == run=* ]] || return
    fi
    mapfile -t -O \${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$rest")
    [[ $current == @* && $COMP_WORDBREAKS != *@* ]] && COMPREPLY=("\${COMPREPLY[@]/#/@}")
    compopt -o filenames 2>/dev/null
  else
    mapfile -t COMPREPLY < <(compgen -W "$words $runs" -- "$current"; compgen -f -- "$current")
    [[ \${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
  fi
}
complete -F _whet whet whetstone ./whet`;
}

function zsh({ commands, keys }: Known): string {
  const described = (words: readonly Word[]) => words.map(({ text, about }) => quoted(`${text}:${about}`)).join(" ");
  const cases = [...keys].map(([name, words]) => `    ${name}) keys=(${described(words)}) ;;`);
  const values = forEachKey(keys, (name, word) => {
    const known = isRun(word) ? "$runs" : word.values.map(quoted).join(" ");
    return known === "" ? [] : [`      ${quoted(`${name} ${word.text}`)}) values=(${known}) ;;`];
  });
  return `# Completion of whet for zsh.
_whet() {
  local -a commands keys values runs
  commands=(${described(commands)})
  if (( CURRENT == 2 )) || [[ $words[2] == help ]]; then
    _describe -t commands command commands
    return
  fi
  [[ $words[2] == (${takeRuns(keys)}) ]] && runs=(latest \${(f)"$(command ls ~/code-rl-logs 2>/dev/null)"})
  if [[ $PREFIX == *=* ]]; then
    case "$words[2] \${PREFIX%%=*}=" in
${values.join("\n")}
    esac
    compset -P '*='
    (( \${#values} )) && compadd -a values
    [[ \${#values} -eq 0 || -n $runs ]] && _files
    return
  fi
  if [[ $PREFIX == @* ]]; then
    compset -P '@'
    _files
    return
  fi
  case $words[2] in
${cases.join("\n")}
  esac
  _describe -t keys key keys -S ''
  (( \${#runs} )) && compadd -a runs
  _files
}
compdef _whet whet whetstone ./whet`;
}

function fish({ commands, keys }: Known): string {
  const rule = (condition: string, text: string, about: string) =>
    `complete -c whet -n ${quoted(condition)} -a ${quoted(text)} -d ${quoted(about)}`;
  const isFirst = "test (count (commandline -opc)) -le 1; or contains -- help (commandline -opc)";
  const inside = (name: string) => `__fish_seen_subcommand_from ${name}`;
  const atKey = (name: string, key: string) => `${inside(name)}; and string match -q -- "${key}*" (commandline -ct)`;
  return [
    "# Completion of whet for fish.",
    `complete -c whet -n ${quoted(isFirst)} -f`,
    ...commands.map(({ text, about }) => rule(isFirst, text, about)),
    ...forEachKey(keys, (name, word) => [
      rule(inside(name), word.text, word.about),
      ...word.values.map((value) => rule(atKey(name, word.text), `${word.text}${value}`, "")),
      ...(word.values.length > 0 ? [`complete -c whet -n ${quoted(atKey(name, word.text))} -f`] : []),
      ...(isRun(word)
        ? [
            rule(inside(name), "latest (command ls ~/code-rl-logs 2>/dev/null)", "a run"),
            rule(atKey(name, "run="), "run=latest run=(command ls ~/code-rl-logs 2>/dev/null)", "a run"),
          ]
        : []),
    ]),
    "complete -c whetstone -w whet",
  ].join("\n");
}
