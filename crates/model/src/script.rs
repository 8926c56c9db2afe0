//! The text that comes with a workload, and what the workload has read of it.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A text, such as a SQL script or a trace, and the name of its file. Copies share both, and what
/// was read of the text: a trace may have millions of operations, and one command makes the
/// workload several times.
#[derive(Clone)]
pub struct Script(Arc<Shared>);

struct Shared {
    name: String,
    text: String,
    /// What was read of the text, and how.
    read: OnceLock<(u64, Arc<dyn Any + Send + Sync>)>,
}

impl Script {
    /// A text of a file.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Script {
        let (name, text) = (name.into(), text.into());
        Script(Arc::new(Shared { name, text, read: OnceLock::new() }))
    }

    /// Whether this is a copy of another script.
    pub fn is(&self, other: &Script) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The name of its file.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// All of it.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Returns what `read` makes of the name and the text. `read` is called once for all copies, as
    /// long as `how`, which is all else that its result depends on, is the same.
    ///
    /// # Errors
    /// The errors of `read`, which is called again the next time.
    pub fn read<T: Any + Send + Sync, E>(
        &self,
        how: u64,
        read: impl FnOnce(&str, &str) -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        if let Some((_, known)) = self.0.read.get().filter(|(known, _)| *known == how)
            && let Ok(known) = Arc::clone(known).downcast::<T>()
        {
            return Ok(known);
        }
        let found = Arc::new(read(self.name(), self.text())?);
        // The first result stays: a text that is read in another way is read each time.
        let _ = self.0.read.set((how, Arc::clone(&found) as Arc<dyn Any + Send + Sync>));
        Ok(found)
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.name(), self.text()).fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_script_is_read_once_for_all_copies_unless_it_is_read_in_another_way() {
        let script = Script::new("mine", "a b");
        let times = Cell::new(0);
        let words = |script: &Script, how| {
            let read = |name: &str, text: &str| {
                times.set(times.get() + 1);
                assert_eq!(name, "mine");
                Ok::<_, ()>(text.split(' ').take(how as usize).map(str::to_owned).collect())
            };
            script.read(how, read).map(|words: Arc<Vec<String>>| words.len())
        };
        assert_eq!((words(&script, 2), words(&script.clone(), 2), times.get()), (Ok(2), Ok(2), 1));
        assert_eq!((words(&script, 1), words(&script, 2), times.get()), (Ok(1), Ok(2), 2));
        let wrong = Script::new("mine", "");
        assert_eq!(wrong.read(0, |_, _| Err::<(), _>("wrong")).err(), Some("wrong"));
        assert_eq!(words(&wrong, 1), Ok(1), "what was refused is not what was read");
    }
}
