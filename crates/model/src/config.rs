//! What a machine consists of: every parameter with its unit, its accepted range and its source.
//!
//! A value is kept in the base unit of its kind (picoseconds, bytes, hertz, ...). The defaults are
//! those of a machine about which nothing else is said; a preset (`machines/*.toml`) replaces them
//! and names its own sources. Keys are gem5's where gem5 has one.

use std::ops::RangeInclusive;

use crate::params;
use crate::params::Choice;
use crate::units::LINE_BYTES;

mod choices;

pub use choices::{
    CoreModel, Domain, Encoder, FencedStores, Mapping, Scheduling, StoresInFlight, Switch, Walks,
};

/// The kind of a value, with its base unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// Picoseconds; written with a unit of time, or in cycles of the core.
    Time,
    /// Bytes.
    Bytes,
    /// Hertz.
    Frequency,
    /// Percent.
    Percent,
    /// Femtojoules per bit.
    EnergyPerBit,
    /// Femtojoules per byte.
    EnergyPerByte,
    /// Microwatt-hours per cubic centimetre.
    EnergyDensity,
    /// One of the given names, kept as its index.
    Choice(&'static [&'static str]),
}

/// One parameter of a machine.
#[derive(Clone, Debug)]
pub struct ConfigField {
    /// The section, as in `--set SECTION.key=value`.
    pub section: &'static str,
    /// The key.
    pub key: &'static str,
    /// Other spellings that are understood.
    pub aliases: &'static [&'static str],
    /// What it is.
    pub doc: &'static str,
    /// The unit.
    pub unit: Unit,
    /// The default, in the base unit.
    pub default: u64,
    /// The accepted values, in the base unit.
    pub limits: RangeInclusive<u64>,
    /// Where the default comes from.
    pub source: &'static str,
}

macro_rules! config {
    ($($(#[doc = $about:literal])+ $section:ident $Section:ident {
        $($(#[doc = $doc:literal])+
          $name:ident $(: $Choice:ident)? $key:literal $aliases:expr, $unit:expr,
          $default:expr, $limits:expr, $source:literal;)*
    })*) => {
        $($(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $Section { $($(#[doc = $doc])+ pub $name: params!(@type $($Choice)?),)* })*

        /// A machine, completely: the parameters of every section, in base units.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Config { $($(#[doc = $about])+ pub $section: $Section,)* }

        impl Default for Config {
            fn default() -> Config {
                Config { $($section: $Section { $($name: $default,)* },)* }
            }
        }

        /// Every parameter, in order of declaration.
        pub const FIELDS: &[ConfigField] = &[$($(ConfigField {
            section: stringify!($section),
            key: $key,
            aliases: &$aliases,
            doc: concat!($($doc),+),
            unit: $unit,
            default: params!(@index $default; $($Choice)?),
            limits: $limits,
            source: $source,
        },)*)*];

        impl Config {
            /// The value of a parameter that is known to exist, in the base unit.
            pub fn get(&self, section: &str, key: &str) -> u64 {
                match (section, key) {
                    $($((stringify!($section), $key) => {
                        params!(@index self.$section.$name; $($Choice)?)
                    })*)*
                    _ => unreachable!("{section}.{key} is not a parameter"),
                }
            }

            /// Sets a parameter that is known to exist to a value within its range.
            pub fn set(&mut self, section: &str, key: &str, value: u64) {
                match (section, key) {
                    $($((stringify!($section), $key) => {
                        self.$section.$name = params!(@value value $($Choice)?);
                    })*)*
                    _ => unreachable!("{section}.{key} is not a parameter"),
                }
            }
        }
    };
}

const NS: u64 = 1_000;
pub(crate) const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const MAX_TIME: u64 = 100_000 * NS;

/// The most cores that a machine can have: the directory has a bit for each.
pub const CORES_MAX: u64 = 64;

config! {
    /// The cores.
    core Core {
        /// The kind of core: an out-of-order window, or in order with a store buffer.
        model: CoreModel "model" [], Unit::Choice(CoreModel::NAMES),
            CoreModel::Window, CoreModel::LIMITS,
            "ours: a window keeps ratios between designs that in-order cores lose (docs/model.md)";
        /// The most cores that a run may use.
        cores_max "cores_max" ["cores"], Unit::Count, CORES_MAX, 1..=CORES_MAX,
            "ours: the directory has 64 bits";
        /// The frequency; a cycle is its inverse.
        frequency "clk_domain" ["frequency", "freq", "clock"], Unit::Frequency,
            2_000_000_000, 100_000_000..=10_000_000_000, "ours: a common server clock";
        /// Instructions dispatched in a cycle.
        width "width" ["issueWidth", "dispatchWidth"], Unit::Count, 4, 1..=16,
            "ours: Skylake class";
        /// Entries of the reorder buffer.
        rob "numROBEntries" ["rob"], Unit::Count, 224, 1..=4096, "ours: Skylake class";
        /// Entries of the load queue.
        lq "LQEntries" ["lq"], Unit::Count, 72, 1..=1024, "ours: Skylake class";
        /// Entries of the store queue (window) or of the store buffer (inorder).
        sq "SQEntries" ["sq"], Unit::Count, 56, 1..=1024, "ours: Skylake class";
        /// Where a store of the window core waits for a fence or commit before it: in the store
        /// queue, while what follows dispatches, or at dispatch, with all that follows.
        fenced_stores: FencedStores "fenced_stores" [], Unit::Choice(FencedStores::NAMES),
            FencedStores::Queue, FencedStores::LIMITS,
            "ours: stores of x86 cores enter the store queue before they may leave it";
        /// How many stores and flushes of the window core are on their way from its store queue at
        /// a time. With many, a store asks for its line when it dispatches, and flushes overlap;
        /// with one, each leaves when the one before it is answered.
        stores_in_flight: StoresInFlight "stores_in_flight" [], Unit::Choice(StoresInFlight::NAMES),
            StoresInFlight::Many, StoresInFlight::LIMITS,
            "ours: x86 cores ask for lines early and overlap flushes; gem5's O3 with TSO has one";
        /// Whether the beginning and the end of a transaction are full barriers: they wait until
        /// all before them is done, and what follows waits until they are.
        tx_barriers: Switch "tx_barriers" [], Unit::Choice(Switch::NAMES),
            Switch::No, Switch::LIMITS, "ours: few papers say; where one does, its machine has it";
        /// Whether `clwb` leaves the line in the caches, or drops it like `clflushopt`: to the
        /// manual that is a hint, and the first server parts with the instruction dropped it.
        clwb_retains: Switch "clwb_retains" [], Unit::Choice(Switch::NAMES),
            Switch::Yes, Switch::LIMITS, "ours: what the instruction is for";
        /// Outstanding misses of a core.
        mshrs "mshrs" [], Unit::Count, 16, 1..=64, "ours: gem5's O3 default is in this range";
        /// Flushes of a core that are on their way at a time, each until its answer is back.
        flushes_in_flight "flushes_in_flight" [], Unit::Count, 16, 1..=1024,
            "ours: as many as misses; gem5's first level gives a flush one of its MSHRs";
        /// Write-combining buffers of a core, one line each.
        wc_buffers "wc_buffers" [], Unit::Count, 10, 1..=64,
            "ours: 4 to 10 on x86 cores of the last decade";
        /// Cycles by which a core may lead the others on private hits.
        quantum "quantum" [], Unit::Count, 1000, 0..=1_000_000,
            "ours: the error is at most 0.2 % (docs/model.md)";
        /// Stores and transaction borders of a thread after which it moves to a core that is idle;
        /// 0: threads stay. The machine then has one core more than programs.
        migrate "migrate" [], Unit::Count, 0, 0..=1_000_000,
            "ours: the papers pin threads; for the paths that a thread on the move takes";
        /// Time that a moving thread waits besides draining its core: the context switch.
        t_switch "t_switch" [], Unit::Time, 2_000 * NS, 0..=MAX_TIME,
            "ours: a context switch of an operating system takes a few microseconds";
    }
    /// The private first-level data cache.
    l1d L1d {
        /// Bytes.
        size "size" [], Unit::Bytes, 32 * KIB, 64..=GIB, "ours: a common size";
        /// Ways.
        assoc "assoc" ["ways"], Unit::Count, 8, 1..=64, "ours: a common value";
        /// Time of a hit.
        latency "data_latency" ["latency"], Unit::Time, 2 * NS, 0..=MAX_TIME, "ours: 4 cycles at 2 GHz";
    }
    /// The private second-level cache, which includes the first.
    l2 L2 {
        /// Bytes.
        size "size" [], Unit::Bytes, 256 * KIB, 64..=GIB, "ours: a common size";
        /// Ways.
        assoc "assoc" ["ways"], Unit::Count, 8, 1..=64, "ours: a common value";
        /// Time that a hit adds to a miss of the first level.
        latency "data_latency" ["latency"], Unit::Time, 6 * NS, 0..=MAX_TIME, "ours: 12 cycles at 2 GHz";
    }
    /// The shared last-level cache, which includes the private ones and holds the directory.
    llc Llc {
        /// Bytes.
        size "size" [], Unit::Bytes, 8 * MIB, 64..=GIB, "ours: a common size";
        /// Ways.
        assoc "assoc" ["ways"], Unit::Count, 16, 1..=64, "ours: a common value";
        /// Time that a hit adds to a miss of the second level.
        latency "data_latency" ["latency"], Unit::Time, 14 * NS, 0..=MAX_TIME,
            "ours: 28 cycles at 2 GHz";
        /// Time added by fetching a line from, or invalidating it in, another core's cache.
        transfer "transfer_latency" ["transfer"], Unit::Time, 20 * NS, 0..=MAX_TIME,
            "ours: a crossing of the die and back";
    }
    /// The data translation look-aside buffers of a core.
    tlb Tlb {
        /// Whose address translation takes time: that of designs that use it for something, or that
        /// of all, with a page table in DRAM for the others.
        walks: Walks "walks" [], Unit::Choice(Walks::NAMES),
            Walks::Designs, Walks::LIMITS,
            "ours: what translation costs is nearly the same under every other design";
        /// Entries of the first level.
        entries "entries" [], Unit::Count, 64, 1..=65_536, "ours: Skylake's data TLB, from memory";
        /// Ways of the first level.
        assoc "assoc" ["ways"], Unit::Count, 4, 1..=65_536, "ours: Skylake's data TLB, from memory";
        /// Entries of the second level, which includes the first; 0 for none.
        l2_entries "l2_entries" [], Unit::Count, 1024, 0..=65_536,
            "ours: the second-level TLB that SSP's hardware cost assumes (MICRO'19 section 4.3)";
        /// Ways of the second level.
        l2_assoc "l2_assoc" ["l2_ways"], Unit::Count, 8, 1..=65_536,
            "ours: Haswell's second-level TLB of 1,024 entries, from memory";
        /// Time that a hit in the second level adds.
        l2_latency "l2_latency" [], Unit::Time, 3_500, 0..=MAX_TIME,
            "ours: 7 cycles at 2 GHz, Intel's optimisation manual, from memory";
    }
    /// The memory controllers, between the last-level cache and the memories.
    controller Controller {
        /// How many there are; lines are spread over them.
        count "count" [], Unit::Count, 1, 1..=16, "ours: one, where a source has no more";
        /// Consecutive bytes that belong to the same controller.
        interleave "intlv_size" ["interleave"], Unit::Bytes, 4 * KIB, 64..=GIB, "ours: a page";
        /// The order in which waiting requests are served: as they come, or those first for which
        /// the device is ready.
        policy: Scheduling "mem_sched_policy" [], Unit::Choice(Scheduling::NAMES),
            Scheduling::FrFcfs, Scheduling::LIMITS, "gem5: frfcfs";
        /// Reads that may be outstanding at a controller.
        read_queue "read_buffer_size" ["rpq", "rpq_entries", "ReadQueueSize"], Unit::Count,
            64, 1..=4096, "gem5 NVM interface: 64";
        /// Entries of the write-pending queue (WPQ), one line each.
        wpq "write_buffer_size" ["wpq", "wpq_entries", "WriteQueueSize"], Unit::Count,
            64, 1..=4096, "convention of the literature; `optane` has 4";
        /// Share of the WPQ at which writes are drained before reads.
        high "write_high_thresh_perc" ["HighWaterMark"], Unit::Percent, 85, 1..=100, "gem5: 85 %";
        /// Share of the WPQ at which reads come first again.
        low "write_low_thresh_perc" ["LowWaterMark"], Unit::Percent, 50, 0..=100, "gem5: 50 %";
        /// The fewest writes that are drained before reads come first again.
        burst "min_writes_per_switch" [], Unit::Count, 16, 1..=4096, "gem5: 16";
        /// Time from a request's arrival to the queues.
        frontend "static_frontend_latency" [], Unit::Time, 10 * NS, 0..=MAX_TIME, "gem5: 10 ns";
        /// Time from the memory's answer to its leaving the controller.
        backend "static_backend_latency" [], Unit::Time, 10 * NS, 0..=MAX_TIME, "gem5: 10 ns";
        /// One-way time between the last-level cache and a controller.
        path "noc_latency" ["noc", "path"], Unit::Time, 5 * NS, 0..=MAX_TIME, "ours: 10 cycles at 2 GHz";
        /// One-way time over the link to persistent memory (CXL); 0 for one on the controller's own
        /// channels, as volatile memory is.
        link "link_latency" ["link"], Unit::Time, 0, 0..=MAX_TIME, "ours: no link";
        /// Most extra time of a flush or an eviction on its way to its controller, drawn for each.
        /// Lines then arrive in orders that other latencies might have made, which no design may
        /// rely on: for crash tests, not for measuring.
        jitter "arrival_jitter" ["jitter"], Unit::Time, 0, 0..=MAX_TIME, "ours: none";
        /// Evicted lines on their way to a controller, and writes that wait there, before misses
        /// wait for them.
        writebacks "writeback_buffer_size" ["writebacks"], Unit::Count, 16, 1..=4096,
            "ours: stated nowhere; what 64 and 512 change is in docs/fidelity/decisions.md";
        /// What survives a power failure: `media` (what the cells hold), `adr` (what a controller
        /// accepted), `eadr` (the caches too), `gpf` (what the device at the end of the link
        /// accepted; the caches too, as far as `flush_bytes` goes).
        domain: Domain "domain" [], Unit::Choice(Domain::NAMES),
            Domain::Adr, Domain::LIMITS, "ours: adr";
        /// Bytes of dirty cache lines that the energy left at a power failure saves
        /// (`eadr` and `gpf`). With less than a line's the caches are lost, as under `adr`.
        flush_bytes "flush_bytes" [], Unit::Bytes, GIB, 0..=GIB, "ours: enough for every cache";
        /// Energy left at a power failure for the structures of a design that its battery or ADR's
        /// energy keeps, as a share of what saves all of them.
        battery "battery_perc" ["battery"], Unit::Percent, 100, 0..=100,
            "ours: as much as the design declares";
    }
    /// The persistent memory of each controller.
    pm Pm {
        /// Bytes, over all controllers.
        capacity "device_size" ["capacity"], Unit::Bytes, 4 * GIB, MIB..=(1 << 42),
            "ours: room for every workload; the host keeps only pages that are written";
        /// Bytes of each core's log, at the end of persistent memory.
        log "log_size" ["log"], Unit::Bytes, 4 * MIB, KIB..=GIB, "ours: 4 MB as in FWB";
        /// Banks.
        banks "banks_per_rank" ["banks"], Unit::Count, 16, 1..=1024, "gem5 NVM_2400_1x64: 16";
        /// Bytes of a bank's row buffer.
        row "device_rowbuffer_size" ["row"], Unit::Bytes, 256, 64..=MIB, "gem5 NVM_2400_1x64: 256 B";
        /// How addresses are spread over the banks, from the high bits to the low ones, in gem5's
        /// names: a row of a bank after the other (`RoRaBaCoCh`), or a line of a bank after the
        /// other (`RoCoRaBaCh`; of a memory with an on-DIMM buffer, one of its lines).
        mapping: Mapping "addr_mapping" ["AddressMappingScheme"], Unit::Choice(Mapping::NAMES),
            Mapping::Rows, Mapping::LIMITS, "gem5: RoRaBaCoCh";
        /// Time of a read that finds its row open.
        t_hit "tCL" [], Unit::Time, 12 * NS + 500, 0..=MAX_TIME, "Ramulator PCM_800D: nCL 5 = 12.5 ns";
        /// Time from one read of an open row to the next, for which the bank is taken.
        t_ccd "tCCD" [], Unit::Time, 10 * NS, 1..=MAX_TIME, "Ramulator PCM_800D: nCCD 4 = 10 ns";
        /// Time of reading the cells.
        t_read "tREAD" ["read_latency"], Unit::Time, 150 * NS, 1..=MAX_TIME, "gem5 NVM_2400_1x64: 150 ns";
        /// Time of writing the cells.
        t_write "tWRITE" ["write_latency"], Unit::Time, 500 * NS, 1..=MAX_TIME,
            "gem5 NVM_2400_1x64: 500 ns";
        /// Time of a line on the bus.
        t_burst "tBURST" [], Unit::Time, 3_332, 1..=MAX_TIME, "gem5 NVM_2400_1x64: 3.332 ns";
        /// Time the bus takes to turn from writing to reading.
        t_wtr "tWTR" [], Unit::Time, 1_666, 0..=MAX_TIME, "gem5 NVM_2400_1x64: 1.666 ns";
        /// Time the bus takes to turn from reading to writing.
        t_rtw "tRTW" [], Unit::Time, 1_666, 0..=MAX_TIME, "gem5 NVM_2400_1x64: 1.666 ns";
        /// Lines of the on-DIMM buffer, in which writes coalesce; 0 for none.
        buffer "xpbuffer_entries" ["buffer"], Unit::Count, 64, 0..=65536, "Optane's 16 KiB XPBuffer";
        /// Bytes of a line of the on-DIMM buffer and of a write to the cells.
        xpline "xpline" [], Unit::Bytes, 256, 64..=4096, "Optane: 256 B";
        /// Time of a read of the on-DIMM buffer.
        t_buffer "tBUFFER" [], Unit::Time, 10 * NS, 0..=MAX_TIME, "ours: an SRAM access on the DIMM";
        /// Which bits a write programs: all, those that differ (DCW), or those that differ with
        /// inversion (Flip-N-Write).
        encoder: Encoder "data_encoder" ["DataEncoder"], Unit::Choice(Encoder::NAMES),
            Encoder::Dcw, Encoder::LIMITS, "DCW, as the papers assume";
        /// Bits that share one flip bit under Flip-N-Write.
        fnw "fnw_granularity" ["FlipNWriteGranularity"], Unit::Count, 32, 8..=64, "NVMain: 32";
        /// Energy of reading a bit of the cells.
        e_read "read_energy" [], Unit::EnergyPerBit, 2_470, 0..=1_000_000_000,
            "Lee+ ISCA'09: 2.47 pJ, from memory";
        /// Energy of setting a bit.
        e_set "set_energy" [], Unit::EnergyPerBit, 16_820, 0..=1_000_000_000,
            "Lee+ ISCA'09: 16.82 pJ, from memory";
        /// Energy of resetting a bit.
        e_reset "reset_energy" [], Unit::EnergyPerBit, 16_820, 0..=1_000_000_000,
            "Lee+ ISCA'09: 16.82 pJ, from memory";
    }
    /// The volatile memory of each controller.
    dram Dram {
        /// Bytes, over all controllers.
        capacity "device_size" ["capacity"], Unit::Bytes, GIB, MIB..=(1 << 42),
            "ours: room for locks and for the volatile data of recorded programs";
        /// Banks.
        banks "banks_per_rank" ["banks"], Unit::Count, 16, 1..=1024, "gem5 DDR4_2400: 16";
        /// Bytes of a bank's row buffer.
        row "device_rowbuffer_size" ["row"], Unit::Bytes, 8 * KIB, 64..=MIB, "gem5 DDR4_2400: 1 KiB x 8";
        /// How addresses are spread over the banks, as of the persistent memory.
        mapping: Mapping "addr_mapping" ["AddressMappingScheme"], Unit::Choice(Mapping::NAMES),
            Mapping::Rows, Mapping::LIMITS, "gem5: RoRaBaCoCh";
        /// Time of a read that finds its row open.
        t_hit "tCL" [], Unit::Time, 14_160, 0..=MAX_TIME, "gem5 DDR4_2400: 14.16 ns";
        /// Time from one access of an open row to the next, for which the bank is taken.
        t_ccd "tCCD" [], Unit::Time, 5 * NS, 1..=MAX_TIME, "gem5 DDR4_2400: tCCD_L 5 ns, from memory";
        /// Time of opening a row.
        t_rcd "tRCD" [], Unit::Time, 14_160, 0..=MAX_TIME, "gem5 DDR4_2400: 14.16 ns";
        /// Time of closing a row.
        t_rp "tRP" [], Unit::Time, 14_160, 0..=MAX_TIME, "gem5 DDR4_2400: 14.16 ns";
        /// Time of a line on the bus.
        t_burst "tBURST" [], Unit::Time, 3_332, 1..=MAX_TIME, "gem5 DDR4_2400: 3.332 ns";
    }
    /// What saving data at a power failure costs (BBB, HPCA'21).
    energy Energy {
        /// From a first-level cache to memory.
        drain_l1 "drain_l1" [], Unit::EnergyPerByte, 11_839_000, 0..=1_000_000_000,
            "BBB: 11.839 nJ/B, from memory";
        /// From another cache or a controller's buffer to memory.
        drain_llc "drain_llc" [], Unit::EnergyPerByte, 11_228_000, 0..=1_000_000_000,
            "BBB: 11.228 nJ/B";
        /// Share of a cache that is dirty when the power fails, where caches survive.
        dirty "dirty_share" [], Unit::Percent, 45, 0..=100,
            "HPCA'23, eADR's row of the battery table: its energy is that of 45 %";
        /// Energy in a volume of supercapacitor.
        supercap "supercap_density" [], Unit::EnergyDensity, 100, 1..=1_000_000_000,
            "BBB: 1e-4 Wh/cm3, from memory";
        /// Energy in a volume of thin-film lithium battery.
        thin_film "thin_film_density" [], Unit::EnergyDensity, 10_000, 1..=1_000_000_000,
            "BBB: 1e-2 Wh/cm3, from memory";
    }
    /// What a workload takes from the machine it runs on if the user does not say.
    workload Workload {
        /// Items that the structures of a workload hold, over all cores.
        items "items" [], Unit::Count, 400_000, 1..=1_000_000_000,
            "ours: structures of several times the last-level cache";
    }
}

impl Config {
    /// Whether a power failure leaves any line of the caches: the domain has them saved, and there
    /// is energy for one.
    pub fn caches_survive(&self) -> bool {
        let has_energy = self.controller.flush_bytes >= LINE_BYTES;
        matches!(self.controller.domain, Domain::Eadr | Domain::Gpf) && has_energy
    }

    /// Bytes of all caches of a machine with so many cores.
    pub fn cache_bytes(&self, cores: u8) -> u64 {
        self.llc.size + u64::from(cores) * (self.l1d.size + self.l2.size)
    }

    /// Whether persistent memory has an on-DIMM buffer that joins writes.
    fn is_buffered(&self) -> bool {
        self.pm.buffer > 0 && self.controller.domain != Domain::Media
    }

    /// How many consecutive bytes of one controller's persistent memory lie in one bank: a row or a
    /// line, but no less than the on-DIMM buffer writes at once.
    pub fn pm_piece(&self) -> u64 {
        let unit = if self.is_buffered() { self.pm.xpline } else { LINE_BYTES };
        if self.pm.mapping == Mapping::Rows { self.pm.row.max(unit) } else { unit }
    }

    /// A time in picoseconds as whole cycles of the core, to the nearest and never 0 unless the
    /// time is.
    pub fn cycles(&self, picoseconds: u64) -> u64 {
        let scaled = u128::from(picoseconds) * u128::from(self.core.frequency);
        let cycles = (scaled + 500_000_000_000) / 1_000_000_000_000;
        if picoseconds == 0 { 0 } else { (cycles as u64).max(1) }
    }

    /// Checks what no single parameter's range can say.
    ///
    /// # Errors
    /// The path of a parameter, and a sentence that says what is wrong with its value.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        self.check_caches()?;
        for (path, entries, assoc) in [
            ("tlb.assoc", self.tlb.entries, self.tlb.assoc),
            ("tlb.l2_assoc", self.tlb.l2_entries, self.tlb.l2_assoc),
        ] {
            if !entries.is_multiple_of(assoc) {
                let ways = nearest_divisors(entries, assoc);
                return Err((
                    path,
                    format!("{assoc} ways do not divide {entries} entries; {ways}"),
                ));
            }
        }
        let (first, second) = (self.tlb.entries, self.tlb.l2_entries);
        if second != 0 && second < first {
            let problem = format!(
                "{second} is less than the {first} of tlb.entries, which the second level includes"
            );
            return Err(("tlb.l2_entries", problem));
        }
        if self.controller.low > self.controller.high {
            return Err((
                "controller.write_low_thresh_perc",
                format!(
                    "{} % is above the high mark, {} %",
                    self.controller.low, self.controller.high
                ),
            ));
        }
        for (path, size) in [
            ("pm.xpline", self.pm.xpline),
            ("pm.device_rowbuffer_size", self.pm.row),
            ("dram.device_rowbuffer_size", self.dram.row),
            ("controller.intlv_size", self.controller.interleave),
            ("pm.fnw_granularity", self.pm.fnw),
        ] {
            if !size.is_power_of_two() {
                return Err((path, format!("must be a power of two, not {size}")));
            }
        }
        let sizes = [("pm.log_size", self.pm.log), ("pm.device_size", self.pm.capacity)];
        for (path, size) in sizes {
            if !size.is_multiple_of(KIB) {
                return Err((path, format!("must be a multiple of 1 KiB, not {size} bytes")));
            }
        }
        self.check_logs()
    }

    /// Checks that caches consist of whole sets, and that each holds what is above it.
    fn check_caches(&self) -> Result<(), (&'static str, String)> {
        let caches = [
            ("l1d.size", self.l1d.size, "l1d.assoc", self.l1d.assoc),
            ("l2.size", self.l2.size, "l2.assoc", self.l2.assoc),
            ("llc.size", self.llc.size, "llc.assoc", self.llc.assoc),
        ];
        for (path, size, _, _) in caches {
            if !size.is_multiple_of(LINE_BYTES) {
                let (below, above) =
                    (size / LINE_BYTES * LINE_BYTES, size.next_multiple_of(LINE_BYTES));
                return Err((
                    path,
                    format!(
                        "{size} bytes are no whole lines of {LINE_BYTES}; {below} and {above} are"
                    ),
                ));
            }
        }
        for (_, size, path, assoc) in caches {
            if !size.is_multiple_of(LINE_BYTES * assoc) {
                let ways = nearest_divisors(size / LINE_BYTES, assoc);
                return Err((
                    path,
                    format!("{assoc} ways do not divide {size} bytes of 64-byte lines; {ways}"),
                ));
            }
        }
        for [(above, least, ..), (path, size, ..)] in
            [[caches[0], caches[1]], [caches[1], caches[2]]]
        {
            if size < least {
                return Err((
                    path,
                    format!("{size} bytes are less than the {least} of {above}, which it includes"),
                ));
            }
        }
        Ok(())
    }

    /// Checks that the logs leave room for a heap.
    fn check_logs(&self) -> Result<(), (&'static str, String)> {
        let cores = self.core.cores_max;
        let (log, capacity) = (self.pm.log / KIB, self.pm.capacity / KIB);
        if log * cores > capacity / 2 {
            return Err((
                "pm.log_size",
                format!(
                    "{cores} logs of {log}KiB, one for each core, take more than half of \
                     pm.device_size, {capacity}KiB: raise that to {}KiB, or lower the log's to \
                     {}KiB",
                    log * cores * 2,
                    capacity / 2 / cores
                ),
            ));
        }
        Ok(())
    }
}

/// Names the numbers of ways next to `ways` that divide `lines`, which `ways` does not.
fn nearest_divisors(lines: u64, ways: u64) -> String {
    let divides = |ways: &u64| lines.is_multiple_of(*ways);
    let below = (1..ways).rev().find(divides);
    let above = (ways + 1..=lines).find(divides);
    match (below, above) {
        (Some(below), Some(above)) => format!("{below} and {above} do"),
        (Some(only), None) | (None, Some(only)) => format!("{only} do"),
        (None, None) => "nothing does".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_cycles() {
        let config = Config::default();
        assert_eq!(config.cycles(50 * NS), 100);
        assert_eq!(config.cycles(0), 0);
        assert_eq!(config.cycles(1), 1);
    }

    #[test]
    fn ways_divide_the_cache() {
        let mut config = Config::default();
        assert_eq!(config.check(), Ok(()));
        config.l1d.assoc = 3;
        assert_eq!(config.check().expect_err("3 ways of 32 KiB").0, "l1d.assoc");
    }

    #[test]
    fn defaults_are_within_their_ranges() {
        for field in FIELDS {
            assert!(field.limits.contains(&field.default), "{}.{}", field.section, field.key);
        }
    }
}
