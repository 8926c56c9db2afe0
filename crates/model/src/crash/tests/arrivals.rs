//! Which of the writes under way have arrived in an image, and how much of each.

use super::super::failure::arrive_early;
use super::*;
use crate::device::Write;
use crate::meters::Class;
use crate::units::spread;

/// Returns what each line holds in every image that writes to the first words of lines, in their
/// order, can leave if some arrive early. A write of 0 cannot have arrived.
fn arrivals<const LINES: usize>(writes: &[(u64, u64)]) -> Vec<[u64; LINES]> {
    let durable = Contents::new(0, 4096).expect("room");
    let write = |&(line, value): &(u64, u64)| {
        let mut data = [0; 64];
        data[..8].copy_from_slice(&value.to_le_bytes());
        Write { line: Line(line), data, mask: 0xff, class: Class::Data }
    };
    let writes: Vec<Write> = writes.iter().map(write).collect();
    let (mut choices, mut images) = (Choices::every(), Vec::new());
    loop {
        let mut image = Image::over(&durable);
        let under_way = writes.iter().map(|write| (write, write.data[0] > 0)).collect();
        arrive_early(under_way, false, &mut image, &mut choices, &mut Vec::new());
        images.push(std::array::from_fn(|line| image.word(Line(line as u64).first_word())));
        if choices.next(0) {
            images.sort_unstable();
            return images;
        }
    }
}

#[test]
fn a_write_may_arrive_before_those_of_other_lines_that_were_sent_before_it() {
    assert_eq!(arrivals(&[(0, 1), (1, 1)]), [[0, 0], [0, 1], [1, 0], [1, 1]]);
    assert_eq!(arrivals::<3>(&[(0, 1), (1, 1), (2, 1)]).len(), 8);
}

#[test]
fn the_writes_of_one_line_arrive_in_order() {
    assert_eq!(arrivals(&[(0, 1), (0, 2)]), [[0], [1], [2]]);
    let both = arrivals(&[(0, 1), (1, 1), (0, 2)]);
    assert_eq!(both, [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]]);
    assert_eq!(arrivals(&[(0, 1), (0, 0), (0, 2), (1, 1)]), [[0, 0], [0, 1], [1, 0], [1, 1]]);
}

#[test]
fn by_chance_one_write_arrives_without_another_that_was_sent_before_it() {
    let mut choices = Choices::none();
    let mut answers = |seed| {
        choices.at_random(seed);
        [choices.arrived(), choices.arrived()]
    };
    let seen: Vec<[bool; 2]> = (0..64).map(|seed| answers(mix(seed))).collect();
    for both in [[false, false], [false, true], [true, false], [true, true]] {
        assert!(seen.contains(&both), "{both:?}");
    }
}

/// Returns the words of two lines that writes of a first and a second value leave at random, where
/// cells hold them or where a controller does.
fn torn(is_media: bool) -> FxHashSet<[[u64; 8]; 2]> {
    let durable = Contents::new(0, 4096).expect("room");
    let of = |line, value| Write::whole(Line(line), [value; 64], Class::Data);
    let writes = [of(0, 1), of(1, 1), of(0, 2)];
    let mut choices = Choices::none();
    let image = |seed| {
        choices.at_random(mix(seed));
        let mut image = Image::over(&durable);
        let under_way = writes.iter().map(|write| (write, true)).collect();
        arrive_early(under_way, is_media, &mut image, &mut choices, &mut Vec::new());
        let word = |line: u64, place: usize| image.word(Word(8 * line + place as u64)) & 0xff;
        [0, 1].map(|line| std::array::from_fn(|place| word(line, place)))
    };
    (0..512).map(image).collect()
}

#[test]
fn of_a_line_the_cells_may_have_a_part_of_the_last_write_that_arrived() {
    let is_whole = |line: &[u64; 8]| line.iter().all(|word| *word == line[0]);
    assert!(torn(false).iter().flatten().all(is_whole));
    let torn = torn(true);
    for line in torn.iter().flatten() {
        let oldest = line.iter().min().expect("words");
        assert!(line.iter().all(|word| word - oldest <= 1), "{line:?}");
    }
    let has = |is: &dyn Fn(&[[u64; 8]; 2]) -> bool| torn.iter().any(is);
    assert!(has(&|[first, second]| first.contains(&0) && first.contains(&1) && second[0] == 0));
    assert!(has(&|[first, second]| first.contains(&0) && first.contains(&1) && is_whole(second)));
    assert!(has(&|[first, _]| first.contains(&1) && first.contains(&2)));
    assert!(has(&|[first, second]| is_whole(first) && !is_whole(second)));
}

/// Where every combination is tried, so is each set of the words that a write changes.
#[test]
fn every_combination_has_every_part_of_a_write() {
    let durable = Contents::new(0, 4096).expect("room");
    // The second word is what the cells hold.
    let mut data = [1; 64];
    data[8..16].fill(0);
    let write = Write { mask: spread(0b111), ..Write::whole(Line(0), data, Class::Data) };
    let (mut choices, mut seen) = (Choices::every(), Vec::new());
    loop {
        let mut image = Image::over(&durable);
        arrive_early(vec![(&write, true)], true, &mut image, &mut choices, &mut Vec::new());
        seen.push([0, 1, 2].map(|place| image.word(Word(place)) & 0xff));
        if choices.next(0) {
            break;
        }
    }
    seen.sort_unstable();
    let parts = [[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 1]];
    // The first is also the image in which the write has not arrived.
    assert_eq!(seen, [&parts[..1], &parts[..]].concat());
}

/// The write of a flush of a clean line has no bytes, and a line may be torn so that none of it is
/// there.
#[test]
fn what_came_early_has_bytes() {
    let durable = Contents::new(0, 4096).expect("room");
    let of = |line, mask| Write { mask, ..Write::whole(Line(line), [1; 64], Class::Data) };
    let writes = [of(0, u64::MAX), of(1, 0), of(2, 0xff)];
    let mut seen = FxHashSet::default();
    for seed in 0..512 {
        let (mut choices, mut early) = (Choices::none(), Vec::new());
        choices.at_random(mix(seed));
        let under_way = writes.iter().map(|write| (write, true)).collect();
        arrive_early(under_way, true, &mut Image::over(&durable), &mut choices, &mut early);
        seen.extend(early.iter().map(|early| (early.line, early.bytes)));
    }
    assert!(seen.iter().all(|(line, bytes)| *line != Line(1) && *bytes > 0), "{seen:?}");
    assert!(seen.contains(&(Line(0), 64)) && seen.contains(&(Line(2), 8)), "{seen:?}");
}
