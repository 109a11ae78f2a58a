import { realpathSync } from "node:fs";
import { type MakeCall, reportFile } from "./call.ts";
import { type Language, megabyte, type Tools } from "./language.ts";
import { findOnPath, said } from "./machine.ts";

/**
 * One call, as javascript.ts has it; what it writes is on descriptor 1, which the shell has made the report's, and the program's own output goes
 * nowhere. A table is a list unless it has other keys; null is nil.
 */
const harness = String.raw`
local report, input = REPORT, io.stdin:read("a")
io.stdout, print, io.write = io.stderr, function() end, function() end
local exit, type, tostring, pairs, kind, format = os.exit, type, tostring, pairs, math.type, string.format
local function finish(text)
  report:write(text)
  report:close()
  exit(text:sub(1, 1) == "V" and 0 or 1)
end
local function fail(word, message)
  io.stderr:write(tostring(message), "\n")
  finish("S" .. word)
end

local escapes = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }
local function text(s)
  s = s:gsub("\\u([dD][89abAB]%x%x)\\u([dD][c-fC-F]%x%x)", function(high, low)
    return utf8.char(0x10000 + ((tonumber(high, 16) - 0xD800) << 10) + (tonumber(low, 16) - 0xDC00))
  end)
  return (s:gsub("\\(u?)(%x?%x?%x?%x?)(.?)", function(u, digits, after)
    if u == "u" then return utf8.char(tonumber(digits, 16)) .. after end
    local all = digits .. after
    local first = all:sub(1, 1)
    return (escapes[first] or first) .. all:sub(2)
  end))
end
local function read(s, at)
  at = s:find("%S", at)
  local c = s:sub(at, at)
  if c == '"' then
    local from = at + 1
    at = from
    while s:sub(at, at) ~= '"' do at = at + (s:sub(at, at) == "\\" and 2 or 1) end
    return text(s:sub(from, at - 1)), at + 1
  elseif c == "[" or c == "{" then
    local all, n, close, key = {}, 0, c == "[" and "]" or "}", nil
    at = s:find("%S", at + 1)
    while s:sub(at, at) ~= close do
      if c == "{" then
        key, at = read(s, at)
        at = s:find(":", at, true) + 1
      else
        n = n + 1
        key = n
      end
      all[key], at = read(s, at)
      at = s:find("%S", at)
      if s:sub(at, at) == "," then at = at + 1 end
      at = s:find("%S", at)
    end
    return all, at + 1, n
  end
  local word = s:match("^[^%s,%]}]+", at)
  local value
  if word == "true" then value = true elseif word == "false" then value = false elseif word ~= "null" then value = tonumber(word) end
  return value, at + #word
end

local function quoted(s)
  return '"' .. s:gsub('[%c"\\]', function(c) return format("\\u%04x", c:byte()) end) .. '"'
end
local function tree(value, depth)
  if depth > 200 then error("too deep") end
  local what = type(value)
  if what == "nil" then return '["n"]' end
  if what == "boolean" then return '["b",' .. tostring(value) .. "]" end
  if what == "string" then return '["s",' .. quoted(value) .. "]" end
  if what == "number" then
    if value ~= value then return '["f","nan"]' end
    if value == math.huge or value == -math.huge then return value > 0 and '["f","inf"]' or '["f","-inf"]' end
    if kind(value) == "float" and (value % 1 ~= 0 or value >= 2^53 or value <= -2^53) then return format('["f","%.17g"]', value) end
    return format('["i","%d"]', value)
  end
  if what ~= "table" then error("a " .. what) end
  local items, size = {}, 0
  for key in pairs(value) do size = size + (kind(key) == "integer" and 1 or math.huge) end
  if size == #value then
    for index = 1, #value do items[index] = tree(value[index], depth + 1) end
    return '["l",[' .. table.concat(items, ",") .. "]]"
  end
  for key, item in pairs(value) do items[#items + 1] = "[" .. tree(key, depth + 1) .. "," .. tree(item, depth + 1) .. "]" end
  return '["d",[' .. table.concat(items, ",") .. "]]"
end

local ready, request = pcall(read, input, 1)
local arguments, count = {}, 0
if ready then
  ready = pcall(function()
    for _, one in ipairs(request.arguments) do
      count = count + 1
      arguments[count] = read(one, 1)
    end
  end)
end
if not ready then fail("bad-arguments", request) end
local program, wrong = loadfile("PROGRAM")
if not program then fail("compile-error", wrong) end
local worked, exported = xpcall(program, debug.traceback)
if not worked then fail("runtime-error", exported) end
local called = rawget(_G, request["function"]) or (type(exported) == "table" and exported[request["function"]])
if type(called) ~= "function" then fail("target-not-found", request["function"]) end
local returned, value = xpcall(called, debug.traceback, table.unpack(arguments, 1, count))
if not returned then fail("runtime-error", value) end
local built, frame = pcall(tree, value, 0)
if not built then fail("unserialisable", frame) end
finish("V" .. frame)
`;

/** The harness beside the program; where only one file is run, that one starts it. */
const call: MakeCall = (source, _calls, report) => {
  const isOne = report === "file";
  const place = isOne ? `assert(io.open("${reportFile}", "w"))` : "io.stdout";
  const made = harness.replace("REPORT", place).replace("PROGRAM", isOne ? "program.lua" : "solution.lua");
  if (!isOne) return { source, beside: { "call.lua": made } };
  return { source: 'dofile("call.lua")', beside: { "call.lua": made, "program.lua": source } };
};

async function find(): Promise<Tools | string> {
  const named = findOnPath("lua5.4") ?? findOnPath("lua5.3") ?? findOnPath("lua");
  if (named === undefined) return "lua5.4";
  const lua = realpathSync(named);
  const [version = "Lua"] = /Lua [\d.]+/.exec(await said(lua, "-v")) ?? [];
  return {
    version,
    files: [lua],
    command: ({ call }) =>
      call ? ["/bin/sh", "-c", 'exec 1>&3 3>&-; exec "$0" call.lua', lua] : [lua, "solution.lua"],
    addressBytes: 128 * megabyte,
    stackBytes: 64 * megabyte,
  };
}

export const lua: Language = {
  title: "Lua",
  tags: ["lua"],
  fusion: "lua",
  fileName: "solution.lua",
  comment: "--",
  keywords:
    "and break do else elseif end false for function goto if in local nil not or repeat return self then true until while",
  startMs: 250,
  note: "It is run by Lua 5.4, with the standard library alone.",
  sum: 'local a, b = io.read("n", "n")\nprint(a + b)',
  runtime: {
    find,
    install: "apt-get install lua5.4",
    call,
    signs: { memory: /not enough memory/, compile: /^\S*lua\S*: solution\.lua:\d+: [^\n]* (?:near|expected|at line) / },
  },
};
