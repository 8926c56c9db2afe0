//! The invariants of a server: every chunk of every page is an item, free, or left over; every item
//! is once in the list of its class and once in the chain of its key; and every count is right. A
//! list is in order of use, which can be checked for the keys of one client: no other client uses
//! them, and clients have no common time. Where each call is a transaction, a chunk may also be an
//! item to which a client had a reference when the power failed, and to which nothing else leads;
//! there are no more references than clients; and values, which belong to no transaction, are not
//! checked.

use std::collections::BTreeMap;

use model::units::WORD_BYTES;

use super::CORE_SHIFT;
use super::item::{self, Header};
use super::server::{
    BUCKET_COUNT, BUCKETS, ITEMS, MOVED, OLD_BUCKETS, PAGES, Server, bucket_of, class,
};
use crate::walk::Walk;

/// The use of a chunk, as far as the check has found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Unknown,
    Free,
    Listed,
    Chained,
}

/// The chunks of a server, each with its class and its use.
type Chunks = BTreeMap<u64, (usize, Use)>;

/// The contents of a server.
pub struct Found {
    /// The headers of its items.
    pub items: Vec<Header>,
    /// The chunk of each reference.
    pub held: Vec<u64>,
}

/// Checks a server of so many clients, and returns its contents.
pub fn check(server: &Server, walk: &mut Walk<'_>, clients: u64) -> Result<Found, String> {
    walk.visit(server.field(0), server.bytes(), "the record")?;
    let mut chunks = pages(server, walk)?;
    let mut listed = 0;
    for class in 0..server.shape().classes.len() {
        let told = |error| format!("class {}: {error}", server.shape().classes[class].number);
        check_free(server, walk, class, &mut chunks).map_err(told)?;
        listed += check_list(server, walk, class, &mut chunks).map_err(told)?;
    }
    let shape = server.shape();
    let is_held = |chunk, class: usize| {
        shape.by_calls && item::is_held(walk, chunk, shape.classes[class].number)
    };
    let lost = |&(&chunk, &(class, found)): &(&u64, &(usize, Use))| {
        found == Use::Unknown && !is_held(chunk, class)
    };
    if let Some((chunk, _)) = chunks.iter().find(lost) {
        return Err(format!("the chunk at {chunk:#x} is neither free nor an item of a list"));
    }
    let items = check_chains(server, walk, &mut chunks)?;
    let (chained, said) = (items.len() as u64, walk.word(server.field(ITEMS)));
    if (chained, said) != (listed, listed) {
        return Err(format!("{listed} items are listed, {chained} chained, and {said} counted"));
    }
    let held = check_references(server, walk, &chunks, clients)?;
    Ok(Found { items, held })
}

/// Checks that at most as many chunks are referred to as there are clients, if any may be, and
/// returns these chunks. A client does one call after the other, and has at most one reference
/// between two of them.
fn check_references(
    server: &Server,
    walk: &Walk<'_>,
    chunks: &Chunks,
    clients: u64,
) -> Result<Vec<u64>, String> {
    let used = chunks.iter().filter(|(_, (_, found))| *found != Use::Free);
    let counts = used.map(|(&chunk, _)| (chunk, item::references(walk, chunk)));
    let most = if server.shape().by_calls { clients } else { 0 };
    let count = counts.clone().map(|(_, count)| count).sum::<u64>();
    if count > most {
        return Err(format!("it counts {count} references to items, and there are {most} at most"));
    }
    let each = |(chunk, count): (u64, u64)| std::iter::repeat_n(chunk, count as usize);
    Ok(counts.flat_map(each).collect())
}

/// Visits the pages and returns their chunks.
fn pages(server: &Server, walk: &mut Walk<'_>) -> Result<Chunks, String> {
    let shape = server.shape();
    let count = walk.word(server.field(PAGES));
    if count > shape.pages_limit() {
        return Err(format!("it has {count} pages, and {} at most", shape.pages_limit()));
    }
    let mut chunks = Chunks::new();
    let mut counts = vec![0; shape.classes.len()];
    for page in 0..count {
        let entry = walk.word(server.page_entry(page));
        // Pages begin at lines, so the low bits hold the class.
        let (at, number) = (entry & !63, entry & 63);
        let class = shape.classes.iter().position(|class| class.number == number);
        let Some(class) = class else {
            return Err(format!("page {page} is of class {number}, which holds no items"));
        };
        walk.visit(at, shape.page, "a page")?;
        counts[class] += 1;
        for chunk in 0..shape.chunks_of(class) {
            let at = at + chunk * shape.classes[class].chunk;
            if chunks.insert(at, (class, Use::Unknown)).is_some() {
                return Err(format!("the chunk at {at:#x} is in two pages"));
            }
        }
    }
    for (class, &count) in counts.iter().enumerate() {
        let said = walk.word(server.class_field(class, class::PAGES));
        if said != count {
            return Err(format!("class {class} has {count} pages and says {said}"));
        }
    }
    Ok(chunks)
}

/// Notes the use of a chunk, which must be of this class and have the use `from` so far.
fn note(chunks: &mut Chunks, at: u64, class: usize, from: Use, to: Use) -> Result<(), String> {
    match chunks.get_mut(&at) {
        Some((of, found)) if *of == class && *found == from => {
            *found = to;
            Ok(())
        }
        Some((of, found)) if *of == class => {
            Err(format!("the chunk at {at:#x} is {to:?} and was {found:?}"))
        }
        _ => Err(format!("{at:#x} is no chunk of this class")),
    }
}

fn check_free(
    server: &Server,
    walk: &Walk<'_>,
    class: usize,
    chunks: &mut Chunks,
) -> Result<(), String> {
    let field = |field| walk.word(server.class_field(class, field));
    let (mut chunk, mut count) = (field(class::FREE), 0);
    while chunk != 0 {
        note(chunks, chunk, class, Use::Unknown, Use::Free)?;
        if !item::is_free(walk, chunk) {
            return Err(format!("the free chunk at {chunk:#x} is not marked"));
        }
        count += 1;
        chunk = walk.word(chunk + item::NEXT);
    }
    let said = field(class::FREE_COUNT);
    if said != count {
        return Err(format!("{count} chunks are free and it says {said}"));
    }
    let (mut rest, left) = (field(class::REST), field(class::REST_COUNT));
    if (rest == 0) != (left == 0) || left > server.shape().chunks_of(class) {
        return Err(format!("{left} chunks are left at {rest:#x}"));
    }
    for _ in 0..left {
        note(chunks, rest, class, Use::Unknown, Use::Free)?;
        rest += server.shape().classes[class].chunk;
    }
    Ok(())
}

/// Checks the list of a class and returns how many items it has.
fn check_list(
    server: &Server,
    walk: &Walk<'_>,
    class: usize,
    chunks: &mut Chunks,
) -> Result<u64, String> {
    let field = |field| walk.word(server.class_field(class, field));
    let (mut found, mut before, mut count) = (field(class::FIRST), 0, 0);
    let mut last_used = BTreeMap::new();
    while found != 0 {
        note(chunks, found, class, Use::Unknown, Use::Listed)?;
        let (key, now) = item::use_of(walk, found);
        if last_used.insert(key >> CORE_SHIFT, now).is_some_and(|before| before < now) {
            return Err(format!("key {key:#x} was used at {now}, and is behind one used before"));
        }
        let said = walk.word(found + item::BEFORE);
        if said != before {
            return Err(format!("before {found:#x} is {before:#x} and it says {said:#x}"));
        }
        count += 1;
        before = found;
        found = walk.word(found + item::NEXT);
    }
    let (last, said) = (field(class::LAST), field(class::ITEMS));
    if (last, said) != (before, count) {
        return Err(format!(
            "its list has {count} items, the last at {before:#x}, and it says {said} and {last:#x}"
        ));
    }
    Ok(count)
}

/// Checks the chains and the items in them, and returns their headers.
fn check_chains(
    server: &Server,
    walk: &mut Walk<'_>,
    chunks: &mut Chunks,
) -> Result<Vec<Header>, String> {
    let field = |walk: &Walk<'_>, field| walk.word(server.field(field));
    let count = field(walk, BUCKET_COUNT);
    if !count.is_power_of_two() {
        return Err(format!("it has {count} buckets, which is no power of two"));
    }
    let (buckets, old) = (field(walk, BUCKETS), field(walk, OLD_BUCKETS));
    walk.visit(buckets, count.saturating_mul(WORD_BYTES), "the array of buckets")?;
    let mut items = BTreeMap::new();
    let moved = if old == 0 { count / 2 } else { field(walk, MOVED) };
    if old != 0 {
        walk.visit(old, count / 2 * WORD_BYTES, "the array of old buckets")?;
        if moved >= count / 2 {
            return Err(format!("{moved} of {} buckets are moved", count / 2));
        }
        for bucket in 0..count / 2 {
            let first = walk.word(old + bucket * WORD_BYTES);
            let is_here = |number| bucket >= moved && bucket_of(number, count / 2) == bucket;
            check_chain(server, walk, first, chunks, &mut items, is_here)?;
        }
    }
    for bucket in 0..count {
        let first = walk.word(buckets + bucket * WORD_BYTES);
        let is_here = |number| {
            bucket_of(number, count) == bucket && (old == 0 || bucket_of(number, count / 2) < moved)
        };
        check_chain(server, walk, first, chunks, &mut items, is_here)?;
    }
    Ok(items.into_values().collect())
}

fn check_chain(
    server: &Server,
    walk: &Walk<'_>,
    first: u64,
    chunks: &mut Chunks,
    items: &mut BTreeMap<u64, Header>,
    is_here: impl Fn(u64) -> bool,
) -> Result<(), String> {
    let mut found = first;
    while found != 0 {
        let Some(&(class, _)) = chunks.get(&found) else {
            return Err(format!("{found:#x} is in a chain and no chunk"));
        };
        note(chunks, found, class, Use::Listed, Use::Chained)?;
        let number = server.shape().classes[class].number;
        let mut kinds = server.shape().sizes.iter().filter(|(_, of)| *of == class);
        let Some((kind, _)) = kinds.find(|(kind, _)| kind.is_at(walk, found, number)) else {
            return Err(format!("the header of the item at {found:#x} is none of class {number}"));
        };
        let header = kind.check(walk, found, number, !server.shape().by_calls)?;
        let key = header.number;
        if !is_here(key) {
            return Err(format!("key {key:#x} is in another key's bucket"));
        }
        if items.insert(key, header).is_some() {
            return Err(format!("key {key:#x} is there twice"));
        }
        found = walk.word(found + item::CHAIN);
    }
    Ok(())
}
