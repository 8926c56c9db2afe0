//! Reading a litmus test: a few lines of text that say what each thread does and which image is
//! asked about. docs/litmus.md has the format.

use model::units::{DRAM_BASE, LINE_BYTES, LINE_WORDS, WORD_BYTES, Word};

use super::THREADS_MAX;
use crate::error::{InputError, unknown};

/// A litmus test.
#[derive(Clone, Debug)]
pub struct Test {
    /// The file's name without its directory and ending.
    pub name: String,
    /// What is tested, in a few words; its name if the file does not say.
    pub title: String,
    /// Its variables, and where they are.
    pub variables: Vec<(String, Word)>,
    /// What each thread does.
    pub threads: Vec<Vec<Step>>,
    /// Words of persistent memory, and what they hold in the image that is asked about.
    pub image: Vec<(Word, u64)>,
    /// The same as it was written.
    pub asked: String,
}

/// A step of a thread. Addresses are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Store a value.
    Store(u64, u64),
    /// Load; the run counts only if this is the value.
    Load(u64, u64),
    /// Load until this is the value.
    Wait(u64, u64),
    /// Flush what this thread stored to since it did so last, and order.
    Order,
    /// Flush in the same way, and wait until it is durable.
    Durable,
    /// Execute instructions that touch no memory.
    Work(u64),
}

/// The most instructions of one `work`.
const WORK_MAX: u64 = 10_000;

const STEPS: &[&str] = &["store", "load", "wait", "order", "durable", "work"];
/// Instructions that a user may look for, none of which is a step.
const INSTRUCTIONS: &[&str] = &[
    "flush",
    "clflush",
    "clflushopt",
    "clwb",
    "persist",
    "fence",
    "mfence",
    "sfence",
    "ofence",
    "dfence",
    "barrier",
    "movnti",
    "lock",
];
const HEADS: &[&str] = &["title", "line", "volatile", "thread", "image"];

/// What is known while a file is read.
struct Reader {
    /// The name of the file in sentences, and the line at which the reader is.
    file: String,
    line: usize,
    title: Option<String>,
    variables: Vec<(String, u64)>,
    /// The number of lines that are taken, in persistent and in volatile memory.
    lines: [u64; 2],
    threads: Vec<Vec<Step>>,
    image: Option<(Vec<(Word, u64)>, String)>,
    /// The values that loads and waits expect, each with its line in the file and its address.
    expected: Vec<(usize, u64, u64)>,
}

/// Reads a test.
///
/// # Errors
/// A sentence that names the file and the line.
pub fn read(path: &str, text: &str) -> Result<Test, InputError> {
    let file = path.rsplit('/').next().unwrap_or(path);
    let name = file.strip_suffix(".litmus").unwrap_or(file).to_owned();
    let mut reader = Reader {
        file: path.to_owned(),
        line: 0,
        title: None,
        variables: Vec::new(),
        lines: [0; 2],
        threads: Vec::new(),
        image: None,
        expected: Vec::new(),
    };
    for line in text.lines() {
        reader.line += 1;
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some((verb, rest)) = words.split_first() {
            reader.take(verb, rest, line)?;
        }
    }
    reader.finish(name)
}

impl Reader {
    fn wrong<T>(&self, text: &str) -> Result<T, InputError> {
        self.wrong_at(self.line, text)
    }

    fn wrong_at<T>(&self, line: usize, text: &str) -> Result<T, InputError> {
        Err(InputError::new(format!("{}, line {line}: {text}", self.file)))
    }

    fn take(&mut self, verb: &str, rest: &[&str], line: &str) -> Result<(), InputError> {
        if self.image.is_some() {
            return self.wrong("nothing may follow the image of a test");
        }
        match (verb, rest) {
            ("title" | "line" | "volatile", _) if !self.threads.is_empty() => {
                return self.wrong(&format!("`{verb}` must come before the first `thread`"));
            }
            ("title", []) => return self.wrong("`title` must be followed by a few words"),
            ("title", _) if self.title.is_some() => return self.wrong("a test has one title"),
            ("title", _) => {
                let (_, title) = line.split_once("title").expect("the line begins with it");
                self.title = Some(title.trim().to_owned());
            }
            ("line" | "volatile", []) => {
                return self.wrong(&format!("`{verb}` must be followed by names of variables"));
            }
            ("line" | "volatile", names) => self.declare(verb == "volatile", names)?,
            ("thread", []) if self.threads.len() == usize::from(THREADS_MAX) => {
                return self.wrong(&format!("a test may have at most {THREADS_MAX} threads"));
            }
            ("thread", []) => self.threads.push(Vec::new()),
            ("thread", _) => {
                return self.wrong("`thread` must stand alone on its line; its steps follow");
            }
            ("image", _) => self.image = Some((self.read_image(rest)?, rest.join(" "))),
            _ => self.step(verb, rest)?,
        }
        Ok(())
    }

    /// Declares variables that share a line, or have a line of volatile memory each.
    fn declare(&mut self, volatile: bool, names: &[&str]) -> Result<(), InputError> {
        if names.len() as u64 > LINE_WORDS {
            return self.wrong(&format!("a line must not have more than {LINE_WORDS} words"));
        }
        let mut address = self.place(volatile);
        for (index, name) in names.iter().enumerate() {
            if self.variables.iter().any(|(other, _)| other == name) {
                return self.wrong(&format!(
                    "`{name}` already exists; declare it once, before its first use"
                ));
            }
            self.check_name(name)?;
            if index > 0 {
                address = if volatile { self.place(true) } else { address + WORD_BYTES };
            }
            self.variables.push(((*name).to_owned(), address));
        }
        Ok(())
    }

    fn check_name(&self, name: &str) -> Result<(), InputError> {
        let letters = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if letters && name.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            return Ok(());
        }
        self.wrong(&format!(
            "`{name}` is not a name; use letters, digits and `_`, beginning with a letter"
        ))
    }

    /// Takes a new line, and returns its address.
    fn place(&mut self, volatile: bool) -> u64 {
        let taken = &mut self.lines[usize::from(volatile)];
        *taken += 1;
        *taken * LINE_BYTES + if volatile { DRAM_BASE } else { 0 }
    }

    fn variable(&mut self, name: &str) -> Result<u64, InputError> {
        if let Some((_, address)) = self.variables.iter().find(|(other, _)| other == name) {
            return Ok(*address);
        }
        self.check_name(name)?;
        let address = self.place(false);
        self.variables.push((name.to_owned(), address));
        Ok(address)
    }

    fn number(&self, word: &str) -> Result<u64, InputError> {
        let number = match word.strip_prefix("0x") {
            Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16),
            _ => word.parse(),
        };
        number.or_else(|_| self.wrong(&format!("`{word}` is not a whole number of 64 bits")))
    }

    fn step(&mut self, verb: &str, rest: &[&str]) -> Result<(), InputError> {
        let step = match (verb, rest) {
            ("order", []) => Step::Order,
            ("durable", []) => Step::Durable,
            ("work", [count]) => {
                let count = self.number(count)?;
                if count > WORK_MAX {
                    return self.wrong(&format!("`work` may have at most {WORK_MAX} instructions"));
                }
                Step::Work(count)
            }
            ("store" | "load" | "wait", [name, value]) => {
                let (address, value) = (self.variable(name)?, self.number(value)?);
                if verb != "store" {
                    self.expected.push((self.line, address, value));
                }
                match verb {
                    "store" => Step::Store(address, value),
                    "load" => Step::Load(address, value),
                    _ => Step::Wait(address, value),
                }
            }
            ("order" | "durable", _) => {
                return self.wrong(&format!("`{verb}` must stand alone on its line"));
            }
            ("work", _) => {
                return self.wrong("`work` must be followed by a number of instructions");
            }
            ("store" | "load" | "wait", _) => {
                return self.wrong(&format!("`{verb}` must be followed by a variable and a value"));
            }
            (verb, _) if INSTRUCTIONS.contains(&verb) => {
                return self.wrong(&format!(
                    "there is no `{verb}`: `order` flushes what the thread stored to and fences, \
                     and `durable` waits until that is durable, too"
                ));
            }
            _ => {
                let InputError { text, .. } =
                    unknown("word", verb, STEPS.iter().chain(HEADS).copied());
                return self.wrong(&text);
            }
        };
        match self.threads.last_mut() {
            Some(thread) => thread.push(step),
            None => return self.wrong(&format!("`{verb}` must come after the first `thread`")),
        }
        Ok(())
    }

    fn read_image(&mut self, pairs: &[&str]) -> Result<Vec<(Word, u64)>, InputError> {
        if pairs.is_empty() {
            return self.wrong("`image` must be followed by values, such as `A=0 B=1`");
        }
        let mut image = Vec::new();
        for pair in pairs {
            let Some((name, value)) = pair.split_once('=') else {
                return self.wrong(&format!("`{pair}` is not a value, such as `A=1`"));
            };
            let known = self.variables.iter().find(|(other, _)| other == name);
            let Some(&(_, address)) = known else {
                let names = self.variables.iter().map(|(name, _)| name.as_str());
                let InputError { text, .. } = unknown("variable", name, names);
                return self.wrong(&text);
            };
            if address >= DRAM_BASE {
                return self.wrong(&format!("`{name}` is volatile: no image holds it"));
            }
            let word = Word::of(address);
            if image.iter().any(|(other, _)| *other == word) {
                return self.wrong(&format!("`{name}` already has a value in the image"));
            }
            let value = self.number(value)?;
            let store = Step::Store(address, value);
            if value != 0 && !self.threads.iter().flatten().any(|step| *step == store) {
                return self.wrong(&format!("no thread stores {value} to `{name}`"));
            }
            image.push((word, value));
        }
        Ok(image)
    }

    fn finish(mut self, name: String) -> Result<Test, InputError> {
        self.line = self.line.max(1);
        let Some((image, asked)) = self.image.take() else {
            return self.wrong("the test ends without an `image`");
        };
        if self.threads.iter().all(Vec::is_empty) {
            return self.wrong("no thread does anything");
        }
        let stored = |&&(_, address, value): &&(usize, u64, u64)| {
            let store = Step::Store(address, value);
            value == 0 || self.threads.iter().flatten().any(|step| *step == store)
        };
        if let Some((line, ..)) = self.expected.iter().find(|read| !stored(read)) {
            return self.wrong_at(*line, "it expects a value that no thread stores");
        }
        let title = self.title.take().unwrap_or_else(|| name.clone());
        let of = |(name, address)| (name, Word::of(address));
        let variables = self.variables.into_iter().map(of).collect();
        Ok(Test { name, title, variables, threads: self.threads, image, asked })
    }
}
