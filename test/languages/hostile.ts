// Programs that want more than they are given, in each language: to read SECRET (the host's file, whose content is what the test expects), to get out, to
// hurt whoever watches or runs beside them, to pass without an answer. Names are unique in a language; those that come first are run by default.
import type { LanguageName } from "../../src/core/languages/languages.ts";
import { luaHostile } from "./lua.ts";

export type Programs = Readonly<Record<string, string>>;

const js: Programs = {
  "reads the file": 'console.log(require("fs").readFileSync(SECRET, "utf8"));',
  "asks a shell": 'console.log(require("child_process").execSync("cat " + SECRET).toString());',
  "leaves at once": "process.exit(0);",
  "kills everybody":
    'for (const pid of [process.ppid, 1, 0, -1]) try { process.kill(pid, "SIGKILL"); } catch {}\nfor (;;);',
  "reports by itself":
    'const fs = require("fs");\nfor (let fd = 3; fd < 64; fd++) try { fs.writeSync(fd, \'V["s","pass"]\'); } catch {}\nconsole.log("pass");',
  "takes all memory": "const all = [];\nfor (;;) all.push(Buffer.alloc(1 << 24, 1));",
  "floods its output": 'for (;;) require("fs").writeSync(1, "x".repeat(1 << 16));',
  "goes through /proc":
    'for (const way of ["/proc/self/root", "/proc/1/root", "/proc/self/cwd/.."]) try { console.log(require("fs").readFileSync(way + SECRET, "utf8")); } catch {}',
  "follows a link":
    'const fs = require("fs");\nfs.symlinkSync(SECRET, "link");\nconsole.log(fs.readFileSync("link", "utf8"));',
  "starts Node again":
    'console.log(require("child_process").execFileSync(process.execPath, ["-e", "console.log(require(\'fs\').readFileSync(" + JSON.stringify(SECRET) + ",\'utf8\'))"]).toString());',
  "asks a worker":
    'const { Worker } = require("worker_threads");\nnew Worker("console.log(require(\'fs\').readFileSync(" + JSON.stringify(SECRET) + ", \'utf8\'))", { eval: true });',
  "uses internal bindings":
    'const fs = process.binding("fs");\nconsole.log(fs.readFileUtf8 ? fs.readFileUtf8(SECRET, 0) : fs.internalModuleReadJSON(SECRET));',
  "loads a native module":
    'require("fs").writeFileSync("x.node", "\\x7fELF");\nprocess.dlopen({ exports: {} }, require("path").resolve("x.node"));',
  "leaves below Node": "process.reallyExit(0);",
  aborts: "process.abort();",
  "hides its failure": 'process.on("uncaughtException", () => process.exit(0));\nthrow new Error("hidden");',
  "says the judge's words": 'console.log(JSON.stringify({ verdict: "pass", status: "finished", reward: 1 }));',
  "never ends": "for (;;);",
  "never leaves its tasks": "const again = () => Promise.resolve().then(again);\nagain();",
  "waits for ever": "setInterval(() => {}, 1000);",
  "waits on shared memory": "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);",
  "starts processes without end":
    'const { spawn } = require("child_process");\nfor (let n = 0; n < 1000; n++) spawn(process.execPath, ["-e", "for(;;);"]).on("error", () => {});',
  "starts threads without end":
    'const { Worker } = require("worker_threads");\nfor (let n = 0; n < 200; n++) new Worker("for(;;);", { eval: true }).on("error", () => {});',
  "fills the heap": "let all = [];\nfor (;;) all = [all, new Array(1000).fill(all)];",
  "floods its errors": 'for (;;) require("fs").writeSync(2, "x".repeat(1 << 16));',
  "fills the disk":
    'const fs = require("fs");\nfor (let n = 0; ; n++) fs.writeFileSync("file" + n, "x".repeat(1 << 20));',
  "makes files without end": 'const fs = require("fs");\nfor (let n = 0; ; n++) fs.writeFileSync("file" + n, "");',
  "calls somebody": 'require("net").connect(80, "127.0.0.1").on("connect", () => console.log("connected"));',
  listens: 'require("http").createServer(() => {}).listen(0, () => console.log("listening"));',
  "opens the inspector": 'require("inspector").open(0, "127.0.0.1");\nconsole.log(require("inspector").url());',
  "changes the engine's flags":
    'require("v8").setFlagsFromString("--expose-gc");\nrequire("v8").setFlagsFromString("--allow-natives-syntax");\nrequire("vm").runInNewContext("gc")();\neval("%DebugPrint({})");',
  "becomes root": "process.setuid(0);\nprocess.setgroups([0]);",
  "takes WebAssembly's memory":
    "const all = [];\nfor (;;) { const memory = new WebAssembly.Memory({ initial: 16384 });\n new Uint8Array(memory.buffer).fill(1);\n all.push(memory); }",
  backtracks: 'console.log(/^(a+)+$/.test("a".repeat(40) + "b"));',
  "never resolves": "await new Promise(() => {});\nexport {};",
  "looks at its descriptors":
    'const fs = require("fs");\nfor (let fd = 0; fd < 32; fd++) try { console.log(fs.readFileSync(fd, "utf8")); } catch {}',
};

const ts: Programs = {
  "ends no parser": `let x = ${"a ? (b) : c => ".repeat(30)}1;`,
  "nests without end": `let x = ${"(".repeat(200_000)}1${")".repeat(200_000)};`,
  "is generic without end": `type A = ${"B<".repeat(20_000)}1${">".repeat(20_000)};\nconsole.log(1);`,
  ...Object.fromEntries(
    Object.entries(js).map(([name, code]) => [
      name,
      `declare const require: any;\ndeclare const process: any;\nenum Verdict { fail, pass }\nconst wanted: Verdict = Verdict.pass;\n${code}`,
    ]),
  ),
  "refers to the file": '/// <reference path="SECRET_PATH" />\nimport text from "SECRET_PATH";\nconsole.log(text);',
  "names the file as its map": "console.log(new Error().stack);\n//# sourceMappingURL=file://SECRET_PATH",
};

const c = (body: string, before = "") =>
  `#include <bits/stdc++.h>\n#include <unistd.h>\n#include <signal.h>\n#include <sys/mman.h>\n${before}\nint main() {\n${body}\n}`;
const cpp: Programs = {
  "includes the file": '#include <cstdio>\nconst char text[] =\n#include "SECRET_PATH"\n;\nint main() { puts(text); }',
  "has the assembler include it":
    '__asm__(".data\\n.globl text\\ntext: .incbin \\"SECRET_PATH\\"\\n.byte 0\\n");\nextern char text[];\n#include <cstdio>\nint main() { puts(text); }',
  "reads the file": c("std::ifstream file(SECRET);\nstd::cout << file.rdbuf();"),
  "asks a shell": c('return system("cat SECRET_PATH");'),
  "kills everybody": c("kill(getppid(), SIGKILL); kill(1, SIGKILL); kill(0, SIGKILL); kill(-1, SIGKILL);\nfor (;;);"),
  "takes long to compile":
    "template <int A, int B> struct F { static const long v = F<A - 1, B>::v + F<A, B - 1>::v; };\ntemplate <int B> struct F<0, B> { static const long v = 1; };\ntemplate <int A> struct F<A, 0> { static const long v = 1; };\nconstexpr long loop() { long s = 0; for (long i = 0; i < 30000000; i++) s += i; return s; }\nint main() { return F<400, 400>::v + loop(); }",
  "is larger than anything": "int a[1 << 28] = {1};\nint main() { return a[5]; }",
  "includes itself": '#include "solution.cpp"\nint main() {}',
  "floods the compiler's output": `#include <vector>\n${Array.from({ length: 3000 }, (_, n) => `std::vector<int> v${n} = undefined_${n}<std::vector<std::vector<int>>>();`).join("\n")}\nint main() {}`,
  "has no main": "int helper() { return 1; }",
  "is no function": "int main[] = {0xc3};",
  "goes before main":
    '#include <cstdio>\n#include <cstdlib>\n__attribute__((constructor)) void first() { puts("pass"); fflush(stdout); _Exit(0); }\nint main() { return 1; }',
  "brings its own start":
    '__asm__(".globl _start\\n_start: mov $60, %eax\\nxor %edi, %edi\\nsyscall\\n");\nint main() {}',
  "runs what the shell gave": c(
    'FILE* pipe = popen("cat SECRET_PATH", "r");\nchar line[256];\nwhile (fgets(line, sizeof line, pipe)) fputs(line, stdout);',
  ),
  "becomes a shell": c('execl("/bin/sh", "sh", "-c", "cat SECRET_PATH", nullptr);'),
  "goes through /proc": c(
    'for (const char* way : {"/proc/self/root", "/proc/1/root"}) { std::ifstream file(std::string(way) + SECRET); if (file) std::cout << file.rdbuf(); }',
  ),
  "forks without end": c("for (;;) fork();"),
  "starts threads without end": c("std::vector<std::thread> all;\nfor (;;) all.emplace_back([] { for (;;); });"),
  "stops itself": c("raise(SIGSTOP);"),
  "never ends": c("for (volatile int n = 0;; n++);"),
  "ignores every signal": c("for (int n = 1; n < 64; n++) signal(n, SIG_IGN);\nfor (;;) pause();"),
  "takes all memory": c("for (;;) memset(malloc(1 << 24), 1, 1 << 24);"),
  "maps all memory": c(
    "for (;;) { char* at = (char*)mmap(nullptr, 1 << 26, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); if (at == MAP_FAILED) abort(); memset(at, 1, 1 << 26); }",
  ),
  "overflows its stack":
    "int deep(int n) { volatile char a[4096]; a[0] = n; return deep(n + 1) + a[0]; }\nint main() { return deep(0); }",
  "floods its output": c("for (;;) write(1, std::string(1 << 16, 120).data(), 1 << 16);"),
  "fills the disk": c(
    'std::ofstream file("big");\nstd::string block(1 << 20, 120);\nfor (;;) { file << block; if (!file) return 1; }',
  ),
  "reads address zero": c("return *(volatile int*)nullptr;"),
  aborts: c("abort();"),
  "leaves at once": c("_exit(0);"),
  "reports by itself": c('for (int fd = 3; fd < 64; fd++) write(fd, "V[\\"s\\",\\"pass\\"]", 12);\nputs("pass");'),
  "calls somebody": c(
    'int fd = socket(AF_INET, SOCK_STREAM, 0);\nif (fd >= 0) puts("pass"); else return 1;',
    "#include <sys/socket.h>",
  ),
  "traces its parent": c(
    'if (ptrace(PTRACE_ATTACH, getppid(), 0, 0) == 0) puts("pass"); else return 1;',
    "#include <sys/ptrace.h>",
  ),
  "raises its limits": c(
    'rlimit all{RLIM_INFINITY, RLIM_INFINITY};\nif (setrlimit(RLIMIT_AS, &all) == 0) puts("raised");\nfor (;;) memset(malloc(1 << 24), 1, 1 << 24);',
    "#include <sys/resource.h>",
  ),
  "removes itself": c('unlink("program"); unlink("solution.cpp");\nfor (;;);'),
};

const rust: Programs = {
  "includes the file": 'fn main() { println!("{}", include_str!(SECRET)); }',
  "reads the file": 'fn main() { println!("{}", std::fs::read_to_string(SECRET).unwrap()); }',
  "asks another program":
    'fn main() { print!("{}", String::from_utf8(std::process::Command::new("cat").arg(SECRET).output().unwrap().stdout).unwrap()); }',
  "leaves at once": "fn main() { std::process::exit(0) }",
  "never ends": "fn main() { let mut n = 0u64; loop { n = std::hint::black_box(n + 1); } }",
  "takes all memory": "fn main() { let mut all = vec![]; loop { all.push(vec![1u8; 1 << 24]); } }",
  "is a library": '#![crate_type = "lib"]\npub fn main() {}',
  "takes long to compile":
    'const fn f(n: u64) -> u64 { let mut s = 0; let mut i = 0; while i < n { s = s * 31 + i; i += 1; } s }\nconst X: u64 = f(1_000_000_000_000);\nfn main() { println!("{}", X); }',
  "expands without end": "macro_rules! m { ($($x:tt)*) => { m!($($x)* $($x)* x) }; }\nfn main() { m!(a) }",
  "is a procedural macro":
    '#![crate_type = "proc-macro"]\nextern crate proc_macro;\n#[proc_macro]\npub fn read(_: proc_macro::TokenStream) -> proc_macro::TokenStream { std::fs::read_to_string(SECRET).unwrap().parse().unwrap() }',
  "has the assembler include it":
    'std::arch::global_asm!(".data", ".globl text", "text: .incbin \\"SECRET_PATH\\"");\nextern "C" { static text: [u8; 16]; }\nfn main() { unsafe { println!("{}", String::from_utf8_lossy(&text)); } }',
  "links what it likes":
    '#[link(name = "SECRET_PATH")] extern "C" { fn nothing(); }\nfn main() { unsafe { nothing() } }',
  "asks for the environment": 'fn main() { println!("{}", env!("TINKER_API_KEY")); }',
  panics: 'fn main() { panic!("no") }',
  "floods its output": 'fn main() { loop { println!("{}", "x".repeat(1 << 16)); } }',
  "starts threads without end": "fn main() { loop { std::thread::spawn(|| loop {}); } }",
  "overflows its stack":
    'fn deep(n: u64) -> u64 { let a = [n; 512]; std::hint::black_box(&a); deep(n + 1) + a[3] }\nfn main() { println!("{}", deep(0)); }',
  "calls somebody": 'fn main() { std::net::TcpStream::connect("127.0.0.1:80").unwrap(); println!("pass"); }',
  "asks the linker for a script":
    '#![allow(unused_attributes)]\n#[link(name = "c", kind = "dylib", modifiers = "+verbatim")]\nextern "C" {}\n#[link_args = "-Wl,--script=SECRET_PATH"]\nextern "C" {}\nfn main() {}',
  "goes before main":
    '#[used]\n#[link_section = ".init_array"]\nstatic FIRST: extern "C" fn() = first;\nextern "C" fn first() { println!("pass"); std::process::exit(0) }\nfn main() {}',
  "is its own C main":
    '#![no_main]\n#[no_mangle]\npub extern "C" fn main(_: i32, _: *const *const u8) -> i32 { println!("pass"); 0 }',
  "kills everybody":
    'extern "C" { fn kill(pid: i32, signal: i32) -> i32; fn getppid() -> i32; }\nfn main() { unsafe { kill(getppid(), 9); kill(1, 9); kill(0, 9); kill(-1, 9); } loop {} }',
  "reports by itself":
    'use std::io::Write;\nuse std::os::unix::io::FromRawFd;\nfn main() { for fd in 3..64 { let mut file = unsafe { std::fs::File::from_raw_fd(fd) }; let _ = file.write_all(b"V[\\"s\\",\\"pass\\"]"); std::mem::forget(file); } println!("pass"); }',
  "goes through /proc":
    'fn main() { for way in ["/proc/self/root", "/proc/1/root"] { if let Ok(text) = std::fs::read_to_string(format!("{}{}", way, SECRET)) { print!("{}", text); } } }',
  "follows a link":
    'fn main() { std::os::unix::fs::symlink(SECRET, "link").unwrap(); print!("{}", std::fs::read_to_string("link").unwrap()); }',
  "fills the disk":
    'use std::io::Write;\nfn main() { let mut file = std::fs::File::create("big").unwrap(); loop { file.write_all(&[120u8; 1 << 20]).unwrap(); } }',
  "makes files without end": 'fn main() { for n in 0.. { std::fs::File::create(format!("file{}", n)).unwrap(); } }',
  "reads address zero": 'fn main() { unsafe { println!("{}", *(0 as *const i32)) } }',
  aborts: "fn main() { std::process::abort() }",
  "hides its failure": 'fn main() { std::panic::set_hook(Box::new(|_| std::process::exit(0))); panic!("hidden"); }',
  "stops itself": 'extern "C" { fn raise(signal: i32) -> i32; }\nfn main() { unsafe { raise(19); } }',
  "waits for ever": "fn main() { let (_keep, got) = std::sync::mpsc::channel::<()>(); got.recv().unwrap(); }",
};

const g = (body: string, ...imports: string[]) =>
  `package main\n\nimport (\n${imports.map((name) => `\t"${name}"`).join("\n")}\n)\n\nfunc main() {\n${body}\n}\n`;
const go: Programs = {
  "embeds the file":
    'package main\n\nimport (\n\t_ "embed"\n\t"fmt"\n)\n\n//go:embed SECRET_PATH\nvar text string\n\nfunc main() { fmt.Println(text) }',
  "reads the file": g("text, _ := os.ReadFile(SECRET)\nfmt.Print(string(text))", "fmt", "os"),
  "asks another program": g(
    'text, _ := exec.Command("cat", SECRET).Output()\nfmt.Print(string(text))',
    "fmt",
    "os/exec",
  ),
  "kills everybody": g(
    "syscall.Kill(syscall.Getppid(), 9)\nsyscall.Kill(1, 9)\nsyscall.Kill(0, 9)\nsyscall.Kill(-1, 9)\nfor {\n}",
    "syscall",
  ),
  "has C in it":
    'package main\n\n/*\n#include "SECRET_PATH"\n#cgo LDFLAGS: -Wl,--script=SECRET_PATH\n*/\nimport "C"\n\nfunc main() {}',
  "takes all memory": g(
    "var all [][]byte\nfor {\n\tone := make([]byte, 1<<24)\n\tfor i := range one {\n\t\tone[i] = 1\n\t}\n\tall = append(all, one)\n}",
  ),
  "leaves at once": g("os.Exit(0)", "os"),
  "never ends": g("for {\n}"),
  "starts routines without end": g("for {\n\tgo func() { select {} }()\n}"),
  "floods its output": g('for {\n\tfmt.Println(strings.Repeat("x", 1<<16))\n}', "fmt", "strings"),
  panics: g('panic("no")'),
  "waits for ever": g("select {}"),
  "reaches into the runtime":
    'package main\n\nimport _ "unsafe"\n\n//go:linkname exit runtime.exit\nfunc exit(int32)\n\nfunc main() { exit(0) }',
  "goes before main": 'package main\n\nimport "os"\n\nfunc init() { os.Exit(0) }\n\nfunc main() {}',
  "is no main package": "package other\n\nfunc Main() {}",
  "calls somebody": g(
    'if _, err := net.Dial("tcp", "127.0.0.1:80"); err == nil {\n\tprintln("pass")\n}\npanic("no")',
    "net",
  ),
  "is larger than anything": "package main\n\nvar a = [1 << 28]int{1}\n\nfunc main() { println(a[5]) }",
  "reports by itself": g(
    'for fd := uintptr(3); fd < 64; fd++ {\n\tos.NewFile(fd, "x").WriteString(`V["s","pass"]`)\n}\nfmt.Println("pass")',
    "fmt",
    "os",
  ),
  "goes through /proc": g(
    'for _, way := range []string{"/proc/self/root", "/proc/1/root"} {\n\ttext, _ := os.ReadFile(way + SECRET)\n\tfmt.Print(string(text))\n}',
    "fmt",
    "os",
  ),
  "follows a link": g(
    'os.Symlink(SECRET, "link")\ntext, _ := os.ReadFile("link")\nfmt.Print(string(text))',
    "fmt",
    "os",
  ),
  "fills the disk": g(
    'file, _ := os.Create("big")\nfor {\n\tif _, err := file.Write(make([]byte, 1<<20)); err != nil {\n\t\tpanic(err)\n\t}\n}',
    "os",
  ),
  "makes files without end": g(
    'for n := 0; ; n++ {\n\tif _, err := os.Create(fmt.Sprint("file", n)); err != nil {\n\t\tpanic(err)\n\t}\n}',
    "fmt",
    "os",
  ),
  "reads address zero": g("var at *int\nprintln(*at)"),
  "stops itself": g("syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)", "syscall"),
  "overflows its stack": g("var deep func(int) int\ndeep = func(n int) int { return deep(n+1) + 1 }\nprintln(deep(0))"),
  "becomes a shell": g('syscall.Exec("/bin/sh", []string{"sh", "-c", "cat SECRET_PATH"}, nil)', "syscall"),
  listens: g('if _, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {\n\tprintln("pass")\n}\npanic("no")', "net"),
  "ignores every signal": g("signal.Ignore()\nfor {\n}", "os/signal"),
  "recovers from everything": g("defer func() { recover(); os.Exit(0) }()\nvar m map[int]int\nm[1] = 1", "os"),
  "loads a plugin": g('if _, err := plugin.Open("SECRET_PATH"); err != nil {\n\tpanic(err)\n}', "plugin"),
};

const j = (body: string, members = "") =>
  `import java.util.*;\nimport java.io.*;\nimport java.nio.file.*;\n\npublic class Main {\n  ${members}\n  public static void main(String[] args) throws Throwable {\n${body}\n  }\n}`;
const java: Programs = {
  "reads the file": j("System.out.print(Files.readString(Path.of(SECRET)));"),
  "asks another program": j(
    'System.out.print(new String(new ProcessBuilder("cat", SECRET).start().getInputStream().readAllBytes()));',
  ),
  "leaves at once": j("System.exit(0);"),
  "brings its own start":
    'class WhetstoneStart { public static void main(String[] args) { System.out.println("pass"); } }\npublic class Main { public static void main(String[] args) {} }',
  "takes all memory": j(
    "List<byte[]> all = new ArrayList<>();\nfor (;;) { byte[] one = new byte[1 << 24]; Arrays.fill(one, (byte) 1); all.add(one); }",
  ),
  "never ends": j("for (;;);"),
  "kills its parents": j(
    "ProcessHandle.current().parent().ifPresent(ProcessHandle::destroyForcibly);\nProcessHandle.allProcesses().forEach(ProcessHandle::destroyForcibly);\nfor (;;);",
  ),
  halts: j("Runtime.getRuntime().halt(0);"),
  "goes before main": j("", 'static { System.out.println("pass"); System.exit(0); }'),
  "has no main": "public class Main { }",
  "starts threads without end": j("for (;;) new Thread(() -> { for (;;); }).start();"),
  "floods its output": j('for (;;) System.out.println("x".repeat(1 << 16));'),
  "hooks into the end": j("Runtime.getRuntime().addShutdownHook(new Thread(() -> { for (;;); }));"),
  "calls somebody": j('new java.net.Socket("127.0.0.1", 80);\nSystem.out.println("pass");'),
  "processes annotations":
    'import javax.annotation.processing.*;\nimport javax.lang.model.element.*;\nimport java.util.*;\n@SupportedAnnotationTypes("*")\npublic class Main extends AbstractProcessor {\n  public boolean process(Set<? extends TypeElement> all, RoundEnvironment round) { System.exit(0); return true; }\n  public static void main(String[] args) { System.out.println("pass"); }\n}',
  "recurses without end": j("deep(0);", "static int deep(int n) { return deep(n + 1) + 1; }"),
  "reaches into memory": j(
    'var field = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");\nfield.setAccessible(true);\n((sun.misc.Unsafe) field.get(null)).putAddress(0, 0);',
  ),
  "reports by itself": j(
    'for (int fd = 3; fd < 64; fd++) try (var file = new FileOutputStream("/dev/fd/" + fd)) { file.write("V[\\"s\\",\\"pass\\"]".getBytes()); } catch (IOException no) {}\nSystem.out.println("pass");',
  ),
  "goes through /proc": j(
    'for (String way : new String[] {"/proc/self/root", "/proc/1/root"}) try { System.out.print(Files.readString(Path.of(way + SECRET))); } catch (IOException no) {}',
  ),
  "follows a link": j(
    'Files.createSymbolicLink(Path.of("link"), Path.of(SECRET));\nSystem.out.print(Files.readString(Path.of("link")));',
  ),
  "fills the disk": j('try (var file = new FileOutputStream("big")) { for (;;) file.write(new byte[1 << 20]); }'),
  "makes files without end": j('for (int n = 0; ; n++) new FileOutputStream("file" + n).close();'),
  "takes memory outside of its heap": j(
    "List<Object> all = new ArrayList<>();\nfor (;;) { var one = java.nio.ByteBuffer.allocateDirect(1 << 24); while (one.hasRemaining()) one.putLong(1); all.add(one); }",
  ),
  "makes classes without end": j(
    "for (int n = 0; ; n++) java.lang.reflect.Proxy.newProxyInstance(new ClassLoader() {}, new Class<?>[] {Runnable.class}, (a, b, c) -> null);",
  ),
  "starts itself again": j(
    'System.out.print(new String(new ProcessBuilder(ProcessHandle.current().info().command().get(), "-cp", "program.jar", "Main").start().getInputStream().readAllBytes()));',
  ),
  "hides its failure": j(
    'Thread.setDefaultUncaughtExceptionHandler((t, e) -> Runtime.getRuntime().halt(0));\nthrow new Exception("hidden");',
  ),
  "floods its errors": j('for (;;) System.err.println("x".repeat(1 << 16));'),
  "waits for ever": j("new Object() { synchronized void rest() throws Exception { wait(); } }.rest();"),
  "waits for itself": j(
    "Object a = new Object(), b = new Object();\nThread t = new Thread(() -> { synchronized (b) { try { Thread.sleep(99); } catch (Exception e) {} synchronized (a) {} } });\nt.start();\nsynchronized (a) { Thread.sleep(99); synchronized (b) {} }",
  ),
  "compiles for itself": j(
    'System.out.print(javax.tools.ToolProvider.getSystemJavaCompiler().run(null, System.out, System.out, "-Xlint", SECRET));',
  ),
};

export const hostile: Readonly<Record<Exclude<LanguageName, "python">, Programs>> = {
  javascript: js,
  typescript: ts,
  cpp,
  rust,
  go,
  java,
  lua: luaHostile,
};

/** A program that looks for the file at `path`. */
export const aimedAt = (code: string, path: string): string =>
  code.replaceAll("SECRET_PATH", path).replaceAll(/\bSECRET\b/g, JSON.stringify(path));
