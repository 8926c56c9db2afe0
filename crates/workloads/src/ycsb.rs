//! `ycsb`: the Yahoo! Cloud Serving Benchmark over a key-value store in persistent memory.
//!
//! The store is a hash table ([`crate::hash`]) whose values are records:
//!
//! ```text
//! node, 24 + fields x length bytes, alone in its lines
//!   0  key: the record's number     8  next node, or 0
//!  16  number of fields (low half), length of a field (high half)
//!  24  field 0, then the others, not aligned
//! ```
//!
//! The mix comes from a property file of the real benchmark, given as the workload's script;
//! without one it is Silo-23's: 20 % reads, 80 % updates, Zipf. Properties that a file does not set
//! have YCSB's defaults. One operation is one transaction, also a read. A hash table has no order,
//! so a scan looks up records of ascending numbers. A field begins with the stamp of its last
//! write, and the rest follows from it, so that a check finds a partly written field.
//!
//! A shared store has locks for groups of buckets whose heads lie in one line; a record lies alone
//! in its lines, so a lock covers whole lines. A core inserts every `cores`th of the record numbers
//! that follow the initial ones.

use std::ops::Range;

use model::image::Image;
use model::params::Params as _;
use model::units::{CoreId, WORD_BYTES};
use model::workload::{
    About, Declared, LockId, Pm, Program, Ptr, Reopens, Site, Step, Stop, Workload,
};

use crate::hash::{Table, VALUE};
use crate::heap::{Alignment, Heap};
use crate::keyed::{OPERATION_WORK, Plan, Seen, Stamps, Supply, Values, shared_params};
use crate::numbers::Numbers;
use crate::properties::{Distribution, Properties};
use crate::rng::{Random, Zipf, fnv, mix};
use crate::walk::Walk;

/// Where a record's fields begin in its node.
const FIELDS: u64 = VALUE + WORD_BYTES;
/// Locks of a shared store.
const LOCKS: u64 = 256;
/// Instructions for each field that is read or written, beside its loads and stores. Ours.
const FIELD_WORK: u64 = 10;
/// How often a number of a record that is not there yet is drawn again; YCSB has no limit.
const REDRAWS_MAX: u32 = 1_000;

shared_params! {
    /// Parameters of `ycsb`. A property file, if there is one, decides what it has words for: only
    /// `shared` counts beside it, and `items` if it has no `recordcount`.
    pub struct YcsbParams {
        /// Reads in a hundred operations; the others are updates (Silo-23: 20).
        read_percent = 20 in 0..=100;
        /// Fields of a record (YCSB: 10).
        fieldcount = 10 in 1..=1024;
        /// Bytes of a field (YCSB: 100).
        fieldlength = 100 in 1..=65536;
        /// Whether an update writes one field or all of them (YCSB: one).
        update: UpdatedFields = One;
    }
}

model::choices! {
    /// Which fields of its record an update writes.
    pub enum UpdatedFields { One = "one", All = "all" }
}

/// The workload.
#[derive(Debug)]
pub struct Ycsb {
    properties: Properties,
    plan: Plan,
    supplies: Vec<Supply>,
    tables: Vec<Table>,
    /// Records that each core has inserted.
    inserted: Vec<u64>,
}

impl Declared for Ycsb {
    const ABOUT: About = About {
        name: "ycsb",
        summary: "a key-value store under the mix of a YCSB property file, or of Silo-23",
        source: "Cooper et al., SoCC 2010, and its source",
        file: file!(),
        shared: false,
    };
    const SCRIPT: Option<&'static str> = Some("--ycsb");
    const REOPENS: Reopens = Reopens::Always;
    type Params = YcsbParams;

    fn new(params: &YcsbParams, site: &Site) -> Step<Ycsb> {
        let properties = match &site.script {
            Some(script) => {
                let properties = Properties::read(script.name(), script.text())?;
                only_the_file(params, script.name()).map_err(Stop::Input)?;
                properties
            }
            None => of_silo(params),
        };
        let records = properties.record_count.unwrap_or(params.items);
        let plan = Plan::new(records, params.shared, site);
        let supplies = Supply::of_site(site, Alignment::Line);
        let inserted = vec![0; supplies.len()];
        Ok(Ycsb { properties, plan, supplies, tables: Vec::new(), inserted })
    }
}

/// Refuses settings without effect, of parameters that the property file decides. `items` is
/// accepted, because it is set for all workloads of a comparison.
fn only_the_file(params: &YcsbParams, file: &str) -> Result<(), String> {
    for field in YcsbParams::FIELDS {
        let is_decided = !["shared", "items"].contains(&field.name);
        if is_decided && params.get(field.name) != field.default {
            return Err(format!(
                "workload.{} does nothing with a property file: change {file} instead",
                field.name
            ));
        }
    }
    Ok(())
}

/// The mix of Silo-23: reads and updates, Zipf.
fn of_silo(params: &YcsbParams) -> Properties {
    Properties {
        read: params.read_percent as f64 / 100.0,
        update: (100 - params.read_percent) as f64 / 100.0,
        distribution: Distribution::Zipfian,
        field_count: params.fieldcount,
        field_length: params.fieldlength,
        write_all_fields: params.update == UpdatedFields::All,
        ..Properties::default()
    }
}

impl Ycsb {
    fn layout(&self) -> Layout {
        Layout { count: self.properties.field_count, length: self.properties.field_length }
    }

    fn fill(&mut self, pm: &mut Pm<'_>, store: usize) -> Step {
        let (layout, records) = (self.layout(), self.plan.items);
        self.plan.must_fit(store, layout.record_bytes())?;
        let buckets = records.next_power_of_two();
        let values = Values::distinct(layout.record_bytes());
        let heap = &mut self.supplies[store].heap;
        let table = Table::new(buckets, WORD_BYTES, values, pm, heap)?;
        let mut numbers: Vec<u64> = (0..records).collect();
        self.plan.filling(store, Ycsb::ABOUT.name).shuffle(&mut numbers);
        let mut field = Vec::new();
        for (item, number) in numbers.into_iter().enumerate() {
            let core = self.plan.supplier(store, item as u64);
            let Supply { heap, stamps } = &mut self.supplies[core];
            layout.insert(pm, &table, heap, (number, stamps.issue()), &mut field)?;
        }
        self.tables.push(table);
        Ok(())
    }
}

impl Workload for Ycsb {
    fn populate(&mut self, pm: &mut Pm<'_>) -> Step {
        (0..usize::from(self.plan.structures)).try_for_each(|store| self.fill(pm, store))
    }

    fn program(&self, core: CoreId) -> Step<Box<dyn Program>> {
        let index = usize::from(core.0);
        let Supply { heap, stamps } = self.supplies[index].clone();
        let expected = self.properties.expected_inserts() / u64::from(self.plan.site.cores);
        Ok(Box::new(Client {
            layout: self.layout(),
            chooser: Chooser::new(self.properties.distribution, self.plan.items, expected),
            properties: self.properties.clone(),
            table: self.tables[self.plan.structure_of(core)].clone(),
            heap,
            stamps,
            random: self.plan.random(core, Ycsb::ABOUT.name),
            numbers: Numbers::of(&self.plan, core, self.inserted[index]),
            is_shared: self.plan.lock.is_some(),
            locks: Vec::new(),
            field: Vec::new(),
        }))
    }

    fn asks_for(&self) -> Option<u64> {
        let cores = u64::from(self.plan.site.cores);
        Some(self.properties.operation_count.div_ceil(cores)).filter(|&txs| txs > 0)
    }

    fn check(&self, image: &Image<'_>) -> Result<(), String> {
        self.look(image).map(|_| ())
    }

    fn reopen(&mut self, image: &Image<'_>, seed: u64) -> Result<(), String> {
        let seen;
        (seen, self.inserted) = self.look(image)?;
        self.supplies = self.plan.go_on(seed, Alignment::Line, &seen);
        Ok(())
    }
}

impl Ycsb {
    /// Checks every store; also returns how many records each core has inserted.
    fn look(&self, image: &Image<'_>) -> Result<(Seen, Vec<u64>), String> {
        let (mut seen, mut inserted) = (Seen::default(), vec![0; self.supplies.len()]);
        let (layout, mut field) = (self.layout(), Vec::new());
        for (index, table) in self.tables.iter().enumerate() {
            let mut walk = Walk::new(image, &self.plan.range(index));
            let mut numbers = Vec::new();
            let told = |error| format!("store {index}: {error}");
            table
                .check_chains(&mut walk, |walk, node, number| {
                    numbers.push(number);
                    layout.check(walk, node, number, &mut field, &mut seen.stamps)
                })
                .map_err(told)?;
            Numbers::check(&self.plan, index, "record", numbers, &mut inserted).map_err(told)?;
            seen.reached.extend(walk.reached());
        }
        Ok((seen, inserted))
    }
}

/// The layout of a record.
#[derive(Clone, Copy, Debug)]
struct Layout {
    count: u64,
    length: u64,
}

impl Layout {
    /// Bytes of a record in whole words: the header, and the fields.
    fn record_bytes(self) -> u64 {
        WORD_BYTES + (self.count * self.length).next_multiple_of(WORD_BYTES)
    }

    fn header(self) -> u64 {
        self.count | self.length << 32
    }

    fn field(self, node: Ptr, field: u64) -> Ptr {
        node.plus(FIELDS + field * self.length)
    }

    /// Computes the bytes of a field: the stamp, then bytes that follow from it, as far as there is
    /// room. A field without room for a stamp repeats one byte that is not 0.
    fn field_bytes(self, number: u64, field: u64, stamp: u64, bytes: &mut Vec<u8>) {
        bytes.clear();
        if self.length < WORD_BYTES {
            return bytes.resize(self.length as usize, 1 + (stamp % 255) as u8);
        }
        bytes.extend_from_slice(&stamp.to_le_bytes());
        let seed = mix(number ^ field << 40) ^ stamp;
        for word in 1..self.length.div_ceil(WORD_BYTES) {
            bytes.extend_from_slice(&mix(seed.wrapping_add(word << 48)).to_le_bytes());
        }
        bytes.truncate(self.length as usize);
    }

    fn store_field(
        self,
        pm: &mut Pm<'_>,
        node: Ptr,
        (number, stamp): (u64, u64),
        field: u64,
        bytes: &mut Vec<u8>,
    ) {
        pm.work(FIELD_WORK);
        self.field_bytes(number, field, stamp, bytes);
        pm.store_bytes(self.field(node, field), bytes);
    }

    fn load_field(self, pm: &mut Pm<'_>, node: Ptr, field: u64, bytes: &mut Vec<u8>) {
        pm.work(FIELD_WORK);
        bytes.resize(self.length as usize, 0);
        pm.load_bytes(self.field(node, field), bytes);
    }

    fn insert(
        self,
        pm: &mut Pm<'_>,
        table: &Table,
        heap: &mut Heap,
        (number, stamp): (u64, u64),
        bytes: &mut Vec<u8>,
    ) -> Step {
        let node = table.insert(pm, heap, number)?;
        pm.store(node.plus(VALUE), self.header());
        for field in 0..self.count {
            self.store_field(pm, node, (number, stamp), field, bytes);
        }
        Ok(())
    }

    /// Checks a record whose node was visited, and adds the stamps of its fields to those seen.
    fn check(
        self,
        walk: &Walk<'_>,
        node: u64,
        number: u64,
        expect: &mut Vec<u8>,
        seen: &mut Vec<u64>,
    ) -> Result<(), String> {
        let header = walk.word(node + VALUE);
        if header != self.header() {
            let (count, length) = (header & 0xffff_ffff, header >> 32);
            return Err(format!("record {number} says it has {count} fields of {length} bytes"));
        }
        let mut found = Vec::new();
        for field in 0..self.count {
            walk.bytes(self.field(Ptr::to(node), field).address, self.length, &mut found);
            let stamp = match found.first_chunk() {
                Some(stamp) => u64::from_le_bytes(*stamp),
                None => u64::from(found[0].wrapping_sub(1)),
            };
            self.field_bytes(number, field, stamp, expect);
            if found != *expect {
                return Err(format!(
                    "field {field} of record {number} is torn (its stamp is {stamp:#x})"
                ));
            }
            if self.length >= WORD_BYTES {
                seen.push(stamp);
            }
        }
        Ok(())
    }
}

/// Chooses the record of an operation among those that a core knows of.
#[derive(Clone, Debug)]
enum Chooser {
    /// Of the records that there are at the start, as YCSB's generator draws them.
    Uniform { records: u64 },
    /// Zipf over all records that there may be in the end, scattered by a hash.
    Scrambled { zipf: Zipf, records: u64 },
    /// Zipf, the newest record the most likely.
    Latest { zipf: Zipf },
}

impl Chooser {
    fn new(distribution: Distribution, records: u64, expected_inserts: u64) -> Chooser {
        match distribution {
            Distribution::Uniform => Chooser::Uniform { records },
            Distribution::Zipfian => {
                let records = records.saturating_add(expected_inserts);
                Chooser::Scrambled { zipf: Zipf::scrambled(), records }
            }
            Distribution::Latest => Chooser::Latest { zipf: Zipf::new(records) },
        }
    }

    /// An index below `known`.
    fn draw(&mut self, random: &mut Random, known: u64) -> u64 {
        match self {
            Chooser::Uniform { records } => random.below(*records),
            Chooser::Scrambled { zipf, records } => {
                let mut index = fnv(zipf.draw(random)) % *records;
                let mut redraws = 0;
                while index >= known && redraws < REDRAWS_MAX {
                    index = fnv(zipf.draw(random)) % *records;
                    redraws += 1;
                }
                index % known
            }
            Chooser::Latest { zipf } => {
                zipf.grow(known);
                known - 1 - zipf.draw(random)
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

/// The program of one core.
struct Client {
    properties: Properties,
    layout: Layout,
    table: Table,
    heap: Heap,
    stamps: Stamps,
    random: Random,
    chooser: Chooser,
    numbers: Numbers,
    is_shared: bool,
    /// The locks of the present transaction, ascending.
    locks: Vec<u32>,
    /// The bytes of a field.
    field: Vec<u8>,
}

impl Program for Client {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        let operation = self.operation();
        let known = self.numbers.known();
        let index = match operation {
            Operation::Insert => known,
            _ => self.chooser.draw(&mut self.random, known),
        };
        let records = match operation {
            Operation::Scan => {
                let (least, most) =
                    (self.properties.scan_length_min, self.properties.scan_length_max);
                least + self.random.below(most - least + 1)
            }
            _ => 1,
        };
        // A scan ends with the last record.
        let indices = index..(index + records).min(known.max(index + 1));
        // It reads the same field of all records, or all fields.
        let reads = match operation {
            Operation::Update | Operation::Insert => 0..0,
            _ => self.fields(self.properties.read_all_fields),
        };
        pm.work(OPERATION_WORK);
        self.take_locks(pm, indices.clone());
        pm.begin()?;
        for index in indices {
            self.run(pm, operation, self.numbers.number(index), reads.clone())?;
        }
        pm.commit();
        for &lock in self.locks.iter().rev() {
            pm.unlock(LockId(lock));
        }
        if let Operation::Insert = operation {
            self.numbers.add();
        }
        Ok(())
    }
}

impl Client {
    fn operation(&mut self) -> Operation {
        let mix = &self.properties;
        let mut draw = self.random.unit() * mix.weight();
        let weights = [
            (Operation::Read, mix.read),
            (Operation::Update, mix.update),
            (Operation::Insert, mix.insert),
            (Operation::Scan, mix.scan),
            (Operation::ReadModifyWrite, mix.read_modify_write),
        ];
        let mut chosen = Operation::Read;
        for (operation, weight) in weights {
            if weight > 0.0 {
                chosen = operation;
                if draw < weight {
                    break;
                }
                draw -= weight;
            }
        }
        chosen
    }

    fn take_locks(&mut self, pm: &mut Pm<'_>, indices: Range<u64>) {
        self.locks.clear();
        if !self.is_shared {
            return;
        }
        for index in indices {
            let bucket = self.table.bucket_of(self.numbers.number(index));
            self.locks.push((bucket / self.table.buckets_in_line() % LOCKS) as u32);
        }
        self.locks.sort_unstable();
        self.locks.dedup();
        for &lock in &self.locks {
            pm.lock(LockId(lock));
        }
    }

    fn run(
        &mut self,
        pm: &mut Pm<'_>,
        operation: Operation,
        number: u64,
        reads: Range<u64>,
    ) -> Step {
        if let Operation::Insert = operation {
            let written = (number, self.stamps.issue());
            let (table, heap) = (&self.table, &mut self.heap);
            return self.layout.insert(pm, table, heap, written, &mut self.field);
        }
        let (_, node) = self.table.find(pm, number);
        if node.is_null() {
            return Err(Stop::Failed(format!("record {number} is not in the store")));
        }
        for field in reads {
            self.layout.load_field(pm, node, field, &mut self.field);
        }
        if matches!(operation, Operation::Update | Operation::ReadModifyWrite) {
            let written = (number, self.stamps.issue());
            for field in self.fields(self.properties.write_all_fields) {
                self.layout.store_field(pm, node, written, field, &mut self.field);
            }
        }
        Ok(())
    }

    /// All fields, or a random one.
    fn fields(&mut self, all: bool) -> Range<u64> {
        if all {
            return 0..self.layout.count;
        }
        let field = self.random.below(self.layout.count);
        field..field + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// YCSB's generator is made for the records that were loaded.
    #[test]
    fn uniform_draws_are_of_the_records_of_the_start() {
        let mut chooser = Chooser::new(Distribution::Uniform, 10, 1_000);
        let mut random = Random::new(1, CoreId(0), "ycsb");
        let mut drawn: Vec<u64> = (0..1_000).map(|_| chooser.draw(&mut random, 500)).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn, (0..10).collect::<Vec<u64>>());
    }
}
