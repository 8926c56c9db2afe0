//! Random numbers: one seeded generator for each core, and the distributions that keys are drawn
//! from, written out here so that no version of a library can change a run.

use model::units::CoreId;
pub use model::units::mix;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

/// The skew of YCSB's Zipf distributions (YCSB's `ZipfianGenerator`).
pub const ZIPF_THETA: f64 = 0.99;
/// The population from which YCSB's scrambled Zipf distribution draws.
pub const SCRAMBLED_ITEMS: u64 = 10_000_000_000;
/// Zeta of [`SCRAMBLED_ITEMS`] for [`ZIPF_THETA`], as YCSB's source gives it.
pub const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

/// The share of operations that hit the hot keys, and the share of keys that are hot (SSP-19).
const HOT_OPERATIONS: f64 = 0.8;
const HOT_KEYS_PERCENT: u64 = 15;

/// The random numbers of one core.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The generator of one core of one workload.
    pub fn new(seed: u64, core: CoreId, workload: &str) -> Random {
        let name = workload.bytes().fold(FNV_OFFSET, fnv_step);
        let state = mix(mix(mix(seed) ^ u64::from(core.0)) ^ name);
        Random(Xoshiro256PlusPlus::seed_from_u64(state))
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`, by one multiplication and a shift; `bound` is at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a number below 0 was asked for");
        ((u128::from(self.any()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from 0 (included) to 1 (excluded).
    pub fn unit(&mut self) -> f64 {
        (self.any() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Whether an event of chance 1 in `chances` happened.
    pub fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    /// Puts the items in a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}

model::choices! {
    /// How a micro-benchmark draws its keys.
    pub enum KeyDistribution { Uniform = "uniform", Hot = "hot", Zipf = "zipf" }
}

/// The distribution of a micro-benchmark's keys.
#[derive(Clone, Debug)]
pub enum Keys {
    /// All keys are equally likely.
    Uniform {
        /// The number of keys.
        keys: u64,
    },
    /// The first `hot` keys get most of the operations.
    Hot {
        /// The number of keys.
        keys: u64,
        /// The number of hot keys.
        hot: u64,
    },
    /// A power law, scattered over all keys.
    Zipf {
        /// The number of keys.
        keys: u64,
        /// The distribution of ranks.
        ranks: Zipf,
    },
}

impl Keys {
    /// `keys` keys of a distribution.
    pub fn of(distribution: KeyDistribution, keys: u64) -> Keys {
        match distribution {
            KeyDistribution::Uniform => Keys::uniform(keys),
            KeyDistribution::Hot => Keys::hot(keys),
            KeyDistribution::Zipf => Keys::Zipf { keys, ranks: Zipf::scrambled() },
        }
    }

    /// Returns the distribution in which all of `keys` keys are equally likely.
    pub fn uniform(keys: u64) -> Keys {
        Keys::Uniform { keys }
    }

    /// SSP's "Zipf": 80 % of the operations hit the first 15 % of the keys, uniformly.
    pub fn hot(keys: u64) -> Keys {
        Keys::Hot { keys, hot: (keys * HOT_KEYS_PERCENT / 100).clamp(1, keys) }
    }

    /// Draws a key.
    pub fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Keys::Uniform { keys } => random.below(*keys),
            Keys::Hot { keys, hot } if keys == hot => random.below(*keys),
            Keys::Hot { keys, hot } => {
                if random.unit() < HOT_OPERATIONS {
                    random.below(*hot)
                } else {
                    hot + random.below(keys - hot)
                }
            }
            Keys::Zipf { keys, ranks } => fnv(ranks.draw(random)) % keys,
        }
    }
}

/// The Zipf distribution of Gray et al. as YCSB has it, over ranks from 0 on, 0 the most likely.
#[derive(Clone, Debug)]
pub struct Zipf {
    items: u64,
    zeta: f64,
    zeta_of_2: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    /// Returns the distribution over `items` ranks.
    pub fn new(items: u64) -> Zipf {
        Zipf::with_zeta(items, zeta(0, items, 0.0))
    }

    /// Returns the distribution over YCSB's large population, to be scrambled with [`fnv`].
    pub fn scrambled() -> Zipf {
        Zipf::with_zeta(SCRAMBLED_ITEMS, SCRAMBLED_ZETA)
    }

    fn with_zeta(items: u64, zeta_of_items: f64) -> Zipf {
        let alpha = 1.0 / (1.0 - ZIPF_THETA);
        let zeta_of_2 = zeta(0, 2, 0.0);
        let mut zipf = Zipf { items, zeta: zeta_of_items, zeta_of_2, alpha, eta: 0.0 };
        zipf.set_eta();
        zipf
    }

    /// Adds ranks until there are `items`; costs one term for each.
    pub fn grow(&mut self, items: u64) {
        if items > self.items {
            self.zeta = zeta(self.items, items, self.zeta);
            self.items = items;
            self.set_eta();
        }
    }

    /// Draws a rank.
    pub fn draw(&self, random: &mut Random) -> u64 {
        let unit = random.unit();
        let scaled = unit * self.zeta;
        if scaled < 1.0 || self.items == 1 {
            return 0;
        }
        if scaled < 1.0 + 0.5_f64.powf(ZIPF_THETA) {
            return 1;
        }
        let rank = self.items as f64 * (self.eta * unit - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.items - 1)
    }

    fn set_eta(&mut self) {
        let items = self.items as f64;
        self.eta =
            (1.0 - (2.0 / items).powf(1.0 - ZIPF_THETA)) / (1.0 - self.zeta_of_2 / self.zeta);
    }
}

/// The sum of i^-theta for i from `from` + 1 to `to`, added to `sum`.
fn zeta(from: u64, to: u64, sum: f64) -> f64 {
    (from..to).fold(sum, |sum, rank| sum + 1.0 / ((rank + 1) as f64).powf(ZIPF_THETA))
}

const FNV_OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
const FNV_PRIME: u64 = 1_099_511_628_211;

/// YCSB's hash of a number: FNV-1a over its eight bytes, low first, made positive.
pub fn fnv(value: u64) -> u64 {
    let hash = value.to_le_bytes().into_iter().fold(FNV_OFFSET, fnv_step);
    (hash as i64).unsigned_abs()
}

fn fnv_step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random() -> Random {
        Random::new(1, CoreId(0), "test")
    }

    #[test]
    fn zeta_is_what_the_literature_lists() {
        let listed = [(1_000, 7.72895), (10_000, 10.22436), (100_000, 12.77834)];
        for (items, expect) in listed.into_iter().chain([(1_000_000, 15.39185)]) {
            let zeta = Zipf::new(items).zeta;
            assert!((zeta - expect).abs() < 1e-5, "zeta({items}) is {zeta}");
        }
    }

    #[test]
    fn zeta_of_the_scrambled_population_follows_from_the_listed_one() {
        // Euler and Maclaurin: the sum over (a, b] is the integral plus half the step.
        let power = 1.0 - ZIPF_THETA;
        let (from, to) = (1e6_f64, SCRAMBLED_ITEMS as f64);
        let tail = (to.powf(power) - from.powf(power)) / power
            + (to.powf(-ZIPF_THETA) - from.powf(-ZIPF_THETA)) / 2.0;
        let zeta = Zipf::new(1_000_000).zeta + tail;
        assert!((zeta - SCRAMBLED_ZETA).abs() < 1e-5, "zeta is {zeta}");
    }

    #[test]
    fn growing_is_the_same_as_starting_large() {
        let mut grown = Zipf::new(100);
        grown.grow(1_000);
        let large = Zipf::new(1_000);
        assert_eq!((grown.zeta, grown.eta), (large.zeta, large.eta));
    }

    #[test]
    fn ranks_are_as_likely_as_zipf_says() {
        let (zipf, mut random) = (Zipf::new(1_000), random());
        let draws = 200_000;
        let mut counts = [0_u32; 1_000];
        for _ in 0..draws {
            counts[zipf.draw(&mut random) as usize] += 1;
        }
        for rank in [0, 1] {
            let expect = ((rank + 1) as f64).powf(-ZIPF_THETA) / zipf.zeta;
            let share = f64::from(counts[rank]) / f64::from(draws);
            assert!((share - expect).abs() < 0.005, "rank {rank}: {share}, not {expect}");
        }
    }

    #[test]
    fn the_hot_keys_get_their_share() {
        let (keys, mut random) = (Keys::hot(1_000), random());
        let hot = (0..100_000).filter(|_| keys.draw(&mut random) < 150).count();
        assert!((79_000..81_000).contains(&hot), "{hot} of 100000 hit the hot keys");
        assert!((0..1_000).all(|_| Keys::hot(1).draw(&mut random) == 0));
        assert!((0..1_000).all(|_| Keys::uniform(7).draw(&mut random) < 7));
    }

    /// YCSB's most likely rank has 1 / zeta of the draws, wherever its key is.
    #[test]
    fn the_most_likely_key_of_the_power_law_gets_its_share() {
        let (keys, mut random) = (Keys::of(KeyDistribution::Zipf, 1_000), random());
        let first = fnv(0) % 1_000;
        let hits = (0..100_000).filter(|_| keys.draw(&mut random) == first).count();
        let share = hits as f64 / 100_000.0;
        assert!((share - 1.0 / SCRAMBLED_ZETA).abs() < 0.005, "{share}");
        assert!((0..1_000).all(|_| Keys::of(KeyDistribution::Zipf, 7).draw(&mut random) < 7));
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        // FNV-1a of eight zero bytes, then of the bytes 1, 0, 0, 0, 0, 0, 0, 0.
        let reference = |bytes: [u8; 8]| {
            let mut hash: u64 = 0xcbf29ce484222325;
            for byte in bytes {
                hash ^= u64::from(byte);
                hash = hash.wrapping_mul(0x100000001b3);
            }
            (hash as i64).unsigned_abs()
        };
        for value in [0, 1, 99, u64::MAX] {
            assert_eq!(fnv(value), reference(value.to_le_bytes()));
        }
        assert_eq!(fnv(0), 0xa8c7f832281a39c5_u64.wrapping_neg());
    }

    #[test]
    fn cores_workloads_and_seeds_have_streams_of_their_own() {
        let first = |seed, core, name| Random::new(seed, CoreId(core), name).any();
        let streams = [
            first(1, 0, "a"),
            first(1, 1, "a"),
            first(1, 0, "b"),
            first(2, 0, "a"),
            first(0, 1, "a"),
        ];
        for (index, stream) in streams.iter().enumerate() {
            assert!(!streams[..index].contains(stream));
        }
        assert_eq!(first(1, 0, "a"), streams[0]);
    }

    /// A change here changes every result, so these numbers must not be updated lightly.
    #[test]
    fn the_stream_is_pinned() {
        let mut random = random();
        let drawn = [(); 4].map(|()| random.below(1_000));
        assert_eq!(drawn, [663, 529, 70, 895]);
        let (zipf, keys) = (Zipf::scrambled(), Keys::hot(1_000));
        let drawn = [(); 4].map(|()| fnv(zipf.draw(&mut random)) % 1_000);
        assert_eq!(drawn, [140, 388, 271, 751]);
        assert_eq!([(); 4].map(|()| keys.draw(&mut random)), [105, 128, 826, 16]);
    }
}
