//! The plan: the words of a request become cells, one for each line of the table.

use serde::Deserialize;

use super::loops::Kind;
use crate::InputError;
use crate::words::{Array, ENTRIES, Fence, Logging, Shape, Values, Variant, Word};

/// A request. A list that is not given takes its default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Ways of writing entries; all.
    pub variants: Option<Vec<String>>,
    /// Entries before a fence; 1, 2, 4, 8 and 16.
    pub entries: Option<Vec<usize>>,
    /// Fences; `sfence`, and the others beside it.
    pub fences: Option<Vec<String>>,
    /// Sources of values; `xorshift`, and the others beside it.
    pub values: Option<Vec<String>>,
    /// Sizes of the array, as `8MiB` or `1/4llc`; 8 MiB.
    pub arrays: Option<Vec<String>>,
    /// Shapes of the log; linear.
    pub logs: Option<Vec<String>>,
    /// Kinds of log; redo.
    pub logging: Option<Vec<String>>,
    /// The treatment of the array's stores; they stay in the caches.
    pub array_writes: Option<Vec<String>>,
    /// Numbers of threads; 1.
    pub threads: Option<Vec<usize>>,
    /// Whether there are fewer cells and less time for each.
    pub quick: bool,
    /// Whether each run is a whole pass over the array, as published, however long that takes.
    pub whole: bool,
    /// The seed of the values.
    pub seed: u64,
}

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// The combination of choices for which the loop is compiled.
    pub kind: Kind,
    /// The bytes of the array of each thread.
    pub array_bytes: usize,
    /// The shape of the log.
    pub shape: Shape,
    /// The number of threads, each of which has an array and a log of its own.
    pub threads: usize,
}

/// The array as published: 8 MB, which fill the last level of the paper's machine.
const PUBLISHED_ARRAY: &str = "8MiB";
/// Entries before a fence in a quick run: one, and a whole line.
const QUICK_ENTRIES: &[usize] = &[1, 8];
/// The variants for which fences and sources of values are varied by default: the paper's two, and
/// the cached log that is durable.
const VARIED: &[Variant] = &[Variant::Cached, Variant::Clwb, Variant::Movnti4];
/// The bytes of a circular log, which the second level of any server since 2008 (256 KiB) holds.
pub const CIRCULAR_BYTES: usize = 128 << 10;
/// The unit of arrays' sizes, in which every group and every line of the log is whole.
pub const ARRAY_GRAIN: usize = 64 << 10;
/// The largest size of an array.
const ARRAY_MAX: u64 = 16 << 30;

impl Cell {
    /// Returns the bytes of each thread's log; a linear one has twice the array's, since an entry
    /// is an index and a value.
    pub fn log_bytes(&self) -> usize {
        match self.shape {
            Shape::Linear => 2 * self.array_bytes,
            Shape::Circular => CIRCULAR_BYTES,
        }
    }
}

impl Request {
    /// Returns the cells, in the order of the table.
    ///
    /// # Errors
    /// A sentence that says which word is unknown.
    pub fn cells(&self, llc: Option<u64>) -> Result<Vec<Cell>, InputError> {
        let variants = words(&self.variants, Variant::ALL)?;
        let entries = self.entries()?;
        let shapes = words(&self.logs, &[Shape::Linear])?;
        let logging = words(&self.logging, &[Logging::Redo])?;
        let writes = words(&self.array_writes, &[Array::Cached])?;
        let threads = match self.threads.as_deref() {
            None => &[1],
            Some([]) => return Err(InputError("no number of threads was given".into())),
            Some(threads) => threads,
        };
        let published = [PUBLISHED_ARRAY.to_owned()];
        let arrays = self.arrays.as_deref().unwrap_or(&published);
        let arrays =
            arrays.iter().map(|word| array_bytes(word, llc)).collect::<Result<Vec<_>, _>>()?;
        let mut cells = Vec::new();
        for &array_bytes in &arrays {
            for &shape in &shapes {
                for &threads in threads {
                    for &logging in &logging {
                        for &array in &writes {
                            let loops = self.kinds(&variants, &entries, logging, array)?;
                            cells.extend(loops.map(|kind| Cell {
                                kind,
                                array_bytes,
                                shape,
                                threads,
                            }));
                        }
                    }
                }
            }
        }
        Ok(cells)
    }

    fn entries(&self) -> Result<Vec<usize>, InputError> {
        let Some(asked) = &self.entries else {
            return Ok(if self.quick { QUICK_ENTRIES } else { ENTRIES }.to_vec());
        };
        match asked.iter().find(|entries| !ENTRIES.contains(entries)) {
            Some(other) => Err(InputError(format!(
                "{other} entries before a fence are not measured; there are 1, 2, 4, 8 and 16"
            ))),
            None if asked.is_empty() => Err(InputError("no number of entries was given".into())),
            None => Ok(asked.clone()),
        }
    }

    /// Returns every variant at every number of entries; and, where the request names none, the
    /// other sources of values and the other fences for three variants.
    fn kinds(
        &self,
        variants: &[Variant],
        entries: &[usize],
        logging: Logging,
        array: Array,
    ) -> Result<impl Iterator<Item = Kind>, InputError> {
        let fences = words(&self.fences, &[Fence::Sfence])?;
        let values = words(&self.values, &[Values::Xorshift])?;
        let mut kinds = Vec::new();
        let add = |kinds: &mut Vec<Kind>, (variant, entries, fence, values)| {
            let kind = Kind { variant, entries, fence, values, logging, array };
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        };
        for &values in &values {
            for &fence in &fences {
                for &variant in variants {
                    for &entries in entries {
                        add(&mut kinds, (variant, entries, fence, values));
                    }
                }
            }
        }
        if self.values.is_some() || self.fences.is_some() {
            return Ok(kinds.into_iter());
        }
        // One entry, and a whole line of them if that is asked for.
        let one = entries[0];
        let line = entries.iter().copied().find(|&entries| entries == 8).unwrap_or(one);
        let varied = || VARIED.iter().copied().filter(|variant| variants.contains(variant));
        for variant in varied() {
            for &source in Values::ALL {
                add(&mut kinds, (variant, one, Fence::Sfence, source));
                add(&mut kinds, (variant, line, Fence::Sfence, source));
            }
        }
        for variant in varied().filter(|_| !self.quick) {
            for &fence in Fence::ALL {
                add(&mut kinds, (variant, one, fence, Values::Xorshift));
            }
            // A `rand` that takes a lock is a fence by accident.
            add(&mut kinds, (variant, one, Fence::None, Values::Rand));
        }
        Ok(kinds.into_iter())
    }
}

/// Returns the requested words, or the default.
fn words<W: Word>(asked: &Option<Vec<String>>, default: &[W]) -> Result<Vec<W>, InputError> {
    let Some(asked) = asked else { return Ok(default.to_vec()) };
    if asked.is_empty() {
        return Err(InputError(format!("no {} was given", W::KIND)));
    }
    let find = |name: &String| {
        W::ALL.iter().copied().find(|word| word.name() == name).ok_or_else(|| {
            let names: Vec<&str> = W::ALL.iter().map(|word| word.name()).collect();
            InputError(format!("unknown {} `{name}`; there are: {}", W::KIND, names.join(", ")))
        })
    };
    asked.iter().map(find).collect()
}

/// Returns the bytes of an array: a number with a unit, or a part of the last-level cache.
fn array_bytes(word: &str, llc: Option<u64>) -> Result<usize, InputError> {
    let wrong = || {
        InputError(format!(
            "`{word}` is not the size of an array; give one such as 8MiB, 256KiB, 2llc or 1/4llc"
        ))
    };
    let number = word.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match word[number.len()..].to_ascii_lowercase().as_str() {
        "kib" | "kb" | "k" => 1 << 10,
        "mib" | "mb" | "m" => 1 << 20,
        "gib" | "gb" | "g" => 1 << 30,
        "llc" => llc.ok_or_else(|| {
            InputError(format!("`{word}`: the processor does not say how large its LLC is"))
        })?,
        _ => return Err(wrong()),
    };
    let (part, whole) = number.split_once('/').unwrap_or((number, "1"));
    let part: u64 = part.trim().parse().map_err(|_| wrong())?;
    let whole: u64 = whole.trim().parse().map_err(|_| wrong())?;
    let bytes = part.checked_mul(unit).and_then(|all| all.checked_div(whole)).ok_or_else(wrong)?;
    let grain = ARRAY_GRAIN as u64;
    if !(grain..=ARRAY_MAX).contains(&bytes) {
        return Err(InputError(format!("an array of `{word}` is not from 64KiB to 16GiB")));
    }
    Ok((bytes / grain * grain) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_or_parts_of_the_cache() {
        let llc = Some(32 << 20);
        assert_eq!(array_bytes("8MiB", llc), Ok(8 << 20));
        assert_eq!(array_bytes("256k", llc), Ok(256 << 10));
        assert_eq!(array_bytes("1/4llc", llc), Ok(8 << 20));
        assert_eq!(array_bytes("2LLC", llc), Ok(64 << 20));
        for wrong in ["8", "MiB", "-1MiB", "1/0llc", "8 furlongs", "1KiB", "99999999999GiB"] {
            let complaint = array_bytes(wrong, llc).expect_err(wrong).to_string();
            assert!(complaint.contains(wrong), "{complaint}");
        }
        assert!(array_bytes("1llc", None).is_err());
    }

    #[test]
    fn by_default_every_variant_and_number_of_entries_is_measured() {
        let cells = Request::default().cells(None).expect("cells");
        for &variant in Variant::ALL {
            for &entries in ENTRIES {
                assert!(cells.iter().any(|cell| {
                    (cell.kind.variant, cell.kind.entries, cell.kind.fence)
                        == (variant, entries, Fence::Sfence)
                }));
            }
        }
        let sources = cells.iter().filter(|cell| cell.kind.values == Values::Rand).count();
        assert_eq!(sources, 9);
        let quick = Request { quick: true, ..Request::default() }.cells(None).expect("cells");
        assert!(quick.len() < cells.len() * 2 / 3, "{} of {}", quick.len(), cells.len());
    }

    #[test]
    fn what_is_asked_for_is_all_there_is() {
        let list = |text: &str| Some(text.split(',').map(str::to_owned).collect());
        let request = Request {
            variants: list("cached,movnti4"),
            entries: Some(vec![1, 8]),
            values: list("rand"),
            logs: list("linear,circular"),
            threads: Some(vec![1, 2]),
            ..Request::default()
        };
        let cells = request.cells(None).expect("cells");
        assert_eq!(cells.len(), 2 * 2 * 2 * 2);
        assert!(cells.iter().all(|cell| cell.kind.values == Values::Rand));
        let wrong = Request { variants: list("movnit4"), ..request };
        let complaint = wrong.cells(None).expect_err("unknown").to_string();
        assert!(complaint.starts_with("unknown variant `movnit4`; there are: cached, "));
    }
}
