use super::*;

#[test]
fn parts_are_an_odd_number_of_lines_apart() {
    for end in 100..140 {
        let heap = LINE_BYTES..end * LINE_BYTES;
        let site =
            Site { cores: 3, seed: 1, heap: heap.clone(), items: 1, script: None, checker: None };
        let parts: Vec<_> = (0..3).map(|core| site.part(CoreId(core))).collect();
        assert_eq!(parts[0].start, heap.start);
        for pair in parts.windows(2) {
            assert_eq!(pair[0].end, pair[1].start);
            assert_eq!((pair[1].start - pair[0].start) / LINE_BYTES % 2, 1);
        }
        assert!(parts[2].end <= heap.end, "{parts:?} in {heap:?}");
    }
}
