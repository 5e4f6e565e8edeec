//! Text from a log, made harmless for a terminal.

use std::fmt::{self, Write};

/// Prints `text` in one line: what would move the cursor, change colours, hide or reorder text prints as `\u{..}`.
///
/// Whoever sends requests chooses the keys of a log, so a key could otherwise rewrite the report about it.
pub(crate) fn escaped(text: &str) -> Escaped<'_> {
    Escaped(text)
}

pub(crate) struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                _ if is_harmful(character) => write!(f, "{}", character.escape_unicode())?,
                _ => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            // Zero-width and directional marks, line separators, directional embeddings and isolates, and the byte order
            // mark; soft hyphen and the tag characters are invisible too.
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_rewrite_a_terminal_is_spelled_out() {
        assert_eq!(escaped("a\x1b[2Jb\nc\u{9b}\u{202e}d").to_string(), "a\\u{1b}[2Jb\\nc\\u{9b}\\u{202e}d");
        assert_eq!(escaped("/straße/日本?").to_string(), "/straße/日本?");
    }
}
