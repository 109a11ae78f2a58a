// One call of a function: {"function": …, "arguments": [JSON texts]} on descriptor 0, the value as a tagged tree where `report` says (sandbox/frame.md).
// A module of its own behind the program, and the process begins here; types are the ones that the function declares.
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, LinkedList, VecDeque};
use std::convert::TryInto;
use std::io::{Read, Write};

pub enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Json>),
    Map(Vec<(String, Json)>),
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<u8> {
        while self.at < self.bytes.len() && self.bytes[self.at] <= b' ' {
            self.at += 1;
        }
        self.bytes.get(self.at).cloned()
    }
    fn expect(&mut self, wanted: u8) -> Option<()> {
        if self.next()? != wanted {
            return None;
        }
        self.at += 1;
        Some(())
    }
    fn hex(&mut self) -> Option<u32> {
        let digits = std::str::from_utf8(self.bytes.get(self.at..self.at + 4)?).ok()?;
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }
    fn string(&mut self) -> Option<String> {
        self.expect(b'"')?;
        let mut text: Vec<u8> = Vec::new();
        loop {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            if byte == b'"' {
                return String::from_utf8(text).ok();
            }
            if byte != b'\\' {
                text.push(byte);
                continue;
            }
            let escaped = *self.bytes.get(self.at)?;
            self.at += 1;
            let code = match escaped {
                b'n' => 10,
                b't' => 9,
                b'r' => 13,
                b'b' => 8,
                b'f' => 12,
                b'u' => {
                    let mut code = self.hex()?;
                    if code >= 0xd800 && code < 0xdc00 && self.bytes.get(self.at) == Some(&b'\\') {
                        self.at += 2;
                        code = 0x10000 + ((code - 0xd800) << 10) + (self.hex()? & 0x3ff);
                    }
                    code
                }
                other => other as u32,
            };
            let mut bytes = [0; 4];
            text.extend_from_slice(std::char::from_u32(code).unwrap_or('\u{fffd}').encode_utf8(&mut bytes).as_bytes());
        }
    }
    fn value(&mut self) -> Option<Json> {
        match self.next()? {
            b'"' => self.string().map(Json::Text),
            b'[' => {
                self.at += 1;
                let mut items = Vec::new();
                while self.next()? != b']' {
                    if !items.is_empty() {
                        self.expect(b',')?;
                    }
                    items.push(self.value()?);
                }
                self.at += 1;
                Some(Json::List(items))
            }
            b'{' => {
                self.at += 1;
                let mut items = Vec::new();
                while self.next()? != b'}' {
                    if !items.is_empty() {
                        self.expect(b',')?;
                        self.next()?;
                    }
                    let key = self.string()?;
                    self.expect(b':')?;
                    items.push((key, self.value()?));
                }
                self.at += 1;
                Some(Json::Map(items))
            }
            _ => {
                let start = self.at;
                while self.at < self.bytes.len() && !b",]} \n\r\t".contains(&self.bytes[self.at]) {
                    self.at += 1;
                }
                match std::str::from_utf8(&self.bytes[start..self.at]).ok()? {
                    "null" => Some(Json::Null),
                    "true" => Some(Json::Bool(true)),
                    "false" => Some(Json::Bool(false)),
                    "" => None,
                    number => Some(Json::Number(String::from(number))),
                }
            }
        }
    }
}

fn parse(text: &str) -> Option<Json> {
    Reader { bytes: text.as_bytes(), at: 0 }.value()
}

pub trait FromJson: Sized {
    fn from_json(json: &Json) -> Option<Self>;
    /** A key of JSON is text; that of a map may be a number. */
    fn from_key(text: &str) -> Option<Self> {
        Self::from_json(&Json::Text(String::from(text))).or_else(|| Self::from_json(&Json::Number(String::from(text))))
    }
}

pub trait ToFrame {
    fn to_frame(&self, out: &mut String);
}

fn tagged(tag: &str, text: &str, out: &mut String) {
    out.push_str("[\"");
    out.push_str(tag);
    out.push_str("\",\"");
    out.push_str(text);
    out.push_str("\"]");
}

macro_rules! whetstone_integers {
    ($($t:ty)*) => { $(
        impl FromJson for $t {
            fn from_json(json: &Json) -> Option<$t> {
                match *json { Json::Number(ref text) => text.parse().ok(), _ => None }
            }
        }
        impl ToFrame for $t {
            fn to_frame(&self, out: &mut String) { tagged("i", &self.to_string(), out) }
        }
    )* };
}
whetstone_integers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

macro_rules! whetstone_floats {
    ($($t:ty)*) => { $(
        impl FromJson for $t {
            fn from_json(json: &Json) -> Option<$t> {
                match *json {
                    Json::Number(ref text) if text == "Infinity" => "inf".parse().ok(),
                    Json::Number(ref text) if text == "-Infinity" => "-inf".parse().ok(),
                    Json::Number(ref text) => text.parse().ok(),
                    _ => None,
                }
            }
        }
        impl ToFrame for $t {
            fn to_frame(&self, out: &mut String) { tagged("f", &self.to_string().to_lowercase(), out) }
        }
    )* };
}
whetstone_floats!(f32 f64);

impl FromJson for bool {
    fn from_json(json: &Json) -> Option<bool> {
        match *json { Json::Bool(value) => Some(value), _ => None }
    }
}
impl ToFrame for bool {
    fn to_frame(&self, out: &mut String) {
        out.push_str(if *self { "[\"b\",true]" } else { "[\"b\",false]" })
    }
}
impl FromJson for String {
    fn from_json(json: &Json) -> Option<String> {
        match *json { Json::Text(ref text) => Some(text.clone()), _ => None }
    }
}
impl ToFrame for str {
    fn to_frame(&self, out: &mut String) {
        out.push_str("[\"s\",\"");
        for c in self.chars() {
            if c == '"' || c == '\\' {
                out.push('\\');
                out.push(c);
            } else if c < ' ' {
                out.push_str(&std::format!("\\u{:04x}", c as u32));
            } else {
                out.push(c);
            }
        }
        out.push_str("\"]");
    }
}
impl ToFrame for String {
    fn to_frame(&self, out: &mut String) { self.as_str().to_frame(out) }
}
impl FromJson for char {
    fn from_json(json: &Json) -> Option<char> {
        let text: String = FromJson::from_json(json)?;
        let mut all = text.chars();
        let first = all.next()?;
        if all.next().is_some() { None } else { Some(first) }
    }
}
impl ToFrame for char {
    fn to_frame(&self, out: &mut String) { self.to_string().to_frame(out) }
}
impl FromJson for () {
    fn from_json(json: &Json) -> Option<()> {
        match *json { Json::Null => Some(()), _ => None }
    }
}
impl ToFrame for () {
    fn to_frame(&self, out: &mut String) { out.push_str("[\"n\"]") }
}
impl<T: FromJson> FromJson for Option<T> {
    fn from_json(json: &Json) -> Option<Option<T>> {
        match *json { Json::Null => Some(None), _ => T::from_json(json).map(Some) }
    }
}
impl<T: ToFrame> ToFrame for Option<T> {
    fn to_frame(&self, out: &mut String) {
        match *self { Some(ref value) => value.to_frame(out), None => ().to_frame(out) }
    }
}
impl<T: FromJson> FromJson for Box<T> {
    fn from_json(json: &Json) -> Option<Box<T>> { T::from_json(json).map(Box::new) }
}
impl<T: ToFrame + ?Sized> ToFrame for Box<T> {
    fn to_frame(&self, out: &mut String) { (**self).to_frame(out) }
}
impl<'a, T: ToFrame + ?Sized> ToFrame for &'a T {
    fn to_frame(&self, out: &mut String) { (**self).to_frame(out) }
}
impl<T: FromJson> FromJson for &'static T {
    fn from_json(json: &Json) -> Option<&'static T> { T::from_json(json).map(|value| &*Box::leak(Box::new(value))) }
}
impl<T: FromJson> FromJson for &'static mut T {
    fn from_json(json: &Json) -> Option<&'static mut T> { T::from_json(json).map(|value| Box::leak(Box::new(value))) }
}
impl FromJson for &'static str {
    fn from_json(json: &Json) -> Option<&'static str> { <String as FromJson>::from_json(json).map(|text| &*Box::leak(text.into_boxed_str())) }
}
impl<T: FromJson> FromJson for &'static [T] {
    fn from_json(json: &Json) -> Option<&'static [T]> { <Vec<T> as FromJson>::from_json(json).map(|all| &*Box::leak(all.into_boxed_slice())) }
}
impl<T: FromJson> FromJson for &'static mut [T] {
    fn from_json(json: &Json) -> Option<&'static mut [T]> { <Vec<T> as FromJson>::from_json(json).map(|all| Box::leak(all.into_boxed_slice())) }
}

fn items_to<'a, T: ToFrame + 'a, I: Iterator<Item = &'a T>>(items: I, out: &mut String) {
    out.push_str("[\"l\",[");
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(',');
        }
        item.to_frame(out);
    }
    out.push_str("]]");
}
impl<T: ToFrame> ToFrame for [T] {
    fn to_frame(&self, out: &mut String) { items_to(self.iter(), out) }
}
impl<T: ToFrame, const N: usize> ToFrame for [T; N] {
    fn to_frame(&self, out: &mut String) { items_to(self.iter(), out) }
}
impl<T: FromJson, const N: usize> FromJson for [T; N] {
    fn from_json(json: &Json) -> Option<[T; N]> { <Vec<T> as FromJson>::from_json(json)?.try_into().ok() }
}
macro_rules! whetstone_lists {
    ($($name:ident: $($bound:path),*;)*) => { $(
        impl<T: FromJson $(+ $bound)*> FromJson for $name<T> {
            fn from_json(json: &Json) -> Option<$name<T>> {
                match *json { Json::List(ref items) => items.iter().map(T::from_json).collect(), _ => None }
            }
        }
    )* };
}
/** Not of a set without an order: it would be another list in every process. */
macro_rules! whetstone_ordered {
    ($($name:ident)*) => { $(
        impl<T: ToFrame> ToFrame for $name<T> {
            fn to_frame(&self, out: &mut String) { items_to(self.iter(), out) }
        }
    )* };
}
whetstone_ordered!(Vec VecDeque LinkedList BTreeSet);
whetstone_lists! { Vec:; VecDeque:; LinkedList:; HashSet: Eq, std::hash::Hash; BTreeSet: Ord; }
macro_rules! whetstone_maps {
    ($($name:ident: $($bound:path),*;)*) => { $(
        impl<K: FromJson $(+ $bound)*, V: FromJson> FromJson for $name<K, V> {
            fn from_json(json: &Json) -> Option<$name<K, V>> {
                match *json {
                    Json::Map(ref items) => items.iter().map(|pair| Some((K::from_key(&pair.0)?, V::from_json(&pair.1)?))).collect(),
                    _ => None,
                }
            }
        }
        impl<K: ToFrame, V: ToFrame> ToFrame for $name<K, V> {
            fn to_frame(&self, out: &mut String) {
                out.push_str("[\"d\",[");
                for (index, (key, value)) in self.iter().enumerate() {
                    out.push_str(if index > 0 { ",[" } else { "[" });
                    key.to_frame(out);
                    out.push(',');
                    value.to_frame(out);
                    out.push(']');
                }
                out.push_str("]]");
            }
        }
    )* };
}
whetstone_maps! { HashMap: Eq, std::hash::Hash; BTreeMap: Ord; }
macro_rules! whetstone_tuples {
    ($(($($t:ident)*))*) => { $(
        #[allow(non_snake_case)]
        impl<$($t: FromJson),*> FromJson for ($($t,)*) {
            fn from_json(json: &Json) -> Option<($($t,)*)> {
                match *json {
                    Json::List(ref items) => {
                        let mut all = items.iter();
                        let made = ($($t::from_json(all.next()?)?,)*);
                        if all.next().is_some() { None } else { Some(made) }
                    }
                    _ => None,
                }
            }
        }
        #[allow(non_snake_case)]
        impl<$($t: ToFrame),*> ToFrame for ($($t,)*) {
            fn to_frame(&self, out: &mut String) {
                let ($(ref $t,)*) = *self;
                out.push_str("[\"l\",[");
                $($t.to_frame(out); out.push(',');)*
                out.pop();
                out.push_str("]]");
            }
        }
    )* };
}
whetstone_tuples! { (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) }

extern "C" {
    fn _exit(code: i32) -> !;
}

fn leave(report: &str, code: i32) -> ! {
    let mut to = report_file();
    let _ = to.write_all(report.as_bytes());
    unsafe { _exit(code) }
}

/** An argument as the type that the function declares. */
pub fn argument<T: FromJson>(all: &mut std::vec::IntoIter<Json>) -> T {
    let json = all.next().unwrap_or(Json::Null);
    match T::from_json(&json) {
        Some(value) => value,
        None => {
            let _ = std::io::stderr().write_all(b"an argument does not fit the type that the function takes\n");
            leave("Sruntime-error", 1)
        }
    }
}

pub fn value<T: ToFrame>(value: T) -> String {
    let mut frame = String::from("V");
    value.to_frame(&mut frame);
    frame
}

fn request() -> Option<(String, Vec<Json>)> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).ok()?;
    let (mut function, mut arguments) = (String::new(), Vec::new());
    if let Json::Map(items) = parse(&text)? {
        for (key, item) in items {
            match item {
                Json::Text(name) => function = name,
                Json::List(texts) if key == "arguments" => {
                    for one in texts {
                        if let Json::Text(text) = one {
                            arguments.push(parse(&text)?);
                        }
                    }
                }
                _ => {}
            }
        }
    }
    Some((function, arguments))
}

#[no_mangle]
pub extern "C" fn main(_count: i32, _words: *const *const u8) -> i32 {
    let (function, arguments) = match request() {
        Some(both) => both,
        None => leave("Sbad-arguments", 1),
    };
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| calls(&function, arguments))) {
        Ok(Some(frame)) => leave(&frame, 0),
        Ok(None) => leave("Starget-not-found", 1),
        Err(_) => leave("Sruntime-error", 1),
    }
}
