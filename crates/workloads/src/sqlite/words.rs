//! The text of a script as SQLite reads it: blanks, comments and quotes, words, and the ends of
//! statements. A statement that is read otherwise here than by SQLite would get past the guards.

use super::connection;

/// The mark with which some editors begin a file. For SQLite it is white space, anywhere.
pub(super) const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns the number of bytes of white space and comments with which a text begins. A vertical tab
/// is white space for SQLite only after other white space; alone it is an error, also here.
pub(super) fn blank(text: &str) -> usize {
    let is_space = |letter: char| matches!(letter, ' ' | '\t'..='\r' | BYTE_ORDER_MARK);
    let mut rest = text.trim_start_matches(is_space);
    while rest.starts_with("--") || rest.starts_with("/*") {
        rest = rest[enclosed(rest)..].trim_start_matches(is_space);
    }
    text.len() - rest.len()
}

/// Returns the bytes of the comment, string or quoted name with which a text begins, or 0. One that
/// does not end has all bytes of the text.
fn enclosed(text: &str) -> usize {
    let (opening, closing) = match text.as_bytes() {
        [b'-', b'-', ..] => (2, "\n"),
        [b'/', b'*', ..] => (2, "*/"),
        [b'[', ..] => (1, "]"),
        [b'\'', ..] => (1, "'"),
        [b'"', ..] => (1, "\""),
        [b'`', ..] => (1, "`"),
        _ => return 0,
    };
    text[opening..].find(closing).map_or(text.len(), |end| opening + end + closing.len())
}

/// The first place at or behind `ends` that is in no comment, string or quoted name, of a text that
/// is in none at `at`.
pub(super) fn outside(text: &str, mut at: usize, ends: usize) -> usize {
    while at < ends {
        let next = text[at..ends].find(['-', '/', '[', '\'', '"', '`']);
        at = next.map_or(ends, |next| at + next + enclosed(&text[at + next..]).max(1));
    }
    at
}

/// Returns the word with which a text begins: letters, digits, and other letters of names.
pub(super) fn word(text: &str) -> &str {
    let is_of_word = |letter: char| {
        letter.is_ascii_alphanumeric() || matches!(letter, '_' | '$') || !letter.is_ascii()
    };
    &text[..text.find(|letter| !is_of_word(letter)).unwrap_or(text.len())]
}

/// Returns the first word, mark or quoted name after blanks, and the text after it.
pub(super) fn next(text: &str) -> (&str, &str) {
    let text = &text[blank(text)..];
    let quoted = enclosed(text);
    if let Some(inside) = text.get(1..quoted.saturating_sub(1)) {
        return (inside, &text[quoted..]);
    }
    let mark = text.chars().next().map_or(0, char::len_utf8);
    text.split_at(word(text).len().max(mark))
}

/// The first word of the statement that an `EXPLAIN` explains.
pub(super) fn explained(text: &str) -> &str {
    let (_explain, rest) = next(text);
    let (mut word, rest) = next(rest);
    if word.eq_ignore_ascii_case("QUERY") {
        let (_plan, rest) = next(rest);
        word = next(rest).0;
    }
    word
}

/// Returns the texts before and after the `AS` of a statement, if it is a `CREATE TABLE ... AS`.
pub(super) fn table_as(statement: &str) -> Option<(&str, &str)> {
    let (create, mut rest) = next(statement);
    let (mut word, mut after) = next(rest);
    if ["TEMP", "TEMPORARY"].iter().any(|temporary| word.eq_ignore_ascii_case(temporary)) {
        (word, after) = next(after);
    }
    if !create.eq_ignore_ascii_case("CREATE") || !word.eq_ignore_ascii_case("TABLE") {
        return None;
    }
    loop {
        rest = &after[blank(after)..];
        (word, after) = next(rest);
        // A name in quotes may be anything.
        let is_quoted = enclosed(rest) > 0;
        if !is_quoted && word.eq_ignore_ascii_case("AS") {
            return Some((&statement[..statement.len() - rest.len()], after));
        }
        if !is_quoted && matches!(word, "" | "(" | ";") {
            return None;
        }
    }
}

/// Returns the bytes of the statement with which a text begins, semicolon included, or `None` if
/// it has none. A semicolon in a string, a comment or a trigger's body does not complete it.
pub(super) fn statement(text: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(next) = text[at..].find([';', '-', '/', '[', '\'', '"', '`']) {
        at += next;
        let step = enclosed(&text[at..]).max(1);
        let completes = text[at..].starts_with(';') && connection::is_complete(&text[..=at]);
        at += step;
        if completes {
            return Some(at);
        }
    }
    None
}
