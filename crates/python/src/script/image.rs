//! What is left after a power failure, as a script sees and changes it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use model::design::Gasp;
use model::image::{Image, PowerLoss};
use model::units::{LINE_BYTES, Line, LineData, WORD_BYTES, Word};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::PyPowerLoss;
use super::lent::Lent;

/// The durable bytes after a power failure, for as long as the hook lasts to which they are lent.
#[pyclass(frozen, name = "Image", module = "indelible.design")]
#[derive(Default)]
pub(super) struct PyImage {
    of: Lent<Image<'static>>,
    has_cells: bool,
    lost: AtomicBool,
    reads: AtomicU64,
}

/// A number of reads, each of a word or a line, that no recovery which ends reaches (ours: they
/// take Python two seconds, and a campaign makes thousands of recoveries).
const READS_MAX: u64 = 16_000_000;

/// The last breath of a machine, for as long as the hook lasts to which it is lent.
#[pyclass(frozen, name = "Gasp", module = "indelible.design")]
#[derive(Default)]
pub(super) struct PyGasp {
    of: Lent<Gasp<'static, 'static>>,
    has_cells: bool,
    /// Whether what is saved is only noted, and goes nowhere.
    tells: bool,
    lost: AtomicBool,
    bytes: AtomicU64,
    digest: AtomicU64,
}

/// What a hook saved: how many bytes, and a digest of which and where.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) bytes: u64,
    digest: u64,
}

/// The bytes behind the memory in which a design may have cells (ours: no design has a gigabyte).
const CELLS: u64 = 1 << 30;

/// Lends an image to a hook. Also returns whether the power failed meanwhile.
pub(super) fn lend<T>(
    py: Python<'_>,
    image: &mut Image<'_>,
    has_cells: bool,
    hook: impl FnOnce(&Bound<'_, PyImage>) -> PyResult<T>,
) -> (PyResult<T>, bool) {
    let lent = match Bound::new(py, PyImage { has_cells, ..PyImage::default() }) {
        Ok(lent) => lent,
        Err(error) => return (Err(error), false),
    };
    let result = {
        // SAFETY: The image outlives the loan, and its `'static` lifetime does not escape.
        let _loan = unsafe { lent.get().of.lend(ptr::from_mut(image).cast()) };
        hook(&lent)
    };
    (result, lent.get().lost.load(Ordering::Relaxed))
}

/// Lends a last breath to a hook. Also returns whether the battery was empty before the hook's end,
/// and what the hook saved, or would have saved if that is only noted.
pub(super) fn lend_gasp<T>(
    py: Python<'_>,
    gasp: &mut Gasp<'_, '_>,
    (has_cells, tells): (bool, bool),
    hook: impl FnOnce(&Bound<'_, PyGasp>) -> PyResult<T>,
) -> ((PyResult<T>, bool), Told) {
    let lent = match Bound::new(py, PyGasp { has_cells, tells, ..PyGasp::default() }) {
        Ok(lent) => lent,
        Err(error) => return ((Err(error), false), Told { bytes: 0, digest: 0 }),
    };
    let result = {
        // SAFETY: As for an image.
        let _loan = unsafe { lent.get().of.lend(ptr::from_mut(gasp).cast()) };
        hook(&lent)
    };
    let PyGasp { lost, bytes, digest, .. } = lent.get();
    let told =
        Told { bytes: bytes.load(Ordering::Relaxed), digest: digest.load(Ordering::Relaxed) };
    ((result, lost.load(Ordering::Relaxed)), told)
}

/// Returns a word by its address, or refuses an address that is none of a word.
pub(super) fn word(address: u64) -> PyResult<Word> {
    if !address.is_multiple_of(WORD_BYTES) {
        return Err(PyValueError::new_err(format!("{address:#x} is not the address of a word")));
    }
    Ok(Word::of(address))
}

/// Returns a line by its address, or refuses an address that is none of a line.
pub(super) fn line(address: u64) -> PyResult<Line> {
    if !address.is_multiple_of(LINE_BYTES) {
        return Err(PyValueError::new_err(format!("{address:#x} is not the address of a line")));
    }
    Ok(Line::of(address))
}

/// Refuses bytes outside of persistent memory and, if there are any, of the cells behind it.
pub(super) fn within(address: u64, bytes: u64, capacity: u64, has_cells: bool) -> PyResult<()> {
    let end = if has_cells { capacity + CELLS } else { capacity };
    match address.checked_add(bytes) {
        Some(last) if last <= end => Ok(()),
        _ => Err(PyValueError::new_err(format!(
            "{bytes} bytes at {address:#x} are outside of persistent memory, which ends at {end:#x}"
        ))),
    }
}

/// Returns the bytes of a line, or refuses more or fewer.
pub(super) fn line_data(data: &[u8]) -> PyResult<LineData> {
    data.try_into().map_err(|_| {
        PyValueError::new_err(format!("a line must have {LINE_BYTES} bytes, not {}", data.len()))
    })
}

impl PyImage {
    fn image(&self) -> PyResult<&mut Image<'static>> {
        self.of.get("image")
    }

    /// Returns the image, if it has so many bytes at an address.
    fn at(&self, address: u64, bytes: u64) -> PyResult<&mut Image<'static>> {
        let image = self.image()?;
        within(address, bytes, image.capacity(), self.has_cells)?;
        Ok(image)
    }

    /// Returns the image for so many more reads, or ends a hook that reads too much.
    fn read(&self, address: u64, bytes: u64, reads: u64) -> PyResult<&mut Image<'static>> {
        let image = self.at(address, bytes)?;
        if self.reads.fetch_add(reads, Ordering::Relaxed) >= READS_MAX {
            image.call_endless(format!("{} million reads", READS_MAX / 1_000_000));
            self.lost.store(true, Ordering::Relaxed);
            return Err(PyPowerLoss::new_err("too much was read"));
        }
        Ok(image)
    }

    fn done(&self, result: Result<(), PowerLoss>) -> PyResult<()> {
        result.map_err(|PowerLoss| {
            self.lost.store(true, Ordering::Relaxed);
            PyPowerLoss::new_err("the power failed before the write took effect")
        })
    }
}

#[pymethods]
impl PyImage {
    /// How many bytes the memory holds.
    #[getter]
    fn capacity(&self) -> PyResult<u64> {
        Ok(self.image()?.capacity())
    }

    /// The word at an address.
    fn word(&self, address: u64) -> PyResult<u64> {
        Ok(self.read(address, WORD_BYTES, 1)?.word(word(address)?))
    }

    /// The words from an address on.
    fn words(&self, address: u64, count: u64) -> PyResult<Vec<u64>> {
        let bytes = count.saturating_mul(WORD_BYTES);
        let (image, first) = (self.read(address, bytes, count.max(1))?, word(address)?);
        Ok((0..count).map(|place| image.word(Word(first.0 + place))).collect())
    }

    /// The bytes of the line at an address.
    fn line<'py>(&self, py: Python<'py>, address: u64) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.read(address, LINE_BYTES, 1)?.line(line(address)?)))
    }

    /// Changes a word, which is written whole or not at all.
    fn set_word(&self, address: u64, value: u64) -> PyResult<()> {
        let (image, word) = (self.at(address, WORD_BYTES)?, word(address)?);
        self.done(image.set_word(word, value))
    }

    /// Changes the bits of a word that `mask` selects. If they are so already, nothing is written,
    /// and what decides that does not count as read.
    #[pyo3(signature = (address, value, mask = u64::MAX))]
    fn merge_word(&self, address: u64, value: u64, mask: u64) -> PyResult<()> {
        let (image, word) = (self.at(address, WORD_BYTES)?, word(address)?);
        self.done(image.merge_word(word, value, mask))
    }

    /// Changes a line, or the bytes that `mask` selects, one bit a byte: whole or not at all.
    #[pyo3(signature = (address, data, mask = u64::MAX))]
    fn set_line(&self, address: u64, data: PyBackedBytes, mask: u64) -> PyResult<()> {
        let (image, line, data) =
            (self.at(address, LINE_BYTES)?, line(address)?, line_data(&data)?);
        self.done(image.set_line(line, &data, mask))
    }

    /// Orders writes: all that were made before are durable before any that is made after.
    fn fence(&self) -> PyResult<()> {
        self.image()?.fence();
        Ok(())
    }
}

impl PyGasp {
    fn gasp(&self) -> PyResult<&mut Gasp<'static, 'static>> {
        self.of.get("gasp")
    }

    fn done(&self, result: Result<(), PowerLoss>) -> PyResult<()> {
        result.map_err(|PowerLoss| {
            self.lost.store(true, Ordering::Relaxed);
            PyPowerLoss::new_err("the battery has not enough energy for all of it")
        })
    }

    /// Notes what is saved, after what was saved before.
    fn note(&self, address: u64, bytes: usize, data: impl Hash) {
        let mut hasher = DefaultHasher::new();
        (self.digest.load(Ordering::Relaxed), address, data).hash(&mut hasher);
        self.digest.store(hasher.finish(), Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

#[pymethods]
impl PyGasp {
    /// When the power failed.
    #[getter]
    fn at(&self) -> PyResult<u64> {
        Ok(self.gasp()?.at.0)
    }

    /// Saves bytes at an address of persistent memory.
    fn save(&self, address: u64, data: PyBackedBytes) -> PyResult<()> {
        let gasp = self.gasp()?;
        within(address, data.len() as u64, gasp.capacity(), self.has_cells)?;
        self.note(address, data.len(), &*data);
        if self.tells {
            return Ok(());
        }
        self.done(gasp.save(address, &data))
    }

    /// Saves words, one after the other, from an address of persistent memory on.
    fn save_words(&self, address: u64, words: Vec<u64>) -> PyResult<()> {
        let gasp = self.gasp()?;
        let bytes = words.len() as u64 * WORD_BYTES;
        within(word(address)?.address(), bytes, gasp.capacity(), self.has_cells)?;
        self.note(address, bytes as usize, &words);
        if self.tells {
            return Ok(());
        }
        self.done(gasp.save_words(address, &words))
    }
}
