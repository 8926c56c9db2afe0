//! Reading a litmus test: a few lines of text that say what each thread does and which images are
//! asked about. docs/litmus.md has the format.

use model::units::{DRAM_BASE, LINE_BYTES, LINE_WORDS, WORD_BYTES, Word};

use super::THREADS_MAX;
use crate::error::{InputError, unknown};
use crate::quantity;

/// A litmus test.
#[derive(Clone, Debug)]
pub struct Test {
    /// The file.
    pub path: String,
    /// Its name without its directory and ending.
    pub name: String,
    /// What is tested, in a few words; its name if the file does not say.
    pub title: String,
    /// Its variables, and where they are.
    pub variables: Vec<(String, Word)>,
    /// What each thread does.
    pub threads: Vec<Vec<Step>>,
    /// The images that are asked about, of which there is at least one.
    pub images: Vec<Asked>,
}

/// An image that a test asks about.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Words of persistent memory, and what they hold in it.
    pub words: Vec<(Word, u64)>,
    /// The same as text, `A=0 B=1`.
    pub text: String,
}

/// A step of a thread. Addresses are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Store a value.
    Store(u64, u64),
    /// Store a value past the caches.
    StorePast(u64, u64),
    /// Load; the run counts only if this is the value.
    Load(u64, u64),
    /// Load until this is the value.
    Wait(u64, u64),
    /// Write the line of this address back.
    Flush(u64),
    /// Order, and flush nothing.
    Fence,
    /// Flush what this thread stored to since it did so last, and order.
    Order,
    /// Flush in the same way, and wait until it is durable.
    Durable,
    /// Execute instructions that touch no memory.
    Work(u64),
}

/// The most instructions of one `work`.
const WORK_MAX: u64 = 10_000;

/// The most images of a test.
const IMAGES_MAX: usize = 64;

const STEPS: &[&str] =
    &["store", "movnti", "load", "wait", "flush", "fence", "order", "durable", "work"];
/// Instructions that a user may look for, none of which is a step.
const INSTRUCTIONS: &[&str] = &[
    "clflush",
    "clflushopt",
    "clwb",
    "persist",
    "mfence",
    "sfence",
    "ofence",
    "dfence",
    "barrier",
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
    images: Vec<Asked>,
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
        images: Vec::new(),
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
        if verb != "image" && !self.images.is_empty() {
            return self.wrong("only another `image` may follow the image of a test");
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
            ("image", _) => self.read_images(rest)?,
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
        let wrong = || self.wrong(&format!("`{word}` is not a whole number of 64 bits"));
        quantity::integer(word).map_or_else(wrong, Ok)
    }

    fn step(&mut self, verb: &str, rest: &[&str]) -> Result<(), InputError> {
        let step = match (verb, rest) {
            ("fence", []) => Step::Fence,
            ("order", []) => Step::Order,
            ("durable", []) => Step::Durable,
            ("flush", [name]) => {
                let address = self.variable(name)?;
                if address >= DRAM_BASE {
                    return self
                        .wrong(&format!("`{name}` is volatile: a flush of it does nothing"));
                }
                Step::Flush(address)
            }
            ("work", [count]) => {
                let count = self.number(count)?;
                if count > WORK_MAX {
                    return self.wrong(&format!("`work` may have at most {WORK_MAX} instructions"));
                }
                Step::Work(count)
            }
            ("store" | "movnti" | "load" | "wait", [name, value]) => {
                let (address, value) = (self.variable(name)?, self.number(value)?);
                if matches!(verb, "load" | "wait") {
                    self.expected.push((self.line, address, value));
                }
                match verb {
                    "store" => Step::Store(address, value),
                    "movnti" => Step::StorePast(address, value),
                    "load" => Step::Load(address, value),
                    _ => Step::Wait(address, value),
                }
            }
            ("flush", _) => return self.wrong("`flush` must be followed by a variable"),
            ("fence" | "order" | "durable", _) => {
                return self.wrong(&format!("`{verb}` must stand alone on its line"));
            }
            ("work", _) => {
                return self.wrong("`work` must be followed by a number of instructions");
            }
            ("store" | "movnti" | "load" | "wait", _) => {
                return self.wrong(&format!("`{verb}` must be followed by a variable and a value"));
            }
            (verb, _) if INSTRUCTIONS.contains(&verb) => {
                return self.wrong(&format!(
                    "there is no `{verb}`: `order` flushes what the thread stored to and fences, \
                     and `durable` waits until that is durable, too; `flush A` and `fence` do one \
                     alone"
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

    /// Reads a line `image A=0 B`: variables with the value that they hold, or without, which asks
    /// about every value that they may hold.
    fn read_images(&mut self, asked: &[&str]) -> Result<(), InputError> {
        if asked.is_empty() {
            return self.wrong("`image` must be followed by values, such as `A=0 B=1`");
        }
        let mut images = vec![Asked { words: Vec::new(), text: String::new() }];
        for pair in asked {
            let (name, value) = match pair.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (*pair, None),
            };
            let (word, values) = self.read_values(name, value)?;
            if images[0].words.iter().any(|(other, _)| *other == word) {
                return self.wrong(&format!("`{name}` already has a value in the image"));
            }
            let with = |image: &Asked, value: u64| Asked {
                words: [&image.words[..], &[(word, value)]].concat(),
                text: format!("{} {name}={value}", image.text).trim_start().to_owned(),
            };
            let all =
                images.iter().flat_map(|image| values.iter().map(|value| with(image, *value)));
            images = all.collect();
            if self.images.len() + images.len() > IMAGES_MAX {
                return self.wrong(&format!("a test may ask about at most {IMAGES_MAX} images"));
            }
        }
        for image in images {
            if self.images.iter().any(|other| other.words == image.words) {
                return self.wrong(&format!("the image {} is already asked about", image.text));
            }
            self.images.push(image);
        }
        Ok(())
    }

    /// The word of a variable in an image, and the values that are asked about: the one that is
    /// given, or else all that threads store to it, and 0.
    fn read_values(&self, name: &str, given: Option<&str>) -> Result<(Word, Vec<u64>), InputError> {
        let known = self.variables.iter().find(|(other, _)| other == name);
        let Some(&(_, address)) = known else {
            let names = self.variables.iter().map(|(name, _)| name.as_str());
            let InputError { text, .. } = unknown("variable", name, names);
            return self.wrong(&text);
        };
        if address >= DRAM_BASE {
            return self.wrong(&format!("`{name}` is volatile: no image holds it"));
        }
        let mut values = self.stored_to(address);
        if let Some(given) = given {
            let value = self.number(given)?;
            if !values.contains(&value) {
                return self.wrong(&format!("no thread stores {value} to `{name}`"));
            }
            values = vec![value];
        }
        Ok((Word::of(address), values))
    }

    /// What a word may hold, in ascending order: 0, and what threads store to it.
    fn stored_to(&self, address: u64) -> Vec<u64> {
        let stored = |step: &Step| match *step {
            Step::Store(to, value) | Step::StorePast(to, value) if to == address => Some(value),
            _ => None,
        };
        let stored = self.threads.iter().flatten().filter_map(stored);
        let mut values: Vec<u64> = stored.chain([0]).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    fn finish(mut self, name: String) -> Result<Test, InputError> {
        self.line = self.line.max(1);
        if self.images.is_empty() {
            return self.wrong("the test ends without an `image`");
        }
        if self.threads.iter().all(Vec::is_empty) {
            return self.wrong("no thread does anything");
        }
        for &(line, address, value) in &self.expected {
            if !self.stored_to(address).contains(&value) {
                return self.wrong_at(line, "it expects a value that no thread stores");
            }
        }
        let title = self.title.take().unwrap_or_else(|| name.clone());
        let of = |(name, address): &(String, u64)| (name.clone(), Word::of(*address));
        let variables = self.variables.iter().map(of).collect();
        let Reader { file: path, threads, images, .. } = self;
        Ok(Test { path, name, title, variables, threads, images })
    }
}
