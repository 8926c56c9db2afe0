//! `--check`: a program of the user's is run on what a power failure leaves.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use model::checker::{Examiner, Piece};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;

/// How long a program may take (ours: one that hangs is wrong, too).
const LIMIT: Duration = Duration::from_secs(10);
/// How long is slept between two looks at whether it has ended.
const LOOK: Duration = Duration::from_micros(200);
/// Where it finds what a thread has said last, with `_` and the thread's number; without them that
/// of the first one.
const MARK: &str = "INDELIBLE_MARK";
/// So many characters of what it says are told.
const SAID_MAX: usize = 200;

/// A command, and where it finds its files.
#[derive(Debug)]
pub struct Program {
    command: String,
    /// Where what it does not accept is kept.
    images: Option<PathBuf>,
    folder: TempDir,
}

impl Program {
    /// A command that a shell runs, with the files behind its own words.
    ///
    /// # Errors
    /// When the host has no room for files.
    pub fn new(command: &str, images: Option<PathBuf>) -> io::Result<Program> {
        let folder = TempDir::with_prefix("indelible-check-")?;
        Ok(Program { command: command.to_owned(), images, folder })
    }

    fn run(&self, memory: &[Piece], said: &[&str]) -> io::Result<Result<(), String>> {
        let files = write(memory, &self.folder.path().join("image"))?;
        let output = self.folder.path().join("output");
        let out = File::create(&output)?;
        let mut command = Command::new("sh");
        // The word behind a shell's script is what the script is called; `$@` is what follows.
        command.arg("-c").arg(format!("{} \"$@\"", self.command)).arg("sh").args(&files);
        command.env(MARK, said.first().unwrap_or(&""));
        for (thread, said) in said.iter().enumerate() {
            command.env(format!("{MARK}_{thread}"), said);
        }
        command.stdin(Stdio::null()).stderr(out.try_clone()?).stdout(out);
        let ended = wait(&mut command)?;
        if ended.is_some_and(|status| status.success()) {
            return Ok(Ok(()));
        }
        let said = fs::read(&output)?;
        let told =
            format!("the checker {}{}", how(ended), last_line(&String::from_utf8_lossy(&said)));
        Ok(Err(told))
    }
}

impl Examiner for Program {
    fn examine(&self, memory: &[Piece], said: &[&str]) -> Result<(), String> {
        let not_run = |error| Err(format!("the checker could not be run: {error}"));
        self.run(memory, said).unwrap_or_else(not_run)
    }

    fn keep(&self, memory: &[Piece], number: u64) -> Result<Option<String>, String> {
        let Some(folder) = &self.images else { return Ok(None) };
        let files = fs::create_dir_all(folder)
            .and_then(|()| write(memory, &folder.join(format!("image-{number}"))))
            .map_err(|error| format!("--images {}: {error}", folder.display()))?;
        let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        Ok(Some(names.join(", ")))
    }

    fn name(&self) -> &str {
        &self.command
    }
}

/// Runs a program until it ends; none, if it does not in time, and is killed with all that it has
/// started.
fn wait(command: &mut Command) -> io::Result<Option<ExitStatus>> {
    // Whoever presses Ctrl-C means the campaign and not the program.
    let mut child = command.process_group(0).spawn()?;
    let start = Instant::now();
    while start.elapsed() < LIMIT {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(LOOK);
    }
    killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL)?;
    child.wait()?;
    Ok(None)
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
        for (at, data) in &piece.lines {
            file.write_all_at(data, *at)?;
        }
        Ok(name)
    });
    each.collect()
}

/// How a program ended that did not end well.
fn how(ended: Option<ExitStatus>) -> String {
    let Some(status) = ended else {
        return format!("did not end within {} s", LIMIT.as_secs());
    };
    match (status.code(), status.signal()) {
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (code, _) => format!("ended with exit code {}", code.unwrap_or_default()),
    }
}

/// What a program said last, behind a colon.
fn last_line(said: &str) -> String {
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    let shown = |line: &str| line.chars().take(SAID_MAX).collect::<String>();
    last.map_or(String::new(), |line| format!(": {}", shown(line)))
}
