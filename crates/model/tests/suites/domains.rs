//! The writes that survive a power failure in each durability domain, as recovery sees them.

use crate::common::{Seen, at, config, on, seen};
use model::agenda::Agenda;
use model::config::{Config, Domain};
use model::contents::Contents;
use model::controller::Notify;
use model::crash::Points;
use model::device::Write;
use model::event::Event;
use model::image::{Image, PowerLoss};
use model::memory::Memory;
use model::meters::Class;
use model::units::{Cycle, LINE_WORDS, Line, Word};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn in_domain(domain: Domain) -> Config {
    config(|config| {
        config.controller.domain = domain;
        config.pm.banks = 16;
    })
}

/// In the domain `media`, a write is durable when the cells hold it, and its sender is told then.
#[test]
fn the_cells_hold_a_write_when_they_have_been_programmed() {
    let mut memory = Memory::<u32>::new(&in_domain(Domain::Media)).expect("room");
    let mut agenda = Agenda::default();
    let write = Write::whole(Line(0), [1; 64], Class::Data);
    memory.send(Cycle(10), write, Notify::Design(7), &mut agenda);
    let mut told = None;
    while let Some((at, event)) = agenda.take(Cycle::NEVER) {
        let durable = memory.durable().word(Word(0));
        let programming = memory.being_programmed(at).count();
        match event {
            Event::Arrive { controller, write } => {
                assert_eq!((at, durable, programming), (Cycle(12), 0, 0));
                assert!(memory.arrive(at, controller, write, &mut agenda).is_none());
            }
            Event::Drain { controller } => memory.drain(at, controller, &mut agenda),
            Event::Programmed { controller, slot } => {
                assert_eq!((at, durable), (Cycle(113), 0), "until the last moment");
                assert_eq!(memory.being_programmed(Cycle(112)).count(), 1);
                let mut who = Vec::new();
                let line = memory.programmed(at, controller, slot, &mut who, &mut agenda);
                assert!(told.is_none(), "once");
                told = Some((at, line, who));
            }
            _ => panic!("{event:?}"),
        }
    }
    assert_eq!(memory.durable().word(Word(0)), 0x0101_0101_0101_0101);
    assert_eq!(told, Some((Cycle(113), Line(0), vec![Notify::Design(7)])));
}

/// A write that waits for the cells may be durable before earlier ones, but is always durable
/// before later writes of its line.
#[test]
fn what_waits_for_the_cells_is_under_way() {
    let under_way = |domain: Domain, taken: &dyn Fn(&Notify<u32>) -> bool| {
        let mut memory = Memory::<u32>::new(&in_domain(domain)).expect("room");
        let mut agenda = Agenda::default();
        // Two accepted writes, of which the first is given to the cells, and one on its way.
        for (at, line, byte) in [(10, 0, 1), (11, 0, 2), (500, 0, 3)] {
            let write = Write::whole(Line(line), [byte; 64], Class::Data);
            memory.send(Cycle(at), write, Notify::Design(byte.into()), &mut agenda);
        }
        while let Some((at, event)) = agenda.take(Cycle(60)) {
            match event {
                Event::Arrive { controller, write } => {
                    _ = memory.arrive(at, controller, write, &mut agenda);
                }
                Event::Drain { controller } => memory.drain(at, controller, &mut agenda),
                _ => (),
            }
        }
        let bytes = |&(write, is_taken): &(&Write, bool)| (write.data[0], is_taken);
        memory.under_way(taken).iter().map(bytes).collect::<Vec<_>>()
    };
    assert_eq!(under_way(Domain::Media, &|_| true), [(1, true), (2, true), (3, true)]);
    let but_one = under_way(Domain::Media, &|notify| *notify != Notify::Design(2));
    assert_eq!(but_one, [(1, true), (2, false), (3, true)]);
    assert_eq!(under_way(Domain::Adr, &|_| true), [(3, true)], "what was accepted is durable");
}

/// Sixteen banks write two lines at about the same time, so that the power fails in the middle of
/// one when the other is done. Returns what lines 1 and 2 held at each failure.
fn failures(config: &Config) -> Vec<[[u64; 8]; 2]> {
    on(config, 1, Some(Points::All), |pm| {
        for round in 1..=40 {
            pm.begin()?;
            for (line, value) in [(1, round), (4, round)].into_iter().rev() {
                for word in 0..LINE_WORDS {
                    pm.store(at(line, word), value * 100 + word);
                }
                pm.flush(at(line, 0));
                // The two banks finish at different times.
                pm.work(round * 8);
            }
            pm.durable();
            pm.commit();
        }
        Ok(())
    });
    let recoveries = seen().into_iter().filter_map(|seen| match seen {
        Seen::Recover(lines) => Some([lines[1], lines[2]]),
        _ => None,
    });
    recoveries.collect()
}

/// Returns how many power failures left only a part of a line.
fn torn(config: &Config) -> usize {
    let mut torn = 0;
    for [line, _] in failures(config) {
        let rounds = line.map(|word| word / 100);
        let newest = *rounds.iter().max().expect("a line has words");
        let old = |round: u64| round + 1 == newest;
        assert!(rounds.iter().all(|&round| round == newest || old(round)), "{line:?}");
        torn += usize::from(rounds.iter().any(|&round| old(round)));
    }
    torn
}

#[test]
fn a_write_is_torn_at_words_under_media_and_not_under_adr() {
    assert!(torn(&in_domain(Domain::Media)) > 0, "some failure was in the middle of a write");
    assert_eq!(torn(&in_domain(Domain::Adr)), 0, "a line is accepted whole or not at all");
}

/// Returns the contents of lines 1 to 3 at the last power failure of a program that stores to them
/// and flushes only line 1.
fn left(config: &Config) -> [u64; 3] {
    on(config, 1, Some(Points::All), |pm| {
        pm.begin()?;
        for line in 1..=3 {
            pm.store(at(line, 0), line);
        }
        pm.flush(at(1, 0));
        pm.durable();
        pm.commit();
        Ok(())
    });
    let last = seen().into_iter().rev().find_map(|seen| match seen {
        Seen::Recover(lines) => Some([lines[1][0], lines[2][0], lines[3][0]]),
        _ => None,
    });
    last.expect("the power failed")
}

#[test]
fn caches_survive_as_far_as_the_domain_and_its_energy_say() {
    for (domain, flush_bytes, expect) in [
        (Domain::Media, u64::MAX, [1, 0, 0]),
        (Domain::Adr, u64::MAX, [1, 0, 0]),
        (Domain::Eadr, u64::MAX, [1, 2, 3]),
        (Domain::Gpf, u64::MAX, [1, 2, 3]),
        (Domain::Gpf, 64, [1, 2, 0]),
        (Domain::Gpf, 63, [1, 0, 0]),
        (Domain::Eadr, 0, [1, 0, 0]),
    ] {
        let mut config = in_domain(domain);
        config.controller.flush_bytes = flush_bytes.min(1 << 30);
        assert_eq!(left(&config), expect, "{domain:?} {flush_bytes}");
    }
}

/// A partial line leaves the write-combining buffers as a masked write: the bytes that it does not
/// cover stay, and do not count.
#[test]
fn a_partial_line_past_the_caches_is_masked() {
    let outcome = on(&in_domain(Domain::Adr), 1, Some(Points::All), |pm| {
        for word in 0..LINE_WORDS {
            pm.store(at(1, word), 5);
        }
        pm.flush(at(1, 0));
        pm.durable();
        for word in 2..5 {
            pm.store_past_caches(at(1, word), 6);
        }
        pm.durable();
        for word in 0..LINE_WORDS {
            pm.store_past_caches(at(2, word), 7);
        }
        pm.durable();
        Ok(())
    });
    let Some(Seen::Recover(lines)) = seen().pop() else { panic!("the power failed") };
    assert_eq!(lines[1], [5, 5, 6, 6, 6, 5, 5, 5]);
    assert_eq!(lines[2], [7; 8]);
    assert_eq!(outcome.report.meters.wpq_bytes[Class::Data as usize], 64 + 3 * 8 + 64);
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::with_cases(2_000)
    })]

    /// An image is the durable bytes with the first writes over them, as many as the power lasts
    /// for, and the durable bytes stay as they are.
    #[test]
    fn an_image_holds_the_writes_that_power_lasted_for(
        writes in prop::collection::vec((0_u64..32, any::<u64>(), any::<u64>(), any::<bool>()), 1..40),
        power in 0_u64..50,
    ) {
        let mut durable = Contents::new(0, 4096).expect("room");
        for word in 0..32 {
            durable.set_word(Word(word), word);
        }
        let mut expect: Vec<u64> = (0..32).collect();
        let mut image = Image::over(&durable).failing_after(power);
        for (index, &(word, value, mask, whole_line)) in writes.iter().enumerate() {
            let lasts = (index as u64) < power;
            let result = if whole_line {
                image.set_line(Word(word).line(), &[value as u8; 64], mask)
            } else {
                image.set_word(Word(word), value)
            };
            prop_assert_eq!(result, if lasts { Ok(()) } else { Err(PowerLoss) });
            if !lasts {
                continue;
            }
            if !whole_line {
                expect[word as usize] = value;
                continue;
            }
            for byte in (0..64).filter(|byte| mask >> byte & 1 == 1) {
                let target = &mut expect[(word / 8 * 8 + byte / 8) as usize];
                let shift = 8 * (byte % 8);
                *target = (*target & !(0xff << shift)) | ((value & 0xff) << shift);
            }
        }
        prop_assert_eq!(image.writes(), power.min(writes.len() as u64));
        let touched: Vec<Line> = image.changed_lines().collect();
        for word in (0..32).map(Word) {
            prop_assert_eq!(image.word(word), expect[word.0 as usize]);
            prop_assert_eq!(durable.word(word), word.0);
            prop_assert!(image.word(word) == word.0 || touched.contains(&word.line()));
        }
    }
}

/// In the domain `media`, a write of no bytes waits for the newest write of its line, also where
/// two of them are on their way to the cells.
#[test]
fn what_follows_a_line_waits_for_its_newest_write() {
    let mut memory = Memory::<u32>::new(&in_domain(Domain::Media)).expect("room");
    let mut agenda = Agenda::default();
    let of =
        |line, value, mask| Write { line: Line(line), data: [value; 64], mask, class: Class::Data };
    memory.send(Cycle(100), of(0, 1, u64::MAX), Notify::Design(1), &mut agenda);
    memory.send(Cycle(120), of(0, 2, u64::MAX), Notify::Design(2), &mut agenda);
    memory.send(Cycle(130), of(0, 0, 0), Notify::Design(3), &mut agenda);
    let mut told = Vec::new();
    while let Some((at, event)) = agenda.take(Cycle::NEVER) {
        match event {
            Event::Arrive { controller, write } => {
                let accepted = memory.arrive(at, controller, write, &mut agenda);
                assert!(accepted.is_none(), "it waits for the cells");
            }
            Event::Drain { controller } => memory.drain(at, controller, &mut agenda),
            Event::Programmed { controller, slot } => {
                let mut who = Vec::new();
                memory.programmed(at, controller, slot, &mut who, &mut agenda);
                for notify in who {
                    if let Notify::Design(number) = notify {
                        told.push((number, memory.durable().line(Line(0))[0]));
                    }
                }
            }
            _ => (),
        }
    }
    assert_eq!(told, [(1, 1), (2, 2), (3, 2)]);
}
