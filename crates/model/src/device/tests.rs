//! Tests of a device's times, costs and wear.

use super::*;
use crate::meters::CellEnergy;

fn pm(change: impl FnOnce(&mut Config)) -> PmDevice {
    let mut config = Config::default();
    config.pm.capacity = 1 << 20;
    change(&mut config);
    PmDevice::new(&config, false).expect("room")
}

fn write(pm: &mut PmDevice, at: u64, line: u64, value: u8, mask: u64) -> Taken {
    let write = Write { line: Line(line), data: [value; 64], mask, class: Class::Data };
    pm.expect(write.line);
    send(pm, (at, 0), &write, NextWrite::default(), &[])
}

/// Sends a write to a memory that began with zeros.
fn send(
    pm: &mut PmDevice,
    (at, now): (u64, u64),
    write: &Write,
    choice: NextWrite,
    lines: &[Line],
) -> Taken {
    let programmed = pm.cells.clone();
    let cells = |line| programmed.get(&line).copied().unwrap_or([0; 64]);
    let held = pm.buffer.held.iter().flatten().find(|held| held.line == write.line);
    let before = held.filter(|held| held.mask != 0).map_or_else(
        || cells(write.line),
        |held| {
            let mut before = held.before;
            apply_masked(&mut before, &held.data, held.mask);
            before
        },
    );
    pm.write(at, (write, &before), choice, Behind { lines, cells: &cells }, now)
}

/// Has all of the buffer written to cells that began as zeros.
fn settle(pm: &mut PmDevice) {
    let programmed = pm.cells.clone();
    pm.settle(&|line| programmed.get(&line).copied().unwrap_or([0; 64]), 0);
}

#[test]
fn an_open_row_is_read_faster() {
    let mut pm = pm(|_| ());
    let first = pm.read(0, Line(0), 0).done;
    let second = pm.read(first, Line(1), 0).done - first;
    assert!(second < first, "{second} of an open row, {first} of a closed one");
}

#[test]
fn cells_are_read_when_a_row_is_opened_and_not_when_it_is_open() {
    let mut pm = pm(|config| config.pm.e_read = 3);
    for (line, rows) in [(0, 1), (1, 1), (0, 1), (1 << 10, 2)] {
        pm.read(0, Line(line), 0);
        assert_eq!(
            pm.meters.energy.total(),
            u128::from(rows * pm.banks.row_bytes * 8 * 3),
            "line {line}"
        );
    }
}

/// A row that is shorter than a line of the buffer counts as long as that line, for reads as for
/// writes.
#[test]
fn a_short_row_is_opened_in_the_length_of_a_line_of_the_buffer() {
    for row in [64, 128, 256] {
        let mut pm = pm(|config| {
            (config.pm.row, config.pm.xpline, config.pm.buffer) = (row, 256, 4);
            config.pm.e_read = 3;
        });
        pm.read(0, Line(0), 0);
        pm.read(0, Line(3), 0);
        assert_eq!(pm.meters.energy.total(), 256 * 8 * 3, "rows of {row} bytes");
    }
}

/// A later access that finds the row open reads no cells.
#[test]
fn a_row_that_a_write_opens_is_read_unless_all_of_it_is_written() {
    // The encoder, the lines of a row, and the rows that two writes to it read.
    for (encoder, lines, rows) in
        [(Encoder::Dcw, 32, 1), (Encoder::None, 32, 1), (Encoder::Dcw, 1, 1), (Encoder::None, 1, 0)]
    {
        let mut pm = pm(|config| {
            let pm = &mut config.pm;
            (pm.buffer, pm.encoder, pm.row) = (0, encoder, lines * 64);
            (pm.e_read, pm.e_set, pm.e_reset) = (3, 0, 0);
        });
        for line in [0, lines - 1] {
            write(&mut pm, 0, line, 1, u64::MAX);
        }
        pm.read(0, Line(lines - 1), 0);
        let row = pm.banks.row_bytes * 8 * 3;
        assert_eq!(
            pm.meters.energy.total(),
            u128::from(rows * row),
            "encoder {encoder:?}, {lines} lines"
        );
    }
}

#[test]
fn a_read_that_the_buffer_answers_takes_the_buffers_time() {
    let mut pm = pm(|config| {
        (config.pm.buffer, config.pm.t_buffer, config.pm.t_wtr) = (4, 50_000, 0);
    });
    write(&mut pm, 0, 0, 1, u64::MAX);
    let Timing { burst, buffer, .. } = pm.banks.timing;
    assert_eq!(pm.read(1_000, Line(0), 0).done, 1_000 + buffer + burst);
    assert_eq!(buffer, 100, "at 2 GHz");
}

#[test]
fn wear_is_counted_for_each_line() {
    let mut pm = pm(|config| config.pm.buffer = 0);
    for (line, value, most) in [(0, 1, 1), (4, 1, 1), (0, 2, 2), (4, 2, 2), (0, 3, 3), (0, 3, 3)] {
        write(&mut pm, 0, line, value, u64::MAX);
        assert_eq!(pm.meters.wear_max, most, "line {line}, value {value}");
    }
}

#[test]
fn a_bit_that_is_set_costs_another_energy_than_one_that_is_reset() {
    let mut pm = pm(|config| {
        let pm = &mut config.pm;
        (pm.buffer, pm.encoder, pm.e_read, pm.e_set, pm.e_reset) = (0, Encoder::Dcw, 0, 3, 5);
    });
    write(&mut pm, 0, 0, 0b0111, u64::MAX);
    assert_eq!(pm.meters.energy.total(), 64 * 3 * 3);
    write(&mut pm, 0, 0, 0b1100, u64::MAX);
    assert_eq!(pm.meters.energy.total(), 64 * 3 * 3 + 64 * (3 + 2 * 5));
    assert_eq!(pm.meters.energy, CellEnergy { read: 0, set: 64 * 4 * 3, reset: 64 * 2 * 5 });
}

#[test]
fn writes_of_one_buffer_line_reach_the_cells_once() {
    let mut pm = pm(|config| config.pm.buffer = 1);
    for line in 0..4 {
        write(&mut pm, 0, line, 1, u64::MAX);
    }
    assert_eq!(pm.meters.media_lines, 0);
    write(&mut pm, 0, 4, 1, u64::MAX);
    assert_eq!((pm.meters.media_lines, pm.meters.media_fill_reads), (1, 0));
    settle(&mut pm);
    assert_eq!((pm.meters.media_lines, pm.meters.media_fill_reads), (2, 1));
}

#[test]
fn the_first_write_that_is_ready_is_the_first_that_joins_the_buffer() {
    let mut pm = pm(|config| {
        (config.pm.buffer, config.pm.t_write) = (8, 1_000_000);
    });
    let (mut waiting, mut state, mut joined) = (Vec::new(), 1, 0);
    for now in (0..20_000).step_by(10) {
        state = crate::units::mix(state);
        waiting.push(Line(state % 200));
        pm.expect(Line(state % 200));
        if waiting.len() < 12 {
            continue;
        }
        let choice = pm.first_ready(now, &waiting, false);
        let joins = waiting.iter().position(|&line| pm.buffer.find(line).is_some());
        let count = waiting.iter().filter(|&&line| pm.buffer.find(line).is_some()).count();
        assert_eq!(pm.buffer.joining, count);
        if choice.leaving.is_some_and(|leaving| leaving.idle > now) {
            assert_eq!(choice.index, joins.unwrap_or(0));
            joined += usize::from(joins.is_some_and(|index| index > 0));
        }
        let line = waiting.remove(choice.index);
        let write = Write { line, data: [1; 64], mask: 1, class: Class::Data };
        send(&mut pm, (now, now), &write, choice, &waiting);
    }
    assert!(joined > 100, "{joined}");
}

#[test]
fn bits_that_do_not_change_are_not_written_under_dcw() {
    let mut pm = pm(|config| config.pm.buffer = 0);
    write(&mut pm, 0, 0, 3, u64::MAX);
    assert_eq!(pm.meters.media_bits_total(), 128);
    write(&mut pm, 0, 0, 3, u64::MAX);
    assert_eq!((pm.meters.media_bits_total(), pm.meters.media_lines), (128, 1));
    write(&mut pm, 0, 0, 2, 0xff);
    assert_eq!(pm.meters.media_bits_total(), 136);
}

/// Bits count for the class of the last write that joined their cache line, and for no other.
#[test]
fn bits_are_counted_by_what_was_written_last() {
    for (buffer, data, log) in [(0, 64, 2 * 64 + 64), (4, 0, 3 * 64 + 64)] {
        let mut pm = pm(|config| config.pm.buffer = buffer);
        // A bit of each byte of line 0 is data; two more, and one of each byte of line 1, are log.
        for (line, value, class) in [(0, 1, Class::Data), (0, 7, Class::Log), (1, 1, Class::Log)] {
            let data = [value; 64];
            let write = Write { line: Line(line), data, mask: u64::MAX, class };
            pm.expect(write.line);
            send(&mut pm, (0, 0), &write, NextWrite::default(), &[]);
        }
        settle(&mut pm);
        let by_class = |class| pm.meters.media_bits[class as usize];
        let counted = (by_class(Class::Data), by_class(Class::Log));
        assert_eq!(counted, (data, log), "buffer of {buffer}");
        assert_eq!(pm.meters.media_bits_total(), 64 * 4);
    }
}

/// Everything that was durable under ADR ends in the cells, whichever of it is programmed when.
#[test]
fn the_cells_get_what_was_durable() {
    for encoder in [Encoder::None, Encoder::Dcw, Encoder::Fnw] {
        let mut pm = pm(|config| (config.pm.buffer, config.pm.encoder) = (2, encoder));
        let mut durable = Contents::new(0, 1 << 20).expect("room");
        let mut state = 7;
        for round in 0..2_000_u64 {
            state = crate::units::mix(state);
            let (line, value, mask) = (state % 40, round as u8, state >> 8 | 1);
            write(&mut pm, round * 10, line, value, mask);
            apply_masked(durable.line_mut(Line(line)), &[value; 64], mask);
        }
        settle(&mut pm);
        for line in (0..40).map(Line) {
            assert_eq!(&pm.cells[&line], durable.line(line), "{line:?} with encoder {encoder:?}");
        }
    }
}

#[test]
fn flip_n_write_changes_at_most_half_the_bits_and_the_flip_bit() {
    assert_eq!(flip_n_write((0, u64::MAX), 32), (2, 0));
    assert_eq!(flip_n_write((0, 0xff), 32), (8, 0));
    assert_eq!(flip_n_write((0xff, 0), 64), (0, 8));
    assert_eq!(flip_n_write((0, 0xffff), 32), (16, 0), "half of them are written as they are");
    assert_eq!(flip_n_write((0, 0x1_ffff), 32), (15 + 1, 0));
}

#[test]
fn writes_of_a_line_are_programmed_in_the_order_in_which_they_are_sent() {
    let mut pm = pm(|config| {
        config.pm.buffer = 0;
        (config.pm.t_read, config.pm.t_write) = (500, 500);
    });
    // Before the read, which lies in the future, the bus has room for a line, but not for a line
    // and a turn of the bus.
    let read = pm.read(1_000, Line(64), 0).done;
    let at = read - 2 * pm.banks.timing.burst;
    let mut write = |value| write(&mut pm, at, 0, value, u64::MAX).programmed;
    let (first, second) = (write(1), write(2));
    assert!(first < second, "{first:?} and {second:?}");
}

#[test]
fn a_bank_writes_one_line_at_a_time() {
    let mut pm = pm(|config| config.pm.buffer = 0);
    let write = |pm: &mut PmDevice, line| write(pm, 0, line, 1, u64::MAX).free;
    let first = write(&mut pm, 0);
    let cells = pm.banks.timing.write;
    assert!(write(&mut pm, 1) >= first + cells, "the same bank");
    assert!(write(&mut pm, 4) < first + 20, "another bank");
}

#[test]
fn a_write_to_an_open_row_finds_there_what_it_is_compared_with() {
    let mut pm = pm(|config| config.pm.buffer = 0);
    let mut took = |at, line| {
        let before = pm.meters.energy.total();
        let end = write(&mut pm, at, line, 1, u64::MAX).free;
        (end - at, pm.meters.energy.total() - before)
    };
    // Only the first write turns the bus.
    took(0, 4);
    let (closed, open) = (took(10_000, 0), took(20_000, 1));
    assert!(open.1 < closed.1, "no cells are read");
    assert_eq!(closed.0 - open.0, pm.banks.timing.miss - pm.banks.timing.hit);
}

#[test]
fn a_write_waits_for_its_bank_and_an_urgent_one_for_the_one_before_it_alone() {
    let mut pm = pm(|config| config.pm.buffer = 0);
    let end = write(&mut pm, 0, 0, 1, u64::MAX).free;
    let (same, other) = ([Line(1)], [Line(1), Line(4)]);
    let at = end / 2;
    assert_eq!(pm.first_ready(at, &same, false).goes, end);
    assert_eq!(pm.first_ready(at, &other, false).index, 1);
    assert_eq!(pm.oldest(at, &other, false).goes, end);
    let urgent = pm.first_ready(at, &same, true);
    assert_eq!((urgent.index, urgent.goes), (0, at));
    write(&mut pm, at, 1, 1, u64::MAX);
    assert_eq!(pm.first_ready(at, &[Line(2)], true).goes, end, "one write waits there");
    assert_eq!(pm.first_ready(at, &[Line(2), Line(4)], true).index, 1);
}

/// An urgent write goes before reads. So a bank that reads for long takes it sooner than a bank
/// where another write waits.
#[test]
fn an_urgent_write_goes_where_only_reads_are_before_it() {
    let mut pm = pm(|config| (config.pm.buffer, config.pm.banks) = (0, 2));
    let end = write(&mut pm, 0, 0, 1, u64::MAX).free;
    write(&mut pm, 0, 1, 1, u64::MAX);
    write(&mut pm, 0, 4, 1, u64::MAX);
    for row in 1..20 {
        pm.read(0, Line(4 + 8 * row), 0);
    }
    let free_from = |line| pm.banks.free_from(pm.bank_of(Line(line)), end / 2);
    assert!(free_from(4) > free_from(0), "the bank of line 4 is busy for longer");
    let choice = pm.first_ready(end / 2, &[Line(2), Line(5)], true);
    assert_eq!((choice.index, choice.goes), (1, end / 2));
}

/// Lines of the older half leave a full buffer: the least recent whose bank is idle, or else the
/// least recent of those whose bank is idle first.
#[test]
fn the_line_that_leaves_is_the_least_recent_of_the_older_half_unless_its_bank_is_busy() {
    let mut pm = pm(|config| {
        (config.pm.buffer, config.pm.banks, config.pm.t_read) = (4, 4, 1_000_000);
    });
    for line in [0, 4, 1, 2] {
        write(&mut pm, 0, 4 * line, 1, u64::MAX);
    }
    // The older half, 0 and 4, lies in a bank that reads.
    pm.read(1_000, Line(4 * 8), 0);
    write(&mut pm, 1_010, 4 * 3, 1, u64::MAX);
    assert!(pm.cells.keys().eq(&[Line(0)]), "{:?}", pm.cells.keys());
    // Of the older half, now 4 and 1, the line of another bank leaves.
    write(&mut pm, 1_020, 4 * 7, 1, u64::MAX);
    assert!(pm.cells.keys().eq(&[Line(0), Line(4)]), "{:?}", pm.cells.keys());
}

#[test]
fn volatile_memory_opens_the_row_that_it_writes() {
    let mut dram = DramDevice::new(&Config::default());
    let Timing { hit_takes, miss_takes, burst, .. } = dram.banks.timing;
    let [first, second] = [Line(1 << 40), Line((1 << 40) + 1)];
    dram.write(0, first, 0);
    assert_eq!(dram.read(burst, second, 0).start, burst + miss_takes);
    dram.write(10_000, first, 0);
    assert_eq!(dram.read(10_000 + burst, second, 0).start, 10_000 + burst + hit_takes);
}

/// A bank answers reads of its open row one after the other, each as late as the first, so that a
/// stream is limited by the bus. A read that opens a row keeps the bank until that is done.
#[test]
fn reads_of_an_open_row_overlap() {
    let config = Config::default();
    let mut dram = DramDevice::new(&config);
    let Timing { hit, miss, hit_takes, burst, .. } = dram.banks.timing;
    assert!(hit_takes < hit);
    let read = |dram: &mut DramDevice, line: u64| dram.read(0, Line((1 << 40) + line), 0).done;
    let first = read(&mut dram, 0);
    assert_eq!(first, miss + burst);
    let apart = hit_takes.max(burst);
    let each: Vec<u64> = (1..5).map(|line| read(&mut dram, line)).collect();
    assert_eq!(each, [1, 2, 3, 4].map(|reads| first + reads * apart));
}

/// A device knows nothing of the other controllers: its own controller's lines follow each other.
#[test]
fn controllers_that_take_turns_by_less_than_a_buffer_line_fill_it_all_the_same() {
    for (count, interleave) in [(2, 64), (4, 64), (3, 128), (1, 64), (2, 4096)] {
        let mut pm = pm(|config| {
            (config.pm.buffer, config.pm.encoder) = (1, Encoder::None);
            (config.controller.count, config.controller.interleave) = (count, interleave);
        });
        let own = (0..1 << 12).filter(|line| line * 64 / interleave % count == count - 1);
        for line in own.take(16) {
            write(&mut pm, 0, line, 7, u64::MAX);
        }
        settle(&mut pm);
        let Meters { media_lines, media_fill_reads, .. } = pm.meters;
        assert_eq!((media_lines, media_fill_reads), (4, 0), "{count} x {interleave} B");
        assert_eq!(pm.meters.media_bits_total(), 16 * 512);
        // Each line's bytes are at the machine's address of the line.
        let own = (0..1 << 12).filter(|line| line * 64 / interleave % count == count - 1);
        assert!(own.take(16).all(|line| pm.cells[&Line(line)] == [7; 64]));
    }
}

/// The capacity is a multiple of 1 KiB, and a line of the buffer may be longer than that.
#[test]
fn the_last_line_of_the_buffer_may_go_beyond_the_memory() {
    for encoder in [Encoder::None, Encoder::Dcw] {
        let mut pm = pm(|config| {
            (config.pm.capacity, config.pm.xpline) = ((8 << 20) + 1024, 4096);
            (config.pm.buffer, config.pm.encoder) = (1, encoder);
        });
        let last = ((8 << 20) + 1024) / 64 - 1;
        write(&mut pm, 0, last, 7, u64::MAX);
        settle(&mut pm);
        assert_eq!((pm.meters.media_lines, pm.meters.wear_max), (1, 1), "encoder {encoder:?}");
        assert_eq!(pm.cells[&Line(last)], [7; 64]);
    }
}
