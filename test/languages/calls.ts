// Functions as people write them where only a function is asked for: five tasks whose tests are calls, each in several ways, in each language; and
// programs that want more than to be called. NAME is the function that the tests call.
import type { LanguageName } from "../../src/core/languages/languages.ts";
import type { Programs } from "./hostile.ts";
import { luaCalls, luaHostileCalls } from "./lua.ts";

export interface CallTask {
  name: string;
  inputs: readonly (readonly unknown[])[];
  outputs: readonly unknown[];
}

export const callTasks = {
  pair: {
    name: "twoSum",
    inputs: [
      [[2, 7, 11, 15], 9],
      [[3, 2, 4], 6],
      [[1, 1], 9],
    ],
    outputs: [[0, 1], [1, 2], []],
  },
  total: {
    name: "total_cost",
    inputs: [
      [
        [
          [1, 2],
          [2147483647, 9],
        ],
        2,
      ],
      [[], 3],
    ],
    outputs: [4294967318, 0],
  },
  mean: { name: "meanOf", inputs: [[[1, 2.5, 3]], [[-0.5]]], outputs: [2.1666666666666665, -0.5] },
  count: {
    name: "countWords",
    inputs: [
      [["a", 'b"\\', "a"], "é"],
      [[], ""],
    ],
    outputs: [{ a: 2, 'b"\\': 1, é: 0 }, { "": 0 }],
  },
  even: {
    name: "isEven",
    inputs: [
      [{ x: 2, "y\n": 3 }, "x"],
      [{ x: 2, "y\n": 3 }, "y\n"],
    ],
    outputs: [true, false],
  },
} satisfies Record<string, CallTask>;
export type CallTaskName = keyof typeof callTasks;

type Honest = readonly { name: string; task: CallTaskName; code: string }[];
const all = (task: CallTaskName, programs: Readonly<Record<string, string>>): Honest =>
  Object.entries(programs).map(([name, code]) => ({ name: `${task}, ${name}`, task, code }));

const cpp: Honest = [
  ...all("pair", {
    "as on LeetCode":
      "class Solution {\npublic:\n    vector<int> twoSum(vector<int>& nums, int target) {\n        unordered_map<int, int> seen;\n        for (int i = 0; i < nums.size(); i++) {\n            if (seen.count(target - nums[i])) return {seen[target - nums[i]], i};\n            seen[nums[i]] = i;\n        }\n        return {};\n    }\n};",
    "with std:: and a main":
      "#include <vector>\n#include <iostream>\nstd::vector<int> twoSum(const std::vector<int>& nums, int target) {\n  for (std::size_t i = 0; i < nums.size(); i++)\n    for (std::size_t j = i + 1; j < nums.size(); j++)\n      if (nums[i] + nums[j] == target) return {static_cast<int>(i), static_cast<int>(j)};\n  return {};\n}\nint main() {\n  for (int x : twoSum({2, 7}, 9)) std::cout << x << ' ';\n}",
    "with macros of contests":
      '#include <bits/stdc++.h>\nusing namespace std;\n#define int long long\n#define all(x) x.begin(), x.end()\n#define endl "\\n"\n#define rep(i, n) for (int i = 0; i < n; i++)\nvector<int> two_sum(vector<int> nums, int target) { rep(i, (int)nums.size()) rep(j, i) if (nums[i] + nums[j] == target) return {j, i}; return {}; }\nsigned main() { cout << 1 << endl; }',
    "an overload that helps":
      "class Solution {\n    vector<int> twoSum(const vector<int>& nums, int target, int from) {\n        if (from == (int)nums.size()) return {};\n        for (int j = from + 1; j < (int)nums.size(); j++) if (nums[from] + nums[j] == target) return {from, j};\n        return twoSum(nums, target, from + 1);\n    }\npublic:\n    vector<int> twoSum(vector<int>& nums, int target) { return twoSum(nums, target, 0); }\n};",
  }),
  ...all("total", {
    "pairs and a long":
      "long long total_cost(vector<pair<int, int>> edges, int factor) { long long s = 0; for (auto [a, b] : edges) s += (long long)a + b; return factor * s - 2 * (factor == 2) ; }".replace(
        "factor * s - 2 * (factor == 2)",
        "factor * s",
      ),
    "camel case in a struct":
      "struct Solution {\n  int64_t totalCost(const vector<vector<long>>& edges, int factor) const {\n    int64_t s = 0;\n    for (const auto& e : edges) s += accumulate(e.begin(), e.end(), 0L);\n    return s * factor;\n  }\n};",
  }),
  ...all("mean", {
    doubles: "double meanOf(const vector<double>& v) { return accumulate(v.begin(), v.end(), 0.0) / v.size(); }",
  }),
  ...all("count", {
    "a map":
      "class Solution { public: map<string, int> countWords(vector<string>& words, string extra) { map<string, int> m; m[extra]; for (auto& w : words) m[w]++; return m; } };",
    "an unordered map by reference":
      "#include <unordered_map>\n#include <string>\n#include <vector>\nstd::unordered_map<std::string, long> countWords(const std::vector<std::string>& words, const std::string& extra) { std::unordered_map<std::string, long> m{{extra, 0}}; for (const auto& w : words) ++m[w]; return m; }",
  }),
  ...all("even", { "a map in": "bool isEven(unordered_map<string, int> m, string k) { return m[k] % 2 == 0; }" }),
];

const rust: Honest = [
  ...all("pair", {
    "as on LeetCode":
      "use std::collections::HashMap;\n\nimpl Solution {\n    pub fn two_sum(nums: Vec<i32>, target: i32) -> Vec<i32> {\n        let mut seen = HashMap::new();\n        for (i, n) in nums.iter().enumerate() {\n            if let Some(&j) = seen.get(&(target - n)) { return vec![j as i32, i as i32]; }\n            seen.insert(*n, i);\n        }\n        vec![]\n    }\n}",
    "a slice and a main":
      'fn twoSum(nums: &[i64], target: i64) -> Vec<usize> {\n    for i in 0..nums.len() { for j in i + 1..nums.len() { if nums[i] + nums[j] == target { return vec![i, j]; } } }\n    Vec::new()\n}\n\nfn main() {\n    println!("{:?}", twoSum(&[2, 7], 9));\n}',
    "a method of a struct of its own":
      "#[derive(Default)]\nstruct Solution { calls: u32 }\nimpl Solution {\n    fn new() -> Self { Self::default() }\n    fn two_sum(&mut self, nums: Vec<i32>, target: i32) -> Vec<i32> {\n        self.calls += 1;\n        (0..nums.len()).flat_map(|i| (i + 1..nums.len()).map(move |j| (i, j))).find(|&(i, j)| nums[i] + nums[j] == target).map_or(vec![], |(i, j)| vec![i as i32, j as i32])\n    }\n}",
  }),
  ...all("total", {
    tuples:
      "fn total_cost(edges: Vec<(i64, i64)>, factor: i64) -> i64 { edges.iter().map(|&(a, b)| a + b).sum::<i64>() * factor }",
    "a borrowed vector":
      "#![allow(dead_code)]\nstruct Solution;\nimpl Solution { pub fn total_cost(edges: &Vec<Vec<u64>>, factor: u64) -> u64 { edges.iter().flatten().sum::<u64>() * factor } }",
  }),
  ...all("mean", { floats: "pub fn mean_of(v: Vec<f64>) -> f64 { v.iter().sum::<f64>() / v.len() as f64 }" }),
  ...all("count", {
    "borrowed texts":
      "use std::collections::BTreeMap;\nfn count_words(words: Vec<&str>, extra: &str) -> BTreeMap<String, i32> { let mut m = BTreeMap::new(); m.insert(extra.to_string(), 0); for w in words { *m.entry(w.to_string()).or_insert(0) += 1; } m }",
    owned:
      "use std::collections::*;\nimpl Solution { pub fn count_words(words: Vec<String>, extra: String) -> HashMap<String, usize> { let mut m: HashMap<String, usize> = HashMap::new(); m.insert(extra, 0); words.into_iter().for_each(|w| *m.entry(w).or_default() += 1); m } }",
  }),
  ...all("even", {
    "a map in":
      "use std::collections::HashMap;\nfn is_even(m: &HashMap<String, i32>, k: String) -> bool { m[&k] % 2 == 0 }",
  }),
];

const go: Honest = [
  ...all("pair", {
    "as on LeetCode":
      "func twoSum(nums []int, target int) []int {\n\tseen := map[int]int{}\n\tfor i, n := range nums {\n\t\tif j, ok := seen[target-n]; ok {\n\t\t\treturn []int{j, i}\n\t\t}\n\t\tseen[n] = i\n\t}\n\treturn nil\n}",
    "a whole file with a main":
      'package main\n\nimport "fmt"\n\nfunc max(a, b int) int {\n\tif a > b {\n\t\treturn a\n\t}\n\treturn b\n}\n\n// TwoSum is what was asked for.\nfunc TwoSum(nums []int, target int) []int {\n\tfor i := range nums {\n\t\tfor j := 0; j < i; j++ {\n\t\t\tif nums[i]+nums[j] == target {\n\t\t\t\treturn []int{j, max(i, 0)}\n\t\t\t}\n\t\t}\n\t}\n\treturn []int{}\n}\n\nfunc main() {\n\tfmt.Println(TwoSum([]int{2, 7}, 9))\n}\n',
    "a method in a package of another name":
      "package solution\n\ntype Solution struct{}\n\nfunc (s *Solution) twoSum(nums []int64, target int64) (found []int64) {\n\tfor i, a := range nums {\n\t\tfor j, b := range nums[:i] {\n\t\t\tif a+b == target {\n\t\t\t\treturn []int64{int64(j), int64(i)}\n\t\t\t}\n\t\t}\n\t}\n\treturn\n}\n",
  }),
  ...all("total", {
    "nested slices":
      "func totalCost(edges [][]int, factor int) int64 {\n\tvar s int64\n\tfor _, e := range edges {\n\t\tfor _, x := range e {\n\t\t\ts += int64(x)\n\t\t}\n\t}\n\treturn s * int64(factor)\n}",
    arrays:
      "package main\n\nfunc total_cost(edges [][2]int, factor int) int {\n\ts := 0\n\tfor _, e := range edges {\n\t\ts += e[0] + e[1]\n\t}\n\treturn s * factor\n}\n",
  }),
  ...all("mean", {
    floats:
      "func meanOf(v []float64) float64 {\n\ts := 0.0\n\tfor _, x := range v {\n\t\ts += x\n\t}\n\treturn s / math.Max(1, float64(len(v)))\n}",
  }),
  ...all("count", {
    "a map":
      "func countWords(words []string, extra string) map[string]int {\n\tm := map[string]int{extra: 0}\n\tsort.Strings(words)\n\tfor _, w := range words {\n\t\tm[w]++\n\t}\n\treturn m\n}",
  }),
  ...all("even", { "a map in": "func isEven(m map[string]int, k string) bool {\n\treturn m[k]%2 == 0\n}" }),
];

const java: Honest = [
  ...all("pair", {
    "as on LeetCode":
      "class Solution {\n    public int[] twoSum(int[] nums, int target) {\n        Map<Integer, Integer> seen = new HashMap<>();\n        for (int i = 0; i < nums.length; i++) {\n            Integer j = seen.get(target - nums[i]);\n            if (j != null) return new int[] {j, i};\n            seen.put(nums[i], i);\n        }\n        return new int[0];\n    }\n}",
    "static in a Main with a main":
      "import java.util.*;\n\npublic class Main {\n  static List<Integer> two_sum(List<Integer> nums, int target) {\n    for (int i = 0; i < nums.size(); i++)\n      for (int j = i + 1; j < nums.size(); j++)\n        if (nums.get(i) + nums.get(j) == target) return List.of(i, j);\n    return new ArrayList<>();\n  }\n  public static void main(String[] args) {\n    System.out.println(two_sum(Arrays.asList(2, 7), 9));\n  }\n}",
    "a package and a helper":
      "package com.example;\n\nimport java.util.ArrayList;\n\nclass Helper {\n  static boolean fits(int a, int b, int c) { return a + b == c; }\n}\n\npublic final class Solution {\n  private int[] twoSum(int[] nums, int target, int from) { return null; }\n  public ArrayList<Integer> twoSum(int[] nums, int target) {\n    ArrayList<Integer> found = new ArrayList<>();\n    for (int i = 0; i < nums.length && found.isEmpty(); i++)\n      for (int j = i + 1; j < nums.length && found.isEmpty(); j++)\n        if (Helper.fits(nums[i], nums[j], target)) { found.add(i); found.add(j); }\n    return found;\n  }\n}",
  }),
  ...all("total", {
    "nested arrays":
      "class Solution {\n  public long totalCost(int[][] edges, int factor) {\n    long s = 0;\n    for (int[] e : edges) for (int x : e) s += x;\n    return s * factor;\n  }\n}",
    "nested lists":
      "class Solution {\n  public Long totalCost(List<List<Long>> edges, long factor) {\n    return factor * edges.stream().flatMap(List::stream).mapToLong(Long::longValue).sum();\n  }\n}",
  }),
  ...all("mean", {
    doubles: "class Solution {\n  public double meanOf(double[] v) { return Arrays.stream(v).average().orElse(0); }\n}",
  }),
  ...all("count", {
    "a map":
      "class Solution {\n  public Map<String, Integer> countWords(String[] words, String extra) {\n    Map<String, Integer> m = new TreeMap<>();\n    m.put(extra, 0);\n    for (String w : words) m.merge(w, 1, Integer::sum);\n    return m;\n  }\n}",
  }),
  ...all("even", {
    "a map in":
      "record Pair(int a, int b) {}\nclass Solution {\n  public boolean isEven(Map<String, Integer> m, String k) { return new Pair(m.get(k), 0).a() % 2 == 0; }\n}",
  }),
];

const javascript: Honest = [
  ...all("pair", {
    "as on LeetCode":
      "/**\n * @param {number[]} nums\n */\nvar twoSum = function (nums, target) {\n  const seen = new Map();\n  for (let i = 0; i < nums.length; i++) {\n    if (seen.has(target - nums[i])) return [seen.get(target - nums[i]), i];\n    seen.set(nums[i], i);\n  }\n  return [];\n};",
  }),
  ...all("count", {
    "a class":
      "class Solution {\n  countWords(words, extra) {\n    const m = { [extra]: 0 };\n    for (const w of words) m[w] = (m[w] ?? 0) + 1;\n    return m;\n  }\n}\nmodule.exports = { Solution };",
  }),
];
const typescript: Honest = [
  ...all("pair", {
    "as on LeetCode":
      "function twoSum(nums: number[], target: number): number[] {\n  for (let i = 0; i < nums.length; i++) for (let j = i + 1; j < nums.length; j++) if (nums[i]! + nums[j]! === target) return [i, j];\n  return [];\n}",
  }),
  ...all("total", {
    "an export":
      "export const total_cost = (edges: [number, number][], factor: number): number => factor * edges.reduce((s, [a, b]) => s + a + b, 0);",
  }),
];

export const honestCalls: Readonly<Record<Exclude<LanguageName, "python">, Honest>> = {
  javascript,
  typescript,
  cpp,
  rust,
  go,
  java,
  lua: Object.entries(luaCalls).flatMap(([task, code]) => all(task as CallTaskName, { "a function": code })),
};

/** Asked for is f(x), with answers that no program here gives. */
export const hostileCalls: Readonly<Record<Exclude<LanguageName, "python" | "javascript" | "typescript">, Programs>> = {
  lua: luaHostileCalls,
  cpp: {
    "leaves before main":
      '#include <bits/stdc++.h>\n__attribute__((constructor)) void first() { puts("[\\"i\\",\\"5\\"]"); fflush(stdout); _Exit(0); }\nint f(int x) { return x; }',
    "reports a guess by itself":
      '#include <unistd.h>\nstruct S { S() { write(3, "V[\\"i\\",\\"7\\"]", 10); _exit(0); } } s;\nint f(int x) { return x; }',
    "reports twice": '#include <unistd.h>\nint f(int x) { write(3, "V[\\"i\\",\\"1\\"]", 10); return x; }',
    "defines away what everybody needs":
      "#define int\n#define return\n#define printf\n#define std\n#define void\nint f(int x) { return x; }",
    "names symbols in assembler":
      '__asm__(".globl _ZN9whetstone5callsEv\\n_ZN9whetstone5callsEv: mov $60, %eax\\nxor %edi, %edi\\nsyscall\\n");\nint f(int x) { return x; }',
    "is another function's alias":
      'extern "C" void mine(int) {}\nextern "C" void _exit(int) __attribute__((alias("mine")));\nint f(int x) { return x; }',
    "is its own main":
      '#undef main\nextern "C" int puts(const char*);\nint main() { puts("5"); return 0; }\nint f(int x) { return x; }',
    "renames what the harness says":
      "#define leave with\n#define call converted\n#define function arguments\n#define whetstone std\nint f(int x) { return x; }",
    "replaces the functions that write":
      'extern "C" long write(int, const void*, unsigned long n) { return n; }\nextern "C" void _exit(int) { for (;;); }\nint f(int x) { return x; }',
    "specialises what writes":
      "namespace whetstone { void put(std::string& out, struct Any); }\nstruct Any { operator int() const { return 5; } bool operator==(int) const { return true; } };\nAny f(int x) { return {}; }",
    "is equal to everything":
      "struct Any { template <class T> bool operator==(const T&) const { return true; } template <class T> operator T() const { return T(); } };\nAny f(int x) { return {}; }",
    throws: "int f(int x) { throw x; }",
    recurses: "int f(int x) { volatile char a[4096]; a[0] = x; return f(x + 1) + a[0]; }",
    "answers without end": "#include <vector>\nstd::vector<long> f(int x) { return std::vector<long>(1 << 26, x); }",
    "nests without end":
      "struct Again { int* begin() const; int* end() const; };\n#include <vector>\ntemplate <int N> struct Deep { using type = std::vector<typename Deep<N - 1>::type>; };\ntemplate <> struct Deep<0> { using type = std::vector<int>; };\nDeep<300>::type f(int x) { return {}; }",
    "ends the harness's file": "int f(int x) { return x; }\n}\n#if 0",
    "prints only": '#include <cstdio>\nvoid f(int x) { printf("%d\\n", 5); }',
  },
  rust: {
    "leaves at once": "fn f(x: i32) -> i32 { std::process::exit(0) }",
    "reports a guess by itself":
      'use std::io::Write;\nuse std::os::unix::io::FromRawFd;\nfn f(x: i32) -> i32 { let mut to = unsafe { std::fs::File::from_raw_fd(3) }; to.write_all(b"V[\\"i\\",\\"7\\"]").unwrap(); std::process::exit(0) }',
    "is its own main":
      '#[no_mangle]\npub extern "C" fn main(_: i32, _: *const *const u8) -> i32 { 0 }\nfn f(x: i32) -> i32 { x }',
    "is a module of the harness's name": "mod whetstone_call { pub fn main() {} }\nfn f(x: i32) -> i32 { x }",
    "changes macros":
      "macro_rules! whetstone_integers { ($($t:ty)*) => {}; }\nmacro_rules! panic { ($($t:tt)*) => { std::process::exit(0) }; }\nfn f(x: i32) -> i32 { x }",
    "writes values in its own way":
      'pub struct Any;\nimpl whetstone_call::ToFrame for Any { fn to_frame(&self, out: &mut String) { out.push_str("[\\"i\\",\\"5\\"],[") } }\nfn f(x: i32) -> Any { Any }',
    "returns a set": "fn f(x: i32) -> std::collections::HashSet<i32> { std::iter::once(x).collect() }",
    panics: "fn f(x: i32) -> i32 { panic!() }",
    "is a procedural macro":
      '#![crate_type = "proc-macro"]\nextern crate proc_macro;\n#[proc_macro]\npub fn read(_: proc_macro::TokenStream) -> proc_macro::TokenStream { std::process::exit(0) }\nfn f(x: i32) -> i32 { x }',
    "goes before main":
      '#[used]\n#[link_section = ".init_array"]\nstatic FIRST: extern "C" fn() = first;\nextern "C" fn first() { std::process::exit(0) }\nfn f(x: i32) -> i32 { x }',
    "replaces the function that ends":
      '#[no_mangle]\npub extern "C" fn _exit(_: i32) { loop {} }\nfn f(x: i32) -> i32 { x }',
  },
  go: {
    "goes before the call":
      'package main\n\nimport "os"\n\nfunc init() { os.Exit(0) }\n\nfunc f(x int) int { return x }',
    "reports a guess by itself":
      'package main\n\nimport "os"\n\nfunc init() {\n\tos.NewFile(3, "r").WriteString(`V["i","7"]`)\n\tos.Exit(0)\n}\n\nfunc f(x int) int { return x }',
    "changes the harness's table":
      "package main\n\nfunc init() { whetstoneFunctions = map[string]interface{}{} }\n\nfunc f(x int) int { return x }",
    "has names of the harness": "package main\n\nfunc whetstoneTo() {}\n\nfunc f(x int) int { return x }",
    "redefines what everybody has":
      "package main\n\ntype string = int\n\nconst true = false\n\nfunc f(x int) int { return x }",
    panics: 'package main\n\nfunc f(x int) int { panic("no") }',
    "recovers and leaves":
      'package main\n\nimport "os"\n\nfunc f(x int) int {\n\tgo func() { os.Exit(0) }()\n\tselect {}\n}',
    "returns a function": "package main\n\nfunc f(x int) func() { return nil }",
    "returns itself": "package main\n\ntype T []T\n\nfunc f(x int) T { t := make(T, 1); t[0] = t; return t }",
    "reaches into the runtime":
      'package main\n\nimport _ "unsafe"\n\n//go:linkname exit os.runtime_beforeExit\nfunc exit(int) {}\n\nfunc f(x int) int { return x }',
  },
  java: {
    "goes before the call": "class Solution { static { System.exit(0); } public int f(int x) { return x; } }",
    "ends in another thread":
      "class Solution { public int f(int x) throws Exception { new Thread(() -> System.exit(0)).start(); Thread.sleep(5000); return x; } }",
    halts: "class Solution { public int f(int x) { Runtime.getRuntime().halt(0); return x; } }",
    "brings its own start":
      'class WhetstoneCall { public static void main(String[] args) { System.out.println("5"); } }\nclass Solution { public int f(int x) { return x; } }',
    "rewrites the harness by reflection":
      'class Solution { public int f(int x) throws Exception { var field = WhetstoneCall.class.getDeclaredField("CLASSES"); field.setAccessible(true); ((String[]) field.get(null))[0] = "Other"; return x; } }',
    "reports a guess by itself":
      'class Solution { public int f(int x) throws Exception { try (var to = WhetstoneCall.report()) { to.write("V[\\"i\\",\\"7\\"]".getBytes()); } Runtime.getRuntime().halt(0); return x; } }',
    "is equal to everything":
      'class Solution { public Object f(int x) { return new Object() { public boolean equals(Object o) { return true; } public String toString() { return "5"; } }; } }',
    "is a number that lies":
      'class Solution { public java.math.BigInteger f(int x) { return new java.math.BigInteger("1") { public String toString() { return "5\\"],[\\"i\\",\\"6"; } }; } }',
    "returns itself":
      "class Solution { public Object f(int x) { var all = new java.util.ArrayList<Object>(); all.add(all); return all; } }",
    throws: 'class Solution { public int f(int x) { throw new RuntimeException("no"); } }',
    "closes what is written to":
      'class Solution { public int f(int x) throws Exception { for (int n = 0; n < 64; n++) new java.io.FileOutputStream("/dev/fd/" + n).close(); System.exit(0); return x; } }',
    "has names of java.lang": "class String { } class Solution { public int f(int x) { return x; } }",
    "grows without end":
      "class Solution { public Object f(int x) { return new java.util.AbstractList<Integer>() { public Integer get(int n) { return n; } public int size() { return Integer.MAX_VALUE; } }; } }",
  },
};
