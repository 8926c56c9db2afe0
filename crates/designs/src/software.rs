//! A software log on ordering hardware: LOG@ORDER. Each log is written once, and runs on each kind
//! of ordering hardware. The design has the parameters and rules of both.

use std::marker::PhantomData;

use model::design::{
    Card, Corner, Cpu, Design, Durability, Granularity, Library, Model, NeedlessWith, Setup, Shape,
    System,
};
use model::image::{Image, PowerLoss};
use model::params::{Both, Params, Rules};
use model::units::{CoreId, Cycle, TxId, Word};
use model::workload::Ptr;

use crate::bbb::Bbb;
use crate::count::{Count, CountRules};
use crate::dpo::Dpo;
use crate::hops::Hops;
use crate::orders::{Eadr, Ideal, X86};
use crate::redo::{Redo, RedoRules};
use crate::swal::SWal;
use crate::undo::{Undo, UndoRules};

/// A software log: what it does at each operation of a transaction, and at recovery.
pub trait Log: Sized + 'static {
    /// Its name, as in LOG@ORDER.
    const NAME: &'static str;
    /// The file that holds it.
    const FILE: &'static str;
    /// What it logs.
    const GRANULARITY: Granularity;
    /// Rules that it does not need where a store is durable when it is visible, each with the
    /// reason; none for a log that is not paired with such hardware.
    const NEEDLESS_WHERE_VISIBLE: &'static [(&'static str, &'static str)] = &[];
    /// Its parameters.
    type Params: Params;
    /// Its rules.
    type Rules: Rules;

    /// The log of one core, as it starts.
    fn new(params: &Self::Params, rules: &Self::Rules, shape: &Shape, core: CoreId) -> Self;
    /// A transaction begins.
    fn begin(&mut self, tx: TxId, cpu: &mut impl Cpu);
    /// A load in a transaction.
    fn load(&mut self, at: Ptr, cpu: &mut impl Cpu) -> (u64, Cycle) {
        cpu.load(at)
    }
    /// A store in a transaction.
    fn store(&mut self, at: Ptr, value: u64, mask: u64, cpu: &mut impl Cpu);
    /// A transaction ends; when this returns it is durable.
    fn commit(&mut self, cpu: &mut impl Cpu);
    /// A transaction is aborted; when this returns it has had no effect.
    fn abort(&mut self, cpu: &mut impl Cpu);
    /// Does what is left to do once the transaction is acknowledged, while its locks are held.
    fn settle(&mut self, _cpu: &mut impl Cpu) {}
    /// Makes the image hold every durable transaction and no other.
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails again.
    fn recover(image: &mut Image<'_>, rules: &Self::Rules, shape: &Shape) -> Result<(), PowerLoss>;
    /// Writes what must be in memory before programs run on what recovery left.
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails again.
    fn boot(_image: &mut Image<'_>, _rules: &Self::Rules, _shape: &Shape) -> Result<(), PowerLoss> {
        Ok(())
    }
}

model::choices! {
    /// Where the entries of a core's transactions lie in its log.
    pub enum LogPlace {
        /// From the first place on, over those of the transaction before.
        Anew = "anew",
        /// Behind those of the transaction before, and from the last place to the first.
        Ring = "ring",
    }
}

/// Bits of a place in a mark. The longest log that a machine takes, of 1 GiB, has fewer places.
const PLACE_BITS: u32 = 25;

/// What a mark of a log says. It is one word, which a power failure leaves whole, so the number and
/// the place always belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The number of the last transaction that ended.
    pub number: u64,
    /// The place at which the entries of the next one begin; always 0 if they begin anew, so that
    /// the word is the number.
    pub from: u64,
}

impl Mark {
    /// What a word says.
    pub fn of(word: u64) -> Mark {
        let number_bits = u64::BITS - PLACE_BITS;
        Mark { number: word % (1 << number_bits), from: word >> number_bits }
    }

    /// The word that says this.
    pub fn word(self) -> u64 {
        let number_bits = u64::BITS - PLACE_BITS;
        assert!(self.from < 1 << PLACE_BITS && self.number < 1 << number_bits, "{self:?}");
        self.from << number_bits | self.number
    }
}

/// Where the entries of a transaction lie in a core's log: in places of one size, one behind the
/// other, and behind the last place in the first. So no entry crosses the end of the log.
pub struct Entries {
    /// The address of the first place.
    start: u64,
    /// The address at which the log ends.
    end: u64,
    /// Bytes of a place.
    bytes: u64,
    /// Bytes of the log, including what lies before the first place.
    pub log: u64,
    /// The place of the transaction's first entry.
    pub from: u64,
}

impl Entries {
    /// The entries of a core's log, of `bytes` bytes each, in places from `behind` bytes after its
    /// beginning on.
    pub fn new(shape: &Shape, core: CoreId, behind: u64, bytes: u64) -> Entries {
        let base = shape.log_of(core);
        let (start, end, log) = (base + behind, base + shape.log_bytes, shape.log_bytes);
        Entries { start, end, bytes, log, from: 0 }
    }

    /// The same, with the first entry of the transaction in a place.
    pub fn beginning(self, from: u64) -> Entries {
        Entries { from, ..self }
    }

    /// The address at which an entry of the transaction begins.
    pub fn at(&self, entry: usize) -> u64 {
        self.start + self.bytes * ((self.from + entry as u64) % self.room() as u64)
    }

    /// Reads the first words of an entry.
    pub fn read<const WORDS: usize>(&self, entry: usize, image: &Image<'_>) -> [u64; WORDS] {
        let first = Word::of(self.at(entry));
        std::array::from_fn(|word| image.word(Word(first.0 + word as u64)))
    }

    /// How many entries there can be.
    pub fn room(&self) -> usize {
        ((self.end - self.start) / self.bytes) as usize
    }

    /// How many bytes a log with room for `count` entries has.
    pub fn log_of(&self, count: usize) -> u64 {
        self.log - (self.end - self.start) + count as u64 * self.bytes
    }

    /// Goes on to the entries of the next transaction, behind one of `count` entries.
    pub fn go_on(&mut self, count: usize, place: LogPlace) {
        self.from = match place {
            LogPlace::Anew => 0,
            LogPlace::Ring => (self.from + count as u64) % self.room() as u64,
        };
    }
}

/// Uses up, in each core's log, the number of the transaction that may have been under way. `marks`
/// are the places of the log's marks, in bytes behind its beginning. The newest of them has the
/// number of the last transaction that ended, and the last of them gets the next number. The place
/// in it stays.
///
/// # Errors
/// [`PowerLoss`] when the power fails again.
pub fn use_up_numbers(
    image: &mut Image<'_>,
    shape: &Shape,
    marks: &[u64],
) -> Result<(), PowerLoss> {
    for base in (0..shape.cores).map(|core| shape.log_of(CoreId(core))) {
        let says = |mark: &u64| Mark::of(image.word(Word::of(base + mark)));
        let newest = marks.iter().map(|mark| says(mark).number).max();
        if let (Some(mark), Some(newest)) = (marks.last(), newest) {
            let next = Mark { number: newest + 1, ..says(mark) };
            image.set_word(Word::of(base + mark), next.word())?;
        }
    }
    Ok(())
}

/// A log and the ordering hardware that it runs on.
pub trait Pairing: 'static {
    /// The card of the two together.
    const CARD: Card;
    /// Rules of the log that this hardware makes needless, and rules of the hardware that this log
    /// makes needless, each with the reason.
    const NEEDLESS: &'static [(&'static str, &'static str)];
    /// Such rules under certain choices of a parameter.
    const NEEDLESS_WITH: &'static [NeedlessWith] = &[];
    /// The log.
    type Log: Log;
    /// The hardware.
    type Order: Design;
}

/// A software log, and the ordering hardware that it runs on.
pub struct Software<P>(PhantomData<P>);

impl<P: Pairing> System for Software<P> {
    const CARD: Card = P::CARD;
    const NEEDLESS: &'static [(&'static str, &'static str)] = P::NEEDLESS;
    const NEEDLESS_WITH: &'static [NeedlessWith] = P::NEEDLESS_WITH;
    const STANDS_ON: Option<&'static str> = Some(<P::Order as Design>::CARD.name);
    type Params = Both<<P::Log as Log>::Params, <P::Order as Design>::Params>;
    type Rules = Both<<P::Log as Log>::Rules, <P::Order as Design>::Rules>;
    type Hardware = P::Order;
    type Library = Adapter<P::Log>;

    fn of_hardware<'a>(setup: &Setup<'a, Self>) -> Setup<'a, P::Order> {
        // The log would not know what the hardware has revoked.
        const { assert!(!P::Order::REVOKES) };
        let Setup { params, rules, shape } = *setup;
        Setup { params: &params.second, rules: &rules.second, shape }
    }

    fn corner(trial: u64, has_lives: bool) -> Corner {
        <P::Order as Design>::corner(trial, has_lives)
    }

    fn recover(image: &mut Image<'_>, setup: &Setup<'_, Self>) -> Result<(), PowerLoss> {
        <P::Order as Design>::recover(image, &Self::of_hardware(setup))?;
        P::Log::recover(image, &setup.rules.first, setup.shape)
    }

    fn boot(image: &mut Image<'_>, setup: &Setup<'_, Self>) -> Result<P::Order, PowerLoss> {
        P::Log::boot(image, &setup.rules.first, setup.shape)?;
        <P::Order as Design>::boot(image, &Self::of_hardware(setup))
    }
}

/// A log as the library of a design.
pub struct Adapter<L>(L);

impl<L: Log, P: Pairing<Log = L>> Library<Software<P>> for Adapter<L> {
    fn new(setup: &Setup<'_, Software<P>>, core: CoreId) -> Self {
        Adapter(L::new(&setup.params.first, &setup.rules.first, setup.shape, core))
    }
    fn begin(&mut self, tx: TxId, cpu: &mut impl Cpu) {
        self.0.begin(tx, cpu);
    }
    fn load(&mut self, at: Ptr, cpu: &mut impl Cpu) -> (u64, Cycle) {
        self.0.load(at, cpu)
    }
    fn store(&mut self, at: Ptr, value: u64, mask: u64, cpu: &mut impl Cpu) {
        self.0.store(at, value, mask, cpu);
    }
    fn commit(&mut self, cpu: &mut impl Cpu) {
        self.0.commit(cpu);
    }
    fn abort(&mut self, _overwritten: &[(Word, u64)], cpu: &mut impl Cpu) {
        self.0.abort(cpu);
    }
    fn settle(&mut self, cpu: &mut impl Cpu) {
        self.0.settle(cpu);
    }
}

/// Why a log needs neither flushes nor an order where a store is durable when it is visible.
pub(crate) const ALREADY_DURABLE: &str = "a store is durable when it is visible";
const CLFLUSH: &str = "clflush waits by itself";
const NOT_CONSISTENT: &str = "the design is not crash consistent with it either";
const NO_FLUSHES: &str = "the hardware needs no flushes";
const LOCKED: &str =
    "a lock of a line is given back when all is durable, so cores meet only lines that are durable";
const ONE_VERSION: &str =
    "from one durability to the next the log never needs two versions of a line told apart";
const OWN_ENTRY: &str = "a store to a line with words of other cores brings its dependences in an entry of its own, \
     and from one durability to the next the log needs no other order of theirs";

/// Why a log needs no checksum there.
pub(crate) const LAST_IS_LAST: &str =
    "stores survive in program order, and what tells an entry is there is stored last";

/// The rules that are needless where stores are durable when they are visible, and the rule that
/// fences of caches that survive wait: only stores past the caches need that.
const fn and_no_fence<L: Log, const RULES: usize>() -> [(&'static str, &'static str); RULES] {
    let visible = L::NEEDLESS_WHERE_VISIBLE;
    let mut all = [("fence_waits", "no log stores past the caches"); RULES];
    let mut index = 0;
    while index < visible.len() {
        all[index] = visible[index];
        index += 1;
    }
    all
}

/// The rules that a log of words does not need on hardware that tracks stores.
const WORDS_TRACKED: &[(&str, &str)] = &[("flush_log", NO_FLUSHES), ("flush_data", NO_FLUSHES)];

/// The rules that a log of words does not need on DPO. Some 700 runs without each of the last two
/// showed nothing.
const WORDS_ON_DPO: &[(&str, &str)] = &[
    WORDS_TRACKED[0],
    WORDS_TRACKED[1],
    ("keep_versions", OWN_ENTRY),
    ("fence_takes_dependences", OWN_ENTRY),
];

/// The rules that the undo log does not need on HOPS. Those that keep stores of several cores in
/// order do no work: it logs lines, which therefore have locks, and waits for a dfence before its
/// locks are given back. Cores with logs of words may have locks on words of one line.
const LINES_ON_HOPS: &[(&str, &str)] = &[
    WORDS_TRACKED[0],
    WORDS_TRACKED[1],
    ("keep_versions", ONE_VERSION),
    ("order_after_read", LOCKED),
    ("order_after_write", LOCKED),
    ("wait_for_dependences", LOCKED),
    ("look_up_fills", LOCKED),
];

/// Where lines that have long been durable count, too, two cores may wait for each other.
const LINES_ON_HOPS_WITH: &[NeedlessWith] =
    &[NeedlessWith { field: "depends", choice: "buffered", rule: "split_source", why: LOCKED }];

/// The rules that the undo log does not need on DPO.
const LINES_ON_DPO: &[(&str, &str)] = &[
    WORDS_TRACKED[0],
    WORDS_TRACKED[1],
    ("keep_versions", ONE_VERSION),
    ("own_entry_with_dependences", LOCKED),
    ("order_after_read", LOCKED),
    ("order_after_write", LOCKED),
    ("read_leaves_youngest", LOCKED),
    ("fence_takes_dependences", LOCKED),
    ("wait_for_dependences", LOCKED),
    ("look_up_misses", LOCKED),
];

/// The rules that S-WAL does not need with the flush of its time.
const WITH_CLFLUSH: &[NeedlessWith] = &[
    with_clflush("order_log_before_record"),
    with_clflush("durable_record"),
    with_clflush("order_data_before_truncation"),
    with_clflush("truncate_before_unlock"),
    with_clflush("fence_waits"),
];

const fn with_clflush(rule: &'static str) -> NeedlessWith {
    NeedlessWith { field: "flush", choice: "clflush", rule, why: CLFLUSH }
}

/// All of a log's rules: none is needed where the hardware promises nothing.
const fn pointless<L: Log, const RULES: usize>() -> [(&'static str, &'static str); RULES] {
    let mut all = [("", NOT_CONSISTENT); RULES];
    let mut index = 0;
    while index < RULES {
        all[index].0 = L::Rules::RULES[index].0;
        index += 1;
    }
    all
}

/// A log is synchronous on any hardware that keeps stores in some order.
const fn durability(order: Option<Model>) -> Durability {
    match order {
        Some(Model::Unordered) => Durability::None,
        _ => Durability::Synchronous,
    }
}

macro_rules! pairings {
    ($($(#[doc = $doc:literal])+ $Name:ident = $name:literal: $Log:ty, $Order:ty,
        $needless:expr $(, $with:expr)?;)+) => {
        $(
            $(#[doc = $doc])+
            pub struct $Name;

            impl Pairing for $Name {
                const CARD: Card = Card {
                    name: $name,
                    paper: "none",
                    family: "software",
                    summary: concat!($($doc),+).trim_ascii(),
                    file: <$Log>::FILE,
                    durability: durability(<$Order as Design>::ORDERING.model),
                    granularity: <$Log>::GRANULARITY,
                    needs: <$Order as Design>::CARD.needs,
                };
                const NEEDLESS: &'static [(&'static str, &'static str)] = $needless;
                $(const NEEDLESS_WITH: &'static [NeedlessWith] = $with;)?
                type Log = $Log;
                type Order = $Order;
            }
        )+
    };
}

pairings! {
    /// software undo log over clwb and sfence
    UndoX86 = "undo@x86": Undo, X86, &[];
    /// software undo log over the fence and dsync of DPO
    UndoDpo = "undo@dpo": Undo, Dpo, LINES_ON_DPO;
    /// software undo log over the ofence and dfence of HOPS
    UndoHops = "undo@hops": Undo, Hops, LINES_ON_HOPS, LINES_ON_HOPS_WITH;
    /// software undo log on battery-backed persist buffers: its stores, and nothing to wait for
    UndoBbb = "undo@bbb": Undo, Bbb, Undo::NEEDLESS_WHERE_VISIBLE;
    /// software undo log on caches that survive: its stores, and nothing to wait for
    UndoEadr = "undo@eadr": Undo, Eadr, &and_no_fence::<Undo, { Undo::NEEDLESS_WHERE_VISIBLE.len() + 1 }>();
    /// software undo log whose flushes and fences are free and do nothing
    UndoIdeal = "undo@ideal": Undo, Ideal, &pointless::<Undo, { UndoRules::RULES.len() }>();

    /// software redo log over clwb and sfence
    RedoX86 = "redo@x86": Redo, X86, &[];
    /// software redo log over the fence and dsync of DPO
    RedoDpo = "redo@dpo": Redo, Dpo, WORDS_ON_DPO;
    /// software redo log over the ofence and dfence of HOPS
    RedoHops = "redo@hops": Redo, Hops, WORDS_TRACKED;
    /// software redo log on battery-backed persist buffers: its stores, and nothing to wait for
    RedoBbb = "redo@bbb": Redo, Bbb, Redo::NEEDLESS_WHERE_VISIBLE;
    /// software redo log on caches that survive: its stores, and nothing to wait for
    RedoEadr = "redo@eadr": Redo, Eadr, &and_no_fence::<Redo, { Redo::NEEDLESS_WHERE_VISIBLE.len() + 1 }>();
    /// software redo log whose flushes and fences are free and do nothing
    RedoIdeal = "redo@ideal": Redo, Ideal, &pointless::<Redo, { RedoRules::RULES.len() }>();

    /// software redo log that commits by counting, over clwb and sfence
    CountX86 = "count@x86": Count, X86, &[];
    /// software redo log that commits by counting, over the fence and dsync of DPO
    CountDpo = "count@dpo": Count, Dpo, WORDS_ON_DPO;
    /// software redo log that commits by counting, over the ofence and dfence of HOPS
    CountHops = "count@hops": Count, Hops, WORDS_TRACKED;
    /// software redo log that commits by counting, on battery-backed persist buffers
    CountBbb = "count@bbb": Count, Bbb, Count::NEEDLESS_WHERE_VISIBLE;
    /// software redo log that commits by counting, on caches that survive
    CountEadr = "count@eadr": Count, Eadr, &and_no_fence::<Count, { Count::NEEDLESS_WHERE_VISIBLE.len() + 1 }>();
    /// software redo log that commits by counting, whose flushes and fences are free and do nothing
    CountIdeal = "count@ideal": Count, Ideal, &pointless::<Count, { CountRules::RULES.len() }>();

    /// software write-ahead log by blocks over clflush and mfence: S-WAL of the LOC slides
    SWalX86 = "s-wal": SWal, X86, &[], WITH_CLFLUSH;
}

/// HOPS as its paper uses it. The recipe that the paper gives for existing programs is an ofence
/// between a log entry and its store and a dfence at the commit, which is an undo log. The 5 to 50
/// epochs of a transaction in the paper's insights are those of such a log.
pub struct HopsPaper;

impl Pairing for HopsPaper {
    const CARD: Card = Card {
        summary: "persist buffers with ofence and dfence, under a software undo log",
        durability: Durability::Synchronous,
        granularity: Undo::GRANULARITY,
        ..<Hops as Design>::CARD
    };
    const NEEDLESS: &'static [(&'static str, &'static str)] = LINES_ON_HOPS;
    const NEEDLESS_WITH: &'static [NeedlessWith] = LINES_ON_HOPS_WITH;
    type Log = Undo;
    type Order = Hops;
}

#[cfg(test)]
mod tests {
    use model::config::Config;

    use super::*;

    #[test]
    fn a_mark_has_room_for_the_longest_log_and_is_its_number_without_a_place() {
        let mark = Mark { number: (1 << 39) - 1, from: (1 << 30) / 32 - 1 };
        assert_eq!(Mark::of(mark.word()), mark);
        assert_eq!(Mark { number: 7, from: 0 }.word(), 7);
    }

    #[test]
    fn behind_the_last_place_comes_the_first() {
        let mut config = Config::default();
        config.pm.log = 1 << 10;
        let shape = Shape::new(&config, 1);
        let mut entries = Entries::new(&shape, CoreId(0), 64, 128);
        let behind = |entries: &Entries, entry| entries.at(entry) - shape.log_of(CoreId(0));
        assert_eq!((entries.room(), behind(&entries, 6)), (7, 64 + 6 * 128));
        entries.go_on(5, LogPlace::Ring);
        assert_eq!([0, 1, 2, 6].map(|entry| behind(&entries, entry)), [704, 832, 64, 576]);
        entries.go_on(3, LogPlace::Ring);
        assert_eq!(entries.from, 1);
        entries.go_on(3, LogPlace::Anew);
        assert_eq!(entries.from, 0);
    }
}
