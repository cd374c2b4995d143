//! Splits a log into lines. It stores one block of the log and never a whole file.
//!
//! After a crash of the host, a part of a log can consist of NUL bytes: the file system had recorded the file's length, but
//! not yet its text. All NUL bytes in a row are read as one.

use memchr::memchr;
use std::io::{self, Read};

/// Bytes per read. A larger block is not faster.
const BLOCK: usize = 256 << 10;

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
    /// the text contains NUL bytes
    pub has_nul: bool,
}

/// How much of a file consists of NUL bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Nuls {
    pub bytes: u64,
    /// number of lines with NUL bytes
    pub lines: u64,
    /// the first of these lines, from 1
    pub first_line: u64,
}

pub struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    /// the unread part of the buffer
    start: usize,
    end: usize,
    at_end_of_file: bool,
    /// the buffer may contain NUL bytes
    may_have_nul: bool,
    line: u64,
    nuls: Nuls,
}

impl<R: Read> Lines<R> {
    pub fn new(reader: R) -> Lines<R> {
        Lines {
            reader,
            buffer: vec![0; BLOCK],
            start: 0,
            end: 0,
            at_end_of_file: false,
            may_have_nul: false,
            line: 0,
            nuls: Nuls::default(),
        }
    }

    /// Returns how many NUL bytes were read.
    pub fn nuls(&self) -> Nuls {
        self.nuls
    }

    /// Returns the next line, or `None` at the end of the file.
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut searched = 0;
        let mut is_cut = false;
        loop {
            let unread = &self.buffer[self.start..self.end];
            if let Some(at) = memchr(b'\n', &unread[searched..]) {
                let length = if is_cut { KEPT_BYTES } else { searched + at };
                return Ok(Some(self.take(length, searched + at + 1, is_cut, false)));
            }
            if self.at_end_of_file {
                let length = unread.len();
                let kept = if is_cut { KEPT_BYTES } else { length };
                return Ok((length > 0).then(|| self.take(kept, length, is_cut, true)));
            }
            searched = unread.len();
            if searched > MAX_LINE_BYTES || is_cut {
                is_cut = true;
                self.end = self.start + KEPT_BYTES;
                searched = KEPT_BYTES;
            }
            self.read_more()?;
        }
    }

    fn take(&mut self, length: usize, used: usize, is_cut: bool, is_unfinished: bool) -> Line<'_> {
        let start = self.start;
        self.start += used;
        self.line += 1;
        let text = &self.buffer[start..start + length];
        let has_nul = self.may_have_nul && memchr(0, text).is_some();
        if has_nul {
            self.nuls.lines += 1;
            if self.nuls.lines == 1 {
                self.nuls.first_line = self.line;
            }
        }
        Line { text: text.strip_suffix(b"\r").unwrap_or(text), is_cut, is_unfinished, has_nul }
    }

    /// Reads the next block behind the unread part.
    fn read_more(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.buffer.len() < self.end + BLOCK {
            // Doubling keeps the time for a long line linear.
            self.buffer.resize((2 * self.buffer.len()).min(MAX_LINE_BYTES + 2 * BLOCK).max(self.end + BLOCK), 0);
        }
        let block = self.end + BLOCK;
        loop {
            match self.reader.read(&mut self.buffer[self.end..block]) {
                Ok(bytes) => {
                    self.at_end_of_file = bytes == 0;
                    // What remains of the block before it is at most one line.
                    self.may_have_nul = memchr(0, &self.buffer[..self.end + bytes]).is_some();
                    self.end += if self.may_have_nul { self.without_repeated_nuls(bytes) } else { bytes };
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl<R> Lines<R> {
    /// Keeps one of several NUL bytes in a row, in the bytes behind the end. Returns the number of bytes that remain.
    fn without_repeated_nuls(&mut self, bytes: usize) -> usize {
        let mut to = self.end;
        for from in self.end..self.end + bytes {
            let byte = self.buffer[from];
            self.nuls.bytes += u64::from(byte == 0);
            if byte == 0 && to > self.start && self.buffer[to - 1] == 0 {
                continue;
            }
            self.buffer[to] = byte;
            to += 1;
        }
        to - self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a few bytes per read, as a pipe may do.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let bytes = self.1.min(self.0.len()).min(to.len());
            to[..bytes].copy_from_slice(&self.0[..bytes]);
            self.0 = &self.0[bytes..];
            Ok(bytes)
        }
    }

    fn lines(text: &[u8], per_read: usize) -> Vec<(String, bool, bool)> {
        let mut lines = Lines::new(Slow(text, per_read));
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push((String::from_utf8_lossy(line.text).into(), line.is_cut, line.is_unfinished));
        }
        all
    }

    #[test]
    fn the_last_line_may_have_no_end() {
        let line = |text: &str, is_unfinished| (text.to_string(), false, is_unfinished);
        assert_eq!(lines(b"a\r\n\nb\n", 2), [line("a", false), line("", false), line("b", false)]);
        assert_eq!(lines(b"a\nb", 1), [line("a", false), line("b", true)]);
        assert_eq!(lines(b"", 1), []);
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_and_the_next_one_is_read() {
        let long = vec![b'x'; 3 * MAX_LINE_BYTES];
        let text = [&long[..], b"\nnext\n", &long].concat();
        let all = lines(&text, BLOCK - 7);
        assert_eq!(all.iter().map(|(text, ..)| text.len()).collect::<Vec<_>>(), [KEPT_BYTES, 4, KEPT_BYTES]);
        assert_eq!(all.iter().map(|(_, is_cut, _)| *is_cut).collect::<Vec<_>>(), [true, false, true]);
        assert!(all[2].2);
    }

    #[test]
    fn nul_bytes_in_a_row_are_read_as_one() {
        let text = [&b"a\nb"[..], &[0; 9 << 20], b"c\nd\n\0\0\n"].concat();
        for per_read in [1 << 20, BLOCK - 7] {
            let mut lines = Lines::new(Slow(&text, per_read));
            let mut all = Vec::new();
            while let Some(line) = lines.next().unwrap() {
                all.push((String::from_utf8_lossy(line.text).into_owned(), line.is_cut, line.has_nul));
            }
            let line = |text: &str, has_nul| (text.to_string(), false, has_nul);
            assert_eq!(all, [line("a", false), line("b\0c", true), line("d", false), line("\0", true)]);
            assert_eq!(lines.nuls(), Nuls { bytes: (9 << 20) + 2, lines: 2, first_line: 2 });
        }
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_text(text in "[a\n\r]{0,40}", per_read in 1..9usize) {
            let expected: Vec<String> = text.split_inclusive('\n').map(|line| {
                let line = line.strip_suffix('\n').unwrap_or(line);
                line.strip_suffix('\r').unwrap_or(line).to_string()
            }).collect();
            let found: Vec<String> = lines(text.as_bytes(), per_read).into_iter().map(|(line, ..)| line).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
