//! The memory controller: when and in which order it accepts writes, which ones merge, which reads
//! are forwarded, and when writes are drained.

use crate::common::config;
use model::agenda::Agenda;
use model::config::{Config, Domain, Scheduling};
use model::controller::Notify;
use model::device::Write;
use model::event::Event;
use model::memory::Memory;
use model::meters::Class;
use model::units::{CoreId, Cycle, DRAM_BASE, Line, Word};
use model::usage::Durations;

/// A controller, its agenda, and the times at which writes became durable.
struct Bench {
    memory: Memory<u32>,
    agenda: Agenda<Event<u32>>,
    accepted: Vec<(u64, u64)>,
    told: Vec<(u64, u32)>,
    unblocked: Vec<(u64, CoreId)>,
}

fn bench(change: impl FnOnce(&mut Config)) -> Bench {
    Bench {
        memory: Memory::new(&config(change)).expect("room"),
        agenda: Agenda::default(),
        accepted: Vec::new(),
        told: Vec::new(),
        unblocked: Vec::new(),
    }
}

/// A write of the first `words` words of a line.
fn write(line: u64, words: u32, value: u8) -> Write {
    let mask = if words == 8 { u64::MAX } else { (1 << (8 * words)) - 1 };
    Write { line: Line(line), data: [value; 64], mask, class: Class::Data }
}

impl Bench {
    fn reserve(&mut self, at: u64, line: u64) -> bool {
        let Bench { memory, agenda, .. } = self;
        memory.reserve(Cycle(at), Line(line), agenda)
    }

    fn send(&mut self, at: u64, write: Write) -> &mut Bench {
        self.memory.send(Cycle(at), write, Notify::Nobody, &mut self.agenda);
        self
    }

    /// Lets everything happen that is due by `until`.
    fn run(&mut self, until: u64) -> &mut Bench {
        while let Some((at, event)) = self.agenda.take(Cycle(until)) {
            let (memory, agenda) = (&mut self.memory, &mut self.agenda);
            let durable = match event {
                Event::Arrive { controller, write } => {
                    memory.arrive(at, controller, write, agenda).map(|accepted| accepted.line)
                }
                Event::Accept { controller } => {
                    memory.accept_waiting(at, controller, agenda).map(|accepted| accepted.line)
                }
                Event::Drain { controller } => {
                    memory.drain(at, controller, agenda);
                    None
                }
                Event::Free { controller, slot } => {
                    memory.free(at, controller, slot, agenda);
                    None
                }
                Event::Programmed { controller, slot } => {
                    Some(memory.programmed(at, controller, slot, &mut Vec::new(), agenda))
                }
                Event::Acknowledge { .. } | Event::Fenced { .. } | Event::Announce { .. } => {
                    unreachable!("a bench has no cores")
                }
                Event::Design(event) => {
                    self.told.push((at.0, event));
                    None
                }
            };
            if let Some(line) = durable {
                self.accepted.push((at.0, line.0));
            }
            for controller in 0..2.min(self.memory.controller_of(Line(1)) + 1) {
                let cores = self.memory.unblocked(controller);
                self.unblocked.extend(cores.into_iter().map(|core| (at.0, core)));
            }
        }
        self
    }

    fn word(&self, line: u64) -> u64 {
        self.memory.durable().word(Word(8 * line))
    }
}

const END: u64 = 1 << 40;
const KEEP_ALL: fn(&mut Config) = |config| config.controller.low = 100;

#[test]
fn a_write_that_finds_room_is_durable_when_it_has_arrived() {
    let mut bench = bench(|_| ());
    bench.send(10, write(0, 8, 1)).send(10, write(1, 8, 1)).send(15, write(2, 8, 1));
    bench.run(11);
    assert_eq!((bench.accepted.len(), bench.word(0)), (0, 0));
    bench.run(12);
    assert_eq!((bench.accepted.len(), bench.word(0)), (2, 0x0101_0101_0101_0101));
    assert_eq!(bench.run(END).accepted, [(12, 0), (12, 1), (17, 2)]);
}

#[test]
fn a_write_waits_while_the_queue_is_full_and_the_first_waits_least() {
    let mut bench = bench(|config| config.controller.wpq = 1);
    for (at, line) in [(10, 0), (10, 1), (11, 2)] {
        bench.send(at, write(line, 8, 1));
    }
    assert_eq!(bench.run(112).accepted, [(12, 0)]);
    assert_eq!((bench.word(1), bench.memory.has_room(Line(3))), (0, false));
    // The bus takes 1 cycle, and the only bank 100 for each.
    assert_eq!(bench.run(END).accepted, [(12, 0), (113, 1), (214, 2)]);
    assert!(bench.memory.has_room(Line(3)));
}

#[test]
fn it_is_counted_how_full_the_queue_is_and_how_long_writes_wait_for_it() {
    let mut bench = bench(|config| config.controller.wpq = 1);
    // The last one has no bytes: it needs no room, and waits for the others.
    for (at, line, words) in [(10, 0, 8), (10, 1, 8), (11, 2, 8), (12, 2, 0)] {
        bench.send(at, write(line, words, 1));
    }
    bench.run(300);
    let usage = bench.memory.usage(Cycle(300));
    assert_eq!((usage.wpq.sum, usage.wpq.full, usage.wpq.most), (300 - 12, 300 - 12, 1));
    // They came at 12 and 13, and had room at 113 and 214.
    assert_eq!(usage.waited, Durations { count: 2, sum: 101 + 201, max: 201 });
    assert_eq!((&usage.pm.busy[..], usage.pm.bus), (&[300][..], 3));
    bench.memory.reset_meters(Cycle(300));
    bench.run(END);
    let usage = bench.memory.usage(Cycle(1_000));
    // The last write left the queue when its line was written.
    assert_eq!((usage.wpq.sum, usage.wpq.most), (315 - 300, 1));
    assert_eq!((usage.waited.count, usage.pm.busy[0]), (0, 0), "nothing of the warm-up");
}

#[test]
fn a_read_takes_from_its_request_to_its_answer() {
    let mut bench = bench(|config| config.controller.read_queue = 1);
    let usage = |bench: &Bench| bench.memory.usage(Cycle(1_000));
    // 2 cycles of the controller, 10 of the cells, 1 of the bus, and 1 back.
    bench.memory.read(Cycle(100), Line(0));
    assert_eq!(usage(&bench).pm_reads, Durations { count: 1, sum: 14, max: 14 });
    // The row is open now; but there is room for one read at a time, until 113. Then it takes 2
    // cycles of the cells, 1 of the bus, and 1 back.
    bench.memory.read(Cycle(110), Line(0));
    assert_eq!(usage(&bench).pm_reads, Durations { count: 2, sum: 14 + 7, max: 14 });
    bench.memory.read(Cycle(200), Line::of(DRAM_BASE));
    let usage = usage(&bench);
    assert_eq!((usage.pm_reads.count, usage.dram_reads.count), (2, 1));
    assert_eq!((usage.pm.reads, usage.pm.row_hits, usage.dram.reads), (2, 1, 1));
}

/// The bench has one bank, whose rows have four lines.
#[test]
fn a_read_of_a_row_that_another_opens_comes_first_unless_reads_are_served_as_they_come() {
    for (policy, answers) in [(Scheduling::Fcfs, [14, 24, 34]), (Scheduling::FrFcfs, [14, 24, 16])]
    {
        let mut bench = bench(|config| config.controller.policy = policy);
        let lines = [0, 100, 1].map(Line);
        assert_eq!(lines.map(|line| bench.memory.read(Cycle(0), line).0), answers);
        let row_hits = bench.memory.usage(Cycle(100)).pm.row_hits;
        assert_eq!(row_hits, u64::from(policy == Scheduling::FrFcfs));
    }
}

#[test]
fn a_write_that_would_join_another_waits_behind_those_that_wait() {
    let mut bench = bench(|config| {
        config.controller.wpq = 1;
        config.controller.low = 100;
        config.controller.policy = Scheduling::Fcfs;
    });
    // Line 1 waits; a later write of line 0 could join the one in the queue, if it were still
    // there.
    bench.send(10, write(0, 8, 1)).send(11, write(1, 8, 1)).send(12, write(0, 8, 2));
    let order: Vec<u64> = bench.run(END).accepted.iter().map(|&(_, line)| line).collect();
    assert_eq!(order, [0, 1, 0]);
    assert_eq!(bench.word(0), 0x0202_0202_0202_0202);
}

/// After the write before it has taken the last slot, it needs no slot.
#[test]
fn the_first_that_waits_joins_another_without_a_slot_of_its_own() {
    let mut bench = bench(|config| config.pm.t_write = 1_000_000);
    for line in 0..4 {
        bench.send(10, write(line, 8, 1));
    }
    // The cells are busy with line 0 until 1,013. Then line 4 has room, and the writes after it are
    // of a line that is still in the queue, or of line 4 without bytes.
    bench.send(11, write(4, 8, 1)).send(12, write(3, 8, 2));
    bench.send(12, Write { mask: 0, ..write(4, 8, 0) });
    let accepted = &bench.run(END).accepted;
    assert_eq!(accepted[4..], [(1_013, 4), (1_013, 3), (1_013, 4)]);
    assert_eq!(bench.word(3), 0x0202_0202_0202_0202);
}

#[test]
fn writes_of_one_line_stay_in_order() {
    let mut bench = bench(|_| ());
    bench.send(50, write(0, 8, 1)).send(10, write(0, 8, 2)).send(10, write(1, 8, 3));
    assert_eq!(bench.run(END).accepted, [(12, 1), (52, 0), (52, 0)]);
    assert_eq!(bench.word(0), 0x0202_0202_0202_0202);
}

#[test]
fn ways_of_drawn_lengths_mix_lines_and_keep_the_order_of_one() {
    // 50 cycles.
    let mut bench =
        bench(|config| (config.controller.jitter, config.controller.wpq) = (50_000, 64));
    for line in 1..=32 {
        bench.send(10, write(line, 8, 1)).send(10, write(line, 8, 2));
    }
    bench.run(END);
    assert!((1..=32).all(|line| bench.word(line) == 0x0202_0202_0202_0202));
    let times: Vec<u64> = bench.accepted.iter().map(|&(at, _)| at).collect();
    assert!(times[0] < 25 && times[63] > 50 && times[63] <= 12 + 50, "{times:?}");
    assert!(!bench.accepted.iter().is_sorted_by_key(|&(_, line)| line));
}

#[test]
fn a_design_has_a_path_of_its_own() {
    let mut bench = bench(|_| ());
    bench.send(50, write(0, 8, 1));
    let Bench { memory, agenda, .. } = &mut bench;
    memory.send_direct(Cycle(10), write(0, 8, 2), Notify::Nobody, agenda);
    assert_eq!(bench.run(END).accepted, [(12, 0), (52, 0)]);
    assert_eq!(bench.word(0), 0x0101_0101_0101_0101);
}

#[test]
fn writes_of_one_line_merge_in_the_queue() {
    let mut bench = bench(KEEP_ALL);
    bench.send(10, write(0, 1, 1)).send(20, write(0, 2, 2)).send(30, write(1, 8, 3)).run(END);
    let meters = bench.memory.meters();
    assert_eq!((meters.wpq_writes, meters.wpq_merged, meters.media_lines), (3, 1, 0));
    assert_eq!(meters.wpq_bytes[Class::Data as usize], 8 + 16 + 64);
    bench.memory.settle(Cycle(100));
    let meters = bench.memory.meters();
    // The merged one covers two words of its line, so the rest of it is read first.
    assert_eq!((meters.media_lines, meters.media_fill_reads), (2, 1));
    assert_eq!(bench.word(0), 0x0202_0202_0202_0202);
}

/// All bits of writes that merged are of the class of the last one.
#[test]
fn what_merged_is_programmed_as_what_came_last() {
    let mut bench = bench(KEEP_ALL);
    let log = Write { class: Class::Log, ..write(0, 8, 1) };
    bench.send(10, log).send(20, write(0, 1, 3)).run(END);
    bench.memory.settle(Cycle(100));
    let bits = bench.memory.meters().media_bits;
    assert_eq!((bits[Class::Log as usize], bits[Class::Data as usize]), (0, 512));
}

#[test]
fn the_queue_holds_what_each_of_the_writes_that_merged_covered() {
    let mut bench = bench(KEEP_ALL);
    let half = |mask, value| Write { mask, ..write(0, 8, value) };
    bench.send(10, half(0xffff_ffff, 1)).send(20, half(0xffff_ffff << 32, 2)).run(END);
    bench.memory.read(Cycle(100), Line(0));
    assert_eq!(bench.memory.meters().reads_forwarded, 1, "the queue has the whole line");
    bench.memory.settle(Cycle(200));
    let meters = bench.memory.meters();
    assert_eq!((meters.media_lines, meters.media_fill_reads), (1, 0));
}

/// Lines left in the on-DIMM buffer at the end are written, too, so that no design can hide writes
/// there.
#[test]
fn what_is_in_the_queue_and_in_the_buffer_at_the_end_is_counted() {
    let mut bench = bench(|config| config.pm.buffer = 2);
    bench.send(10, write(0, 8, 1)).send(10, write(64, 8, 1)).run(END);
    assert_eq!(bench.memory.meters().media_lines, 0, "both are in the buffer");
    bench.send(END, write(128, 8, 1)).run(END + 2);
    bench.memory.settle(Cycle(END + 2));
    assert_eq!(bench.memory.meters().media_lines, 3);
    bench.memory.settle(Cycle(END + 3));
    assert_eq!(bench.memory.meters().media_lines, 3, "once");
}

/// When the measured region begins, all counts are reset, except the wear of cells.
#[test]
fn the_wear_of_the_warm_up_stays() {
    let mut bench = bench(|_| ());
    bench.send(10, write(0, 8, 1)).run(1_000);
    bench.send(1_010, write(0, 8, 2)).run(2_000);
    assert_eq!(bench.memory.meters().wear_max, 2);
    bench.memory.reset_meters(Cycle(2_000));
    let meters = bench.memory.meters();
    assert_eq!((meters.wear_max, meters.media_lines, meters.wpq_writes), (2, 0, 0));
    bench.send(2_010, write(1, 8, 1)).run(3_000);
    assert_eq!(bench.memory.meters().wear_max, 2, "another line is worn less");
    bench.send(3_010, write(0, 8, 3)).run(4_000);
    assert_eq!(bench.memory.meters().wear_max, 3);
}

#[test]
fn a_write_on_its_way_to_the_cells_is_joined_by_nobody() {
    let mut bench = bench(|config| {
        config.controller.low = 100;
        config.controller.wpq = 2;
        config.pm.t_write = 10_000_000;
    });
    // The first is being written when the others come: no write joins a slot that is on its way to
    // the cells.
    bench.send(10, write(0, 8, 1)).send(11, write(1, 8, 1)).run(40);
    assert_eq!(bench.accepted, [(12, 0), (13, 1)]);
    assert!(!bench.memory.has_room(Line(2)));
    assert!(!bench.memory.has_room(Line(0)), "the cells are at it");
}

#[test]
fn a_read_is_answered_by_the_queue_if_it_holds_the_whole_line() {
    for (words, forwarded, done) in [(8, 1, 100 + 2 + 1), (7, 0, 100 + 2 + 10 + 1 + 1)] {
        let mut bench = bench(KEEP_ALL);
        bench.send(10, write(0, words, 1)).run(END);
        assert_eq!(bench.memory.read(Cycle(100), Line(0)), Cycle(done), "{words}");
        let meters = bench.memory.meters();
        assert_eq!((meters.reads, meters.reads_forwarded), (1, forwarded), "{words} words");
    }
}

#[test]
fn a_row_that_is_open_is_read_faster() {
    let mut bench = bench(|_| ());
    let mut read = |at, line| bench.memory.read(Cycle(at), Line(line)).since(Cycle(at));
    assert_eq!((read(0, 0), read(100, 1), read(200, 4)), (14, 6, 14));
}

#[test]
fn a_read_in_the_future_does_not_push_others() {
    let alone = bench(|_| ()).memory.read(Cycle(0), Line(4));
    let mut bench = bench(|_| ());
    let future = bench.memory.read(Cycle(10_000), Line(0));
    assert_eq!(bench.memory.read(Cycle(0), Line(4)), alone, "the past is free");
    assert_eq!(future, Cycle(10_014));
    let same = bench.memory.read(Cycle(10_000), Line(8));
    assert_eq!(same, Cycle(10_024), "the future is taken");
}

#[test]
fn so_many_reads_are_outstanding_and_no_more() {
    // The way to the controller and back, of 3 cycles or of 300, is no part of a place's 11.
    for (places, way, last) in [(2, 3, 22), (1, 3, 33), (1, 300, 33)] {
        let mut bench = bench(|config| {
            config.controller.read_queue = places;
            config.controller.frontend *= way / 3;
            config.controller.backend *= way / 3;
            config.pm.banks = 16;
        });
        let mut done: Vec<u64> =
            (0..3).map(|index| bench.memory.read(Cycle(0), Line(4 * index)).0).collect();
        done.sort_unstable();
        assert_eq!(done[2], way + last, "{places} places, a way of {way}: {done:?}");
    }
}

/// Writes that reached the cells by cycle 500, of `writes` that arrived at 12, with the marks at 3
/// and 1 of 4 entries, at least `burst` in a row, after reads of one other bank at `reads`.
fn drained(writes: u64, burst: u64, reads: &[u64]) -> u64 {
    let mut bench = bench(|config| {
        let controller = &mut config.controller;
        (controller.high, controller.low, controller.burst) = (75, 25, burst);
        config.pm.t_write = 10_000;
        config.pm.t_read = 1_000_000;
        config.pm.banks = 16;
    });
    for &at in reads {
        bench.memory.read(Cycle(at), Line(60));
    }
    for line in 0..writes {
        bench.send(10, write(4 * line, 8, 1));
    }
    bench.run(500);
    bench.memory.meters().media_lines
}

#[test]
fn writes_are_drained_between_the_marks() {
    assert_eq!(drained(1, 1, &[]), 0, "the low mark: one is kept, to be joined by others");
    assert_eq!(drained(2, 1, &[]), 1);
    assert_eq!(drained(3, 1, &[]), 2);
    assert_eq!(drained(3, 3, &[]), 3, "at least three in a row once the high mark is reached");
    assert_eq!(drained(2, 1, &[0, 0]), 0, "reads that wait come first");
    assert_eq!(drained(3, 1, &[0, 0]), 2, "but not before a queue at its high mark");
    assert_eq!(drained(2, 1, &[0]), 1, "nothing waits for the answers of those that have begun");
    assert_eq!(drained(2, 1, &[0, 400]), 1, "nor for those that come later");
}

/// Returns when each of the writes of lines, sent at cycle 10, is in the cells, and when a line of
/// the first bank arrives that is read at 50.
fn programmed(high: u64, lines: &[u64]) -> (Vec<(u64, u64)>, u64) {
    let mut bench = bench(|config| {
        (config.controller.domain, config.controller.high, config.pm.banks) =
            (Domain::Media, high, 2);
    });
    for &line in lines {
        bench.send(10, write(line, 8, 1));
    }
    bench.run(49);
    let read = bench.memory.read(Cycle(50), Line(8)).0;
    bench.run(END);
    (bench.accepted, read)
}

#[test]
fn writes_wait_for_their_banks_in_the_queue_and_a_later_read_goes_first() {
    let (done, read) = programmed(100, &[0, 1, 4]);
    assert_eq!(read, 125, "behind the one write that its bank is in the middle of");
    assert_eq!(done, [(113, 0), (114, 4), (225, 1)], "another bank waits for nobody");
    let (done, read) = programmed(75, &[0, 1, 4]);
    assert_eq!(read, 225, "a queue at its high mark has writes go first");
    assert_eq!(done, [(113, 0), (114, 4), (213, 1)]);
}

/// A write that comes while the others wait for their bank goes to a bank that is idle at once.
#[test]
fn a_controller_that_waits_for_a_bank_looks_at_what_comes() {
    let mut bench =
        bench(|config| (config.controller.domain, config.pm.banks) = (Domain::Media, 2));
    bench.send(10, write(0, 8, 1)).send(10, write(1, 8, 1)).send(50, write(4, 8, 1));
    assert_eq!(bench.run(END).accepted, [(113, 0), (153, 4), (214, 1)]);
}

#[test]
fn a_controller_under_pressure_does_not_hold_up_another() {
    let mut bench = bench(|config| {
        config.controller.count = 2;
        config.controller.interleave = 64;
        config.controller.wpq = 1;
    });
    assert_eq!([0, 1, 2, 3].map(|line| bench.memory.controller_of(Line(line))), [0, 1, 0, 1]);
    bench.send(10, write(0, 8, 1)).send(10, write(2, 8, 1)).send(11, write(1, 8, 1));
    assert_eq!(bench.run(END).accepted, [(12, 0), (13, 1), (113, 2)]);
}

#[test]
fn a_design_and_cores_are_told_when_there_is_room() {
    let mut bench = bench(|config| {
        config.controller.wpq = 1;
        config.controller.writebacks = 1;
    });
    assert!(!bench.memory.wait_if_congested(CoreId(3), None));
    bench.send(10, write(0, 8, 1)).send(10, write(1, 8, 1)).run(20);
    bench.memory.when_room(Line(5), 7);
    assert!(bench.memory.wait_if_congested(CoreId(3), None), "one write waits");
    bench.run(END);
    assert_eq!(bench.unblocked, [(113, CoreId(3))]);
    assert_eq!(bench.told, [(214, 7)], "when nobody is before the design");
}

#[test]
fn what_a_design_gives_is_durable_in_that_moment() {
    let mut bench = bench(|_| ());
    let Bench { memory, agenda, .. } = &mut bench;
    assert!(memory.give_if_room(Cycle(5), &write(3, 1, 9), agenda));
    assert_eq!(memory.take_given(), [Line(3)]);
    assert_eq!(memory.take_given(), []);
    assert_eq!(bench.word(3), 0x0909_0909_0909_0909);
}

#[test]
fn a_design_gives_nothing_to_a_full_queue() {
    let mut bench = bench(|config| config.controller.wpq = 1);
    bench.send(10, write(0, 8, 1)).run(20);
    let Bench { memory, agenda, .. } = &mut bench;
    assert!(!memory.give_if_room(Cycle(20), &write(3, 1, 9), agenda));
    assert_eq!(memory.take_given(), []);
}

#[test]
fn a_reserved_slot_is_no_room_answers_reads_and_becomes_a_write() {
    let mut bench = bench(|config| config.controller.wpq = 2);
    assert!(bench.reserve(1, 3) && bench.reserve(1, 4));
    assert!(!bench.memory.has_room(Line(3)) && !bench.reserve(1, 5));
    bench.memory.read(Cycle(5), Line(3));
    assert_eq!(bench.memory.meters().reads_forwarded, 1);
    bench.memory.read_beneath(Cycle(5), Line(3));
    assert_eq!(bench.memory.meters().reads_forwarded, 1, "memory has what lies beneath");
    bench.send(10, write(0, 8, 1)).run(50);
    assert_eq!(bench.accepted, [], "it waits for room");
    let Bench { memory, agenda, .. } = &mut bench;
    memory.unreserve(Cycle(60), Line(3), Some(write(3, 1, 9)), agenda);
    assert_eq!(bench.word(3), 0x0909_0909_0909_0909, "before what waits");
    let Bench { memory, agenda, .. } = &mut bench;
    memory.unreserve(Cycle(70), Line(4), None, agenda);
    assert_eq!(bench.run(70).accepted, [(70, 0)]);
}

/// Writes that would stay in the queue, to be joined by others, leave it when slots are short.
#[test]
fn reserved_slots_press_the_queue() {
    let mut bench = bench(|config| {
        (config.controller.wpq, config.controller.high, config.controller.low) = (4, 75, 50);
    });
    bench.send(10, write(0, 8, 1)).send(10, write(1, 8, 1)).run(500);
    assert!(bench.reserve(500, 3) && bench.reserve(500, 4) && !bench.reserve(500, 5));
    bench.run(2_000);
    assert!(bench.reserve(2_000, 5), "one has been drained");
}
