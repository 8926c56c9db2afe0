//! Random tests of what controllers hold and what becomes durable, on random machines and under
//! random traffic, against a reference that knows bytes and nothing else.

use std::collections::BTreeMap;

use super::*;
use crate::config::{Encoder, Mapping};
use crate::meters::Class;
use crate::params::Choice;
use crate::units::{LINE_BYTES, LineData, mix};

const MIB: u64 = 1 << 20;

/// The number of lines that the caches write, and the first line that a design reserves slots for.
const LINES: u64 = 12;
const RESERVED: u64 = 64;

/// The bytes of each line.
type Bytes = BTreeMap<Line, LineData>;

fn apply(bytes: &mut Bytes, write: &Write) {
    let line = bytes.entry(write.line).or_insert([0; LINE_BYTES as usize]);
    for (place, (byte, from)) in line.iter_mut().zip(write.data).enumerate() {
        if write.mask >> place & 1 == 1 {
            *byte = from;
        }
    }
}

/// A source of random numbers.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = mix(self.0);
        self.0 % most
    }

    fn of<const N: usize>(&mut self, choices: [u64; N]) -> u64 {
        choices[self.below(N as u64) as usize]
    }
}

/// Returns a random machine with little room for everything.
fn config(chance: &mut Chance) -> Config {
    let mut config = Config::default();
    let controller = &mut config.controller;
    controller.count = chance.of([1, 1, 2, 3]);
    controller.interleave = chance.of([64, 128, 4096]);
    controller.policy = Scheduling::of(chance.below(2));
    controller.read_queue = chance.of([1, 2, 64]);
    controller.wpq = chance.of([1, 2, 3, 4, 16]);
    controller.high = chance.of([1, 50, 75, 100]);
    controller.low = chance.of([0, 1, 25, 50]).min(controller.high);
    controller.burst = chance.of([1, 2, 16]);
    controller.jitter = chance.of([0, 0, 50_000]);
    controller.writebacks = chance.of([1, 2, 16]);
    controller.domain = Domain::of(chance.below(2));
    let pm = &mut config.pm;
    (pm.capacity, pm.log) = (MIB, 1 << 10);
    pm.banks = chance.of([1, 2, 16]);
    pm.row = chance.of([64, 128, 256, 4096]);
    pm.mapping = Mapping::of(chance.below(2));
    pm.buffer = chance.of([0, 1, 2, 3, 64]);
    pm.xpline = chance.of([64, 128, 256, 4096]);
    pm.encoder = Encoder::of(chance.below(3));
    pm.t_hit = chance.of([0, 2_000]);
    pm.t_write = chance.of([1, 100_000, 700_000]);
    config.dram.capacity = MIB;
    assert_eq!(config.check(), Ok(()));
    config
}

/// Controllers, and what they should hold.
struct Bench {
    memory: Memory<usize>,
    agenda: Agenda<Event<usize>>,
    chance: Chance,
    /// Every write that was sent, and whether the bench was told that it is durable.
    sent: Vec<(Write, bool)>,
    /// Each line's writes of which the bench was not told yet, oldest first.
    under_way: BTreeMap<Line, VecDeque<usize>>,
    /// The bytes that are durable.
    durable: Bytes,
    reserved: Vec<Line>,
    /// Whether the encoder only compares bits, and programs them as they are.
    is_dcw: bool,
}

impl Bench {
    fn new(seed: u64) -> Bench {
        let mut chance = Chance(seed);
        let config = config(&mut chance);
        Bench {
            memory: Memory::new(&config).expect("room"),
            agenda: Agenda::default(),
            chance,
            sent: Vec::new(),
            under_way: BTreeMap::new(),
            durable: Bytes::new(),
            reserved: Vec::new(),
            is_dcw: config.pm.encoder == Encoder::Dcw,
        }
    }

    fn write(&mut self, line: Line) -> Write {
        let mask = match self.chance.below(4) {
            0 => 0xff << (8 * self.chance.below(8)),
            1 => mix(self.chance.below(u64::MAX)),
            2 if line.0 < RESERVED => 0,
            _ => u64::MAX,
        };
        let data = std::array::from_fn(|_| self.chance.below(256) as u8);
        Write { line, data, mask, class: Class::Data }
    }

    /// Reads, writes, or reserves or gives back a slot at `at`, at random.
    fn act(&mut self, at: Cycle) {
        let line = Line(self.chance.below(LINES));
        let is_media = self.memory.domain == Domain::Media;
        match self.chance.below(8) {
            0 => _ = self.memory.read(at, line),
            1 if !is_media => {
                let line = Line(RESERVED + self.chance.below(4));
                if self.memory.reserve(at, line, &mut self.agenda) {
                    self.reserved.push(line);
                }
            }
            2 if !self.reserved.is_empty() => self.give_back(at),
            _ => {
                let write = self.write(line);
                let notify = Notify::Design(self.sent.len());
                self.under_way.entry(line).or_default().push_back(self.sent.len());
                self.sent.push((write.clone(), false));
                let at = at + self.chance.below(40);
                self.memory.send(at, write, notify, &mut self.agenda);
            }
        }
    }

    fn give_back(&mut self, at: Cycle) {
        let index = self.chance.below(self.reserved.len() as u64) as usize;
        let line = self.reserved.remove(index);
        let write = (self.chance.below(2) == 0).then(|| self.write(line));
        if let Some(write) = &write {
            apply(&mut self.durable, write);
        }
        self.memory.unreserve(at, line, write, &mut self.agenda);
    }

    /// Takes the notification of a write, which must be the next of its line, and is durable now.
    fn tell(&mut self, notify: Notify<usize>) {
        let Notify::Design(index) = notify else { panic!("the design is told") };
        let (write, is_told) = &mut self.sent[index];
        assert!(!std::mem::replace(is_told, true), "write {index} was told of before");
        let of_line = self.under_way.get_mut(&write.line).expect("one was sent");
        assert_eq!(of_line.pop_front(), Some(index), "writes of a line are durable in order");
        apply(&mut self.durable, write);
    }

    /// Handles every event that is due by `until`.
    fn run(&mut self, until: Cycle) {
        while let Some((at, event)) = self.agenda.take(until) {
            let (memory, agenda) = (&mut self.memory, &mut self.agenda);
            memory.pass(at);
            match event {
                Event::Arrive { controller, write } => {
                    let accepted = memory.arrive(at, controller, write, agenda);
                    accepted.into_iter().for_each(|accepted| self.tell(accepted.notify));
                }
                Event::Accept { controller } => {
                    let accepted = memory.accept_waiting(at, controller, agenda);
                    accepted.into_iter().for_each(|accepted| self.tell(accepted.notify));
                }
                Event::Programmed { controller, slot } => {
                    let mut told = Vec::new();
                    memory.programmed(at, controller, slot, &mut told, agenda);
                    told.into_iter().for_each(|notify| self.tell(notify));
                }
                Event::Drain { controller } => memory.drain(at, controller, agenda),
                Event::Free { controller, slot } => memory.free(at, controller, slot, agenda),
                _ => unreachable!("a bench has no cores"),
            }
            if self.agenda.next() > at {
                self.look();
            }
        }
    }

    /// Checks what the controllers hold when no event is due any more.
    fn look(&self) {
        for line in self.lines() {
            assert_eq!(self.memory.durable().line(line), &self.holds(line), "{line:?}");
        }
        for controller in &self.memory.controllers {
            let taken = controller.slots.iter().filter(|slot| slot.write.is_some()).count();
            let free = controller.free.len();
            assert_eq!(taken + controller.reserved.len() + free, controller.slots.len());
            let first = controller.waiting.front();
            assert!(
                first.is_none_or(|first| controller.takes(&first.write).is_none()),
                "who waits first has no room"
            );
        }
        self.look_at_what_is_under_way();
    }

    /// Checks that each line would hold its newest write if all writes under way arrived.
    fn look_at_what_is_under_way(&self) {
        let (mut arrived, mut newest) = (self.durable.clone(), self.durable.clone());
        for (write, _) in self.memory.under_way(&|_| true) {
            apply(&mut arrived, write);
        }
        for &index in self.under_way.values().flatten() {
            apply(&mut newest, &self.sent[index].0);
        }
        assert_eq!(arrived, newest);
    }

    fn lines(&self) -> impl Iterator<Item = Line> + use<> {
        (0..LINES).chain(RESERVED..RESERVED + 4).map(Line)
    }

    fn holds(&self, line: Line) -> LineData {
        self.durable.get(&line).copied().unwrap_or([0; LINE_BYTES as usize])
    }

    /// Lets every write arrive, and checks that the cells hold the durable bytes.
    fn end(&mut self, mut at: Cycle) {
        while !self.reserved.is_empty() {
            self.give_back(at);
            at += 1;
            self.run(at);
        }
        self.run(Cycle(u64::MAX - 1));
        assert!(self.sent.iter().all(|(_, is_told)| *is_told), "every write is durable");
        self.memory.settle(at);
        let lines: Vec<Line> = self.lines().collect();
        for line in lines {
            let index = self.memory.controller_of(line);
            let cells = self.memory.controllers[index].pm.cells.get(&line);
            let cells = cells.copied().unwrap_or([0; LINE_BYTES as usize]);
            assert_eq!(cells, self.holds(line), "the cells hold {line:?}");
        }
        // Cells began as zeros, and a bit that is one now has changed an odd number of times.
        let ones = self.durable.values().flatten().map(|byte| u64::from(byte.count_ones()));
        let (ones, bits) = (ones.sum::<u64>(), self.memory.meters().media_bits_total());
        assert!(!self.is_dcw || bits >= ones && (bits - ones).is_multiple_of(2));
    }
}

#[test]
fn what_is_durable_is_what_a_reference_says() {
    for seed in 0..4_000 {
        let mut bench = Bench::new(seed);
        let mut at = Cycle(0);
        for _ in 0..60 {
            at += bench.chance.of([0, 1, 10, 300]);
            bench.run(at);
            bench.memory.pass(at);
            bench.act(at);
        }
        bench.end(at);
    }
}
