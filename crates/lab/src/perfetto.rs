//! A timeline as a trace that Perfetto shows (ui.perfetto.dev): packets of its `TrackEvent`s.
//!
//! The messages are those of Perfetto's `trace_packet.proto`, `track_event.proto` and
//! `track_descriptor.proto`, of which only the fields that are written here are declared.

use std::collections::BTreeMap;

use prost::Message;

use crate::trace::{Arg, Shown};

#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packets: Vec<Packet>,
}

#[derive(Clone, PartialEq, Message)]
struct Packet {
    /// In nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    sequence: Option<u32>,
    #[prost(message, optional, tag = "11")]
    event: Option<TrackEvent>,
    #[prost(uint32, optional, tag = "13")]
    sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    track: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    annotations: Vec<Annotation>,
    #[prost(enumeration = "Kind", optional, tag = "9")]
    kind: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    track: Option<u64>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
    #[prost(int64, optional, tag = "30")]
    counter: Option<i64>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    flows: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
enum Kind {
    Unspecified = 0,
    Begin = 1,
    End = 2,
    Instant = 3,
    Counter = 4,
}

#[derive(Clone, PartialEq, Message)]
struct Annotation {
    #[prost(uint64, optional, tag = "3")]
    number: Option<u64>,
    #[prost(string, optional, tag = "6")]
    text: Option<String>,
    #[prost(string, optional, tag = "10")]
    name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    id: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(uint64, optional, tag = "5")]
    parent: Option<u64>,
    #[prost(message, optional, tag = "8")]
    counter: Option<CounterDescriptor>,
    #[prost(int32, optional, tag = "11")]
    child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    rank: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct CounterDescriptor {
    #[prost(int32, optional, tag = "3")]
    unit: Option<i32>,
}

/// The packets of a trace share one sequence, whose state begins with the first of them.
const SEQUENCE: u32 = 1;
const STATE_CLEARED: u32 = 1;
/// Tracks of a group are shown in the order of their ranks.
const EXPLICIT_ORDER: i32 = 3;
const UNIT_COUNT: i32 = 2;

/// A trace under way.
struct Writer {
    packets: Vec<Packet>,
    /// Cycles in a second.
    frequency: u64,
    /// Groups and tracks so far, each a number.
    tracks: u64,
}

/// A counter: a name, and its values from some times on.
pub struct Counter {
    /// The group that the counter belongs to.
    pub group: String,
    /// The place of that group.
    pub place: usize,
    /// Its name.
    pub name: &'static str,
    /// Its values, each from a cycle on, in order.
    pub values: Vec<(u64, i64)>,
}

/// Things by their places and names.
type Placed<'a, T> = BTreeMap<(usize, &'a str), T>;

/// Encodes a timeline.
///
/// Slices of one track of Perfetto's must not overlap, so a lane in which some do is shown as
/// several tracks. Times are rounded down to nanoseconds.
pub fn encode(shown: &[Shown], counters: &[Counter], frequency: u64) -> Vec<u8> {
    let mut writer = Writer { packets: Vec::new(), frequency, tracks: 0 };
    let mut groups: Placed<'_, Placed<'_, Vec<&Shown>>> = Placed::new();
    for event in shown {
        let group = groups.entry((event.place.0, &event.group)).or_default();
        group.entry((event.place.1, &event.lane)).or_default().push(event);
    }
    // A counter is shown even if its group has no events.
    for counter in counters {
        groups.entry((counter.place, &counter.group)).or_default();
    }
    for ((_, name), lanes) in groups {
        let group = writer.track(name, None, 0);
        let mut rank = 0;
        for counter in counters.iter().filter(|counter| counter.group == name) {
            writer.counter(counter, group);
            rank += 1;
        }
        for ((_, lane), events) in lanes {
            for (index, events) in apart(&events).into_iter().enumerate() {
                let name = match index {
                    0 => lane.to_owned(),
                    _ => format!("{lane} ({})", index + 1),
                };
                let track = writer.track(&name, Some(group), rank);
                rank += 1;
                events.into_iter().for_each(|event| writer.event(event, track));
            }
        }
    }
    if let Some(first) = writer.packets.first_mut() {
        first.sequence_flags = Some(STATE_CLEARED);
    }
    Trace { packets: writer.packets }.encode_to_vec()
}

/// Spreads the events of a lane, in order of time, over as few rows as it takes for none to overlap
/// in a row.
fn apart<'a>(events: &[&'a Shown]) -> Vec<Vec<&'a Shown>> {
    let mut rows: Vec<(u64, Vec<&Shown>)> = vec![(0, Vec::new())];
    for event in events {
        if event.is_instant() {
            rows[0].1.push(event);
            continue;
        }
        let free = rows.iter().position(|(until, _)| *until <= event.from);
        let row = free.unwrap_or_else(|| {
            rows.push((0, Vec::new()));
            rows.len() - 1
        });
        rows[row].0 = event.until;
        rows[row].1.push(event);
    }
    rows.into_iter().map(|(_, events)| events).collect()
}

impl Writer {
    fn nanoseconds(&self, cycle: u64) -> u64 {
        (u128::from(cycle) * 1_000_000_000 / u128::from(self.frequency)) as u64
    }

    fn packet(&mut self, packet: Packet) {
        self.packets.push(Packet { sequence: Some(SEQUENCE), ..packet });
    }

    /// Declares a track, or a group of tracks.
    fn track(&mut self, name: &str, parent: Option<u64>, rank: usize) -> u64 {
        self.describe(TrackDescriptor {
            name: Some(name.to_owned()),
            parent,
            child_ordering: parent.is_none().then_some(EXPLICIT_ORDER),
            rank: parent.map(|_| rank as i32),
            ..TrackDescriptor::default()
        })
    }

    fn describe(&mut self, track: TrackDescriptor) -> u64 {
        self.tracks += 1;
        let track = TrackDescriptor { id: Some(self.tracks), ..track };
        self.packet(Packet { track: Some(track), ..Packet::default() });
        self.tracks
    }

    fn counter(&mut self, counter: &Counter, group: u64) {
        let track = self.describe(TrackDescriptor {
            name: Some(counter.name.to_owned()),
            parent: Some(group),
            counter: Some(CounterDescriptor { unit: Some(UNIT_COUNT) }),
            rank: Some(0),
            ..TrackDescriptor::default()
        });
        for &(at, value) in &counter.values {
            let event = TrackEvent { counter: Some(value), ..of(Kind::Counter, track) };
            self.packet(Packet {
                timestamp: Some(self.nanoseconds(at)),
                event: Some(event),
                ..Packet::default()
            });
        }
    }

    fn event(&mut self, shown: &Shown, track: u64) {
        let instant = shown.is_instant();
        let begin = TrackEvent {
            name: Some(shown.name.clone()),
            annotations: annotations(shown),
            flows: shown.flow.into_iter().collect(),
            ..of(if instant { Kind::Instant } else { Kind::Begin }, track)
        };
        let (from, until) = (self.nanoseconds(shown.from), self.nanoseconds(shown.until));
        let at = |timestamp, event| Packet {
            timestamp: Some(timestamp),
            event: Some(event),
            ..Packet::default()
        };
        self.packet(at(from, begin));
        if !instant {
            self.packet(at(until, of(Kind::End, track)));
        }
    }
}

fn of(kind: Kind, track: u64) -> TrackEvent {
    TrackEvent { kind: Some(kind as i32), track: Some(track), ..TrackEvent::default() }
}

/// The annotations of an event, with its exact times in cycles.
fn annotations(shown: &Shown) -> Vec<Annotation> {
    let number = |name: &str, number| Annotation {
        name: Some(name.to_owned()),
        number: Some(number),
        text: None,
    };
    let mut all = vec![number("cycle", shown.from)];
    if !shown.is_instant() {
        all.push(number("cycles", shown.until - shown.from));
    }
    all.extend(shown.args.iter().map(|(name, arg)| match arg {
        Arg::Number(value) => number(name, *value),
        Arg::Text(text) => {
            Annotation { name: Some((*name).to_owned()), number: None, text: Some(text.clone()) }
        }
    }));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_is_as_many_nanoseconds_as_its_frequency_says() {
        for (frequency, cycle, expect) in [
            (1_000_000_000, 1, 1),
            (1_000_000_000, 12_345, 12_345),
            (2_000_000_000, 12_345, 6_172),
            (500_000_000, 3, 6),
            (3_000_000_000, 1 << 60, (1 << 60) / 3),
        ] {
            let writer = Writer { packets: Vec::new(), frequency, tracks: 0 };
            assert_eq!(writer.nanoseconds(cycle), expect, "cycle {cycle} at {frequency} Hz");
        }
    }
}
