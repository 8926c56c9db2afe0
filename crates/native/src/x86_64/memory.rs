//! Memory for the benchmark: aligned, touched in advance, and in huge pages if the system has them.

use std::io;

use memmap2::{Advice, MmapMut};

/// The bytes of a huge page, and of an ordinary page.
const HUGE: usize = 2 << 20;
const PAGE: usize = 4 << 10;

/// A region of memory all of whose pages are mapped and touched.
pub struct Region {
    map: MmapMut,
    start: usize,
    bytes: usize,
}

impl Region {
    /// Maps a region that begins at a huge page.
    ///
    /// # Errors
    /// When the system has no room.
    pub fn new(bytes: usize) -> io::Result<Region> {
        let length = bytes.next_multiple_of(HUGE) + HUGE;
        let mut map = MmapMut::map_anon(length + PAGE)?;
        // Without huge pages everything still works; the report says how many there were. The last
        // page gets no advice, because the system merges like mappings and counts for all of them.
        let _ = map.advise_range(Advice::HugePage, 0, length);
        let start = map.as_ptr().align_offset(HUGE);
        map[start..start + bytes].fill(1);
        Ok(Region { map, start, bytes })
    }

    /// Returns the address of the first byte.
    pub fn address(&mut self) -> *mut u8 {
        self.map[self.start..].as_mut_ptr()
    }

    /// Returns the number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns how many of the bytes are in huge pages, if the system says so.
    pub fn huge_bytes(&self) -> Option<usize> {
        let maps = std::fs::read_to_string("/proc/self/smaps").ok()?;
        huge_in(&maps, self.map.as_ptr() as usize + self.start)
    }
}

/// Returns `AnonHugePages` of the mapping that holds an address.
fn huge_in(maps: &str, address: usize) -> Option<usize> {
    let mut inside = false;
    for line in maps.lines() {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        if let Some((first, last)) = range
            && let Ok(first) = usize::from_str_radix(first, 16)
            && let Ok(last) = usize::from_str_radix(last, 16)
        {
            inside = (first..last).contains(&address);
        } else if inside && let Some(size) = line.strip_prefix("AnonHugePages:") {
            let kib: usize = size.trim().trim_end_matches("kB").trim().parse().ok()?;
            return Some(kib << 10);
        }
    }
    None
}

/// Returns the bytes that the system has available, if it says so.
pub fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_aligned_and_all_there() {
        let mut region = Region::new(3 << 20).expect("room");
        assert!((region.address() as usize).is_multiple_of(HUGE));
        assert_eq!(region.bytes(), 3 << 20);
        assert!(region.huge_bytes().is_some());
    }

    #[test]
    fn a_region_has_no_huge_pages_of_another_one() {
        let regions = [4 << 20, 6 << 20].map(|bytes| Region::new(bytes).expect("room"));
        for region in regions {
            assert!(region.huge_bytes() <= Some(region.bytes()));
        }
    }

    #[test]
    fn huge_pages_are_those_of_the_mapping() {
        let maps = "7f00-7f80 rw-p 0 0 0\nSize: 4 kB\nAnonHugePages:      2048 kB\n\
                    7f80-7fff rw-p 0 0 0\nAnonHugePages:         0 kB\n";
        assert_eq!(huge_in(maps, 0x7f10), Some(2 << 20));
        assert_eq!(huge_in(maps, 0x7f80), Some(0));
        assert_eq!(huge_in(maps, 0x6000), None);
    }
}
