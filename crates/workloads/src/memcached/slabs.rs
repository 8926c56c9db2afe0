//! Slab classes: the sizes of chunks, and the pages that they are carved from.

use super::item::{self, Item};
use super::{Carve, MemcachedParams, Sizes, Step, Stop, Transactions};
use crate::rng::Random;

/// Bytes of a slab page.
const PAGE_BYTES: u64 = 1 << 20;
/// The least number of pages that the items at the start fill, if the size of a page is the
/// default.
const PAGES_AT_START: u64 = 4;
/// Room for key and value in the smallest chunk (`chunk_size` of memcached 1.2.4).
const SMALLEST_DATA: u64 = 48;
/// The buckets of memcached's first hash table.
const BUCKETS: u64 = 1 << 16;

model::choices! {
    /// How the hash table doubles.
    pub enum Growth {
        /// A bucket with every command.
        Gradual = "gradual",
        /// In one transaction.
        AtOnce = "at-once",
        /// Not at all.
        Never = "never",
    }
}

/// The values that are fixed before a server starts.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Each size of a value, and its slab class, as an index into `classes`.
    pub sizes: Vec<(Item, usize)>,
    /// The slab classes that these need.
    pub classes: Vec<Class>,
    /// Bytes of a page.
    pub page: u64,
    /// The most pages to be carved. One is carved in every class in any case.
    pub pages_max: u64,
    /// Whether a page's chunks are free at once.
    pub carves_at_once: bool,
    /// Buckets at the start.
    pub buckets: u64,
    /// How their number doubles.
    pub growth: Growth,
    /// Commands after which a GET moves an item.
    pub update_interval: u64,
    /// Whether each call of a command is a transaction, so that others see an item between two.
    pub by_calls: bool,
}

/// A slab class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its number among memcached's.
    pub number: u64,
    /// Bytes of a chunk.
    pub chunk: u64,
}

impl Shape {
    /// The shape of a server for `items` items.
    ///
    /// # Errors
    /// [`Stop::Input`] when an item does not fit a page.
    pub fn new(params: &MemcachedParams, items: u64) -> Step<Shape> {
        let times: &[u64] = match params.sizes {
            Sizes::One => &[1],
            Sizes::Four => &[1, 2, 4, 8],
        };
        let kinds: Vec<Item> =
            times.iter().map(|times| Item::new(params.key, params.value * times)).collect();
        let mean = kinds.iter().map(|item| item.bytes()).sum::<u64>() / kinds.len() as u64;
        let largest = kinds.iter().map(|item| item.bytes()).max().unwrap_or(0);
        let page = match params.page {
            0 => {
                let share = items * mean / PAGES_AT_START;
                let least = (2 * largest).next_power_of_two();
                (share.max(1).next_power_of_two()).clamp(least, PAGE_BYTES)
            }
            page => page,
        };
        let chunks = chunk_sizes(page);
        let (mut sizes, mut classes) = (Vec::new(), Vec::new());
        for item in kinds {
            let bytes = item.bytes();
            let Some(index) = chunks.iter().position(|&chunk| chunk >= bytes) else {
                let most = chunks.last().unwrap_or(&0);
                return Err(Stop::Input(format!(
                    "an item of {bytes} bytes does not fit a `page` of {page} bytes, whose largest \
                     chunk has {most}, a multiple of 8"
                )));
            };
            let class = Class { number: index as u64 + 1, chunk: chunks[index] };
            if classes.last() != Some(&class) {
                classes.push(class);
            }
            sizes.push((item, classes.len() - 1));
        }
        let chunk = sizes.iter().map(|&(_, class)| classes[class].chunk).sum::<u64>();
        let at_start = items * chunk / sizes.len() as u64;
        let buckets = match params.buckets {
            0 => BUCKETS.min(items.next_power_of_two()),
            buckets => buckets.next_power_of_two(),
        };
        Ok(Shape {
            sizes,
            classes,
            page,
            pages_max: (at_start * params.memory_percent).div_ceil(100 * page),
            carves_at_once: params.carve == Carve::AtOnce,
            buckets,
            growth: params.growth,
            update_interval: params.update_interval,
            by_calls: params.transactions == Transactions::Calls,
        })
    }

    /// Draws one of the sizes.
    pub fn draw_size(&self, random: &mut Random) -> usize {
        if self.sizes.len() == 1 { 0 } else { random.below(self.sizes.len() as u64) as usize }
    }

    /// Words of a key.
    pub fn key_words(&self) -> u64 {
        self.sizes[0].0.key_words()
    }

    /// The kind of an item with this word of sizes, and its class.
    ///
    /// # Errors
    /// [`Stop::Failed`] when no item has it.
    pub fn kind_of(&self, sizes: u64) -> Step<(&Item, usize)> {
        let looked_for = item::unreferenced(sizes);
        let kind = self.sizes.iter().find(|(kind, _)| kind.sizes() == looked_for);
        let (kind, class) =
            kind.ok_or_else(|| Stop::Failed(format!("no item has the sizes {sizes:#x}")))?;
        Ok((kind, *class))
    }

    /// Chunks of a page.
    pub fn chunks_of(&self, class: usize) -> u64 {
        self.page / self.classes[class].chunk
    }

    /// Pages that there may be at most.
    pub fn pages_limit(&self) -> u64 {
        self.pages_max.max(1) + self.classes.len() as u64
    }
}

/// The sizes of chunks: from a header with [`SMALLEST_DATA`] bytes in steps of a quarter, as far as
/// two fit a page, each a multiple of 8; and the whole page.
fn chunk_sizes(page: u64) -> Vec<u64> {
    let mut sizes = Vec::new();
    let mut size = Item::HEADER_BYTES + SMALLEST_DATA;
    while size <= page / 2 {
        sizes.push(size);
        size = (size + size / 4).next_multiple_of(8);
    }
    sizes.push(page / 8 * 8);
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// memcached 1.2.4 with `-vv` lists these as the chunk sizes of its first classes.
    #[test]
    fn chunks_are_as_large_as_memcached_s() {
        let sizes = chunk_sizes(PAGE_BYTES);
        assert_eq!(sizes[..8], [104, 136, 176, 224, 280, 352, 440, 552]);
        assert_eq!(sizes.last(), Some(&PAGE_BYTES));
        assert!(sizes.is_sorted());
    }
}
