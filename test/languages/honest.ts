// Programs as people write them in contests: ten tasks about whole numbers, each in several ways of reading them, in each language.
import type { LanguageName } from "../../src/core/languages/languages.ts";
import { luaReaders, luaSolutions } from "./lua.ts";

export interface Task {
  inputs: readonly string[];
  outputs: readonly string[];
}

const many = Array.from({ length: 20_000 }, (_, index) => (index * 7919) % 100_003);

export const tasks = {
  sum: {
    inputs: ["3\n1 2 3\n", `${many.length}\n${many.join(" ")}\n`],
    outputs: ["6", String(many.reduce((a, b) => a + b))],
  },
  gcd: { inputs: ["12 18\n", "1000000007 998244353\n"], outputs: ["6", "1"] },
  fibonacci: { inputs: ["10\n", "100000\n"], outputs: ["55", "911435502"] },
  primes: { inputs: ["10\n", "1000000\n"], outputs: ["4", "78498"] },
  sort: { inputs: ["4\n3 9 -1 4\n", "1\n5\n"], outputs: ["9 4 3 -1", "5"] },
  increasing: { inputs: ["8\n10 9 2 5 3 7 101 18\n", "3\n3 2 1\n"], outputs: ["4", "1"] },
  path: { inputs: ["3 3\n0 0 0\n1 1 0\n0 0 0\n", "2 2\n0 1\n1 0\n"], outputs: ["4", "-1"] },
  depth: { inputs: ["5\n", "50000\n"], outputs: ["15", "1250025000"] },
  average: { inputs: ["4\n1 2 3 4\n", "3\n1 1 2\n"], outputs: ["2.500", "1.333"] },
  knapsack: { inputs: ["3 50\n10 60\n20 100\n30 120\n", "1 5\n6 9\n"], outputs: ["220", "0"] },
} satisfies Record<string, Task>;
type TaskName = keyof typeof tasks;
type Solutions = Record<TaskName, string>;

/** Every task with each of the ways to read. */
const combine = (readers: Record<string, (solution: string) => string>, solutions: Solutions) =>
  Object.entries(solutions).flatMap(([task, solution]) =>
    Object.entries(readers).map(([reader, program]) => ({
      name: `${task}, ${reader}`,
      task: task as TaskName,
      code: program(solution),
    })),
  );

/** `next()` gives the next number, `print()` a line. */
const jsSolutions: Solutions = {
  sum: "const n = next();\nlet total = 0;\nfor (let i = 0; i < n; i++) total += next();\nprint(total);",
  gcd: "const gcd = (a, b) => (b ? gcd(b, a % b) : a);\nprint(gcd(next(), next()));",
  fibonacci:
    "let [a, b] = [0n, 1n];\nfor (let n = next(); n > 0; n--) [a, b] = [b, (a + b) % 1000000007n];\nprint(String(a));",
  primes:
    "const n = next();\nconst sieve = new Uint8Array(n + 1);\nlet count = 0;\nfor (let i = 2; i <= n; i++) {\n  if (sieve[i]) continue;\n  count++;\n  for (let j = i * i; j <= n; j += i) sieve[j] = 1;\n}\nprint(count);",
  sort: "const all = Array.from({ length: next() }, next);\nprint(all.sort((x, y) => y - x).join(' '));",
  increasing:
    "const tails = [];\nfor (let n = next(); n > 0; n--) {\n  const x = next();\n  let at = tails.findIndex((t) => t >= x);\n  if (at < 0) at = tails.length;\n  tails[at] = x;\n}\nprint(tails.length);",
  path: "const [n, m] = [next(), next()];\nconst grid = Array.from({ length: n }, () => Array.from({ length: m }, next));\nconst seen = new Map([['0,0', 0]]);\nconst queue = [[0, 0]];\nfor (const [x, y] of queue)\n  for (const [dx, dy] of [[0, 1], [1, 0], [0, -1], [-1, 0]]) {\n    const key = x + dx + ',' + (y + dy);\n    if (grid[x + dx]?.[y + dy] !== 0 || seen.has(key)) continue;\n    seen.set(key, seen.get(x + ',' + y) + 1);\n    queue.push([x + dx, y + dy]);\n  }\nprint(seen.get(n - 1 + ',' + (m - 1)) ?? -1);",
  depth: "const deep = (n) => (n === 0 ? 0 : n + deep(n - 1));\nprint(deep(next()));",
  average:
    "const n = next();\nlet total = 0;\nfor (let i = 0; i < n; i++) total += next();\nprint((total / n).toFixed(3));",
  knapsack:
    "const [n, room] = [next(), next()];\nconst best = new Array(room + 1).fill(0);\nfor (let i = 0; i < n; i++) {\n  const [w, v] = [next(), next()];\n  for (let r = room; r >= w; r--) best[r] = Math.max(best[r], best[r - w] + v);\n}\nprint(best[room]);",
};

const numbers = "let at = 0;\nconst next = () => Number(words[at++]);\nconst print = (line) => console.log(line);";
const javascript = combine(
  {
    "the whole file": (solution) =>
      `const fs = require("fs");\nconst words = fs.readFileSync(0, "utf8").split(/\\s+/);\n${numbers}\n${solution}`,
    "/dev/stdin as a module": (solution) =>
      `import { readFileSync } from "node:fs";\nconst words = readFileSync("/dev/stdin", "utf8").trim().split(/\\s+/);\n${numbers}\n${solution}`,
    "lines, then a class": (solution) =>
      `const rl = require("readline").createInterface({ input: process.stdin });\nconst lines = [];\nrl.on("line", (line) => lines.push(line));\nrl.on("close", () => {\n  const words = lines.join(" ").split(" ");\n  class Solver {\n    solve() {\n${numbers}\n${solution}\n    }\n  }\n  new Solver().solve();\n});`,
  },
  jsSolutions,
);

/** The same with types, where the compiler of others would want them. */
const tsSolutions = Object.fromEntries(
  Object.entries(jsSolutions).map(([task, solution]) => [
    task,
    solution
      .replaceAll("(a, b) =>", "(a: number, b: number): number =>")
      .replaceAll("(n) =>", "(n: number): number =>")
      .replaceAll("const tails = []", "const tails: number[] = []")
      .replaceAll("let total = 0", "let total: number = 0")
      .replaceAll("const queue = [[0, 0]]", "const queue: [number, number][] = [[0, 0]]")
      .replaceAll("seen.get(x + ',' + y) +", "seen.get(x + ',' + y)! +"),
  ]),
) as Solutions;
const typed =
  "let at = 0;\nconst next = (): number => Number(words[at++]);\nconst print = (line: unknown): void => console.log(line);";
const typescript = combine(
  {
    "import * as fs": (solution) =>
      `import * as fs from "fs";\nconst words: string[] = fs.readFileSync(0, "utf8").split(/\\s+/);\n${typed}\n${solution}`,
    "an enum and a parameter property": (solution) =>
      `declare function require(name: string): any;\nenum Radix { Ten = 10 }\nclass Reader {\n  private at = 0;\n  constructor(private readonly words: string[], public radix: Radix = Radix.Ten) {}\n  next(): number { return parseInt(this.words[this.at++] as string, this.radix); }\n}\nconst reader = new Reader(require("fs").readFileSync(0).toString().split(/\\s+/));\nconst next = (): number => reader.next();\nconst print = (line: unknown) => process.stdout.write(line + "\\n");\n${solution}`,
    "await at the top": (solution) =>
      `import readline from "node:readline/promises";\nimport type { Interface } from "node:readline";\nconst rl: Interface = readline.createInterface({ input: process.stdin }) as unknown as Interface;\nconst words: string[] = [];\nfor await (const line of rl) words.push(...line.split(" "));\n${typed}\n${solution}\nexport {};`,
  },
  tsSolutions,
);

const cppSolutions: Solutions = {
  sum: "int n = next(); ll s = 0; while (n--) s += next(); cout << s << endl;",
  gcd: "ll a = next(), b = next(); cout << __gcd(a, b) << '\\n';",
  fibonacci:
    'll a = 0, b = 1; for (ll n = next(); n; n--) { ll c = (a + b) % 1000000007; a = b; b = c; } printf("%lld\\n", a);',
  primes:
    "int n = next(); vector<bool> s(n + 1); int c = 0; for (ll i = 2; i <= n; i++) { if (s[i]) continue; c++; for (ll j = i * i; j <= n; j += i) s[j] = true; } cout << c;",
  sort: 'int n = next(); vector<ll> v(n); for (auto& x : v) x = next(); sort(v.rbegin(), v.rend()); for (int i = 0; i < n; i++) cout << v[i] << " \\n"[i == n - 1];',
  increasing:
    "vector<ll> t; for (int n = next(); n--;) { ll x = next(); auto it = lower_bound(all(t), x); if (it == t.end()) t.push_back(x); else *it = x; } cout << t.size() << endl;",
  path: "int n = next(), m = next(); vector<vector<int>> g(n, vector<int>(m)), d(n, vector<int>(m, -1)); for (auto& r : g) for (auto& x : r) x = next(); queue<pair<int, int>> q; q.push({0, 0}); d[0][0] = 0; int dx[] = {0, 1, 0, -1}; while (!q.empty()) { auto [x, y] = q.front(); q.pop(); for (int k = 0; k < 4; k++) { int a = x + dx[k], b = y + dx[3 - k]; if (a < 0 || b < 0 || a >= n || b >= m || g[a][b] || d[a][b] >= 0) continue; d[a][b] = d[x][y] + 1; q.push({a, b}); } } cout << d[n - 1][m - 1];",
  depth: "function<ll(ll)> deep = [&](ll n) -> ll { return n == 0 ? 0 : n + deep(n - 1); }; cout << deep(next());",
  average: 'int n = next(); double s = 0; for (int i = 0; i < n; i++) s += next(); printf("%.3f\\n", s / n);',
  knapsack:
    "int n = next(), w = next(); vector<ll> b(w + 1); while (n--) { int c = next(), v = next(); for (int r = w; r >= c; r--) b[r] = max(b[r], b[r - c] + v); } cout << b[w] << endl;",
};
const cppHead = "typedef long long ll;\n#define all(x) (x).begin(), (x).end()\nusing namespace std;\n";
const cpp = combine(
  {
    "bits and cin": (solution) =>
      `#include <bits/stdc++.h>\n${cppHead}ll next() { ll x; cin >> x; return x; }\nint main() {\n  ios::sync_with_stdio(true);\n  ${solution}\n  return 0;\n}`,
    scanf: (solution) =>
      `#include <bits/stdc++.h>\n${cppHead}static ll next() { ll x; if (scanf("%lld", &x) != 1) exit(1); return x; }\nint main(void) { ${solution} }`,
    "single headers and getchar": (solution) =>
      `#include <algorithm>\n#include <cstdio>\n#include <functional>\n#include <iostream>\n#include <queue>\n#include <vector>\n${cppHead}#pragma GCC optimize("O3")\ninline ll next() { int c = getchar(); while (c != '-' && (c < '0' || c > '9')) c = getchar(); bool minus = c == '-'; if (minus) c = getchar(); ll x = 0; for (; c >= '0' && c <= '9'; c = getchar()) x = x * 10 + c - '0'; return minus ? -x : x; }\nstruct Solver { void run() { ${solution} } };\nint main(int argc, char** argv) { Solver().run(); }`,
  },
  cppSolutions,
);

const rustSolutions: Solutions = {
  sum: 'let n = next(); let mut s = 0; for _ in 0..n { s += next(); } println!("{}", s);',
  gcd: 'fn gcd(a: i64, b: i64) -> i64 { if b == 0 { a } else { gcd(b, a % b) } } let a = next(); let b = next(); println!("{}", gcd(a, b));',
  fibonacci:
    'let (mut a, mut b) = (0i64, 1i64); for _ in 0..next() { let c = (a + b) % 1_000_000_007; a = b; b = c; } println!("{}", a);',
  primes:
    'let n = next() as usize; let mut s = vec![true; n + 1]; let mut c = 0; for i in 2..=n { if !s[i] { continue; } c += 1; let mut j = i * i; while j <= n { s[j] = false; j += i; } } println!("{}", c);',
  sort: 'let n = next(); let mut v: Vec<i64> = (0..n).map(|_| next()).collect(); v.sort_by(|a, b| b.cmp(a)); println!("{}", v.iter().map(|x| x.to_string()).collect::<Vec<_>>().join(" "));',
  increasing:
    'let n = next(); let mut t: Vec<i64> = vec![]; for _ in 0..n { let x = next(); match t.binary_search(&x) { Ok(_) => {} Err(i) => if i == t.len() { t.push(x) } else { t[i] = x } } } println!("{}", t.len());',
  path: 'let n = next() as usize; let m = next() as usize; let g: Vec<Vec<i64>> = (0..n).map(|_| (0..m).map(|_| next()).collect()).collect(); let mut d = vec![vec![-1i64; m]; n]; d[0][0] = 0; let mut q = std::collections::VecDeque::from(vec![(0usize, 0usize)]); while let Some((x, y)) = q.pop_front() { for (dx, dy) in [(0i64, 1i64), (1, 0), (0, -1), (-1, 0)] { let (a, b) = (x as i64 + dx, y as i64 + dy); if a < 0 || b < 0 || a >= n as i64 || b >= m as i64 { continue; } let (a, b) = (a as usize, b as usize); if g[a][b] != 0 || d[a][b] >= 0 { continue; } d[a][b] = d[x][y] + 1; q.push_back((a, b)); } } println!("{}", d[n - 1][m - 1]);',
  depth: 'fn deep(n: i64) -> i64 { if n == 0 { 0 } else { n + deep(n - 1) } } println!("{}", deep(next()));',
  average: 'let n = next(); let s: i64 = (0..n).map(|_| next()).sum(); println!("{:.3}", s as f64 / n as f64);',
  knapsack:
    'let n = next(); let w = next() as usize; let mut b = vec![0i64; w + 1]; for _ in 0..n { let c = next() as usize; let v = next(); for r in (c..=w).rev() { b[r] = b[r].max(b[r - c] + v); } } println!("{}", b[w]);',
};
const rust = combine(
  {
    "the whole input": (solution) =>
      `use std::io::{self, Read};\nfn main() {\n    let mut input = String::new();\n    io::stdin().read_to_string(&mut input).unwrap();\n    let mut words = input.split_ascii_whitespace().map(|w| w.parse::<i64>().unwrap());\n    let mut next = || words.next().unwrap();\n    ${solution}\n}`,
    lines: (solution) =>
      `use std::io::BufRead;\nfn main() {\n    let all: Vec<i64> = std::io::stdin().lock().lines().flat_map(|line| line.unwrap().split(' ').map(|w| w.parse().unwrap()).collect::<Vec<i64>>()).collect();\n    let mut at = 0;\n    let mut next = || { at += 1; all[at - 1] };\n    ${solution}\n}`,
    "words as they come, in a struct": (solution) =>
      `#![allow(unused_mut, dead_code)]\nuse std::io::{stdin, BufReader, BufRead, Lines, StdinLock};\nuse std::collections::VecDeque;\n\nstruct Scanner<'a> {\n    lines: Lines<BufReader<StdinLock<'a>>>,\n    words: VecDeque<String>,\n}\n\nimpl<'a> Scanner<'a> {\n    fn next(&mut self) -> i64 {\n        while self.words.is_empty() {\n            let line = self.lines.next().expect("a line").expect("text");\n            self.words.extend(line.split_whitespace().map(String::from));\n        }\n        self.words.pop_front().unwrap().parse().unwrap()\n    }\n}\n\nfn main() -> Result<(), Box<dyn std::error::Error>> {\n    let mut scanner = Scanner { lines: BufReader::new(stdin().lock()).lines(), words: VecDeque::new() };\n    let mut next = || scanner.next();\n    ${solution}\n    Ok(())\n}`,
  },
  rustSolutions,
);

const goSolutions: Solutions = {
  sum: "n := next()\ns := 0\nfor i := 0; i < n; i++ {\ns += next()\n}\nfmt.Println(s)",
  gcd: "a, b := next(), next()\nfor b != 0 {\na, b = b, a%b\n}\nfmt.Println(a)",
  fibonacci: "a, b := 0, 1\nfor n := next(); n > 0; n-- {\na, b = b, (a+b)%1000000007\n}\nfmt.Println(a)",
  primes:
    "n := next()\ns := make([]bool, n+1)\nc := 0\nfor i := 2; i <= n; i++ {\nif s[i] {\ncontinue\n}\nc++\nfor j := i * i; j <= n; j += i {\ns[j] = true\n}\n}\nfmt.Println(c)",
  sort: 'n := next()\nv := make([]int, n)\nfor i := range v {\nv[i] = next()\n}\nsort.Sort(sort.Reverse(sort.IntSlice(v)))\nfmt.Println(strings.Trim(fmt.Sprint(v), "[]"))',
  increasing:
    "t := []int{}\nfor n := next(); n > 0; n-- {\nx := next()\ni := sort.SearchInts(t, x)\nif i == len(t) {\nt = append(t, x)\n} else {\nt[i] = x\n}\n}\nfmt.Println(len(t))",
  path: "n, m := next(), next()\ng := make([][]int, n)\nd := map[[2]int]int{{0, 0}: 0}\nfor i := range g {\ng[i] = make([]int, m)\nfor k := range g[i] {\ng[i][k] = next()\n}\n}\nq := [][2]int{{0, 0}}\nfor len(q) > 0 {\nat := q[0]\nq = q[1:]\nfor _, by := range [][2]int{{0, 1}, {1, 0}, {0, -1}, {-1, 0}} {\nto := [2]int{at[0] + by[0], at[1] + by[1]}\nif to[0] < 0 || to[1] < 0 || to[0] >= n || to[1] >= m || g[to[0]][to[1]] != 0 {\ncontinue\n}\nif _, ok := d[to]; ok {\ncontinue\n}\nd[to] = d[at] + 1\nq = append(q, to)\n}\n}\nif r, ok := d[[2]int{n - 1, m - 1}]; ok {\nfmt.Println(r)\n} else {\nfmt.Println(-1)\n}",
  depth:
    "var deep func(int) int\ndeep = func(n int) int {\nif n == 0 {\nreturn 0\n}\nreturn n + deep(n-1)\n}\nfmt.Println(deep(next()))",
  average:
    'n := next()\ns := 0\nfor i := 0; i < n; i++ {\ns += next()\n}\nfmt.Printf("%.3f\\n", float64(s)/float64(n))',
  knapsack:
    "n, w := next(), next()\nb := make([]int, w+1)\nfor i := 0; i < n; i++ {\nc, v := next(), next()\nfor r := w; r >= c; r-- {\nif b[r-c]+v > b[r] {\nb[r] = b[r-c] + v\n}\n}\n}\nfmt.Println(b[w])",
};
const goHead = (...more: string[]) =>
  `package main\n\nimport (\n${["fmt", "sort", "strings", ...more].map((name) => `\t"${name}"`).join("\n")}\n)\n\nvar _ = sort.Ints\nvar _ = strings.Trim\n\n`;
const go = combine(
  {
    "a buffered reader": (solution) =>
      `${goHead("bufio", "os")}var in = bufio.NewReader(os.Stdin)\n\nfunc next() int {\n\tvar x int\n\tfmt.Fscan(in, &x)\n\treturn x\n}\n\nfunc main() {\n${solution}\n}\n`,
    "a scanner of words": (solution) =>
      `${goHead("bufio", "os", "strconv")}func main() {\n\tin := bufio.NewScanner(os.Stdin)\n\tin.Buffer(make([]byte, 1<<20), 1<<24)\n\tin.Split(bufio.ScanWords)\n\tnext := func() int {\n\t\tin.Scan()\n\t\tx, _ := strconv.Atoi(in.Text())\n\t\treturn x\n\t}\n${solution}\n}\n`,
    "the whole input in a struct": (solution) =>
      `${goHead("io", "os", "strconv")}type reader struct{ words []string }\n\nfunc (r *reader) next() int {\n\tx, err := strconv.Atoi(r.words[0])\n\tif err != nil {\n\t\tpanic(err)\n\t}\n\tr.words = r.words[1:]\n\treturn x\n}\n\nfunc main() {\n\ttext, _ := io.ReadAll(os.Stdin)\n\tr := &reader{strings.Fields(string(text))}\n\tnext := r.next\n${solution}\n}\n`,
  },
  goSolutions,
);

const javaSolutions: Solutions = {
  sum: "long s = 0; for (long n = next(); n > 0; n--) s += next(); System.out.println(s);",
  gcd: "long a = next(), b = next(); while (b != 0) { long c = a % b; a = b; b = c; } System.out.println(a);",
  fibonacci:
    "long a = 0, b = 1; for (long n = next(); n > 0; n--) { long c = (a + b) % 1_000_000_007; a = b; b = c; } System.out.println(a);",
  primes:
    "int n = (int) next(); boolean[] s = new boolean[n + 1]; int c = 0; for (int i = 2; i <= n; i++) { if (s[i]) continue; c++; for (long k = (long) i * i; k <= n; k += i) s[(int) k] = true; } System.out.println(c);",
  sort: 'List<Long> v = new ArrayList<>(); for (long n = next(); n > 0; n--) v.add(next()); v.sort(Comparator.reverseOrder()); StringJoiner line = new StringJoiner(" "); for (long x : v) line.add("" + x); System.out.println(line);',
  increasing:
    "TreeSet<Long> t = new TreeSet<>(); for (long n = next(); n > 0; n--) { long x = next(); Long above = t.ceiling(x); if (above != null) t.remove(above); t.add(x); } System.out.println(t.size());",
  path: "int n = (int) next(), m = (int) next(); long[][] g = new long[n][m]; int[][] d = new int[n][m]; for (long[] r : g) for (int i = 0; i < m; i++) r[i] = next(); for (int[] r : d) Arrays.fill(r, -1); d[0][0] = 0; ArrayDeque<int[]> q = new ArrayDeque<>(); q.add(new int[] {0, 0}); int[] dx = {0, 1, 0, -1}; while (!q.isEmpty()) { int[] p = q.poll(); for (int k = 0; k < 4; k++) { int a = p[0] + dx[k], b = p[1] + dx[3 - k]; if (a < 0 || b < 0 || a >= n || b >= m || g[a][b] != 0 || d[a][b] >= 0) continue; d[a][b] = d[p[0]][p[1]] + 1; q.add(new int[] {a, b}); } } System.out.println(d[n - 1][m - 1]);",
  depth: "System.out.println(deep(next()));",
  average:
    'long n = next(); long s = 0; for (int i = 0; i < n; i++) s += next(); System.out.printf(Locale.ROOT, "%.3f%n", (double) s / n);',
  knapsack:
    "int n = (int) next(), w = (int) next(); long[] b = new long[w + 1]; while (n-- > 0) { int c = (int) next(); long v = next(); for (int r = w; r >= c; r--) b[r] = Math.max(b[r], b[r - c] + v); } System.out.println(b[w]);",
};
const deep = "static long deep(long n) { return n == 0 ? 0 : n + deep(n - 1); }";
const java = combine(
  {
    "a scanner in Main": (solution) =>
      `import java.util.*;\n\npublic class Main {\n  static Scanner in = new Scanner(System.in);\n  static long next() { return in.nextLong(); }\n  ${deep}\n  public static void main(String[] args) {\n    ${solution}\n  }\n}`,
    "a tokenizer in a class of its own name": (solution) =>
      `import java.io.*;\nimport java.util.*;\n\nclass Helper { }\n\npublic final class TheSolution {\n  static StreamTokenizer in = new StreamTokenizer(new BufferedReader(new InputStreamReader(System.in)));\n  static long next() throws IOException { in.nextToken(); return (long) in.nval; }\n  ${deep}\n  public static void main(String... args) throws IOException {\n    ${solution}\n  }\n}`,
    "bytes, in a package": (solution) =>
      `package contest;\n\nimport java.io.DataInputStream;\nimport java.util.*;\nimport java.util.stream.*;\n\npublic class Solve {\n  private final DataInputStream in = new DataInputStream(System.in);\n  private final byte[] buffer = new byte[1 << 16];\n  private int at = 0, end = 0;\n\n  private int read() throws Exception {\n    if (at == end) { end = in.read(buffer, 0, buffer.length); at = 0; if (end <= 0) return -1; }\n    return buffer[at++];\n  }\n\n  long next() throws Exception {\n    int c = read();\n    while (c <= ' ') c = read();\n    boolean minus = c == '-';\n    if (minus) c = read();\n    long x = 0;\n    for (; c >= '0' && c <= '9'; c = read()) x = x * 10 + c - '0';\n    return minus ? -x : x;\n  }\n\n  ${deep}\n\n  void solve() throws Exception {\n    ${solution}\n  }\n\n  public static void main(String[] args) throws Exception {\n    Thread thread = new Thread(null, () -> { try { new Solve().solve(); } catch (Exception e) { throw new RuntimeException(e); } }, "", 1 << 27);\n    thread.start();\n    thread.join();\n  }\n}`,
  },
  javaSolutions,
);

export const honest: Readonly<Record<Exclude<LanguageName, "python">, ReturnType<typeof combine>>> = {
  javascript,
  typescript,
  cpp,
  rust,
  go,
  java,
  lua: combine(luaReaders, luaSolutions),
};
