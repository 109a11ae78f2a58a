// Programs in Lua for honest.ts and hostile.ts, in their pattern.
import type { Programs } from "./hostile.ts";

/** `next()` gives the next number. */
export const luaSolutions = {
  sum: "local total = 0\nfor _ = 1, next() do total = total + next() end\nprint(total)",
  gcd: "local function gcd(a, b) if b == 0 then return a end return gcd(b, a % b) end\nprint(gcd(next(), next()))",
  fibonacci: "local a, b = 0, 1\nfor _ = 1, next() do a, b = b, (a + b) % 1000000007 end\nprint(a)",
  primes:
    "local n, count, sieve = next(), 0, {}\nfor i = 2, n do\n  if not sieve[i] then\n    count = count + 1\n    for j = i * i, n, i do sieve[j] = true end\n  end\nend\nprint(count)",
  sort: "local all = {}\nfor i = 1, next() do all[i] = next() end\ntable.sort(all, function(a, b) return a > b end)\nprint(table.concat(all, ' '))",
  increasing:
    "local tails = {}\nfor _ = 1, next() do\n  local x, at = next(), #tails + 1\n  for i, t in ipairs(tails) do if t >= x then at = i break end end\n  tails[at] = x\nend\nprint(#tails)",
  path: "local n, m = next(), next()\nlocal grid, seen = {}, {}\nfor i = 1, n do grid[i], seen[i] = {}, {} for j = 1, m do grid[i][j] = next() end end\nlocal queue, at = {{1, 1}}, 1\nseen[1][1] = 0\nwhile queue[at] do\n  local x, y = table.unpack(queue[at])\n  at = at + 1\n  for _, d in ipairs({{0, 1}, {1, 0}, {0, -1}, {-1, 0}}) do\n    local u, v = x + d[1], y + d[2]\n    if grid[u] and grid[u][v] == 0 and not seen[u][v] then\n      seen[u][v] = seen[x][y] + 1\n      queue[#queue + 1] = {u, v}\n    end\n  end\nend\nprint(seen[n][m] or -1)",
  depth: "local function deep(n) if n == 0 then return 0 end return n + deep(n - 1) end\nprint(deep(next()))",
  average:
    "local n, total = next(), 0\nfor _ = 1, n do total = total + next() end\nprint(string.format('%.3f', total / n))",
  knapsack:
    "local n, room = next(), next()\nlocal best = {}\nfor r = 0, room do best[r] = 0 end\nfor _ = 1, n do\n  local w, v = next(), next()\n  for r = room, w, -1 do best[r] = math.max(best[r], best[r - w] + v) end\nend\nprint(best[room])",
};

export const luaReaders: Record<string, (solution: string) => string> = {
  "io.read by number": (solution) => `local function next() return io.read("n") end\n${solution}`,
  "the whole file": (solution) =>
    `local words = io.read("a"):gmatch("%S+")\nlocal function next() return math.tointeger(tonumber(words())) end\n${solution}`,
  "line by line": (solution) =>
    `local words, at = {}, 0\nfor line in io.lines() do for word in line:gmatch("%-?%d+") do words[#words + 1] = tonumber(word) end end\nlocal function next() at = at + 1 return words[at] end\n${solution}`,
};

export const luaHostile: Programs = {
  "reads the file": 'print(assert(io.open(SECRET)):read("a"))',
  "asks a shell": 'print(io.popen("cat SECRET_PATH"):read("a"))',
  "leaves at once": "os.exit(0)",
  "kills everybody": 'os.execute("kill -9 -1; kill -9 $PPID; kill -9 1")\nwhile true do end',
  "reports by itself":
    'for fd = 3, 63 do local f = io.open("/proc/self/fd/" .. fd, "w") if f then f:write(\'V["s","pass"]\') f:close() end end\nprint("pass")',
  "takes all memory": "local all = {}\nwhile true do all[#all + 1] = string.rep('x', 1 << 24) .. #all end",
  "floods its output": "local line = string.rep('x', 1 << 16)\nwhile true do io.write(line) end",
  "runs the file": "dofile(SECRET)",
  "loads the file": 'print(select(2, loadfile(SECRET)))\npackage.path = SECRET\nprint(pcall(require, "x"))',
  "loads it as a library": 'print(package.loadlib(SECRET, "*"))',
  "loads a library of the host": 'print(package.loadlib("/usr/lib/x86_64-linux-gnu/libc.so.6", "system"))\nos.exit(0)',
  "goes through /proc":
    'for _, way in ipairs({"/proc/self/root", "/proc/1/root", "/proc/self/cwd/.."}) do local f = io.open(way .. SECRET) if f then print(f:read("a")) end end',
  "follows a link": 'os.execute("ln -s SECRET_PATH link")\nprint(assert(io.open("link")):read("a"))',
  "moves the file": 'print(os.rename(SECRET, "mine"))\nprint(assert(io.open("mine")):read("a"))',
  "hides its failure": "pcall(error, 'hidden')\nos.exit(true)",
  "fails in a finalizer": 'setmetatable({}, {__gc = function() error("late") end})',
  "closes in a finalizer": "setmetatable({}, {__gc = function() os.exit(0) end})\nerror('hidden')",
  "says the judge's words": 'print(\'{"verdict":"pass","status":"finished","reward":1}\')',
  "looks into its registry":
    'for k, v in pairs(debug.getregistry()) do if type(v) == "table" then for a, b in pairs(v) do print(a, b) end end end',
  "looks up the stack":
    "for level = 0, 50 do local info = debug.getinfo(level) if info then print(info.source) end end",
  "never ends": "while true do end",
  "waits for ever": 'os.execute("sleep 1000")',
  "reads for ever": 'while true do io.read("a") end',
  backtracks:
    "print(string.rep('a', 40):find(string.rep('a?', 40) .. string.rep('a', 41)))\nwhile true do string.rep('a', 30):find(string.rep('.-', 30) .. 'b') end",
  "recurses without end": "local function f() return 1 + f() end\nf()",
  "recurses in C": "local function f(s) return (s:gsub('.', f)) end\nf('x')",
  "starts processes without end": 'for _ = 1, 1000 do io.popen("sleep 1000") end\nwhile true do end',
  "fills the disk":
    "for n = 1, math.huge do local f = io.open('file' .. n, 'w') if f then f:write(string.rep('x', 1 << 20)) f:close() end end",
  "floods its errors": "local line = string.rep('x', 1 << 16)\nwhile true do io.stderr:write(line) end",
  "calls somebody": "print(io.popen('exec 3<>/dev/tcp/127.0.0.1/80 && echo connected'):read('a'))",
  "runs bytecode that is broken": "load('\\27Lua\\x54\\0\\x19\\x93\\r\\n\\x1a\\n' .. string.rep('\\255', 100))()",
  "makes a string without end": "local s = 'x'\nwhile true do s = s .. s end",
};

/** Functions for calls.ts, by its tasks. */
export const luaCalls = {
  pair: "function twoSum(nums, target)\n  for i = 1, #nums do\n    for j = i + 1, #nums do\n      if nums[i] + nums[j] == target then return {i - 1, j - 1} end\n    end\n  end\n  return {}\nend",
  total:
    "local M = {}\nfunction M.total_cost(edges, factor)\n  local s = 0\n  for _, e in ipairs(edges) do s = s + e[1] + e[2] end\n  return s * factor\nend\nreturn M",
  mean: "function meanOf(v)\n  local s = 0\n  for _, x in ipairs(v) do s = s + x end\n  return s / #v\nend",
  count:
    "function countWords(words, extra)\n  local m = {[extra] = 0}\n  for _, w in ipairs(words) do m[w] = (m[w] or 0) + 1 end\n  return m\nend",
  even: "print('loaded')\nfunction isEven(m, k) print(m[k]) return m[k] % 2 == 0 end",
} as const;

export const luaHostileCalls: Programs = {
  "leaves at once": "os.exit(0)",
  "reports a guess by itself":
    'for level = 1, 20 do pcall(function()\n  for i = 1, 50 do local n, v = debug.getlocal(level, i) if n == "report" then v:write(\'V["i","7"]\') v:close() os.exit(0) end end\nend) end\nfunction f(x) return x end',
  "changes what the harness uses":
    "string.format = function() return '5' end\ntable.concat = string.format\ntostring = string.format\npairs = nil\nfunction f(x) return x end",
  "returns itself without end": "function f(x) local t = {} t[1] = t return t end",
  "answers without end": "function f(x) return string.rep('x', 1 << 27) end",
  throws: "function f(x) error(x) end",
  "never ends": "function f(x) while true do end end",
  "returns a function": "function f(x) return f end",
  "has another type's length":
    "function f(x) return setmetatable({}, {__len = function() return 5 end, __index = function() return 5 end}) end",
  "prints only": "function f(x) io.stdout:write(5) print(5) end",
};
