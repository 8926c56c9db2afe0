//! The features of the processor, found out at run time.

use std::arch::x86_64::__cpuid_count;

use raw_cpuid::{CacheType, CpuId, CpuIdReader};

use crate::words::{Array, Variant};

/// The instructions of the benchmark that a processor may lack, and the processor's description.
#[derive(Clone, Debug)]
pub struct Features {
    /// `rdtscp`, without which no time can be read.
    pub rdtscp: bool,
    /// `clflush`.
    pub clflush: bool,
    /// `clflushopt`.
    pub clflushopt: bool,
    /// `clwb`.
    pub clwb: bool,
    /// `movdiri`.
    pub movdiri: bool,
    /// `movdir64b`.
    pub movdir64b: bool,
    /// AVX2, with an operating system that keeps its registers.
    pub avx2: bool,
    /// AVX-512F, with an operating system that keeps its registers.
    pub avx512f: bool,
    /// The processor's own name.
    pub processor: String,
    /// The maker.
    pub vendor: String,
    /// The hypervisor, if there is one.
    pub hypervisor: Option<String>,
    /// Bytes of the last-level cache, if it says so.
    pub llc: Option<u64>,
}

/// Bits of ECX of leaf 7, which the library does not know (Intel SDM, CPUID).
const MOVDIRI: u32 = 1 << 27;
const MOVDIR64B: u32 = 1 << 28;

impl Features {
    /// Returns the features of the processor on which this runs.
    pub fn detect() -> Features {
        let cpuid = CpuId::new();
        let basic = cpuid.get_feature_info();
        let extended = cpuid.get_extended_feature_info();
        let leaf_7 = match extended {
            Some(_) => __cpuid_count(7, 0).ecx,
            None => 0,
        };
        let identifiers = cpuid.get_extended_processor_and_feature_identifiers();
        Features {
            rdtscp: identifiers.is_some_and(|info| info.has_rdtscp()),
            clflush: basic.as_ref().is_some_and(|info| info.has_clflush()),
            clflushopt: extended.as_ref().is_some_and(|info| info.has_clflushopt()),
            clwb: extended.as_ref().is_some_and(|info| info.has_clwb()),
            movdiri: leaf_7 & MOVDIRI != 0,
            movdir64b: leaf_7 & MOVDIR64B != 0,
            avx2: is_x86_feature_detected!("avx2"),
            avx512f: is_x86_feature_detected!("avx512f"),
            processor: processor(&cpuid),
            vendor: cpuid.get_vendor_info().map_or_else(String::new, |info| info.as_str().into()),
            hypervisor: cpuid
                .get_hypervisor_info()
                .map(|info| format!("{:?}", info.identify()))
                .or_else(|| basic.filter(|info| info.has_hypervisor()).map(|_| "unknown".into())),
            llc: last_level(&cpuid),
        }
    }

    /// Returns each instruction's name, and whether the processor has it.
    pub fn rows(&self) -> [(&'static str, bool); 7] {
        [
            ("clflush", self.clflush),
            ("clflushopt", self.clflushopt),
            ("clwb", self.clwb),
            ("movdiri", self.movdiri),
            ("movdir64b", self.movdir64b),
            ("avx2", self.avx2),
            ("avx512f", self.avx512f),
        ]
    }

    /// Returns the instruction that a variant needs and the processor lacks, if there is one.
    pub fn lacks(&self, variant: Variant, array: Array) -> Option<&'static str> {
        let (needed, has) = match variant {
            Variant::Cached | Variant::Movnti4 | Variant::Movnti8 => ("", true),
            Variant::Clwb => ("clwb", self.clwb),
            Variant::ClflushOpt => ("clflushopt", self.clflushopt),
            Variant::Clflush => ("clflush", self.clflush),
            Variant::Movdiri => ("movdiri", self.movdiri),
            Variant::Nt32 => ("AVX2", self.avx2),
            Variant::Nt64 => ("AVX-512", self.avx512f),
            Variant::Movdir64b => ("movdir64b", self.movdir64b),
        };
        if !has {
            return Some(needed);
        }
        // Variants with another flush use that for the array, too.
        let own_flush = matches!(variant, Variant::ClflushOpt | Variant::Clflush);
        (array == Array::Flushed && !own_flush && !self.clwb).then_some("clwb")
    }
}

fn processor(cpuid: &CpuId<impl CpuIdReader>) -> String {
    let brand = cpuid.get_processor_brand_string();
    let name = brand.as_ref().map_or("unknown", |brand| brand.as_str().trim());
    match cpuid.get_feature_info() {
        // Names of virtual processors say little, so family and model are added.
        Some(info) => format!("{name} (family {}, model {})", info.family_id(), info.model_id()),
        None => name.into(),
    }
}

fn last_level(cpuid: &CpuId<impl CpuIdReader>) -> Option<u64> {
    let caches = cpuid.get_cache_parameters()?;
    caches
        .filter(|cache| cache.cache_type() != CacheType::Instruction)
        .map(|cache| {
            let line = cache.coherency_line_size() * cache.physical_line_partitions();
            (cache.level(), (cache.associativity() * cache.sets() * line) as u64)
        })
        .max()
        .map(|(_, bytes)| bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare() -> Features {
        let mut features = Features::detect();
        features.clflushopt = false;
        features.clwb = false;
        features.avx512f = false;
        features
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(bare().lacks(Variant::Nt64, Array::Cached), Some("AVX-512"));
        assert_eq!(bare().lacks(Variant::Clwb, Array::Cached), Some("clwb"));
        assert_eq!(bare().lacks(Variant::Movnti4, Array::Cached), None);
        assert_eq!(bare().lacks(Variant::Movnti4, Array::Flushed), Some("clwb"));
        assert_eq!(bare().lacks(Variant::Clflush, Array::Flushed), None);
    }

    #[test]
    fn the_kernel_sees_the_same_instructions() {
        let text = std::fs::read_to_string("/proc/cpuinfo").expect("/proc");
        let flags = text.lines().find(|line| line.starts_with("flags")).expect("flags");
        for (name, has) in Features::detect().rows() {
            let seen = flags.split_whitespace().any(|flag| flag == name);
            assert_eq!(has, seen || name == "clflush" && flags.contains("clflush"), "{name}");
        }
    }
}
