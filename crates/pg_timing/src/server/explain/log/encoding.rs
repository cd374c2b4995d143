//! The encoding of a log. PostgreSQL's own text is ASCII in all encodings that a server can have. Windows programs may write
//! UTF-16.

use std::io::{self, BufRead, Read};

/// Combines two bytes.
pub type Unit = fn([u8; 2]) -> u16;

pub enum Encoding {
    /// ASCII, with any other bytes in names and constants
    Ascii,
    Utf16(Unit),
    /// not a text
    None,
}

impl Encoding {
    /// Returns the encoding of a file from its first bytes.
    pub fn of(start: &[u8]) -> Encoding {
        match start {
            [0xff, 0xfe, ..] => return Encoding::Utf16(u16::from_le_bytes),
            [0xfe, 0xff, ..] => return Encoding::Utf16(u16::from_be_bytes),
            _ => {}
        }
        let nuls = |parity: usize| start.iter().skip(parity).step_by(2).filter(|byte| **byte == 0).count();
        let half = start.len() / 2;
        match (nuls(0), nuls(1)) {
            (0, 0) => Encoding::Ascii,
            // Without a byte order mark: ASCII is a byte and a NUL byte in turn.
            (0, odd) if odd > 1 && odd * 10 >= half * 9 => Encoding::Utf16(u16::from_le_bytes),
            (even, 0) if even > 1 && even * 10 >= half * 9 => Encoding::Utf16(u16::from_be_bytes),
            _ if is_binary(start) => Encoding::None,
            // After a crash, a log can have NUL bytes.
            _ => Encoding::Ascii,
        }
    }
}

/// Returns whether a file with NUL bytes is not a text. Programs and archives have all control characters; a log has hardly
/// any.
fn is_binary(start: &[u8]) -> bool {
    let is_text = |byte: &u8| *byte >= b' ' || b"\t\n\r\x0c\x1b".contains(byte);
    let others = start.iter().filter(|byte| **byte != 0 && !is_text(byte)).count();
    others * 100 > start.iter().filter(|byte| **byte != 0).count()
}

/// Turns UTF-16 into UTF-8 while it is read.
pub struct Utf16<R> {
    text: R,
    unit: Unit,
    /// the first half of a character
    high: Option<u16>,
    /// text that was not taken yet
    decoded: Vec<u8>,
    taken: usize,
}

/// The byte order mark.
const MARK: u16 = 0xfeff;

impl<R: BufRead> Utf16<R> {
    pub fn new(text: R, unit: Unit) -> Utf16<R> {
        Utf16 { text, unit, high: None, decoded: Vec::new(), taken: 0 }
    }

    /// Decodes what the next read returns. Returns false at the end.
    fn decode(&mut self) -> io::Result<bool> {
        self.decoded.clear();
        self.taken = 0;
        let bytes = self.text.fill_buf()?;
        if bytes.is_empty() {
            let is_end = self.high.take().is_none();
            if !is_end {
                self.decoded.extend("\u{fffd}".as_bytes());
            }
            return Ok(!is_end);
        }
        let used = bytes.len() & !1;
        let mut units: Vec<u16> = self.high.take().into_iter().collect();
        units.extend(bytes.as_chunks().0.iter().map(|&pair| (self.unit)(pair)));
        if used == 0 {
            // The other byte comes with the next read, unless the file ends here.
            let mut pair = [bytes[0], 0];
            self.text.consume(1);
            if self.text.read(&mut pair[1..])? == 1 {
                units.push((self.unit)(pair));
            }
        }
        self.text.consume(used);
        self.high = units.pop_if(|unit| (0xd800..0xdc00).contains(unit));
        let characters = char::decode_utf16(units.into_iter().filter(|unit| *unit != MARK));
        let text: String = characters.map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        self.decoded = text.into_bytes();
        Ok(true)
    }
}

impl<R: BufRead> Read for Utf16<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.decoded.len() {
            if !self.decode()? {
                return Ok(0);
            }
        }
        let left = &self.decoded[self.taken..];
        let bytes = left.len().min(to.len());
        to[..bytes].copy_from_slice(&left[..bytes]);
        self.taken += bytes;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    #[test]
    fn utf_16_is_decoded_in_any_pieces() {
        let text = "Sort \u{2014} \u{e4} \u{1f418}\n".repeat(3);
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for (bytes, mark) in [(little, [0xff, 0xfe]), (big, [0xfe, 0xff])] {
            let bytes = [&mark[..], &bytes].concat();
            let Encoding::Utf16(unit) = Encoding::of(&bytes) else { panic!() };
            for size in 1..9 {
                let mut decoded = String::new();
                Utf16::new(BufReader::with_capacity(size, &bytes[..]), unit).read_to_string(&mut decoded).unwrap();
                assert_eq!(decoded, text, "{size}");
                // Half of a character at the end.
                let mut decoded = String::new();
                let cut = &bytes[..bytes.len() - 4];
                Utf16::new(BufReader::with_capacity(size, cut), unit).read_to_string(&mut decoded).unwrap();
                assert!(decoded.ends_with("\u{fffd}"), "{decoded}");
            }
        }
    }

    #[test]
    fn encodings_are_recognized() {
        let of = |bytes: &[u8]| match Encoding::of(bytes) {
            Encoding::Ascii => "text",
            Encoding::Utf16(unit) if unit([1, 0]) == 1 => "little",
            Encoding::Utf16(_) => "big",
            Encoding::None => "binary",
        };
        let utf16 = |unit: fn(u16) -> [u8; 2]| "LOG:  a\n".encode_utf16().flat_map(unit).collect::<Vec<u8>>();
        assert_eq!((of(&utf16(u16::to_le_bytes)), of(&utf16(u16::to_be_bytes))), ("little", "big"));
        assert_eq!((of(b""), of(b"a\xe4"), of(&[0; 999]), of(b"LOG:  a\0\0\0b\n")), ("text", "text", "text", "text"));
        assert_eq!(of(b"\x7fELF\x02\x01\x01\0\0\0\0\0\x03\0\x3e"), "binary");
    }
}
