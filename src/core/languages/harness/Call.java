
// One call of a function: {"function": …, "arguments": [JSON texts]} on descriptor 0, the value as a tagged tree where report() says (sandbox/frame.md).
// A class of its own behind the program; types are the ones that the function declares.
class WhetstoneCall {
  static final class Bad extends RuntimeException {
    Bad(String why) {
      super(why);
    }
  }

  /** Text that is a number. */
  record Digits(String text) {
  }

  static final class Reader {
    final String text;
    int at = 0;

    Reader(String text) {
      this.text = text;
    }

    char next() {
      while (at < text.length() && text.charAt(at) <= ' ') at++;
      if (at == text.length()) throw new Bad("no JSON");
      return text.charAt(at);
    }

    void expect(char wanted) {
      if (next() != wanted) throw new Bad("no JSON");
      at++;
    }

    String string() {
      expect('"');
      java.lang.StringBuilder out = new java.lang.StringBuilder();
      for (; ; at++) {
        if (at == text.length()) throw new Bad("no JSON");
        char one = text.charAt(at);
        if (one == '"') break;
        if (one == '\\') {
          one = text.charAt(++at);
          int known = "bfnrt".indexOf(one);
          if (known >= 0) one = "\b\f\n\r\t".charAt(known);
          else if (one == 'u') {
            one = (char) java.lang.Integer.parseInt(text.substring(at + 1, at + 5), 16);
            at += 4;
          }
        }
        out.append(one);
      }
      at++;
      return out.toString();
    }

    Object value() {
      char first = next();
      if (first == '"') return string();
      if (first == '[') {
        java.util.ArrayList<Object> all = new java.util.ArrayList<>();
        for (at++; next() != ']'; all.add(value())) if (!all.isEmpty()) expect(',');
        at++;
        return all;
      }
      if (first == '{') {
        java.util.LinkedHashMap<String, Object> all = new java.util.LinkedHashMap<>();
        for (at++; next() != '}'; ) {
          if (!all.isEmpty()) expect(',');
          next();
          String key = string();
          expect(':');
          all.put(key, value());
        }
        at++;
        return all;
      }
      int start = at;
      while (at < text.length() && ",]} \n\r\t".indexOf(text.charAt(at)) < 0) at++;
      String word = text.substring(start, at);
      return switch (word) {
        case "null" -> null;
        case "true" -> true;
        case "false" -> false;
        default -> new Digits(word);
      };
    }
  }

  static Object from(Object json, java.lang.reflect.Type type) {
    try {
      if (type instanceof Class<?> plain) {
        if (plain.isArray()) return array((java.util.List<?>) json, plain.getComponentType(), plain.getComponentType());
        return scalar(json, plain);
      }
      if (type instanceof java.lang.reflect.GenericArrayType list) {
        return array((java.util.List<?>) json, list.getGenericComponentType(), raw(list.getGenericComponentType()));
      }
      if (type instanceof java.lang.reflect.ParameterizedType generic) {
        java.lang.reflect.Type[] of = generic.getActualTypeArguments();
        Class<?> wanted = raw(generic);
        if (json instanceof java.util.Map<?, ?> entries) {
          java.util.Map<Object, Object> all = wanted.isAssignableFrom(java.util.HashMap.class) ? new java.util.HashMap<>() : made(wanted, new java.util.TreeMap<>());
          entries.forEach((key, item) -> all.put(from(of[0] == String.class ? key : new Digits((String) key), of[0]), from(item, of[1])));
          return all;
        }
        java.util.Collection<Object> all = wanted.isAssignableFrom(java.util.ArrayList.class) ? new java.util.ArrayList<>()
            : wanted.isAssignableFrom(java.util.HashSet.class) ? new java.util.HashSet<>()
            : wanted.isAssignableFrom(java.util.ArrayDeque.class) ? new java.util.ArrayDeque<>() : made(wanted, new java.util.LinkedList<>());
        for (Object item : (java.util.Collection<?>) json) all.add(from(item, of[0]));
        return all;
      }
      if (type instanceof java.lang.reflect.WildcardType wild) return from(json, wild.getUpperBounds()[0]);
      return from(json, Object.class);
    } catch (ClassCastException | NullPointerException | ArithmeticException | NumberFormatException error) {
      throw new Bad("an argument is no " + type.getTypeName() + ", which the function takes");
    }
  }

  @SuppressWarnings("unchecked")
  static <T> T made(Class<?> wanted, T other) {
    try {
      return wanted.isInterface() ? (T) other : (T) wanted.getDeclaredConstructor().newInstance();
    } catch (ReflectiveOperationException error) {
      throw new Bad("an argument cannot be made: " + wanted.getName());
    }
  }

  static Class<?> raw(java.lang.reflect.Type type) {
    if (type instanceof Class<?> plain) return plain;
    if (type instanceof java.lang.reflect.ParameterizedType generic) return (Class<?>) generic.getRawType();
    if (type instanceof java.lang.reflect.GenericArrayType list) return raw(list.getGenericComponentType()).arrayType();
    return Object.class;
  }

  static Object array(java.util.List<?> items, java.lang.reflect.Type type, Class<?> of) {
    Object all = java.lang.reflect.Array.newInstance(of, items.size());
    for (int index = 0; index < items.size(); index++) java.lang.reflect.Array.set(all, index, from(items.get(index), type));
    return all;
  }

  static Object scalar(Object json, Class<?> type) {
    if (type == boolean.class || type == Boolean.class) return (boolean) (Boolean) json;
    if (json == null && !type.isPrimitive()) return null;
    if (type == String.class) return (String) json;
    if (type == char.class || type == Character.class) {
      if (((String) json).length() != 1) throw new Bad("an argument is no single character");
      return ((String) json).charAt(0);
    }
    if (type == double.class || type == Double.class) return Double.valueOf(((Digits) json).text());
    if (type == float.class || type == Float.class) return Float.valueOf(((Digits) json).text());
    if (type == int.class || type == Integer.class) return Integer.valueOf(((Digits) json).text());
    if (type == long.class || type == Long.class) return Long.valueOf(((Digits) json).text());
    if (type == short.class || type == Short.class) return Short.valueOf(((Digits) json).text());
    if (type == byte.class || type == Byte.class) return Byte.valueOf(((Digits) json).text());
    if (type == java.math.BigInteger.class) return new java.math.BigInteger(((Digits) json).text());
    if (type == java.math.BigDecimal.class) return new java.math.BigDecimal(((Digits) json).text());
    if (type != Object.class && type != Number.class) throw new ClassCastException();
    if (!(json instanceof Digits digits)) return json;
    if (!digits.text().matches("-?\\d+")) return Double.valueOf(digits.text());
    long whole = Long.parseLong(digits.text());
    if (whole == (int) whole) return (int) whole;
    return whole;
  }

  static void to(Object value, java.lang.StringBuilder out, int depth) {
    if (depth > 200) throw new Bad("too deep");
    if (value == null) out.append("[\"n\"]");
    else if (value instanceof Boolean) out.append("[\"b\",").append(value).append(']');
    else if (value instanceof Integer || value instanceof Long || value instanceof Short || value instanceof Byte || value instanceof java.math.BigInteger)
      out.append("[\"i\",\"").append(value).append("\"]");
    else if (value instanceof Double || value instanceof Float || value instanceof java.math.BigDecimal)
      out.append("[\"f\",\"").append(value.toString().toLowerCase().replace("infinity", "inf")).append("\"]");
    else if (value instanceof CharSequence || value instanceof Character) quote(value.toString(), out);
    else if (value.getClass().isArray()) {
      java.util.ArrayList<Object> all = new java.util.ArrayList<>();
      for (int index = 0; index < java.lang.reflect.Array.getLength(value); index++) all.add(java.lang.reflect.Array.get(value, index));
      to(all, out, depth);
    } else if (value instanceof java.util.Map<?, ?> entries) {
      out.append("[\"d\",[");
      boolean first = true;
      for (java.util.Map.Entry<?, ?> entry : entries.entrySet()) {
        out.append(first ? "[" : ",[");
        first = false;
        to(entry.getKey(), out, depth + 1);
        out.append(',');
        to(entry.getValue(), out, depth + 1);
        out.append(']');
      }
      out.append("]]");
    } else if (value instanceof java.util.Optional<?> maybe) to(maybe.orElse(null), out, depth);
    else if (value instanceof java.util.Collection<?> items && !(value instanceof java.util.Set<?>)) {
      out.append("[\"l\",[");
      boolean first = true;
      for (Object item : items) {
        if (!first) out.append(',');
        first = false;
        to(item, out, depth + 1);
      }
      out.append("]]");
    } else throw new Bad("no value of JSON: " + value.getClass().getName());
  }

  static void quote(String text, java.lang.StringBuilder out) {
    out.append("[\"s\",\"");
    for (int at = 0; at < text.length(); at++) {
      char one = text.charAt(at);
      if (one == '"' || one == '\\') out.append('\\').append(one);
      else if (one < ' ' || one > '~') out.append(String.format("\\u%04x", (int) one));
      else out.append(one);
    }
    out.append("\"]");
  }

  static void leave(String report, int code) {
    try (java.io.OutputStream to = report()) {
      to.write(report.getBytes(java.nio.charset.StandardCharsets.UTF_8));
    } catch (java.io.IOException lost) {
      code = 1;
    }
    java.lang.Runtime.getRuntime().halt(code);
  }

  static void wrong(String word, Object why) {
    System.err.println(why);
    System.err.flush();
    leave("S" + word, 1);
  }

  /** Of the program's classes, the first that has the function. */
  static java.lang.reflect.Method find(String name, int count) {
    for (String className : CLASSES) {
      try {
        Class<?> type = Class.forName(className, false, WhetstoneCall.class.getClassLoader());
        for (java.lang.reflect.Method method : type.getDeclaredMethods())
          if (method.getName().equals(name) && method.getParameterCount() == count && !method.isBridge()) return method;
      } catch (ClassNotFoundException | LinkageError none) {
        continue;
      }
    }
    return null;
  }

  public static void main(String[] words) throws Throwable {
    java.util.List<Object> arguments = new java.util.ArrayList<>();
    java.lang.reflect.Method method = null;
    try {
      java.util.Map<?, ?> request = (java.util.Map<?, ?>) new Reader(new String(System.in.readAllBytes(), java.nio.charset.StandardCharsets.UTF_8)).value();
      for (Object text : (java.util.List<?>) request.get("arguments")) arguments.add(new Reader((String) text).value());
      method = find(spelled((String) request.get("function")), arguments.size());
    } catch (Bad bad) {
      wrong("bad-arguments", bad.getMessage());
    }
    if (method == null) {
      wrong("target-not-found", "no class has that function, with as many arguments");
      return;
    }
    java.lang.StringBuilder frame = new java.lang.StringBuilder("V");
    try {
      java.lang.reflect.Type[] types = method.getGenericParameterTypes();
      for (int index = 0; index < types.length; index++) arguments.set(index, from(arguments.get(index), types[index]));
    } catch (Bad bad) {
      wrong("runtime-error", bad.getMessage());
    }
    Object value = null;
    try {
      method.setAccessible(true);
      Object on = null;
      if (!java.lang.reflect.Modifier.isStatic(method.getModifiers())) {
        java.lang.reflect.Constructor<?> constructor = method.getDeclaringClass().getDeclaredConstructor();
        constructor.setAccessible(true);
        on = constructor.newInstance();
      }
      value = method.invoke(on, arguments.toArray());
    } catch (java.lang.reflect.InvocationTargetException error) {
      error.getCause().printStackTrace();
      leave(error.getCause() instanceof OutOfMemoryError ? "Smemory-limit" : "Sruntime-error", 1);
    } catch (NoSuchMethodException error) {
      wrong("target-not-found", error);
    }
    try {
      to(value, frame, 0);
    } catch (Bad bad) {
      wrong("unserialisable", bad.getMessage());
    }
    leave(frame.toString(), 0);
  }
}
