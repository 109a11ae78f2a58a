// Reads the package's public names from the source: what each entry exports, its doc comment, its signature, its members. Names come
// through the compiler's symbols, texts from the declarations. TypeScript 7 has no stable API yet, so this uses version 6.
import { fileURLToPath } from "node:url";
import ts from "typescript-api";
import { sourceEntries } from "../../src/core/own-entries.mjs";

export interface Member {
  name: string;
  /** As declared, on one line. */
  signature: string;
  doc: string;
}

export interface PublicName {
  name: string;
  kind: "class" | "function" | "interface" | "type" | "value";
  signature: string;
  doc: string;
  members: Member[];
}

export interface Entry {
  /** As it is imported: "whetstone/tinker". */
  name: string;
  /** The comment at the top of its file. */
  about: string;
  names: PublicName[];
}

export function createProgram(): ts.Program {
  const files = Object.values(sourceEntries()).map((url) => fileURLToPath(url));
  return ts.createProgram(files, {
    target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    allowImportingTsExtensions: true,
    noEmit: true,
    strict: true,
    types: ["node"],
  });
}

export function readEntries(): Entry[] {
  const sources = sourceEntries();
  const program = createProgram();
  const checker = program.getTypeChecker();
  return Object.entries(sources).map(([name, url]) => {
    const file = program.getSourceFile(fileURLToPath(url))!;
    const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(file)!);
    const names = exported.map((symbol) => readName(symbol.name, resolved(symbol, checker), checker));
    return { name, about: aboutOf(file.text), names: names.sort(byName) };
  });
}

const byName = (a: { name: string }, b: { name: string }) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1);

function resolved(symbol: ts.Symbol, checker: ts.TypeChecker): ts.Symbol {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
}

/** The `//` lines at the top of a file, up to a blank one. */
function aboutOf(text: string): string {
  const lines = text.split("\n");
  const end = lines.findIndex((line) => !/^\/\/ \S/.test(line));
  return lines
    .slice(0, end)
    .map((line) => line.slice(3))
    .join(" ");
}

function readName(name: string, symbol: ts.Symbol, checker: ts.TypeChecker): PublicName {
  // A type and a value may share a name; the type's declaration says more.
  const declarations = symbol.declarations ?? [];
  const declaration =
    declarations.find((node) => ts.isClassDeclaration(node) || ts.isInterfaceDeclaration(node)) ??
    declarations.find((node) => ts.isTypeAliasDeclaration(node)) ??
    declarations[0]!;
  const doc = docOf(symbol, checker);
  if (ts.isClassDeclaration(declaration) || ts.isInterfaceDeclaration(declaration)) {
    const kind = ts.isClassDeclaration(declaration) ? "class" : "interface";
    const heritage = (declaration.heritageClauses ?? []).map((clause) => ` ${clause.getText()}`).join("");
    const signature = `${kind} ${name}${typeParameters(declaration)}${heritage}`;
    return {
      name,
      kind,
      signature,
      doc,
      members: declaration.members.flatMap((member) => readMember(member, checker)),
    };
  }
  if (ts.isTypeAliasDeclaration(declaration)) return readAlias(name, declaration, doc, checker);
  if (ts.isFunctionDeclaration(declaration)) {
    const written = declarations.filter((node) => ts.isFunctionDeclaration(node));
    const overloads = written.length > 1 ? written.slice(0, -1) : written;
    const signature = overloads.map((node) => oneLine(textWithoutBody(node))).join("\n");
    return { name, kind: "function", signature, doc, members: [] };
  }
  const type = checker.typeToString(checker.getTypeOfSymbol(symbol), declaration, ts.TypeFormatFlags.NoTruncation);
  return { name, kind: "value", signature: `const ${name}: ${oneLine(type)}`, doc, members: [] };
}

/** An alias of an object is shown like an interface, also where a schema makes it; any other as it is written. */
function readAlias(
  name: string,
  declaration: ts.TypeAliasDeclaration,
  doc: string,
  checker: ts.TypeChecker,
): PublicName {
  const head = `type ${name}${typeParameters(declaration)}`;
  const type = checker.getTypeAtLocation(declaration.name);
  const inferred = /^z\.(infer|input|output)</.test(declaration.type.getText());
  const shape = inferred && !type.isUnion() ? type.getProperties() : [];
  if (ts.isTypeLiteralNode(declaration.type) || shape.length > 0) {
    const members = ts.isTypeLiteralNode(declaration.type)
      ? declaration.type.members.flatMap((member) => readMember(member, checker))
      : shape.map((property) => inferredMember(property, declaration, checker));
    return { name, kind: "type", signature: head, doc, members };
  }
  const parts = inferred ? unionParts(declaration, checker) : undefined;
  if (parts && type.isUnion())
    return {
      name,
      kind: "type",
      signature: `${head} // one of`,
      doc,
      members: readUnion(type, parts, declaration, checker),
    };
  const text = inferred
    ? checker.typeToString(type, declaration, ts.TypeFormatFlags.NoTruncation | ts.TypeFormatFlags.InTypeAlias)
    : declaration.type.getText();
  return { name, kind: "type", signature: `${head} = ${oneLine(text)}`, doc, members: [] };
}

/** The schemas of a discriminated union, as they are written. */
function unionParts(alias: ts.TypeAliasDeclaration, checker: ts.TypeChecker): readonly ts.Expression[] | undefined {
  const array = schemaCall(alias, checker)?.arguments.find(ts.isArrayLiteralExpression);
  return array?.elements;
}

/** Each kind of a discriminated union as a member: its fields, and the comment above its schema. */
function readUnion(
  union: ts.UnionType,
  parts: readonly ts.Expression[],
  at: ts.Node,
  checker: ts.TypeChecker,
): Member[] {
  return union.types.map((type, index) => {
    const part = parts[index]!;
    const text = checker.typeToString(type, at, ts.TypeFormatFlags.NoTruncation);
    const comments = ts.getLeadingCommentRanges(part.getSourceFile().text, part.getFullStart()) ?? [];
    const comment = comments.map(({ pos, end }) => part.getSourceFile().text.slice(pos, end)).at(-1) ?? "";
    const signature = oneLine(text);
    const name = /type: "([^"]+)"/.exec(signature)?.[1] ?? String(index);
    return { name, signature, doc: comment.replace(/^\/\*\*\s*|\s*\*\/$/g, "") };
  });
}

function inferredMember(property: ts.Symbol, at: ts.Node, checker: ts.TypeChecker): Member {
  const type = checker.getTypeOfSymbolAtLocation(property, at);
  const optional = property.flags & ts.SymbolFlags.Optional ? "?" : "";
  const text = checker.typeToString(type, at, ts.TypeFormatFlags.NoTruncation);
  const doc = docOf(property, checker) || commentInSchema(property.name, at as ts.TypeAliasDeclaration, checker);
  return { name: property.name, signature: `${property.name}${optional}: ${oneLine(text)}`, doc };
}

/** The comment on the field of `type X = z.output<typeof schema>` in the schema's object, whose names are in the wire's spelling. */
function commentInSchema(name: string, alias: ts.TypeAliasDeclaration, checker: ts.TypeChecker): string {
  const field = schemaField(name, alias, checker);
  if (!field) return "";
  // A setting's help text stands in its schema.
  const help = /\.describe\(\s*(["'`])([\s\S]*?[^\\])\1,?\s*\)/.exec(field.initializer.getText());
  return commentOf(field) || help?.[2]?.replaceAll(/\\(["'`])/g, "$1") || "";
}

/** The call that makes the schema behind `type X = z.output<typeof schema>`. */
function schemaCall(alias: ts.TypeAliasDeclaration, checker: ts.TypeChecker): ts.CallExpression | undefined {
  const query = (alias.type as ts.TypeReferenceNode).typeArguments?.[0];
  if (!query || !ts.isTypeQueryNode(query)) return undefined;
  const symbol = checker.getSymbolAtLocation(query.exprName);
  const declaration = symbol && resolved(symbol, checker).valueDeclaration;
  const initializer = declaration && ts.isVariableDeclaration(declaration) ? declaration.initializer : undefined;
  return initializer && ts.isCallExpression(initializer) ? initializer : undefined;
}

/** Where a field is written in the schema's object. */
export function schemaField(
  name: string,
  alias: ts.TypeAliasDeclaration,
  checker: ts.TypeChecker,
): ts.PropertyAssignment | undefined {
  const object = schemaCall(alias, checker)?.arguments.find(ts.isObjectLiteralExpression);
  const wire = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  for (const property of object?.properties ?? []) {
    if (ts.isPropertyAssignment(property) && [wire, name].includes(property.name.getText())) return property;
    if (!ts.isSpreadAssignment(property)) continue;
    // `...keys`: where the object that is spread has it.
    const origin = checker.getTypeAtLocation(property.expression).getProperty(name)?.valueDeclaration;
    if (origin && ts.isPropertyAssignment(origin)) return origin;
  }
  return undefined;
}

function readMember(member: ts.ClassElement | ts.TypeElement, checker: ts.TypeChecker): Member[] {
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
  if (ts.getCombinedModifierFlags(member) & hidden) return [];
  if (ts.isConstructorDeclaration(member)) {
    // Where it has no comment it is not meant to be called: others make the object.
    if (commentOf(member) === "") return [];
    return [{ name: "constructor", signature: oneLine(textWithoutBody(member)), doc: commentOf(member) }];
  }
  if (!member.name || ts.isPrivateIdentifier(member.name)) return [];
  if (ts.isSetAccessorDeclaration(member)) return [];
  const symbol = checker.getSymbolAtLocation(member.name);
  const isInternal = ts.getJSDocTags(member).some((tag) => tag.tagName.text === "internal");
  if (!symbol || isInternal || symbol.declarations!.indexOf(member) > 0) return [];
  return [{ name: member.name.getText(), signature: oneLine(textWithoutBody(member)), doc: docOf(symbol, checker) }];
}

function commentOf(node: ts.Node): string {
  return ts
    .getJSDocCommentsAndTags(node)
    .map((part) => ts.getTextOfJSDocComment(part.comment) ?? "")
    .join(" ");
}

function docOf(symbol: ts.Symbol, checker: ts.TypeChecker): string {
  return ts.displayPartsToString(symbol.getDocumentationComment(checker)).trim();
}

function typeParameters(node: { typeParameters?: ts.NodeArray<ts.TypeParameterDeclaration> }): string {
  return node.typeParameters ? `<${node.typeParameters.map((parameter) => parameter.getText()).join(", ")}>` : "";
}

/** A declaration's text up to its body or its first value. */
function textWithoutBody(node: ts.Node): string {
  const end = (node as { body?: ts.Node }).body ?? (ts.isPropertyDeclaration(node) ? node.initializer : undefined);
  const text = node.getSourceFile().text.slice(node.getStart(), end ? end.getFullStart() : node.getEnd());
  return text.replace(/^(export |async )+/, "").replace(/\s*[=;{]\s*$/, "");
}

function oneLine(text: string): string {
  return text
    .replace(/\/\*\*?[\s\S]*?\*\/|\/\/.*$/gm, "")
    .replace(/\s+/g, " ")
    .replace(/([([{<]) /g, (_, open: string) => (open === "{" ? "{ " : open))
    .replace(/,? ([)\]>])/g, "$1")
    .replace(/= >/g, "=>")
    .trim();
}
