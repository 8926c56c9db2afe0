//! The overflow area of a non-volatile last level: slots of a line each in the log area of memory,
//! and the table beside the last level that says what they hold. Also the size of the last level's
//! write-back buffer.

use model::design::Shape;
use model::device::Write;
use model::meters::Class;
use model::units::{LINE_BYTES, Line, LineData};

/// How many lines the area has room for, of those that a design asks for.
pub fn room(shape: &Shape, asked: u64) -> u64 {
    let bytes = shape.log_bytes * u64::from(shape.cores);
    asked.min(bytes / LINE_BYTES)
}

/// The place of a slot.
pub fn place(shape: &Shape, slot: u32) -> Line {
    Line(Line::of(shape.log_base).0 + u64::from(slot))
}

/// Says why the log area will not do, if it has no room for a single line.
pub fn misfit(shape: &Shape, asked: u64) -> Option<String> {
    (room(shape, asked) == 0).then(|| {
        "the log area has no room for a line of the overflow area: raise it with --set \
         pm.log_size=..."
            .to_owned()
    })
}

/// The most lines that have left the last level and are kept until memory has them: those that wait
/// at the controllers or lie in their queues, and one for each miss that may be under way. If
/// arrival times vary, lines that earlier misses evicted may still be under way as well.
pub fn leaving(shape: &Shape) -> u64 {
    let (controller, core) = (&shape.config.controller, &shape.config.core);
    let queued = (controller.wpq + controller.writebacks) * controller.count;
    let misses = u64::from(shape.cores) * (core.mshrs + 1);
    let shortest = shape.walk - shape.path + 2 * shape.near;
    queued + misses * (1 + shape.config.cycles(controller.jitter) / shortest.max(1))
}

/// The area, and what the design's table says of each slot beside line and bytes.
pub struct Overflow<T> {
    /// The slots that were used so far: of a large area most often few, or none.
    slots: Vec<Option<Slot<T>>>,
    /// The numbers of the free ones among them.
    free: Vec<u32>,
    room: u64,
    asked: u64,
}

/// A slot that is in use.
#[derive(Clone, Copy, Debug)]
pub struct Slot<T> {
    /// The line.
    pub line: Line,
    /// Its bytes.
    pub data: LineData,
    /// What else the design's table says.
    pub about: T,
    /// How many writes of the slot are under way.
    writes: u32,
    /// Whether nothing in it counts. The slot is free when the writes under way have arrived.
    pub is_dropped: bool,
}

impl<T: Copy> Overflow<T> {
    /// An empty area.
    pub fn new(shape: &Shape, asked: u64) -> Overflow<T> {
        Overflow { slots: Vec::new(), free: Vec::new(), room: room(shape, asked), asked }
    }

    /// How many slots there are.
    pub fn slots(&self) -> u64 {
        self.room
    }

    /// How many slots are in use.
    pub fn used(&self) -> u64 {
        (self.slots.len() - self.free.len()) as u64
    }

    /// A slot, if it is in use.
    pub fn get(&self, number: u32) -> Option<&Slot<T>> {
        self.slots[number as usize].as_ref()
    }

    /// A slot, if it is in use.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Slot<T>> {
        self.slots[number as usize].as_mut()
    }

    /// Puts a line into `own`, a slot that has an older version of it, or into a free slot. Returns
    /// the slot and the write that goes there, or `None` if the area is full.
    pub fn put(
        &mut self,
        own: Option<u32>,
        (line, data): (Line, LineData),
        about: T,
        shape: &Shape,
    ) -> Option<(u32, Write)> {
        let number = own.or_else(|| self.take_free())?;
        let writes = self.get(number).map_or(0, |slot| slot.writes) + 1;
        self.slots[number as usize] = Some(Slot { line, data, about, writes, is_dropped: false });
        Some((number, Write::whole(place(shape, number), data, Class::Log)))
    }

    fn take_free(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| {
            let number = self.slots.len() as u64;
            (number < self.room).then(|| self.slots.push(None)).map(|()| number as u32)
        })
    }

    /// Notes that a write of a slot is durable. Returns the slot, and whether it was the last
    /// write.
    pub fn written(&mut self, number: u32) -> (&mut Slot<T>, bool) {
        let slot = self.slots[number as usize].as_mut().expect("it is being written");
        slot.writes -= 1;
        let is_there = slot.writes == 0;
        (slot, is_there)
    }

    /// Drops what a slot holds. Returns its line if that frees the slot. Otherwise the slot becomes
    /// free when [`drop`](Overflow::drop) is called after its last write.
    pub fn drop(&mut self, number: u32) -> Option<Line> {
        let slot = self.slots[number as usize].as_mut()?;
        if slot.writes > 0 {
            slot.is_dropped = true;
            return None;
        }
        let line = slot.line;
        self.slots[number as usize] = None;
        self.free.push(number);
        Some(line)
    }

    /// The slots in use whose lines are not dropped.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Slot<T>)> {
        let used =
            (0..).zip(&self.slots).filter_map(|(number, slot)| Some((number, slot.as_ref()?)));
        used.filter(|(_, slot)| !slot.is_dropped)
    }

    /// What the table says beside lines and bytes, for all slots in use.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten().map(|slot| &mut slot.about)
    }

    /// The option that gives a full area more slots: an area has as many as the parameter says, or
    /// as fit the log areas.
    pub fn more_room(&self) -> &'static str {
        match self.slots() < self.asked {
            true => {
                "--set pm.log_size=..., and pm.device_size, of which the logs take half at most"
            }
            false => "--set design.overflow_lines=...",
        }
    }
}

/// Where the bytes of a version that survives are.
pub enum Bytes<'a> {
    /// In the last level, or in its write-back buffer.
    Held(&'a LineData),
    /// In a slot.
    Slot(u32),
}

#[cfg(test)]
mod tests {
    use model::config::Config;

    use super::*;

    fn shape(log: u64) -> Shape {
        let mut config = Config::default();
        (config.pm.log, config.pm.row) = (log, 256);
        Shape::new(&config, 2)
    }

    #[test]
    fn a_slot_that_is_dropped_while_it_is_written_is_free_after_its_last_write() {
        let shape = shape(1024);
        let mut area: Overflow<()> = Overflow::new(&shape, 2);
        let (first, write) = area.put(None, (Line(7), [1; 64]), (), &shape).expect("room");
        assert_eq!((write.line, write.class), (place(&shape, first), Class::Log));
        let (again, _) = area.put(Some(first), (Line(7), [2; 64]), (), &shape).expect("its own");
        assert_eq!((again, area.used()), (first, 1));
        assert_eq!(area.drop(first), None);
        assert_eq!(area.iter().count(), 0, "nothing in it counts");
        for is_last in [false, true] {
            let (slot, is_there) = area.written(first);
            assert!(slot.is_dropped && is_there == is_last);
            assert_eq!(area.drop(first).is_some(), is_last);
        }
        assert_eq!(area.used(), 0);
    }

    #[test]
    fn a_full_area_says_what_gives_it_more_room() {
        let shape = shape(1024);
        let mut area: Overflow<()> = Overflow::new(&shape, 1);
        assert!(area.put(None, (Line(1), [0; 64]), (), &shape).is_some());
        assert!(area.put(None, (Line(2), [0; 64]), (), &shape).is_none());
        assert!(area.more_room().contains("design.overflow_lines"));
        let area: Overflow<()> = Overflow::new(&shape, 1 << 20);
        assert_eq!(area.slots(), 2 * 1024 / LINE_BYTES, "both cores' log areas");
        assert!(area.more_room().contains("pm.log_size"));
    }
}
