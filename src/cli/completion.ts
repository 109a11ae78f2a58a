// `./whet completion SHELL`: a script with which the shell completes commands and their keys. What a command's help lists as keys is
// what is completed, so that a new command or key needs nothing here.
import { ConfigError } from "../core/errors.ts";
import { whet } from "../core/program.ts";
import { availableCommands } from "./available-commands.ts";
import type { Command } from "./command.ts";

interface Word {
  /** A command, or a key with its "=". */
  text: string;
  about: string;
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
    [
      `Usage: ${whet} completion ${Object.keys(shells).join("|")}`,
      "",
      "Prints a script for the shell; Tab then completes commands, keys and files. Put one of these into the shell's start file:",
      ...Object.values(shells).map(({ use }) => `  ${use}`),
    ].join("\n"),
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
  const commands: Word[] = [{ text: "help", about: "a command's keys" }];
  const keys = new Map<string, Word[]>();
  for (const [name, { summary, load }] of Object.entries(await availableCommands())) {
    commands.push({ text: name, about: summary });
    const { command } = await load();
    keys.set(name, keysOf(command.help([])));
  }
  keys.set(
    "completion",
    Object.keys(shells).map((text) => ({ text, about: "a shell" })),
  );
  return { commands, keys };
}

/** The lines of a help text that describe a key: `  key=default  what it means`. */
export function keysOf(help: string): Word[] {
  return Array.from(help.matchAll(/^ {2}([a-z][a-z0-9_]*=)\S*\s+(.*)$/gm), ([, text, about]) => ({
    text: text!,
    about: about!,
  }));
}

/** Quoted for any of the three: single quotes, without what would end them. */
const quoted = (text: string) => `'${text.replaceAll(/['\\]/g, "’").replaceAll(/[\r\n]+/g, " ")}'`;
const list = (words: readonly Word[]) => words.map(({ text }) => text).join(" ");

function bash({ commands, keys }: Known): string {
  const cases = [...keys].map(([name, words]) => `    ${name}) words=${quoted(list(words))} ;;`);
  return `# Completion of whet for bash.
_whet() {
  # "=" and "@" split words here, so the line is read instead.
  local line=\${COMP_LINE:0:COMP_POINT} current command words prefix rest
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
  if [[ $current == *=* || $current == @* ]]; then
    # A value or a config file: complete it as a path; bash replaces what stands after the last "=" or "@".
    prefix=\${current%%[=@]*}
    rest=\${current#*[=@]}
    mapfile -t COMPREPLY < <(compgen -f -- "$rest")
    [[ $current == @* && $COMP_WORDBREAKS != *@* ]] && COMPREPLY=("\${COMPREPLY[@]/#/@}")
    compopt -o filenames 2>/dev/null
  else
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current"; compgen -f -- "$current")
    [[ \${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
  fi
}
complete -F _whet whet whetstone ./whet`;
}

function zsh({ commands, keys }: Known): string {
  const described = (words: readonly Word[]) => words.map(({ text, about }) => quoted(`${text}:${about}`)).join(" ");
  const cases = [...keys].map(([name, words]) => `    ${name}) keys=(${described(words)}) ;;`);
  return `# Completion of whet for zsh.
_whet() {
  local -a commands keys
  commands=(${described(commands)})
  if (( CURRENT == 2 )) || [[ $words[2] == help ]]; then
    _describe -t commands command commands
    return
  fi
  if [[ $PREFIX == *=* ]]; then
    compset -P '*='
    _files
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
  _files
}
compdef _whet whet whetstone ./whet`;
}

function fish({ commands, keys }: Known): string {
  const rule = (condition: string, { text, about }: Word) =>
    `complete -c whet -n ${quoted(condition)} -a ${quoted(text)} -d ${quoted(about)}`;
  const isFirst = "test (count (commandline -opc)) -le 1; or contains -- help (commandline -opc)";
  return [
    "# Completion of whet for fish.",
    `complete -c whet -n ${quoted(isFirst)} -f`,
    ...commands.map((word) => rule(isFirst, word)),
    ...[...keys].flatMap(([name, words]) => words.map((word) => rule(`__fish_seen_subcommand_from ${name}`, word))),
    "complete -c whetstone -w whet",
  ].join("\n");
}
