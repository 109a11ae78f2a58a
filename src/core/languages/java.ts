import { realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Call, type Called, harnessOf, type Report, reportFile, spelled, withoutTexts } from "./call.ts";
import type { Language, Tools } from "./language.ts";
import { filesIn, findOnPath, said } from "./machine.ts";

const megabyte = 1024 ** 2;
/** Windows, sound, debuggers and sources. */
const leftOut =
  /^(?!src\.zip|ct\.sym|psfont|lib(?:awt|font|free|splash|lcms|mlib|jsound|javajpeg|saproc|jdwp|dt_|atk|jawt).*)/;
const small = [
  "-XX:+UseSerialGC",
  "-XX:-UsePerfData",
  "-XX:CompressedClassSpaceSize=64m",
  "-XX:ReservedCodeCacheSize=64m",
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
  const tools = ["java", "javac", "jar"].map((name) => join(home, "bin", name));
  // One copy for both: most of the compiler is in the library of the runtime.
  const files = [...tools, ...filesIn(library, leftOut), join(home, "conf"), ...configuration];
  const build = `${join(home, "bin", "javac")} -J-Xmx1g -J-XX:+UseSerialGC -J-XX:TieredStopAtLevel=1 -J-XX:-UsePerfData -nowarn -proc:none -d classes *.java`;
  const pack = `${join(home, "bin", "jar")} -J-XX:+UseSerialGC -J-XX:TieredStopAtLevel=1 -J-XX:-UsePerfData -c -0 -f program.jar -C classes .`;
  return {
    version: `javac ${version}`,
    files,
    compile: {
      files,
      fileName,
      beside: { "WhetstoneStart.java": start },
      command: () => ["/bin/sh", "-c", `${build} && ${pack}`],
      output: "program.jar",
      wallMs: 30_000,
    },
    command: ({ memoryBytes }) => [
      ...[java, ...small, `-Xmx${Math.max(16, Math.floor(memoryBytes / megabyte))}m`, "-Xss256m"],
      ...["-cp", "program.jar", "WhetstoneStart"],
    ],
    addressBytes: 8192 * megabyte,
    stackBytes: 64 * megabyte,
  };
}

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

/** The class that the process starts with, in the place of the one above; it finds the function by its name. */
function call(source: string, calls: readonly Call[], report: Report): Called {
  const plain = withoutTexts(source);
  let program = source.replace(/^[ \t]*package\s+[\w.]+\s*;/m, "").replaceAll(new RegExp(`\\bpublic\\s+((?:(?:final|abstract|strictfp|sealed)\\s+)*(?:${kinds})\\s)`, "g"), "$1");
  if (report === "file") program = program.replaceAll(/\bMain\b/g, "ProgramMain"); // the name of the class that is started there
  const declared = [...withoutTexts(program).matchAll(new RegExp(`\\b(?:${kinds})\\s+(\\w+)`, "g"))].map(([, name]) => name!);
  const names = ["Solution", ...declared.filter((name) => name !== "Solution")];
  const words = calls.map(({ name }) => `case "${name}" -> "${spelled(source, name)}";`).join(" ");
  const to = report === "descriptor" ? reportToDescriptor : `return new java.io.FileOutputStream("${reportFile}");`;
  const own = [
    `  static final String[] CLASSES = {${names.map((name) => `"${name}"`).join(", ")}};`,
    `  static String spelled(String name) {\n    return switch (name) { ${words} default -> name; };\n  }`,
    `  static java.io.OutputStream report() throws java.io.IOException {\n    ${to}\n  }`,
  ];
  const usual = /^\s*import\b/m.test(plain) ? "" : "import java.util.*; import java.util.function.*; import java.util.stream.*; ";
  return {
    source: [
      `${usual}${program}`,
      harness.replace(/\}\s*$/, `\n${own.join("\n")}\n}\n`),
      report === "file" ? "class Main {\n  public static void main(String[] words) throws Throwable {\n    WhetstoneStart.main(words);\n  }\n}\n" : "",
    ].join("\n"),
  };
}

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

export const java: Language = {
  title: "Java",
  tags: ["java"],
  fusion: "java",
  fileName: "Main.java",
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
