// One call of a function: {"function": …, "arguments": [JSON texts]} on descriptor 0, the value as a tagged tree where REPORT says (sandbox/frame.md).
// What stands here comes before the program, so that no macro of the program reaches it; types are the ones that the function declares.
#include <bits/stdc++.h>
#include <fcntl.h>
#include <unistd.h>

namespace whetstone {

struct Bad {
  std::string why;
};

inline void say(const std::string& text) {
  int to = WHETSTONE_REPORT;
  for (size_t at = 0; at < text.size();) {
    ssize_t count = write(to, text.data() + at, text.size() - at);
    if (count <= 0) break;
    at += count;
  }
}

[[noreturn]] inline void leave(const std::string& report, int code) {
  say(report);
  _exit(code);
}

struct Json {
  char kind = 'n';  // null, boolean, digits, text, list, map
  std::string text;
  std::vector<Json> items;
  std::vector<std::string> keys;
};

struct Reader {
  const char* at;
  const char* end;

  char next() {
    while (at < end && static_cast<unsigned char>(*at) <= ' ') at++;
    return at < end ? *at : '\0';
  }
  void expect(char wanted) {
    if (next() != wanted) throw Bad{"no JSON"};
    at++;
  }
  unsigned hex() {
    if (end - at < 4) throw Bad{"no JSON"};
    unsigned value = static_cast<unsigned>(strtoul(std::string(at, 4).c_str(), nullptr, 16));
    at += 4;
    return value;
  }
  void point(std::string& to) {
    unsigned code = hex();
    if (code >= 0xd800 && code < 0xdc00 && end - at > 6 && at[0] == '\\' && at[1] == 'u') {
      at += 2;
      code = 0x10000 + ((code - 0xd800) << 10) + (hex() - 0xdc00);
    }
    if (code < 0x80) {
      to += static_cast<char>(code);
      return;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    to += static_cast<char>((0xf00 >> more & 0xff) | code >> 6 * more);
    while (more-- > 0) to += static_cast<char>(0x80 | (code >> 6 * more & 0x3f));
  }
  std::string string() {
    expect('"');
    std::string text;
    for (; at < end && *at != '"'; at++) {
      if (*at != '\\') {
        text += *at;
        continue;
      }
      at++;
      static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
      if (*at == 'u') {
        at++;
        point(text);
        at--;
      } else if (const char* found = strchr(from, *at)) text += to[found - from];
    }
    expect('"');
    return text;
  }
  Json value() {
    Json json;
    char first = next();
    if (first == '"') {
      json.kind = 's';
      json.text = string();
    } else if (first == '[' || first == '{') {
      json.kind = first == '[' ? 'l' : 'd';
      char last = first == '[' ? ']' : '}';
      at++;
      while (next() != last) {
        if (!json.items.empty()) expect(',');
        if (json.kind == 'd') {
          next();
          json.keys.push_back(string());
          expect(':');
        }
        json.items.push_back(value());
      }
      at++;
    } else {
      while (at < end && !strchr(",]} \n\t\r", *at)) json.text += *at++;
      json.kind = json.text == "null" ? 'n' : json.text == "true" || json.text == "false" ? 'b' : 'i';
      if (json.text.empty()) throw Bad{"no JSON"};
    }
    return json;
  }
};

inline Json parse(const std::string& text) {
  Reader reader{text.data(), text.data() + text.size()};
  return reader.value();
}

inline const Json& as(const Json& json, char kind, const char* what) {
  if (json.kind != kind) throw Bad{std::string("an argument is no ") + what + ", which the function takes"};
  return json;
}

template <class T, class = void> struct From;

template <> struct From<bool> {
  static bool read(const Json& json) { return as(json, 'b', "boolean").text == "true"; }
};
template <> struct From<std::string> {
  static std::string read(const Json& json) { return as(json, 's', "text").text; }
};
template <> struct From<char> {
  static char read(const Json& json) {
    if (as(json, 's', "character").text.size() != 1) throw Bad{"an argument is no single character"};
    return json.text[0];
  }
};
template <class T> struct From<T, std::enable_if_t<std::is_integral<T>::value>> {
  static T read(const Json& json) {
    const char* text = as(json, 'i', "number").text.c_str();
    char* end;
    errno = 0;
    bool below = *text == '-';
    T value = below || std::is_signed<T>::value ? static_cast<T>(strtoll(text, &end, 10)) : static_cast<T>(strtoull(text, &end, 10));
    if (errno || *end || (below && value >= 0 && std::is_unsigned<T>::value) || std::to_string(value) != (std::string(text) == "-0" ? "0" : text))
      throw Bad{"an argument does not fit its type: " + json.text};
    return value;
  }
};
template <class T> struct From<T, std::enable_if_t<std::is_floating_point<T>::value>> {
  static T read(const Json& json) { return static_cast<T>(strtold(as(json, 'i', "number").text.c_str(), nullptr)); }
};
template <class A, class B> struct From<std::pair<A, B>> {
  static std::pair<A, B> read(const Json& json) {
    if (as(json, 'l', "list").items.size() != 2) throw Bad{"an argument is no pair"};
    return {From<A>::read(json.items[0]), From<B>::read(json.items[1])};
  }
};
template <class... T> struct From<std::tuple<T...>> {
  template <size_t... I> static std::tuple<T...> all(const Json& json, std::index_sequence<I...>) {
    return std::tuple<T...>{From<T>::read(json.items[I])...};
  }
  static std::tuple<T...> read(const Json& json) {
    if (as(json, 'l', "list").items.size() != sizeof...(T)) throw Bad{"an argument has another length than its type"};
    return all(json, std::index_sequence_for<T...>{});
  }
};
template <class T, size_t N> struct From<std::array<T, N>> {
  static std::array<T, N> read(const Json& json) {
    if (as(json, 'l', "list").items.size() != N) throw Bad{"an argument has another length than its type"};
    std::array<T, N> all;
    for (size_t at = 0; at < N; at++) all[at] = From<T>::read(json.items[at]);
    return all;
  }
};
template <class T> struct From<std::optional<T>> {
  static std::optional<T> read(const Json& json) {
    if (json.kind == 'n') return std::nullopt;
    return From<T>::read(json);
  }
};
/** A key of JSON is text; that of a map may be a number. */
template <class K> K key(const std::string& text) {
  if constexpr (std::is_arithmetic<K>::value && !std::is_same<K, char>::value && !std::is_same<K, bool>::value) return From<K>::read(Json{'i', text, {}, {}});
  else if constexpr (std::is_same<K, bool>::value) return From<K>::read(Json{'b', text, {}, {}});
  else return From<K>::read(Json{'s', text, {}, {}});
}
template <class T> struct From<T, std::void_t<typename T::mapped_type>> {
  static T read(const Json& json) {
    T all;
    as(json, 'd', "map");
    for (size_t at = 0; at < json.keys.size(); at++)
      all.insert({key<typename T::key_type>(json.keys[at]), From<typename T::mapped_type>::read(json.items[at])});
    return all;
  }
};
/** Vectors, deques, lists; sets, too. */
template <class T, class = void> struct HasMap : std::false_type {};
template <class T> struct HasMap<T, std::void_t<typename T::mapped_type>> : std::true_type {};
template <class T>
struct From<T, std::enable_if_t<!HasMap<T>::value && sizeof(std::declval<T&>().insert(std::declval<T&>().end(), std::declval<typename T::value_type>())) != 0>> {
  static T read(const Json& json) {
    T all;
    for (const Json& item : as(json, 'l', "list").items) all.insert(all.end(), From<typename T::value_type>::read(item));
    return all;
  }
};

inline void put(std::string& out, const std::string& text) {
  out += "[\"s\",\"";
  for (char c : text) {
    if (c == '"' || c == '\\') (out += '\\') += c;
    else if (static_cast<unsigned char>(c) < ' ') {
      char code[8];
      snprintf(code, sizeof code, "\\u%04x", c);
      out += code;
    } else out += c;
  }
  out += "\"]";
}
inline void put(std::string& out, const char* text) { put(out, std::string(text)); }
inline void put(std::string& out, bool value) { out += value ? "[\"b\",true]" : "[\"b\",false]"; }
inline void put(std::string& out, char value) { put(out, std::string(1, value)); }
template <class T> std::enable_if_t<std::is_integral<T>::value> put(std::string& out, T value) {
  out += "[\"i\",\"" + std::to_string(value) + "\"]";
}
template <class T> std::enable_if_t<std::is_floating_point<T>::value> put(std::string& out, T value) {
  char text[64];
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, static_cast<double>(value));
    if (strtod(text, nullptr) == static_cast<double>(value)) break;
  }
  out += std::string("[\"f\",\"") + (std::isnan(value) ? "nan" : text) + "\"]";
}
template <class A, class B> void put(std::string& out, const std::pair<A, B>& both);
template <class... T> void put(std::string& out, const std::tuple<T...>& all);
template <class T> void put(std::string& out, const std::optional<T>& value);
template <class T> auto put(std::string& out, const T& all) -> decltype(all.begin(), all.end(), void());

template <class T> void put(std::string& out, const std::optional<T>& value) {
  if (value) put(out, *value);
  else out += "[\"n\"]";
}
template <class A, class B> void put(std::string& out, const std::pair<A, B>& both) {
  put(out += "[\"l\",[", both.first);
  put(out += ',', both.second);
  out += "]]";
}
template <class... T> void put(std::string& out, const std::tuple<T...>& all) {
  out += "[\"l\",[";
  std::apply([&](const auto&... one) { size_t count = 0; ((put(count++ ? out += ',' : out, one)), ...); }, all);
  out += "]]";
}
/** A set without an order has no list that is meant. */
template <class T, class = void> struct IsUnordered : std::false_type {};
template <class T> struct IsUnordered<T, std::void_t<typename T::hasher>> : std::true_type {};

template <class T> auto put(std::string& out, const T& all) -> decltype(all.begin(), all.end(), void()) {
  static_assert(HasMap<T>::value || !IsUnordered<T>::value, "a set has no order");
  bool first = true;
  out += HasMap<T>::value ? "[\"d\",[" : "[\"l\",[";
  for (auto at = all.begin(); at != all.end(); ++at) {
    if (!first) out += ',';
    first = false;
    if constexpr (HasMap<T>::value) {
      put(out += '[', at->first);
      put(out += ',', at->second);
      out += ']';
    } else put(out, static_cast<typename T::value_type>(*at));
  }
  out += "]]";
}

inline std::string function;
inline std::vector<Json> arguments;

inline void take() {
  std::string text(1 << 16, '\0'), all;
  for (ssize_t count; (count = read(0, &text[0], text.size())) > 0;) all.append(text, 0, count);
  try {
    Json request = parse(all);
    for (size_t at = 0; at < request.keys.size(); at++) {
      if (request.keys[at] == "function") function = request.items[at].text;
      if (request.keys[at] == "arguments")
        for (const Json& one : request.items[at].items) arguments.push_back(parse(one.text));
    }
  } catch (const Bad&) {
    leave("Sbad-arguments", 1);
  }
}

template <class A> using Plain = std::remove_cv_t<std::remove_reference_t<A>>;

template <class... A, size_t... I> std::tuple<Plain<A>...> converted(std::index_sequence<I...>) {
  try {
    return std::tuple<Plain<A>...>{From<Plain<A>>::read(arguments[I])...};
  } catch (const Bad& bad) {
    std::string line = bad.why + "\n";
    if (write(2, line.data(), line.size())) {}
    leave("Sruntime-error", 1);
  }
}

template <class R, class... A, class F, size_t... I> void with(F f, std::index_sequence<I...> indices) {
  if (arguments.size() != sizeof...(A)) leave("Sbad-arguments", 1);
  std::tuple<Plain<A>...> held = converted<A...>(indices);
  std::string frame = "V";
  if constexpr (std::is_void<R>::value) {
    f(static_cast<A&&>(std::get<I>(held))...);
    frame += "[\"n\"]";
  } else {
    R value = f(static_cast<A&&>(std::get<I>(held))...);
    put(frame, value);
  }
  leave(frame, 0);
}

void calls();
}  // namespace whetstone

int main() {
  whetstone::take();
  whetstone::calls();
  whetstone::leave("Starget-not-found", 1);
}
