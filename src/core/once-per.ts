/** `make`, called once for each object and remembered while that lives. */
export function oncePer<Key extends object, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const known = new WeakMap<Key, { value: Value }>();
  return (key) => {
    let made = known.get(key);
    if (!made) {
      made = { value: make(key) };
      known.set(key, made);
    }
    return made.value;
  };
}
