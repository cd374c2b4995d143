//! Splits a log into lines, and stores only one of them.

use memchr::memchr;
use std::io::{self, BufRead};

/// A longer line is cut. A plan over a thousand partitions has a few MB, and JSON logs write it in one line.
pub const MAX_LINE_BYTES: usize = 8 << 20;

/// How much of a longer line is kept: enough to see what it is.
const KEPT_BYTES: usize = 4 << 10;

/// One line without its line end.
#[derive(Debug, PartialEq)]
pub struct Line<'a> {
    pub text: &'a [u8],
    /// the line is longer than [`MAX_LINE_BYTES`], and this is only its beginning
    pub is_cut: bool,
    /// the file ends before the line's end
    pub is_unfinished: bool,
    /// after a crash of the host, a part of a log can consist of NUL bytes
    pub has_nul: bool,
}

pub struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    number: u64,
    /// number of lines with NUL bytes, and the first of them
    pub nuls: (u64, u64),
}

impl<R: BufRead> Lines<R> {
    pub fn new(reader: R) -> Lines<R> {
        Lines { reader, line: Vec::new(), number: 0, nuls: (0, 0) }
    }

    /// Returns the next line, or `None` at the end of the file.
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        let (mut is_cut, mut has_text) = (false, false);
        let is_unfinished = loop {
            let buffer = match self.reader.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                break true;
            }
            has_text = true;
            let end = memchr(b'\n', buffer);
            let text = &buffer[..end.unwrap_or(buffer.len())];
            is_cut |= self.line.len() + text.len() > MAX_LINE_BYTES;
            if is_cut {
                self.line.extend_from_slice(&text[..text.len().min(KEPT_BYTES.saturating_sub(self.line.len()))]);
                self.line.truncate(KEPT_BYTES);
            } else {
                self.line.extend_from_slice(text);
            }
            let used = end.map_or(text.len(), |end| end + 1);
            self.reader.consume(used);
            if end.is_some() {
                break false;
            }
        };
        if !has_text {
            return Ok(None);
        }
        self.number += 1;
        let has_nul = memchr(0, &self.line).is_some();
        if has_nul {
            self.nuls = (self.nuls.0 + 1, if self.nuls.0 == 0 { self.number } else { self.nuls.1 });
        }
        let text = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        Ok(Some(Line { text, is_cut, is_unfinished, has_nul }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn lines(text: &[u8], per_read: usize) -> Vec<(String, bool, bool)> {
        let mut lines = Lines::new(BufReader::with_capacity(per_read, text));
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push((String::from_utf8_lossy(line.text).into(), line.is_cut, line.is_unfinished));
        }
        all
    }

    #[test]
    fn the_last_line_may_have_no_end() {
        let line = |text: &str, is_unfinished| (text.to_string(), false, is_unfinished);
        for per_read in 1..5 {
            assert_eq!(lines(b"a\r\n\nb\n", per_read), [line("a", false), line("", false), line("b", false)]);
            assert_eq!(lines(b"a\nb", per_read), [line("a", false), line("b", true)]);
            assert_eq!(lines(b"", per_read), []);
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_and_the_next_one_is_read() {
        let long = vec![b'x'; 3 * MAX_LINE_BYTES];
        let all = lines(&[&long[..], b"\nnext\n", &long].concat(), 100_000);
        assert_eq!(all.iter().map(|(text, ..)| text.len()).collect::<Vec<_>>(), [KEPT_BYTES, 4, KEPT_BYTES]);
        assert_eq!(all.iter().map(|(_, is_cut, _)| *is_cut).collect::<Vec<_>>(), [true, false, true]);
    }
}
