//! `--check`: a program of the user's is run on what a power failure leaves.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, PipeReader, Read};
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use model::checker::{Examiner, Piece, Shown};
use model::units::{LINE_BYTES, LineData};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long a program may take (ours: one that hangs is wrong, too).
const LIMIT: Duration = Duration::from_secs(10);
/// How long is slept between two looks at whether it has ended.
const LOOK: Duration = Duration::from_micros(200);
/// Where it finds what a thread has said last, with `_` and the thread's number; without them that
/// of the first one.
const MARK: &str = "INDELIBLE_MARK";
/// So many characters of the last line that it says are told, of so many bytes of the end of all
/// that it says (ours: what a pipe of Linux holds).
const SAID_MAX: usize = 200;
const SAID_BYTES_MAX: usize = 64 << 10;
/// What is left in a pipe when a program has ended is no more (Linux: `fs.pipe-max-size`).
const PIPE_BYTES_MAX: usize = 1 << 20;

/// What is kept is called so, with a number behind it.
const KEPT: &str = "image-";
/// Exit codes with which a shell says that it cannot run a program, and that there is none.
const NOT_RUN: [i32; 2] = [126, 127];

/// A command, and what is known of it.
#[derive(Clone, Debug)]
pub struct Program {
    command: String,
    /// Where what it does not accept is kept.
    images: Option<PathBuf>,
    known: Arc<Known>,
}

/// What is known of a program, wherever it is used.
#[derive(Debug, Default)]
struct Known {
    /// Set when the user wants an end.
    cancelled: OnceLock<Arc<AtomicBool>>,
    /// What it has said, and of what in short: it is not asked twice.
    answers: Mutex<BTreeMap<u64, Result<(), String>>>,
    /// Why it could not be run.
    broken: OnceLock<String>,
}

/// How a program ended.
enum Ended {
    By(ExitStatus),
    /// It did not, in time, and was killed.
    Late,
    /// An end is wanted.
    Cancelled,
}

impl Program {
    /// A command that a shell runs, with the files behind its own words.
    ///
    /// # Errors
    /// A sentence, when there cannot be a folder for images.
    pub fn new(command: &str, images: Option<PathBuf>) -> Result<Program, String> {
        if let Some(folder) = &images {
            let refused = |why: String| format!("--images {}: {why}", folder.display());
            if folder.as_os_str().is_empty() {
                return Err("--images names no folder: its word is empty".into());
            }
            fs::create_dir_all(folder).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => refused("is not a folder; name one".into()),
                _ => refused(error.to_string()),
            })?;
        }
        Ok(Program { command: command.to_owned(), images, known: Arc::default() })
    }

    /// Removes the images that an earlier campaign has kept in the same folder: what is there
    /// afterwards is of this one.
    ///
    /// # Errors
    /// A sentence, when the folder cannot be read, or a file in it not be removed.
    pub fn forget_kept(&self) -> Result<(), String> {
        let Some(folder) = &self.images else { return Ok(()) };
        let forget = || -> io::Result<()> {
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                if entry.file_name().to_str().is_some_and(is_kept) && entry.file_type()?.is_file() {
                    fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        };
        forget().map_err(|error| format!("--images {}: {error}", folder.display()))
    }

    /// The same program, of which nothing is kept.
    pub fn without_images(&self) -> Program {
        Program { images: None, ..self.clone() }
    }

    /// From now on an end is wanted as soon as this is set, and it is set when the program cannot
    /// be run: what is asked then is accepted.
    pub fn heed(&self, cancelled: &Arc<AtomicBool>) {
        self.known.cancelled.get_or_init(|| Arc::clone(cancelled));
    }

    /// Whether it could be run, as often as it was to be.
    ///
    /// # Errors
    /// A sentence that says why not.
    pub fn ran(&self) -> Result<(), String> {
        let why = self.known.broken.get();
        why.map_or(Ok(()), |why| Err(format!("--check {}: {why}", self.command)))
    }

    /// What it was shown, as JSON, and whether it accepted all of that and whatever it was asked
    /// about besides: one that refuses nothing may not look.
    pub fn told(&self, shown: Shown) -> Value {
        let refused_nothing = self.answers().values().all(Result::is_ok);
        json!({
            "command": self.command,
            "images": shown.images,
            "accepts_all": shown.accepts_garbage && refused_nothing,
        })
    }

    /// Each answer is whole, whoever panicked.
    fn answers(&self) -> MutexGuard<'_, BTreeMap<u64, Result<(), String>>> {
        self.known.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It says nothing of the image that it is asked about, nor of others.
    fn give_up(&self, why: String) {
        // Whichever reason came first.
        let _ = self.known.broken.set(why);
        if let Some(cancelled) = self.known.cancelled.get() {
            cancelled.store(true, Ordering::Relaxed);
        }
    }

    /// What it says of memory; nothing if an end is wanted.
    fn run(&self, memory: &[Piece], said: &[&str]) -> io::Result<Option<Result<(), String>>> {
        // What it leaves beside its files is none of the next one's business.
        let folder = TempDir::with_prefix("indelible-check-")?;
        let files = write(memory, &folder.path().join("image"))?;
        let (output, out) = io::pipe()?;
        let mut heard = Heard::new(output)?;
        let mut command = Command::new("sh");
        // The word behind a shell's script is what the script is called; `$@` is what follows.
        command.arg("-c").arg(format!("{} \"$@\"", self.command)).arg("sh").args(&files);
        // What threads say that this trace does not have is none of its business, either.
        let of_others = std::env::vars_os().map(|(name, _)| name);
        for name in of_others.filter(|name| name.to_string_lossy().starts_with(MARK)) {
            command.env_remove(name);
        }
        command.env(MARK, said.first().unwrap_or(&""));
        for (thread, said) in said.iter().enumerate() {
            command.env(format!("{MARK}_{thread}"), said);
        }
        command.stdin(Stdio::null()).stderr(out.try_clone()?).stdout(out);
        let (how, is_run) = match self.wait(command, &mut heard)? {
            Ended::Cancelled => return Ok(None),
            Ended::By(status) if status.success() => return Ok(Some(Ok(()))),
            Ended::By(status) => {
                (how(status), !status.code().is_some_and(|code| NOT_RUN.contains(&code)))
            }
            Ended::Late => (format!("did not end within {} s", LIMIT.as_secs()), true),
        };
        let told = format!("the checker {how}{}", heard.last_line());
        if is_run {
            return Ok(Some(Err(told)));
        }
        self.give_up(told);
        Ok(None)
    }

    /// Runs a program until it ends, or for as long as it may take, and hears what it says.
    fn wait(&self, mut command: Command, heard: &mut Heard) -> io::Result<Ended> {
        if self.is_cancelled() {
            return Ok(Ended::Cancelled);
        }
        // Whoever presses Ctrl-C means the campaign, which then ends the program.
        let mut child = command.process_group(0).spawn()?;
        let start = Instant::now();
        let ended = loop {
            if let Some(status) = child.try_wait()? {
                break Ended::By(status);
            }
            if self.is_cancelled() {
                break Ended::Cancelled;
            }
            if start.elapsed() > LIMIT {
                break Ended::Late;
            }
            // Who says much waits for whoever hears it.
            if heard.listen()? == 0 {
                std::thread::sleep(LOOK);
            }
        };
        // With what it has started. That there is nothing left of it is no mistake.
        let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
        child.wait()?;
        // Who has left its group may go on for ever.
        let mut rest = 0;
        while rest < PIPE_BYTES_MAX {
            match heard.listen()? {
                0 => break,
                length => rest += length,
            }
        }
        Ok(ended)
    }
}

impl Examiner for Program {
    fn examine(&self, memory: &[Piece], said: &[&str]) -> Result<(), String> {
        let mut hasher = DefaultHasher::new();
        (memory, said).hash(&mut hasher);
        let key = hasher.finish();
        if let Some(answer) = self.answers().get(&key) {
            return answer.clone();
        }
        match self.run(memory, said) {
            Ok(Some(answer)) => {
                self.answers().insert(key, answer.clone());
                return answer;
            }
            Ok(None) => (),
            Err(error) => self.give_up(format!("the checker could not be run: {error}")),
        }
        Ok(())
    }

    fn keep(&self, memory: &[Piece], number: u64) -> Result<Vec<String>, String> {
        let Some(folder) = &self.images else { return Ok(Vec::new()) };
        let files = write(memory, &folder.join(format!("{KEPT}{number}")))
            .map_err(|error| format!("--images {}: {error}", folder.display()))?;
        Ok(files.iter().map(|file| file.display().to_string()).collect())
    }

    fn is_cancelled(&self) -> bool {
        let cancelled = self.known.cancelled.get();
        cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed))
    }

    fn name(&self) -> &str {
        &self.command
    }
}

/// Whether a file's name is one that [`Examiner::keep`] gives: with a number, and with another if
/// memory has several pieces.
fn is_kept(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.strip_prefix(KEPT).is_some_and(|numbers| match numbers.split_once('.') {
        Some((image, piece)) => is_number(image) && is_number(piece),
        None => is_number(numbers),
    })
}

/// Writes memory to a file for each piece, numbered if there are several.
fn write(memory: &[Piece], at: &Path) -> io::Result<Vec<PathBuf>> {
    let name = |number: usize| match memory.len() {
        1 => at.to_owned(),
        _ => at.with_extension(number.to_string()),
    };
    let each = memory.iter().enumerate().map(|(number, piece)| {
        let name = name(number);
        let file = File::create(&name)?;
        file.set_len(piece.length)?;
        let follows = |two: &(u64, LineData), next: &(u64, LineData)| two.0 + LINE_BYTES == next.0;
        for run in piece.lines.chunk_by(follows) {
            let bytes: Vec<u8> = run.iter().flat_map(|(_, data)| *data).collect();
            file.write_all_at(&bytes, run[0].0)?;
        }
        Ok(name)
    });
    each.collect()
}

/// How a program ended that did not end well.
fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (code, _) => format!("ended with exit code {}", code.unwrap_or_default()),
    }
}

/// The end of what a program says, who never waits for room to say more.
struct Heard {
    output: PipeReader,
    last: VecDeque<u8>,
    /// Whether it has said more than is kept.
    is_cut: bool,
}

impl Heard {
    fn new(output: PipeReader) -> io::Result<Heard> {
        fcntl(&output, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Heard { output, last: VecDeque::new(), is_cut: false })
    }

    /// Takes what there is, and returns how much that was: nothing if there is none now.
    fn listen(&mut self) -> io::Result<usize> {
        let mut part = [0; SAID_BYTES_MAX];
        let length = match self.output.read(&mut part) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            length => length?,
        };
        self.last.extend(&part[..length]);
        let more = self.last.len().saturating_sub(SAID_BYTES_MAX);
        self.last.drain(..more);
        self.is_cut |= more > 0;
        Ok(length)
    }

    /// What it said last, behind a colon, and whether there was more than is kept.
    fn last_line(mut self) -> String {
        let said = String::from_utf8_lossy(self.last.make_contiguous()).into_owned();
        let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
        let plain = |char: char| if char.is_control() { ' ' } else { char };
        let shown = |line: &str| line.chars().map(plain).take(SAID_MAX).collect::<String>();
        let cut =
            format!(" (it said more than the last {} KiB, which are kept)", SAID_BYTES_MAX >> 10);
        let told = last.map_or(String::new(), |line| format!(": {}", shown(line)));
        told + if self.is_cut { &cut } else { "" }
    }
}
