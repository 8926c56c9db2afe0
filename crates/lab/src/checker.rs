//! `--check`: a program of the user's is run on what a power failure leaves.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, PipeReader, Read};
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use model::checker::{Examiner, Piece, Rejection, Shown};
use model::units::{LINE_BYTES, LineData};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, killpg};
#[cfg(target_os = "linux")]
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long a program may take (ours: one that hangs is wrong, too).
const LIMIT: Duration = Duration::from_secs(10);
/// How long the campaign sleeps between two looks at whether the program has ended.
const LOOK: Duration = Duration::from_micros(200);
/// The environment variable in which the program finds what a thread has said last, followed by `_`
/// and the thread's number; without these it has what the first thread has said.
const MARK: &str = "INDELIBLE_MARK";
/// The number of characters that are told of the last line that the program says, and the number of
/// bytes that are kept of the end of all that it says (ours: what a pipe of Linux holds).
const SAID_MAX: usize = 200;
const SAID_BYTES_MAX: usize = 64 << 10;
/// What is left in a pipe when a program has ended is no more than this (Linux:
/// `fs.pipe-max-size`).
const PIPE_BYTES_MAX: usize = 1 << 20;

/// How the names of kept files begin; a number follows.
const KEPT: &str = "image-";
/// Exit codes with which a shell says that it cannot run a program, and that the program does not
/// exist.
const NOT_RUN: [i32; 2] = [126, 127];

/// A command, and what is known of the program that it runs.
#[derive(Clone, Debug)]
pub struct Program {
    command: String,
    /// The folder in which what the program does not accept is kept.
    images: Option<PathBuf>,
    known: Arc<Known>,
}

/// What is known of a program, shared by its copies.
#[derive(Debug, Default)]
struct Known {
    /// Set when the user wants an end.
    cancelled: OnceLock<Arc<AtomicBool>>,
    /// What it has said, by a hash of what it was asked about: it is not asked twice.
    answers: Mutex<BTreeMap<u64, Result<(), Rejection>>>,
    /// Why the program could not be run.
    broken: OnceLock<String>,
}

/// How a program ended.
enum Ended {
    By(ExitStatus),
    /// It did not end in time, and was killed.
    Late,
    /// The user wants an end.
    Cancelled,
}

impl Program {
    /// A command that a shell runs, with the names of files behind the command's own words.
    ///
    /// # Errors
    /// A sentence, when the folder for images cannot be made.
    pub fn new(command: &str, images: Option<PathBuf>) -> Result<Program, String> {
        if let Some(folder) = &images {
            let refused = |why: String| format!("--images {}: {why}", folder.display());
            if folder.as_os_str().is_empty() {
                return Err("--images must name a folder; it is an empty string".into());
            }
            fs::create_dir_all(folder).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => refused("is not a folder; name one".into()),
                _ => refused(error.to_string()),
            })?;
        }
        Ok(Program { command: command.to_owned(), images, known: Arc::default() })
    }

    /// Removes the images that an earlier campaign has kept in the same folder, so that what is
    /// there afterwards is of this campaign.
    ///
    /// # Errors
    /// A sentence, when the folder cannot be read, or a file in it cannot be removed.
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

    /// Returns the same program, which keeps no images.
    pub fn without_images(&self) -> Program {
        Program { images: None, ..self.clone() }
    }

    /// Has the program ended as soon as `cancelled` is set, and sets it if the program cannot be
    /// run. Whatever is asked from then on is accepted.
    pub fn heed(&self, cancelled: &Arc<AtomicBool>) {
        self.known.cancelled.get_or_init(|| Arc::clone(cancelled));
    }

    /// Checks that the program could be run each time.
    ///
    /// # Errors
    /// A sentence that says why it could not.
    pub fn ran(&self) -> Result<(), String> {
        let why = self.known.broken.get();
        why.map_or(Ok(()), |why| Err(format!("--check {}: {why}", self.command)))
    }

    /// Says in JSON what the program was shown, and whether it accepted that and all else that it
    /// was asked about: a program that refuses nothing may not look.
    pub fn told(&self, shown: Shown) -> Value {
        let refused_nothing = self.answers().values().all(Result::is_ok);
        json!({
            "command": self.command,
            "images": shown.images,
            "refused": shown.refused,
            "nothing_new": shown.has_enough,
            "accepts_all": shown.accepts_garbage && refused_nothing,
        })
    }

    /// Locks the answers. Each of them is whole even if a thread that held the lock panicked.
    fn answers(&self) -> MutexGuard<'_, BTreeMap<u64, Result<(), Rejection>>> {
        self.known.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes why the program says nothing of the image that it is asked about, nor of later ones.
    fn give_up(&self, why: String) {
        // The first reason stays.
        let _ = self.known.broken.set(why);
        if let Some(cancelled) = self.known.cancelled.get() {
            cancelled.store(true, Ordering::Relaxed);
        }
    }

    /// Returns what the program says of memory; nothing if an end is wanted.
    fn run(&self, memory: &[Piece], said: &[&str]) -> io::Result<Option<Result<(), Rejection>>> {
        // What the program leaves beside its files must not be there for the next run.
        let folder = TempDir::with_prefix("indelible-check-")?;
        let files = write(memory, &folder.path().join("image"))?;
        let (output, out) = io::pipe()?;
        let mut heard = Heard::new(output)?;
        let mut command = Command::new("sh");
        // The word behind a shell's script is what the script is called; `$@` is what follows.
        command.arg("-c").arg(format!("{} \"$@\"", self.command)).arg("sh").args(&files);
        // The program must not see what threads say that this trace does not have.
        let of_others = std::env::vars_os().map(|(name, _)| name);
        for name in of_others.filter(|name| name.to_string_lossy().starts_with(MARK)) {
            command.env_remove(name);
        }
        command.env(MARK, said.first().unwrap_or(&""));
        for (thread, said) in said.iter().enumerate() {
            command.env(format!("{MARK}_{thread}"), said);
        }
        command.stdin(Stdio::null()).stderr(out.try_clone()?).stdout(out);
        let (how, is_late) = match self.wait(command, &mut heard)? {
            Ended::Cancelled => return Ok(None),
            Ended::By(status) if status.success() => return Ok(Some(Ok(()))),
            Ended::By(status) => {
                let how = how(status);
                if status.code().is_some_and(|code| NOT_RUN.contains(&code)) {
                    self.give_up(format!("the checker {how}{}", heard.last_line()));
                    return Ok(None);
                }
                (how, false)
            }
            Ended::Late => (format!("did not end within {} s", LIMIT.as_secs()), true),
        };
        let text = format!("the checker {how}{}", heard.last_line());
        Ok(Some(Err(Rejection { text, is_late })))
    }

    /// Reads what a program that runs says, until it ends or has taken as long as it may. Returns
    /// why it must be ended, if it must.
    fn watch(&self, child: &mut Child, heard: &mut Heard) -> io::Result<Option<Ended>> {
        let start = Instant::now();
        while !has_ended(child)? {
            if self.is_cancelled() {
                return Ok(Some(Ended::Cancelled));
            }
            if start.elapsed() > LIMIT {
                return Ok(Some(Ended::Late));
            }
            // A program that says much waits until its output is read, so this does not sleep then.
            if heard.listen()? == 0 {
                std::thread::sleep(LOOK);
            }
        }
        Ok(None)
    }

    /// Runs a program until it ends, or for as long as it may take, and reads what it says.
    fn wait(&self, mut command: Command, heard: &mut Heard) -> io::Result<Ended> {
        if self.is_cancelled() {
            return Ok(Ended::Cancelled);
        }
        // Ctrl-C is meant for the campaign, which then ends the program.
        let mut child = command.process_group(0).spawn()?;
        let ended = self.watch(&mut child, heard);
        // This kills what the program has started, too. It is no mistake if nothing is left.
        let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
        let status = child.wait()?;
        let ended = ended?.unwrap_or(Ended::By(status));
        // A process that has left the group may go on writing for ever.
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

/// Whether a program has ended. It is not waited for, so that its number is no other's while what
/// it has started has not been ended, too.
#[cfg(target_os = "linux")]
fn has_ended(child: &mut Child) -> io::Result<bool> {
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    let status = waitid(Id::Pid(Pid::from_raw(child.id() as i32)), look)?;
    Ok(status != WaitStatus::StillAlive)
}

/// Whether a program has ended; it is waited for, since `nix` has no `waitid` for all other hosts.
#[cfg(not(target_os = "linux"))]
fn has_ended(child: &mut Child) -> io::Result<bool> {
    Ok(child.try_wait()?.is_some())
}

impl Examiner for Program {
    fn examine(&self, memory: &[Piece], said: &[&str]) -> Result<(), Rejection> {
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

/// Says how a program ended that did not end well.
fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (code, _) => format!("ended with exit code {}", code.unwrap_or_default()),
    }
}

/// The end of what a program says. The program never waits for room to say more.
struct Heard {
    output: PipeReader,
    /// Where what is read comes first.
    part: Box<[u8]>,
    last: VecDeque<u8>,
    /// Whether the program has said more than is kept.
    is_cut: bool,
}

impl Heard {
    fn new(output: PipeReader) -> io::Result<Heard> {
        fcntl(&output, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let part = vec![0; SAID_BYTES_MAX].into();
        Ok(Heard { output, part, last: VecDeque::new(), is_cut: false })
    }

    /// Reads what there is, and returns how many bytes that was: 0 if there is nothing now.
    fn listen(&mut self) -> io::Result<usize> {
        let length = match self.output.read(&mut self.part) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            length => length?,
        };
        self.last.extend(&self.part[..length]);
        let more = self.last.len().saturating_sub(SAID_BYTES_MAX);
        self.last.drain(..more);
        self.is_cut |= more > 0;
        Ok(length)
    }

    /// Returns the last line that the program said, behind a colon, and whether it said more than
    /// is kept.
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
