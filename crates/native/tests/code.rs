//! The machine code of every loop, disassembled in the process that runs it: which instructions
//! touch memory, and in which order. A compiler that merged the two stores of 4 bytes, or moved the
//! array's store over the fence, would be measured instead of the processor.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use native::words::{Array, ENTRIES, Fence, Logging, Values, Variant, Word};
use native::x86_64::loops::{Kind, select};

/// The most bytes of a loop.
const CODE_MAX: usize = 8192;

/// The effect of an instruction of the loop's body on memory other than the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// An ordinary store of so many bytes.
    Store(usize),
    /// A non-temporal or direct store.
    Past(Mnemonic, usize),
    Flush(Mnemonic),
    Fence(Mnemonic),
}

/// Returns every combination that a request can ask for.
fn kinds() -> impl Iterator<Item = Kind> {
    let mut kinds = Vec::new();
    for &variant in Variant::ALL {
        for &entries in ENTRIES {
            for &fence in Fence::ALL {
                for &values in Values::ALL {
                    for &logging in Logging::ALL {
                        for &array in Array::ALL {
                            kinds.push(Kind { variant, entries, fence, values, logging, array });
                        }
                    }
                }
            }
        }
    }
    kinds.into_iter()
}

fn kind(variant: Variant, fence: Fence) -> Kind {
    let (values, logging, array) = (Values::Xorshift, Logging::Redo, Array::Cached);
    Kind { variant, entries: 1, fence, values, logging, array }
}

/// The code of a loop, to its last return.
fn code(kind: Kind) -> Vec<u8> {
    let start = select(kind) as usize;
    // SAFETY: code of this program lies there, and what follows it is code of this program, too.
    let bytes = unsafe { std::slice::from_raw_parts(start as *const u8, CODE_MAX) };
    let mut last_target = 0;
    for instruction in &mut Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE) {
        assert!(!instruction.is_invalid(), "{kind:?}: no instruction at {:#x}", instruction.ip());
        if instruction.is_jcc_short_or_near() || instruction.is_jmp_short_or_near() {
            last_target = last_target.max(instruction.near_branch_target());
        }
        if instruction.mnemonic() == Mnemonic::Ret && instruction.ip() >= last_target {
            return bytes[..instruction.next_ip() as usize].to_vec();
        }
    }
    panic!("{kind:?}: no return within {CODE_MAX} bytes");
}

/// The body of the one loop in some code.
fn body(code: &[u8]) -> Result<Vec<Instruction>, String> {
    let all: Vec<_> = Decoder::with_ip(64, code, 0, DecoderOptions::NONE).into_iter().collect();
    let is_back =
        |one: &&Instruction| one.is_jcc_short_or_near() && one.near_branch_target() < one.ip();
    let back: Vec<_> = all.iter().filter(is_back).collect();
    let &[back] = back.as_slice() else {
        return Err(format!("{} loops and not one", back.len()));
    };
    let body: Vec<_> = all
        .iter()
        .copied()
        .filter(|one| (back.near_branch_target()..back.ip()).contains(&one.ip()))
        .collect();
    match body.iter().find(|one| one.is_jcc_short_or_near() || one.is_jmp_short_or_near()) {
        Some(branch) => Err(format!("a branch in the loop, at {:#x}", branch.ip())),
        None => Ok(body),
    }
}

/// Loops that align their stack for a staged line address it by RSP, and so do all others: they are
/// compiled without a frame pointer, and RBP is a register like any other.
fn is_on_stack(instruction: &Instruction) -> bool {
    instruction.memory_base() == Register::RSP
}

/// Returns the body's effects on memory, in order.
fn does(body: &[Instruction]) -> Vec<Does> {
    body.iter().filter_map(does_one).collect()
}

fn does_one(one: &Instruction) -> Option<Does> {
    let mnemonic = one.mnemonic();
    match mnemonic {
        Mnemonic::Sfence | Mnemonic::Mfence => return Some(Does::Fence(mnemonic)),
        Mnemonic::Clwb | Mnemonic::Clflushopt | Mnemonic::Clflush => {
            return Some(Does::Flush(mnemonic));
        }
        Mnemonic::Movnti | Mnemonic::Movdiri | Mnemonic::Vmovntdq => {
            return Some(Does::Past(mnemonic, one.memory_size().size()));
        }
        // Its destination is a register that holds the address.
        Mnemonic::Movdir64b => return Some(Does::Past(mnemonic, 64)),
        _ if one.has_lock_prefix() => return Some(Does::Fence(mnemonic)),
        _ => (),
    }
    let stores = one.op_count() > 0
        && one.op0_kind() == OpKind::Memory
        && !matches!(mnemonic, Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Nop | Mnemonic::Call);
    (stores && !is_on_stack(one)).then(|| Does::Store(one.memory_size().size()))
}

/// Returns the effects that the body of a loop must have, in order.
fn wanted(kind: Kind) -> Vec<Does> {
    let entries = kind.entries;
    let lines = (entries * 8).div_ceil(64);
    let (log, flush) = match kind.variant {
        Variant::Cached => (vec![Does::Store(4); 2 * entries], None),
        Variant::Clwb => (vec![Does::Store(4); 2 * entries], Some(Mnemonic::Clwb)),
        Variant::ClflushOpt => (vec![Does::Store(4); 2 * entries], Some(Mnemonic::Clflushopt)),
        Variant::Clflush => (vec![Does::Store(4); 2 * entries], Some(Mnemonic::Clflush)),
        Variant::Movnti4 => (vec![Does::Past(Mnemonic::Movnti, 4); 2 * entries], None),
        Variant::Movnti8 => (vec![Does::Past(Mnemonic::Movnti, 8); entries], None),
        Variant::Movdiri => (vec![Does::Past(Mnemonic::Movdiri, 8); entries], None),
        Variant::Nt32 => (vec![Does::Past(Mnemonic::Vmovntdq, 32); 2 * lines], None),
        Variant::Nt64 => (vec![Does::Past(Mnemonic::Vmovntdq, 64); lines], None),
        Variant::Movdir64b => (vec![Does::Past(Mnemonic::Movdir64b, 64); lines], None),
    };
    let mut wanted = log;
    wanted.extend(flush.iter().flat_map(|&flush| vec![Does::Flush(flush); lines]));
    wanted.extend(match kind.fence {
        Fence::Sfence => Some(Does::Fence(Mnemonic::Sfence)),
        Fence::Mfence => Some(Does::Fence(Mnemonic::Mfence)),
        Fence::Lock => Some(Does::Fence(Mnemonic::Or)),
        Fence::None => None,
    });
    wanted.extend(vec![Does::Store(4); entries]);
    if kind.array == Array::Flushed {
        // Sixteen elements of 4 bytes are a line, and a group begins where it divides one.
        wanted.push(Does::Flush(flush.unwrap_or(Mnemonic::Clwb)));
    }
    wanted
}

/// Checks that some code is the loop of its kind.
fn check(kind: Kind, code: &[u8]) -> Result<(), String> {
    let body = body(code)?;
    let (does, wanted) = (does(&body), wanted(kind));
    if does != wanted {
        return Err(format!("it does {does:?} and should do {wanted:?}"));
    }
    let calls = body.iter().filter(|one| one.is_call_near() || one.is_call_near_indirect()).count();
    let draws = if kind.values == Values::Rand { kind.entries } else { 0 };
    if calls != draws {
        return Err(format!("{calls} calls and not {draws}"));
    }
    // An old value is loaded before its place is stored to, which is after the fence.
    let is_load = |one: &&Instruction| {
        one.mnemonic() == Mnemonic::Mov
            && one.op1_kind() == OpKind::Memory
            && one.memory_size().size() == 4
            && !is_on_stack(one)
    };
    let before_array = body.len() - body.iter().rev().take_while(|one| !is_fence(one)).count();
    let loads = body[..before_array].iter().filter(is_load).count();
    let fenced = kind.fence != Fence::None;
    if fenced && kind.logging == Logging::Undo && loads < kind.entries {
        return Err(format!("{loads} loads before the fence for {} old values", kind.entries));
    }
    Ok(())
}

fn is_fence(one: &Instruction) -> bool {
    matches!(does_one(one), Some(Does::Fence(_)))
}

#[test]
fn every_loop_has_its_instructions_in_order_and_nothing_else() {
    let mut wrong = Vec::new();
    let mut looked_at = 0;
    for kind in kinds() {
        looked_at += 1;
        if let Err(why) = check(kind, &code(kind)) {
            wrong.push(format!("{kind:?}: {why}"));
        }
    }
    assert_eq!(looked_at, 10 * 5 * 4 * 3 * 2 * 2);
    assert!(wrong.is_empty(), "{} of {looked_at}, such as {}", wrong.len(), wrong[0]);
}

/// The first instruction of a kind in the body, as a range of bytes.
fn place(code: &[u8], is: impl Fn(&Instruction) -> bool) -> std::ops::Range<usize> {
    let body = body(code).expect("one loop");
    let one = body.iter().find(|one| is(one)).expect("the instruction is there");
    one.ip() as usize..one.next_ip() as usize
}

fn without(code: &[u8], place: std::ops::Range<usize>) -> Vec<u8> {
    let mut changed = code.to_vec();
    changed[place].fill(0x90);
    changed
}

/// The check itself must detect the changes that a compiler might make.
#[test]
fn code_that_is_wrong_is_told() {
    let paper = kind(Variant::Movnti4, Fence::Sfence);
    let right = code(paper);
    assert_eq!(check(paper, &right), Ok(()));
    // One store of 8 bytes in place of two of 4.
    assert!(check(paper, &code(kind(Variant::Movnti8, Fence::Sfence))).is_err());
    // No fence; another fence; one store of the two; no store to the array.
    let fence = place(&right, is_fence);
    assert!(check(paper, &without(&right, fence.clone())).is_err());
    assert!(check(paper, &code(kind(Variant::Movnti4, Fence::Mfence))).is_err());
    let store = place(&right, |one| one.mnemonic() == Mnemonic::Movnti);
    assert!(check(paper, &without(&right, store)).is_err());
    let is_array = |one: &Instruction| does_one(one) == Some(Does::Store(4));
    let array = place(&right, is_array);
    assert!(check(paper, &without(&right, array.clone())).is_err());
    // The array's store before the fence.
    let mut early = right.clone();
    let (first, last) = (fence.start, array.end);
    let moved = [&right[array.clone()], &right[fence.end..array.start], &right[fence]].concat();
    early[first..last].copy_from_slice(&moved);
    assert!(check(paper, &early).expect_err("it is early").contains("should do"));
    // A flush that is missing, and the wrong one.
    let durable = kind(Variant::Clwb, Fence::Sfence);
    let flushes = code(durable);
    let flush = place(&flushes, |one| one.mnemonic() == Mnemonic::Clwb);
    assert!(check(durable, &without(&flushes, flush)).is_err());
    assert!(check(durable, &code(kind(Variant::ClflushOpt, Fence::Sfence))).is_err());
    // Code of a redo log, which loads no old values, is not that of an undo log.
    let undo = Kind { logging: Logging::Undo, ..paper };
    assert!(check(undo, &right).expect_err("no old value").contains("old values"));
}
