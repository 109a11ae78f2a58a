import { appendFileSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { harnessOf, type MakeCall, reportFile, spelled, starterIn, withoutTexts } from "./call.ts";
import { type Language, megabyte, type PlaceOf, type Tools } from "./language.ts";
import { filesIn, findOnPath, keptFolder, nameFor, said } from "./machine.ts";

/** Windows, sound, debuggers and sources. */
const leftOut =
  /^(?!src\.zip|ct\.sym|psfont|lib(?:awt|font|free|splash|lcms|mlib|jsound|javajpeg|saproc|jdwp|dt_|atk|jawt).*)/;
const builder = harnessOf("WhetstoneBuild.java");
const placeOfArchive = "/opt/java";
const archive = "classes.jsa";
/** Of the heap: objects of the archive lie where they are wanted when it is the one that programs have by default. */
const size = "-Xmx4g";
/**
 * Half of a short program's time is the start. G1 takes objects from an archive of classes that were loaded before, at the address that they have
 * there; one thread of each kind is enough for it.
 */
const quick = [
  ...["-XX:+UseG1GC", "-XX:ParallelGCThreads=1", "-XX:ConcGCThreads=1", "-XX:-UsePerfData"],
  ...["-XX:CompressedClassSpaceSize=64m", "-XX:ReservedCodeCacheSize=64m"],
  ...["-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0"],
];

async function find(): Promise<Tools | string> {
  const compiler = findOnPath("javac");
  if (compiler === undefined) return "javac";
  const home = dirname(dirname(realpathSync(compiler)));
  const [version] = /\d[\w.+]*/.exec(await said(compiler, "-version")) ?? [];
  const java = join(home, "bin", "java");
  const library = join(home, "lib");
  // Debian keeps what can be configured elsewhere, behind links.
  const configuration = ["lib/jvm.cfg", "conf/security/java.security", "lib/security/default.policy"].flatMap(
    (path) => {
      try {
        return [dirname(realpathSync(join(home, path)))];
      } catch {
        return [];
      }
    },
  );
  const name = nameFor(`java-${version}`, home, usual, builder, size);
  /** What compiles, and the classes of the library that it and programs use, as they are in memory. */
  const kept = keptFolder(name, placeOfArchive, async (folder) => {
    const [build, list, program] = ["WhetstoneBuild.java", "list", "program.jar"].map((one) => join(folder, one)) as [
      string,
      string,
      string,
    ];
    writeFileSync(build, builder);
    writeFileSync(join(folder, "Usual.java"), usual);
    await said(compiler, "-d", folder, build);
    const run = (...args: readonly string[]) =>
      said("/bin/sh", "-c", 'cd "$0" && echo 1 | "$@"', folder, java, `-XX:DumpLoadedClassList=${list}`, ...args);
    await run("-cp", folder, "WhetstoneBuild", "Usual.java");
    const ofCompiler = readFileSync(list, "utf8");
    await run("-cp", program, "Usual");
    appendFileSync(list, ofCompiler);
    await said(
      java,
      "-Xshare:dump",
      size,
      `-XX:SharedClassListFile=${list}`,
      `-XX:SharedArchiveFile=${join(folder, archive)}`,
    );
  });
  // One copy for both: most of the compiler is in the library of the runtime.
  const files = [java, ...filesIn(library, leftOut), join(home, "conf"), ...configuration, kept.held];
  const quickly = (at: PlaceOf) => [...quick, `-XX:SharedArchiveFile=${join(at(kept.held), archive)}`];
  return {
    version: `javac ${version}`,
    files,
    compile: {
      files,
      prepare: kept.prepare,
      fileName,
      beside: ({ call }): Record<string, string> => (call ? {} : { "WhetstoneStart.java": start }),
      steps: ({ names, at }) => [
        {
          command: [java, ...quickly(at), "-Xmx1g", "-cp", at(kept.held), "WhetstoneBuild", ...names],
          output: "program.jar",
        },
      ],
    },
    command: ({ memoryBytes, call, at }) => [
      ...[java, ...quickly(at), `-Xmx${Math.max(16, Math.floor(memoryBytes / megabyte))}m`, "-Xss256m"],
      ...["-cp", "program.jar", call ? "WhetstoneCall" : "WhetstoneStart"],
    ],
    addressBytes: 8192 * megabyte,
    stackBytes: 64 * megabyte,
  };
}

/** What most programs of contests use. */
const usual = `import java.io.*;
import java.util.*;
import java.util.stream.*;

public class Usual {
  public static void main(String[] args) throws IOException {
    Scanner in = new Scanner("3 4 4.5 word line");
    System.out.println(in.nextInt() + in.nextLong() * in.nextDouble() + in.next() + in.nextLine() + in.hasNext());
    BufferedReader reader = new BufferedReader(new InputStreamReader(System.in));
    StringTokenizer words = new StringTokenizer(reader.readLine() + " a b");
    Map<String, List<Integer>> map = new HashMap<>(new TreeMap<>(Map.of("a", List.of(1))));
    map.computeIfAbsent(words.nextToken(), key -> new ArrayList<>()).add(Integer.parseInt("7"));
    PriorityQueue<long[]> queue = new PriorityQueue<>((a, b) -> Long.compare(a[0], b[0]));
    queue.add(new long[] {1, 2});
    Deque<Integer> deque = new ArrayDeque<>(new HashSet<>(List.of(1)));
    PrintWriter out = new PrintWriter(System.out);
    out.println(IntStream.range(0, 3).mapToObj(String::valueOf).collect(Collectors.joining(" ")) + new StringBuilder("x").reverse());
    out.printf("%.3f %d%n", 1.5, deque.pop());
    out.println(Arrays.toString(Arrays.stream(new int[] {2, 1}).sorted().toArray()) + map + queue.poll().length);
    out.flush();
  }
}
`;

/** A public class wants a file of its name. */
function fileName(source: string): string {
  const plain = withoutTexts(source);
  const [, name = "Main"] =
    /\bpublic\s+(?:(?:final|abstract|strictfp|sealed)\s+)*(?:class|interface|enum|record)\s+(\w+)/.exec(plain) ?? [];
  return `${name}.java`;
}

/** Finds the class that has a main method: its name is the program's choice. */
const start = `import java.io.*;
import java.lang.reflect.*;
import java.util.*;
import java.util.jar.*;

class WhetstoneStart {
  public static void main(String[] args) throws Throwable {
    Method found = null;
    try (JarFile jar = new JarFile("program.jar")) {
      for (JarEntry entry : Collections.list(jar.entries())) {
        String name = entry.getName();
        if (!name.endsWith(".class") || name.startsWith("WhetstoneStart")) continue;
        Class<?> type = Class.forName(name.substring(0, name.length() - 6).replace('/', '.'), false, WhetstoneStart.class.getClassLoader());
        try {
          Method main = type.getMethod("main", String[].class);
          if (!Modifier.isStatic(main.getModifiers()) || main.getDeclaringClass() != type) continue;
          if (found == null || type.getSimpleName().equals("Main")) found = main;
        } catch (NoSuchMethodException none) { }
      }
    }
    if (found == null) throw new NoSuchMethodException("public static void main(String[])");
    found.setAccessible(true);
    try {
      found.invoke(null, (Object) new String[0]);
    } catch (InvocationTargetException error) {
      throw error.getCause();
    }
  }
}
`;

const harness = harnessOf("Call.java");
const kinds = "class|interface|enum|record";

/** A class behind the program, which the process starts with; it finds the function by its name. */
const call: MakeCall = (source, calls, report) => {
  const plain = withoutTexts(source);
  let program = source
    .replace(/^[ \t]*package\s+[\w.]+\s*;/m, "")
    .replaceAll(new RegExp(`\\bpublic\\s+((?:(?:final|abstract|strictfp|sealed)\\s+)*(?:${kinds})\\s)`, "g"), "$1");
  if (report === "file") program = program.replaceAll(/\bMain\b/g, "ProgramMain"); // the name of the class that is started there
  const declared = [...withoutTexts(program).matchAll(new RegExp(`\\b(?:${kinds})\\s+(\\w+)`, "g"))].map(
    ([, name]) => name!,
  );
  const names = ["Solution", ...declared.filter((name) => name !== "Solution")];
  const words = calls.map(({ name }) => `case "${name}" -> "${spelled(source, name)}";`).join(" ");
  const to = report === "descriptor" ? reportToDescriptor : `return new java.io.FileOutputStream("${reportFile}");`;
  const own = [
    `  static final String[] CLASSES = {${names.map((name) => `"${name}"`).join(", ")}};`,
    `  static String spelled(String name) {\n    return switch (name) { ${words} default -> name; };\n  }`,
    `  static java.io.OutputStream report() throws java.io.IOException {\n    ${to}\n  }`,
  ];
  const usual = /^\s*import\b/m.test(plain)
    ? ""
    : "import java.util.*; import java.util.function.*; import java.util.stream.*; ";
  return {
    source: [
      `${usual}${program}`,
      harness.replace(/\}\s*$/, `\n${own.join("\n")}\n}\n`),
      report === "file"
        ? "class Main {\n  public static void main(String[] words) throws Throwable {\n    WhetstoneCall.main(words);\n  }\n}\n"
        : "",
    ].join("\n"),
  };
};

/** Java opens files by name only. */
const reportToDescriptor = `try {
      java.lang.reflect.Field only = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
      only.setAccessible(true);
      java.io.FileDescriptor three = new java.io.FileDescriptor();
      Object at = only.getType().getMethod("objectFieldOffset", java.lang.reflect.Field.class).invoke(only.get(null), java.io.FileDescriptor.class.getDeclaredField("fd"));
      only.getType().getMethod("putInt", Object.class, long.class, int.class).invoke(only.get(null), three, at, 3);
      return new java.io.FileOutputStream(three);
    } catch (ReflectiveOperationException error) {
      throw new java.io.IOException(error);
    }`;

const boxed: Readonly<Record<string, string>> = { boolean: "Boolean", int: "Integer", long: "Long", double: "Double" };
const starter = starterIn({
  types: { bool: "boolean", int: "int", long: "long", double: "double", string: "String" },
  list: (of) => `${of}[]`,
  map: (of) => `Map<String, ${boxed[of] ?? of}>`,
  parameter: (name, type) => `${type} ${name}`,
  definition: (name, parameters, result) =>
    `class Solution {\n    public ${result} ${name}(${parameters}) {\n        // YOUR CODE HERE\n    }\n}`,
});

export const java: Language = {
  title: "Java",
  tags: ["java"],
  fusion: "java",
  fileName: "Main.java",
  starter,
  comment: "//",
  startMs: 1500,
  note: "It has one class with public static void main.",
  sum: [
    "import java.util.Scanner;",
    "public class Main {",
    "  public static void main(String[] args) {",
    "    Scanner in = new Scanner(System.in);",
    "    System.out.println(in.nextLong() + in.nextLong());",
    "  }",
    "}",
  ].join("\n"),
  runtime: {
    find,
    call,
    install: "apt-get install openjdk-17-jdk-headless",
    signs: { memory: /java\.lang\.OutOfMemoryError|Could not reserve enough space/ },
  },
};
