//! What an epoch of recovery may leave when its writes overtake each other.

use super::*;

/// Returns which of these words hold something, over all seeds, if an epoch of these writes in turn
/// is interrupted: for each of the two images.
fn left_open<const WORDS: usize>(
    writes: &[(Line, u64)],
    words: [Word; WORDS],
    is_media: bool,
) -> [Vec<[u64; WORDS]>; 2] {
    let durable = Contents::new(0, 4096).expect("room");
    let mut image = Image::over(&durable).remembering();
    for (line, mask) in writes {
        image.set_line(*line, &[1; 64], *mask).expect("power");
    }
    let epoch = image.take_remembered();
    let left = |arrived: &Vec<(&Remembered, u64)>| {
        let mut image = Image::over(&durable);
        arrived.iter().for_each(|(write, there)| image.write_in_part(write, *there));
        words.map(|word| image.word(word) & 1)
    };
    let drawn = (0..256).map(|seed| nested::out_of_order(&epoch, mix(seed), is_media));
    let drawn: Vec<_> = drawn.collect();
    [0, 1].map(|number| {
        let mut images: Vec<_> = drawn.iter().map(|both| left(&both[number])).collect();
        images.sort_unstable();
        images.dedup();
        images
    })
}

#[test]
fn of_an_epoch_all_but_one_line_arrived_or_of_each_line_the_first_writes() {
    let words = [Word(0), Word(8), Word(1)];
    let writes = words.map(|word| (word.line(), word.mask()));
    for is_media in [false, true] {
        let [without_a_line, first_few] = left_open(&writes, words, is_media);
        assert_eq!(without_a_line, [[0, 1, 0], [1, 0, 1]], "a word is whole");
        let newer_after_older = |&[first, _, second]: &[u64; 3]| second <= first;
        assert!(first_few.iter().all(newer_after_older) && first_few.len() == 6, "{first_few:?}");
    }
}

#[test]
fn of_an_epoch_the_cells_may_have_a_part_of_the_last_write_to_each_line() {
    let (first, second) = (Line(0), Line(1));
    let writes = [(first, 0xff), (second, u64::MAX), (first, 0xffff_ff00)];
    let words = [Word(0), Word(1), Word(2), Word(8), Word(9)];
    let is_torn = |[_, one, other, ..]: &[u64; 5]| one != other;
    let of_second = |[.., one, other]: &[u64; 5]| one != other;
    for images in left_open(&writes, words, false) {
        assert!(!images.iter().any(|held| is_torn(held) || of_second(held)), "{images:?}");
    }
    for images in left_open(&writes, words, true) {
        assert!(images.iter().any(is_torn) && images.iter().any(of_second), "{images:?}");
        assert!(images.iter().any(|held| !is_torn(held) && of_second(held)), "{images:?}");
        let is_in_order = |held: &[u64; 5]| held[0] == 1 || held[1..3] == [0, 0];
        assert!(images.iter().all(is_in_order), "{images:?}");
    }
}
