"""Stands in the place of the assembler and of the linker of programs built with `indelible cc`.

The compiler tells of its own loads and stores (hooks.c), and not of flushes, fences, stores past
the caches, masked stores and what inline assembly does. These are seen here, in the assembly, and a
call is put in front of each. The linker gets the recorder in the place of the thread sanitizer's
library.

It runs once for each file that is compiled, so it imports little.
"""

from __future__ import annotations

import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator

#: What lies between the stack's end and where it was, when the address is taken: what leaf
#: functions keep beyond the end, the flags and %rdi.
MOVED = 128 + 8 + 8

#: Functions of the C library that the recorder calls itself, to see what they store.
WRAPPED = (
    *("memcpy", "memmove", "mempcpy", "memset", "bzero", "bcopy"),
    *("memccpy", "wmemcpy", "wmemmove", "wmempcpy", "wmemset", "wcscpy"),
    *("strcpy", "stpcpy", "strcat", "strncpy", "stpncpy", "strncat"),
    *("sprintf", "snprintf", "vsprintf", "vsnprintf", "fread"),
    *("free", "realloc", "pthread_exit", "_ZdlPv", "_ZdlPvm", "_ZdaPv", "_ZdaPvm"),
    *("read", "pread", "pread64", "write", "pwrite", "pwrite64"),
    *("__memcpy_chk", "__memmove_chk", "__memset_chk", "__strcpy_chk"),
)

#: Bytes of an operand by the suffix of its instruction, and by its register.
SUFFIXES = {"b": 1, "w": 2, "l": 4, "q": 8}
REGISTERS = (
    (re.compile(r"%zmm"), 64),
    (re.compile(r"%ymm"), 32),
    (re.compile(r"%xmm"), 16),
    (re.compile(r"%mm"), 8),
    (re.compile(r"%(r[a-d]x|r[sd]i|r[sb]p|r\d+)$"), 8),
    (re.compile(r"%(e[a-d]x|e[sd]i|e[sb]p|r\d+d)$"), 4),
    (re.compile(r"%([a-d]x|[sd]i|[sb]p|r\d+w)$"), 2),
    (re.compile(r"%([a-d][lh]|[sd]il|[sb]pl|r\d+b)$"), 1),
)

#: Instructions that write their last operand with the bytes of a vector register.
VECTOR_STORE = re.compile(
    r"v?mov(?:ap[sd]|up[sd]|dq[au](?:8|16|32|64)?|lps|lpd|hps|hpd|ss|sd|d|q)$"
)
#: Those that write and do arithmetic, or move whole numbers.
PLAIN_STORE = re.compile(
    r"(?:mov|add|sub|and|or|xor|inc|dec|not|neg|xchg|xadd|cmpxchg|bts|btr|btc|adc|sbb)([bwlq]?)$"
)
STREAM = re.compile(r"(?:v?movnt(?:dq|ps|pd|ss|sd|q|i)|movdiri)([lq]?)$")
#: Of these gcc tells unless they are asked for by `_mm_storel_pi` and `_mm_storeh_pi`.
HALF_STORE = re.compile(r"v?mov[lh]ps$")
#: Halves of a register, and numbers in one.
PARTS = {"lps": 8, "lpd": 8, "hps": 8, "hpd": 8, "ss": 4, "sd": 8, "d": 4, "q": 8}

STATEMENT = re.compile(r"""((?:[^;"#]|"(?:[^"\\]|\\.)*")*)(;|#.*$|$)""")
PREFIX = re.compile(r"\s*(lock|rep|repz|repe|\.byte\s+(0x66|102))\s*$")
#: Operands of which the address cannot be taken: of other segments, and of many places at once.
ELSEWHERE = re.compile(r"%[fg]s:|%[xyz]mm")
#: A comment between instructions, which people write in inline assembly; it is in no text.
COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|#[^\n]*|(?P<comment>/\*(?s:.*?)\*/)')
#: What a line that is a comment begins with.
COMMENTED = ("#", "/")
INTEL = re.compile(r"^\s*\.intel_syntax", re.MULTILINE)
LABEL = re.compile(r"\s*([.\w$]+:)\s*")

#: `clflush`, `clflushopt`, `clwb`, `mfence` and `sfence` in machine code: 0F AE with /6 or /7.
MACHINE_CODE = re.compile(rb"\x0f\xae[\x30-\x3f\x70-\x7f\xb0-\xbf\xf0-\xff]")
#: What a file has whose flushes and fences are recorded: calls in front of them, the recorder that
#: a shared library needs, or what becomes assembly only when it is linked (`-flto`).
SEEN = re.compile(rb"indelible_(flush|fence)|libindelible_record|\.gnu\.lto_")
#: Libraries of the system, and libpmem, which libpmem.c stands before.
NOT_NAMED = re.compile(r"/(usr/)?lib\w*/|.*/libpmem\.(a|so)")
#: Options of the linker of which the next argument is a file, and no input.
TAKES_FILE = ("-o", "-plugin", "-dynamic-linker")
#: The most files that the warning names (ours: a line).
NAMED_MAX = 5


def call_for(statement: str, in_assembly: bool, sees_wide: bool) -> str | None:
    """Return the thunk, and its operand, that is called in front of a statement, if one is.

    Plain stores are those of inline assembly; `sees_wide` adds those of more than 16 bytes, of
    which clang does not tell.
    """
    mnemonic, _, rest = statement.partition("#")[0].strip().replace("\t", " ").partition(" ")
    mnemonic = mnemonic.lower()
    if mnemonic == "lock":
        return _locked(rest.strip())
    if mnemonic in ("rep", "repz", "repe"):
        string = re.match(r"\s*(?:stos|movs)([bwlq])$", rest)
        return f"indelible_string{SUFFIXES[string[1]]} (%rdi)" if string and in_assembly else None
    operands = _operands(rest)
    memory = [operand for operand in operands if _is_memory(operand)]
    if mnemonic in ("sfence", "mfence"):
        return "indelible_fence"
    if mnemonic in ("clwb", "clflushopt", "clflush") and memory:
        name = "flush_in_order" if mnemonic == "clflush" else "flush"
        return f"indelible_{name} {memory[0]}"
    if mnemonic == "movdir64b" and len(operands) == 2:
        return f"indelible_stream64 ({operands[1]})"
    if mnemonic in ("maskmovdqu", "vmaskmovdqu", "maskmovq"):
        return f"indelible_mask_stream{8 if mnemonic == 'maskmovq' else 16} (%rdi)"
    if mnemonic.startswith("xchg"):
        # The operand in memory may be any of the two.
        operands.sort(key=_is_memory)
    into = _without_mask(operands[-1]) if operands else ""
    if not memory or not _is_memory(into):
        return None
    size = _bytes(mnemonic, operands)
    if STREAM.match(mnemonic):
        return f"indelible_stream{size} {into}"
    if into != operands[-1] or mnemonic.startswith(("vmaskmov", "vpmaskmov")):
        return f"indelible_mask{max(size, 16)} {into}"
    if HALF_STORE.match(mnemonic) and not in_assembly:
        return f"indelible_half8 {into}"
    is_seen = in_assembly or (sees_wide and size > 16)
    if size and is_seen and (PLAIN_STORE.match(mnemonic) or VECTOR_STORE.match(mnemonic)):
        # An exchange with memory is locked by itself.
        kind = "lock" if mnemonic.startswith("xchg") else "store"
        return f"indelible_{kind}{size} {into}"
    return None


def _locked(statement: str) -> str | None:
    """Return the thunk of an operation with the prefix `lock`, whatever it is."""
    mnemonic, _, rest = statement.partition(" ")
    memory = [operand for operand in _operands(rest) if _is_memory(operand)]
    if not memory:
        return None
    pairs = {"cmpxchg16b": 16, "cmpxchg8b": 8}
    size = pairs.get(mnemonic.lower()) or _bytes(mnemonic, [*_operands(rest)[:-1], ""]) or 1
    return f"indelible_lock{size} {memory[0]}"


def _operands(rest: str) -> list[str]:
    """Split at commas that are not within parentheses."""
    found, depth, start = [], 0, 0
    for at, character in enumerate(rest):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            found.append(rest[start:at].strip())
            start = at + 1
    found.append(rest[start:].strip())
    return [operand for operand in found if operand]


def _is_memory(operand: str) -> bool:
    return not operand.startswith(("%", "$")) or ":" in operand


def _without_mask(operand: str) -> str:
    return re.sub(r"\{%k\d\}$", "", operand)


def _bytes(mnemonic: str, operands: list[str]) -> int:
    """Return how many bytes an instruction stores; 0 where that cannot be seen."""
    part = re.match(r"v?mov(?:nt)?(lps|lpd|hps|hpd|ss|sd|d|q)$", mnemonic)
    if part and operands[0].startswith("%xmm"):
        return PARTS[part[1]]
    for operand in operands[:-1]:
        for register, size in REGISTERS:
            if register.match(operand):
                return size
    return SUFFIXES.get(mnemonic[-1], 0)


def inserted(call: str) -> list[str]:
    """Return the assembly of a call that leaves everything as it is."""
    thunk, _, operand = call.partition(" ")
    lines = ["leaq -128(%rsp), %rsp", "pushfq", "pushq %rdi"]
    if operand:
        # What is addressed by the stack's end has moved away from it.
        if re.search(r"\(\s*%rsp", operand):
            operand = f"{MOVED}+{operand}" if not operand.startswith("(") else f"{MOVED}{operand}"
        lines.append(f"leaq {operand}, %rdi")
    # Not through a table that is filled when it is used first: that keeps fewer registers.
    lines += [f"call *{thunk}@GOTPCREL(%rip)", "popq %rdi", "popfq", "leaq 128(%rsp), %rsp"]
    return [f"\t{line}" for line in lines]


def instrument(text: str, sees_wide: bool = False) -> str:
    """Return assembly with a call in front of each instruction that is to be seen."""
    made: list[str] = []
    in_assembly = False
    held = ""
    # Only these end a line of assembly; comments and texts may have others of Unicode's.
    for line in COMMENT.sub(_without_comment, text).removesuffix("\n").split("\n"):
        stripped = line.strip()
        if stripped in ("#APP", "#NO_APP"):
            in_assembly = stripped == "#APP"
        if stripped.startswith(COMMENTED) or not stripped:
            made.append(line)
            continue
        for statement in _statements(line):
            label = LABEL.match(statement)
            is_prefix = PREFIX.match(statement) is not None
            if label or is_prefix:
                # What was taken for a prefix has no instruction: it may be a byte of data.
                made += [held] if held else []
                held = ""
            while label:
                made.append(label[1])
                statement = statement[label.end() :]
                label = LABEL.match(statement)
                is_prefix = PREFIX.match(statement) is not None
            if is_prefix:
                # It stays with its instruction.
                held = statement
                continue
            if not statement.strip():
                continue
            call = call_for(_meant(held, statement), in_assembly, sees_wide)
            if call and not ELSEWHERE.search(call):
                made += inserted(call)
            made += [held, statement] if held else [statement]
            held = ""
    return "\n".join([*made, held]) + "\n"


def _without_comment(match: re.Match[str]) -> str:
    return " " if match["comment"] else match[0]


def _meant(held: str, statement: str) -> str:
    """Return what an instruction and the prefix before it are."""
    if held.strip() in ("lock", "rep", "repz", "repe"):
        return f"{held} {statement.strip()}"
    # Of assemblers that do not know them: clflushopt is `.byte 0x66; clflush`, and clwb is
    # `.byte 0x66; xsaveopt`.
    return re.sub(r"\b(clflush|xsaveopt)\b", "clwb", statement) if held else statement


def _statements(line: str) -> list[str]:
    if ";" not in line or line.lstrip().startswith((".ascii", ".string", ".section", ".file")):
        return [line]
    found = []
    for match in STATEMENT.finditer(line):
        if match[1].strip():
            found.append("\t" + match[1].strip())
        if match[2].startswith("#"):
            break
    return found


def assemble(real: str, sees_wide: bool, arguments: list[str]) -> int:
    """Run the assembler on what `instrument` makes of its input."""
    if "--version" in arguments:
        return subprocess.call([real, *arguments])
    pairs = zip(["", *arguments], arguments, strict=False)
    sources = [word for before, word in pairs if _is_source(before, word)]
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, "seen.s")
        if sources:
            with open(sources[-1], "rb") as file:
                text = file.read().decode("utf-8", "surrogateescape")
        else:
            text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
        if INTEL.search(text):
            sys.stderr.write("indelible cc: error: assembly of Intel's syntax is not understood\n")
            return 1
        with open(made, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(instrument(text, sees_wide))
        replaced = sources[-1] if sources else "-"
        rest = [made if word == replaced else word for word in arguments]
        return subprocess.call([real, *(rest if made in rest else [*rest, made])])


def _is_source(before: str, word: str) -> bool:
    """Whether a word behind another one is what is assembled, and not what an option takes."""
    is_option = word.startswith("-") or before in ("-o", "-I", "--MD", "--defsym")
    return not is_option and os.path.isfile(word)


def link(real: str, library: str, arguments: list[str]) -> int:
    """Run the linker with the recorder in the place of the thread sanitizer's library."""
    given = _expanded(arguments)
    kept = [
        word
        for word in given
        if word != "-ltsan"
        and not re.search(r"libtsan(_preinit\.o|\.so|\.a)|libclang_rt\.tsan", word)
    ]
    _warn_of_unseen(kept)
    if not {"-r", "-i", "--relocatable", "--version", "-v"}.isdisjoint(kept):
        return _call(real, kept, given != arguments)
    folder = os.path.dirname(library)
    ours = ["--push-state", "--no-as-needed", library, "--pop-state", "-rpath", folder]
    ours += [f"--wrap={name}" for name in WRAPPED]
    return _call(real, [*ours, *kept], given != arguments)


def _expanded(arguments: list[str]) -> list[str]:
    """Return the arguments with those that `@FILE` holds in its place, as the linker reads them."""
    found = []
    for word in arguments:
        if word.startswith("@") and os.path.isfile(word[1:]):
            with open(word[1:], encoding="utf-8", errors="surrogateescape") as file:
                found += _expanded(shlex.split(file.read()))
        else:
            found.append(word)
    return found


def _warn_of_unseen(arguments: list[str]) -> None:
    """Name the files that flush or fence unseen: nothing else would tell, as of a store."""
    unseen = [name for name in _inputs(arguments) if _is_unseen(name)]
    if unseen:
        more = f" and {len(unseen) - NAMED_MAX} more" if len(unseen) > NAMED_MAX else ""
        sys.stderr.write(
            f"indelible cc: warning: {', '.join(unseen[:NAMED_MAX])}{more}: not built with"
            " `indelible cc`, so flushes and fences there are not recorded (make -B builds"
            " everything again)\n"
        )


def _inputs(arguments: list[str]) -> list[str]:
    """Return the objects, archives and shared libraries of the program's own, each once."""
    folders = [word[2:] for word in arguments if word.startswith("-L")]
    found = []
    for before, word in zip(["", *arguments], arguments, strict=False):
        if word.startswith("-l"):
            names = [word[3:]] if word[2:3] == ":" else [f"lib{word[2:]}.so", f"lib{word[2:]}.a"]
            paths = [os.path.join(folder, name) for folder in folders for name in names]
            found += [path for path in paths if os.path.isfile(path)][:1]
        elif before not in TAKES_FILE and os.path.isfile(word):
            found.append(word)
    own = dict.fromkeys(map(os.path.normpath, found))
    return [name for name in own if not NOT_NAMED.match(os.path.realpath(name))]


def _is_unseen(name: str) -> bool:
    """Return whether a file flushes or fences and has no call of the recorder there."""
    try:
        unseen = (elf for elf in _objects(name) if not SEEN.search(elf))
        return any(MACHINE_CODE.search(code) for elf in unseen for code in _code(elf))
    except (OSError, ValueError, struct.error):
        # The linker says what is wrong with the file.
        return False


def _objects(name: str) -> Iterator[bytes]:
    """Read the members of an archive, or what else a file is; those of a thin one are files."""
    with open(name, "rb") as file:
        data = file.read()
    if not data.startswith((b"!<arch>\n", b"!<thin>\n")):
        yield data
        return
    is_thin, names, at = data.startswith(b"!<thin>"), b"", 8
    while at + 60 <= len(data):
        member, size = data[at : at + 16].rstrip(), int(data[at + 48 : at + 58])
        at += 60
        if is_thin and member[1:].isdigit():
            path = os.fsdecode(names[int(member[1:]) :].partition(b"/\n")[0])
            yield from _objects(os.path.join(os.path.dirname(name), path))
            continue
        body = data[at : at + size]
        names = body if member == b"//" else names
        yield body
        at += size + size % 2


def _code(elf: bytes) -> Iterator[bytes]:
    """Return the sections of a file of 64 bits that hold machine code (`Elf64_Shdr` of elf.h)."""
    if not elf.startswith(b"\x7fELF\x02"):
        return
    (headers,) = struct.unpack_from("<Q", elf, 0x28)
    bytes_each, count = struct.unpack_from("<HH", elf, 0x3A)
    for index in range(count):
        flags, _, start, size = struct.unpack_from("<4Q", elf, headers + index * bytes_each + 8)
        # SHF_EXECINSTR.
        if flags & 4:
            yield elf[start : start + size]


def _call(real: str, arguments: list[str], in_file: bool) -> int:
    """Run the linker with the arguments, or with a file of them: they may be too long for Linux."""
    if not in_file:
        return subprocess.call([real, *arguments])
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", errors="surrogateescape") as file:
        # As GCC writes such a file: the linker takes a backslash as one within quotes, too.
        file.writelines(re.sub(r"""([\s'"\\])""", r"\\\1", word) + "\n" for word in arguments)
        file.flush()
        return subprocess.call([real, f"@{file.name}"])


def main(role: str, real: str, library: str, *arguments: str) -> int:
    """Be the assembler of gcc or of clang, or the linker."""
    if role in ("as", "as-of-clang"):
        return assemble(real, role == "as-of-clang", list(arguments))
    return link(real, library, list(arguments))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
