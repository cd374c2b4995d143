//! Decodes the bytes of a file.

use std::borrow::Cow;

/// Returns the text of a file in UTF-8, in UTF-16 with a byte order mark, or in an encoding that contains ASCII.
///
/// A plan's figures are ASCII. In another encoding, for example Latin-1, other characters become U+FFFD: they can only be
/// in names and conditions.
pub fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    let unit: fn([u8; 2]) -> u16 = match bytes {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return String::from_utf8_lossy(bytes),
    };
    let units = bytes[2..].as_chunks().0.iter().map(|&pair| unit(pair));
    Cow::Owned(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

#[cfg(test)]
mod tests {
    use super::text_of;

    #[test]
    fn every_usual_encoding_is_decoded() {
        let text = "Sort — ä\n";
        let utf16: Vec<u16> = text.encode_utf16().collect();
        let of = |bytes: fn(u16) -> [u8; 2], mark: [u8; 2]| {
            [&mark[..], &utf16.iter().flat_map(|&unit| bytes(unit)).collect::<Vec<_>>()].concat()
        };
        assert_eq!(text_of(text.as_bytes()), text);
        assert_eq!(text_of(&of(u16::to_le_bytes, [0xff, 0xfe])), text);
        assert_eq!(text_of(&of(u16::to_be_bytes, [0xfe, 0xff])), text);
        assert_eq!(text_of(b"Filter: (a = '\xe4')"), "Filter: (a = '\u{fffd}')");
        // Half of a character at the end, and a half of a pair.
        assert_eq!(text_of(b"\xff\xfea\0b"), "a");
        assert_eq!(text_of(b"\xfe\xff\xd8\0"), "\u{fffd}");
    }
}
