//! The property files of YCSB, as Java reads them: `name=value`, `name:value` or `name value`,
//! comments after `#` or `!`, and lines that end in a backslash go on in the next one. Other
//! escapes are not replaced: no property that means something here has any.

use model::workload::{Step, Stop};

/// Records at most, as for every other workload.
const RECORDS_MAX: u64 = 1 << 32;

/// The largest proportion (ours: so that their sum, and each one's share of it, is finite).
const PROPORTION_MAX: f64 = 1e9;

/// The properties that mean something here.
const NAMES: [&str; 16] = [
    "recordcount",
    "operationcount",
    "readproportion",
    "updateproportion",
    "insertproportion",
    "scanproportion",
    "readmodifywriteproportion",
    "requestdistribution",
    "fieldcount",
    "fieldlength",
    "fieldlengthdistribution",
    "readallfields",
    "writeallfields",
    "minscanlength",
    "maxscanlength",
    "scanlengthdistribution",
];

/// How the record of an operation is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Each of those that there are at the start is equally likely; none that is inserted later is
    /// chosen.
    Uniform,
    /// Zipf with 0.99, scattered over the records.
    Zipfian,
    /// Zipf with 0.99, the newest the most likely.
    Latest,
}

/// What a property file says.
#[derive(Clone, Debug)]
pub struct Properties {
    /// `recordcount`, over all cores.
    pub record_count: Option<u64>,
    /// `operationcount`, over all cores: how long a run is that is not told otherwise. YCSB also
    /// computes from it how many inserts to expect. 0 if the file does not say.
    pub operation_count: u64,
    /// `readproportion`. As in YCSB, what counts is its share of the sum of all, which need not be
    /// 1.
    pub read: f64,
    /// `updateproportion`.
    pub update: f64,
    /// `insertproportion`.
    pub insert: f64,
    /// `scanproportion`.
    pub scan: f64,
    /// `readmodifywriteproportion`.
    pub read_modify_write: f64,
    /// `requestdistribution`.
    pub distribution: Distribution,
    /// `fieldcount`.
    pub field_count: u64,
    /// `fieldlength`, in bytes.
    pub field_length: u64,
    /// `readallfields`.
    pub read_all_fields: bool,
    /// `writeallfields`.
    pub write_all_fields: bool,
    /// `minscanlength`.
    pub scan_length_min: u64,
    /// `maxscanlength`; lengths are uniform from the least to it.
    pub scan_length_max: u64,
}

/// The defaults of YCSB's core workload.
impl Default for Properties {
    fn default() -> Properties {
        Properties {
            record_count: None,
            operation_count: 0,
            read: 0.95,
            update: 0.05,
            insert: 0.0,
            scan: 0.0,
            read_modify_write: 0.0,
            distribution: Distribution::Uniform,
            field_count: 10,
            field_length: 100,
            read_all_fields: true,
            write_all_fields: false,
            scan_length_min: 1,
            scan_length_max: 1_000,
        }
    }
}

impl Properties {
    /// Reads the text of the property file `name`. If a property is there twice, the last one
    /// counts. Unknown properties are skipped, unless one differs from a known one only by a letter
    /// or by capitals, or is text without `=` or `:`.
    ///
    /// # Errors
    /// [`Stop::Input`] when a line is malformed or a value is wrong.
    pub fn read(name: &str, text: &str) -> Step<Properties> {
        let mut properties = Properties::default();
        for (line, text) in logical_lines(text) {
            properties
                .read_line(text.trim())
                .map_err(|error| Stop::Input(format!("{name}, line {line}: {error}")))?;
        }
        if properties.weight() <= 0.0 {
            let text =
                format!("{name}: the proportions of all operations are 0; one must be above 0");
            return Err(Stop::Input(text));
        }
        let (least, most) = (properties.scan_length_min, properties.scan_length_max);
        if least > most {
            return Err(Stop::Input(format!(
                "{name}: `minscanlength` must not be above `maxscanlength`, {most}; it is {least}"
            )));
        }
        Ok(properties)
    }

    /// The sum of the proportions.
    pub fn weight(&self) -> f64 {
        self.read + self.update + self.insert + self.scan + self.read_modify_write
    }

    /// Returns YCSB's estimate of the most records inserted, over all cores: twice the mean, if the
    /// sum of the proportions is 1.
    pub fn expected_inserts(&self) -> u64 {
        (self.operation_count as f64 * self.insert * 2.0) as u64
    }

    fn read_line(&mut self, line: &str) -> Result<(), String> {
        if line.is_empty() || line.starts_with(['#', '!']) {
            return Ok(());
        }
        let separates = |letter: char| letter.is_whitespace() || "=:".contains(letter);
        let Some(end) = line.find(separates) else {
            return Err(format!("expected `name=value`, a comment or nothing, not `{line}`"));
        };
        let (name, rest) = (&line[..end], line[end..].trim_start());
        let assigned = rest.strip_prefix(['=', ':']);
        let value = assigned.unwrap_or(rest).trim_start();
        if name.is_empty() {
            return Err(format!("expected a name before `{}`", &line[..1]));
        }
        match name {
            "recordcount" => self.record_count = Some(number(name, value, 1, RECORDS_MAX)?),
            "operationcount" => self.operation_count = number(name, value, 0, u64::MAX)?,
            "readproportion" => self.read = proportion(name, value)?,
            "updateproportion" => self.update = proportion(name, value)?,
            "insertproportion" => self.insert = proportion(name, value)?,
            "scanproportion" => self.scan = proportion(name, value)?,
            "readmodifywriteproportion" => self.read_modify_write = proportion(name, value)?,
            "requestdistribution" => self.distribution = distribution(name, value)?,
            "fieldcount" => self.field_count = number(name, value, 1, 1024)?,
            "fieldlength" => self.field_length = number(name, value, 1, 65_536)?,
            "readallfields" => self.read_all_fields = truth(name, value)?,
            "writeallfields" => self.write_all_fields = truth(name, value)?,
            "minscanlength" => self.scan_length_min = number(name, value, 1, RECORDS_MAX)?,
            "maxscanlength" => self.scan_length_max = number(name, value, 1, RECORDS_MAX)?,
            "fieldlengthdistribution" => only(name, value, "constant")?,
            "scanlengthdistribution" => only(name, value, "uniform")?,
            other => {
                no_slip(other)?;
                // Java would take any text for a property named by its first word.
                if assigned.is_none() {
                    return Err(format!("expected `name=value`, not `{line}`"));
                }
            }
        }
        Ok(())
    }
}

/// Returns the logical lines of a file, each with the number of its first line. A line that ends in
/// an unescaped backslash goes on in the next one, without the white space at the begin of that. A
/// comment does not go on.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let backslashes = line.len() - line.trim_end_matches('\\').len();
        let is_comment = !goes_on && line.starts_with(['#', '!']);
        let is_first = !goes_on;
        goes_on = !is_comment && backslashes % 2 == 1;
        let line = &line[..line.len() - usize::from(goes_on)];
        match lines.last_mut() {
            Some((_, begun)) if !is_first => begun.push_str(line),
            _ => lines.push((number, line.to_owned())),
        }
    }
    lines
}

/// Refuses a property that differs from one of ours only by a letter or by capitals. Other unknown
/// properties are allowed, since other programs may have theirs in the same file.
fn no_slip(name: &str) -> Result<(), String> {
    let small = name.to_ascii_lowercase();
    match NAMES.iter().find(|known| strsim::damerau_levenshtein(&small, known) <= 1) {
        Some(known) => Err(format!("unknown property `{name}`; did you mean `{known}`?")),
        None => Ok(()),
    }
}

fn number(name: &str, value: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = value.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| {
        format!("`{name}` must be a whole number from {least} to {most}, not `{value}`")
    })
}

fn proportion(name: &str, value: &str) -> Result<f64, String> {
    let share = value.parse().ok().filter(|share| (0.0..=PROPORTION_MAX).contains(share));
    share.ok_or_else(|| {
        format!("`{name}` must be a number from 0 to {PROPORTION_MAX}, not `{value}`")
    })
}

fn distribution(name: &str, value: &str) -> Result<Distribution, String> {
    match value {
        "uniform" => Ok(Distribution::Uniform),
        "zipfian" => Ok(Distribution::Zipfian),
        "latest" => Ok(Distribution::Latest),
        _ => Err(format!("`{name}` must be `uniform`, `zipfian` or `latest`, not `{value}`")),
    }
}

/// Reads a truth value. Java takes everything but `true` for false; here other words are refused.
fn truth(name: &str, value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!("`{name}` must be `true` or `false`, not `{value}`")),
    }
}

fn only(name: &str, value: &str, known: &str) -> Result<(), String> {
    if value == known {
        return Ok(());
    }
    Err(format!("`{name}` can only be `{known}` here, not `{value}`"))
}
