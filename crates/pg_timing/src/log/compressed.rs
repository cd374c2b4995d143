//! Decompresses and decodes a log while it is read: gzip, zstd and UTF-16.

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::fmt;
use std::io::{self, BufRead, Read};

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Compression {
    None,
    Gzip,
    Zstd,
    Other(&'static str),
}

impl Compression {
    /// Returns the compression of a file from its first bytes.
    pub fn of(start: &[u8]) -> Compression {
        match start {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            // The second pattern is a frame that a decoder skips.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Compression::Other("bzip2"),
            [0xfd, b'7', b'z', b'X', b'Z', ..] => Compression::Other("xz"),
            [0x04, 0x22, 0x4d, 0x18, ..] => Compression::Other("lz4"),
            _ => Compression::None,
        }
    }
}

/// The text of a compressed file. Its errors are [`Damaged`], except those of the file itself.
pub struct Decompressed<R> {
    format: &'static str,
    text: R,
}

pub fn gzip<R: BufRead>(file: R) -> Decompressed<MultiGzDecoder<R>> {
    Decompressed { format: "gzip", text: MultiGzDecoder::new(file) }
}

pub fn zstd<R: BufRead>(file: R) -> Decompressed<ZstdFrames<R>> {
    Decompressed { format: "zstd", text: ZstdFrames { file, decoder: FrameDecoder::new(), is_in_frame: false } }
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.text.read(to).map_err(|error| {
            let is_of_file = error.raw_os_error().is_some() || error.kind() == io::ErrorKind::Interrupted;
            let why = match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    format!("the file is truncated: the end of its {} data is missing", self.format)
                }
                _ => format!("its {} data is damaged: {error}", self.format),
            };
            if is_of_file { error } else { io::Error::other(Damaged { format: self.format, why }) }
        })
    }
}

/// What is wrong with a compressed file.
#[derive(Debug)]
pub struct Damaged {
    pub format: &'static str,
    why: String,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Damaged {}

/// The text of a zstd file with any number of frames. `cat` and `zstd --rsyncable` write several.
pub struct ZstdFrames<R> {
    file: R,
    decoder: FrameDecoder,
    is_in_frame: bool,
}

impl<R: BufRead> ZstdFrames<R> {
    /// Reads the header of the next frame. A skippable frame contains no text.
    fn begin_frame(&mut self) -> io::Result<()> {
        match self.decoder.reset(&mut self.file) {
            Ok(()) => self.is_in_frame = true,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                io::copy(&mut self.file.by_ref().take(length.into()), &mut io::sink())?;
            }
            Err(error) => return Err(cause(error)),
        }
        Ok(())
    }

    fn end_frame(&mut self) -> io::Result<()> {
        self.is_in_frame = false;
        let stored = self.decoder.get_checksum_from_data();
        match stored.is_some() && stored != self.decoder.get_calculated_checksum() {
            true => Err(io::Error::other("wrong checksum")),
            false => Ok(()),
        }
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_in_frame {
                if self.file.fill_buf()?.is_empty() {
                    return Ok(0);
                }
                self.begin_frame()?;
                continue;
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.file, one).map_err(cause)?;
            }
            let bytes = self.decoder.read(to)?;
            if bytes > 0 || to.is_empty() {
                return Ok(bytes);
            }
            self.end_frame()?;
        }
    }
}

/// Returns the error of the file that caused a decoder's error, or the decoder's own.
fn cause(error: FrameDecoderError) -> io::Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(inner) = cause {
        if let Some(inner) = inner.downcast_ref::<io::Error>() {
            return inner.raw_os_error().map_or_else(|| inner.kind().into(), io::Error::from_raw_os_error);
        }
        cause = inner.source();
    }
    io::Error::other(error)
}

/// Combines two bytes.
pub type Unit = fn([u8; 2]) -> u16;

/// Returns how a file in UTF-16 combines its bytes. A byte order mark shows that; Windows programs write it.
pub fn utf16(start: &[u8]) -> Option<Unit> {
    match start {
        [0xff, 0xfe, ..] => Some(u16::from_le_bytes),
        [0xfe, 0xff, ..] => Some(u16::from_be_bytes),
        _ => None,
    }
}

/// Returns whether a file is not a text. Programs and archives have all control characters; a log has NUL bytes after a
/// crash, and hardly any others.
pub fn is_binary(start: &[u8]) -> bool {
    let is_text = |byte: &u8| *byte >= b' ' || b"\t\n\r\x0c\x1b".contains(byte);
    let others = start.iter().filter(|byte| **byte != 0 && !is_text(byte)).count();
    start.contains(&0) && others * 100 > start.iter().filter(|byte| **byte != 0).count()
}

/// Turns UTF-16 into UTF-8 while it is read.
pub struct Utf16<R> {
    text: R,
    unit: Unit,
    /// bytes of a character that is not complete
    rest: Vec<u8>,
    decoded: io::Cursor<Vec<u8>>,
}

impl<R: BufRead> Utf16<R> {
    pub fn new(text: R, unit: Unit) -> Utf16<R> {
        Utf16 { text, unit, rest: Vec::new(), decoded: io::Cursor::default() }
    }

    /// Decodes what the next read returns. Returns false at the end.
    fn decode(&mut self) -> io::Result<bool> {
        let bytes = self.text.fill_buf()?;
        let (length, is_end) = (bytes.len(), bytes.is_empty());
        self.rest.extend_from_slice(bytes);
        self.text.consume(length);
        let mut units: Vec<u16> = self.rest.as_chunks().0.iter().map(|pair| (self.unit)(*pair)).collect();
        // The other half of the character comes with the next read.
        let has_half = !is_end && units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit));
        units.truncate(units.len() - usize::from(has_half));
        self.rest.drain(..2 * units.len());
        let text: String = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        self.decoded = io::Cursor::new(text.into_bytes());
        Ok(!is_end)
    }
}

impl<R: BufRead> Read for Utf16<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            let bytes = self.decoded.read(to)?;
            if bytes > 0 || to.is_empty() || !self.decode()? {
                return Ok(bytes);
            }
        }
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
            for size in 1..9 {
                let mut decoded = String::new();
                let file = BufReader::with_capacity(size, &bytes[..]);
                Utf16::new(file, utf16(&bytes).unwrap()).read_to_string(&mut decoded).unwrap();
                assert_eq!(decoded.trim_start_matches('\u{feff}'), text, "{size}");
            }
        }
    }

    #[test]
    fn a_program_is_no_text() {
        assert!(is_binary(b"\x7fELF\x02\x01\x01\0\0\0\0\0\x03\0\x3e"));
        for text in [&b""[..], b"a\xe4", &[0; 999], b"LOG:  a\0\0\0b\n"] {
            assert!(!is_binary(text), "{text:?}");
        }
    }
}
