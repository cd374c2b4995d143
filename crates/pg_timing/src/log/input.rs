//! The logs to read: a file is decompressed and decoded while it is read, and split into lines. Only one line is stored,
//! except of UTF-16.

use crate::error::Error;
use crate::human::{count, reason};
use crate::report::LogPlace;
use flate2::bufread::MultiGzDecoder;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Where a plan is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// number of the file, from 0
    pub file: usize,
    /// from 1
    pub line: u64,
}

/// The logs to read, in their order, and how much of them was read.
#[derive(Debug)]
pub struct Sources {
    pub paths: Vec<PathBuf>,
    /// files that are given more than once; each is read once
    pub repeated: Vec<PathBuf>,
    /// bytes read so far, before decompression
    read: AtomicU64,
    /// size of all files in bytes; `None` if a size is not known
    size: Option<u64>,
}

impl Sources {
    /// Returns the sources. The path `-` is stdin.
    pub fn new(given: Vec<PathBuf>) -> Sources {
        let (mut paths, mut repeated) = (Vec::<PathBuf>::new(), Vec::new());
        let mut known = BTreeSet::new();
        for path in given {
            // Two paths can be the same file through a link.
            let is_new = known.insert(path.canonicalize().unwrap_or_else(|_| path.clone()));
            if is_new { &mut paths } else { &mut repeated }.push(path);
        }
        let size = |path: &PathBuf| std::fs::metadata(path).ok().filter(|file| file.is_file()).map(|file| file.len());
        let size = paths.iter().map(size).sum::<Option<u64>>();
        Sources { paths, repeated, read: AtomicU64::new(0), size }
    }

    /// Returns the fraction that was read, if the size is known.
    pub fn done(&self) -> Option<f64> {
        let read = self.read.load(Ordering::Relaxed) as f64;
        self.size.map(|size| (read / size.max(1) as f64).min(1.0))
    }

    /// Returns the name of a file, or `stdin`.
    pub fn file(&self, file: usize) -> String {
        let path = &self.paths[file];
        if is_stdin(path) { "stdin".into() } else { path.display().to_string() }
    }

    /// Returns where a plan is.
    pub fn place(&self, Place { file, line }: Place) -> LogPlace {
        LogPlace { file: self.file(file), line }
    }

    /// Opens a file, and returns its lines. `stop` ends them.
    pub fn open<'a>(&'a self, file: usize, stop: &'a AtomicBool) -> Result<Lines<'a>, Error> {
        let path = &self.paths[file];
        let name = quoted_name(path);
        let not_read = |error: io::Error| {
            Error::new(format!("could not read {name}: {}", reason(&error)), "give a file, or - for stdin")
        };
        let file = match is_stdin(path) {
            true => io::stdin().as_fd().try_clone_to_owned().map(File::from),
            false => File::open(path),
        };
        let raw = Stoppable { file: file.map_err(not_read)?, stop, read: &self.read };
        let mut raw = BufReader::with_capacity(BUFFER, raw);
        let text: Box<dyn Read + Send> = match raw.fill_buf().map_err(not_read)? {
            [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(raw)),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(ZstdFrames { file: raw, decoder: FrameDecoder::new() }),
            _ => Box::new(raw),
        };
        let mut text = BufReader::with_capacity(BUFFER, text);
        let start = match text.fill_buf() {
            Ok(start) => start,
            // A stop ends the compressed data, too.
            Err(_) if stop.load(Ordering::Relaxed) => &[],
            Err(error) => return Err(not_read_to_end(path, &error)),
        };
        // A byte order mark shows UTF-16. Windows programs write it.
        let unit: Option<fn([u8; 2]) -> u16> = match start {
            [0xff, 0xfe, ..] => Some(u16::from_le_bytes),
            [0xfe, 0xff, ..] => Some(u16::from_be_bytes),
            _ => None,
        };
        if unit.is_none() && is_binary(start) {
            let hint = "give the server's log; decompress other formats than gzip and zstd: xz -dc FILE | pg_timing explain --plan -";
            return Err(Error::new(format!("{name}: not a text file"), hint));
        }
        let text: Box<dyn BufRead + Send + 'a> = match unit {
            Some(unit) => Box::new(Cursor::new(utf16(text, unit).map_err(|error| not_read_to_end(path, &error))?)),
            None => Box::new(text),
        };
        Ok(Lines { path, text, line: Vec::new(), number: 0, nuls: (0, 0), is_unfinished: false })
    }
}

/// Returns the name of a file for messages, in quotation marks, or `stdin`.
pub fn quoted_name(path: &Path) -> String {
    if is_stdin(path) { "stdin".into() } else { format!("\"{}\"", path.display()) }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns the error of a file whose reading failed.
fn not_read_to_end(path: &Path, error: &io::Error) -> Error {
    Error::new(
        format!("could not read {} to its end: {}", quoted_name(path), reason(error)),
        "if it is compressed, it is truncated or damaged: gzip -t or zstd -t shows that. The plans before this place were read",
    )
}

/// Returns whether a file is not a text. Programs and archives have all control characters; a log has NUL bytes after a
/// crash, and hardly any others.
fn is_binary(start: &[u8]) -> bool {
    let is_text = |byte: &u8| *byte >= b' ' || b"\t\n\r\x0c\x1b".contains(byte);
    let others = start.iter().filter(|byte| **byte != 0 && !is_text(byte)).count();
    start.contains(&0) && others * 100 > start.iter().filter(|byte| **byte != 0).count()
}

/// Bytes per read of a file.
const BUFFER: usize = 128 << 10;

/// A file that ends if the user stops the program. It counts the bytes that were read.
struct Stoppable<'a> {
    file: File,
    stop: &'a AtomicBool,
    read: &'a AtomicU64,
}

impl Read for Stoppable<'_> {
    /// Waits until there is something to read, or until the user stops the program.
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        /// A person does not notice this delay.
        const POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        while !self.stop.load(Ordering::Relaxed) {
            match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&POLL)) {
                // A signal ends the waiting early.
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => {
                    let bytes = self.file.read(to)?;
                    self.read.fetch_add(bytes as u64, Ordering::Relaxed);
                    return Ok(bytes);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(0)
    }
}

/// The text of a zstd file with any number of frames. `cat` and `zstd --rsyncable` write several.
struct ZstdFrames<R> {
    file: R,
    decoder: FrameDecoder,
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.decoder.can_collect() == 0 {
            if !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.file, one).map_err(io::Error::other)?;
                continue;
            }
            let stored = self.decoder.get_checksum_from_data();
            if stored.is_some() && stored != self.decoder.get_calculated_checksum() {
                return Err(io::Error::other("wrong checksum"));
            }
            if self.file.fill_buf()?.is_empty() {
                return Ok(0);
            }
            self.decoder.reset(&mut self.file).map_err(io::Error::other)?;
        }
        self.decoder.read(to)
    }
}

/// A longer text in UTF-16 is not read. Windows programs write it, and people paste from them.
const MAX_UTF16_BYTES: u64 = 64 << 20;

/// Returns the text of a file in UTF-16. `unit` combines two bytes.
fn utf16(text: impl Read, unit: fn([u8; 2]) -> u16) -> io::Result<String> {
    let mut bytes = Vec::new();
    if text.take(MAX_UTF16_BYTES + 1).read_to_end(&mut bytes)? as u64 > MAX_UTF16_BYTES {
        return Err(io::Error::other("it is longer than 64 MB in UTF-16; convert it with iconv -f UTF-16 -t UTF-8"));
    }
    Ok(String::from_utf16_lossy(&bytes.as_chunks().0.iter().map(|pair| unit(*pair)).collect::<Vec<u16>>()))
}

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
    /// after a crash of the host, a part of a log can consist of NUL bytes
    pub has_nul: bool,
}

/// The lines of a file.
pub struct Lines<'a> {
    path: &'a Path,
    text: Box<dyn BufRead + Send + 'a>,
    line: Vec<u8>,
    number: u64,
    /// number of lines with NUL bytes, and the first of them
    nuls: (u64, u64),
    /// the last line had no end
    pub is_unfinished: bool,
}

impl<'a> Lines<'a> {
    /// Returns the next line, or `None` at the end of the file.
    pub fn next(&mut self) -> Result<Option<Line<'_>>, Error> {
        match self.read_line() {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(error) => {
                self.is_unfinished = true;
                return Err(not_read_to_end(self.path, &error));
            }
        }
        self.number += 1;
        self.is_unfinished = self.line.pop_if(|end| *end == b'\n').is_none();
        let is_cut = self.line.len() > MAX_LINE_BYTES;
        self.line.truncate(if is_cut { KEPT_BYTES } else { MAX_LINE_BYTES });
        let has_nul = memchr::memchr(0, &self.line).is_some();
        if has_nul {
            self.nuls = (self.nuls.0 + 1, if self.nuls.0 == 0 { self.number } else { self.nuls.1 });
        }
        let text = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        Ok(Some(Line { text, is_cut, has_nul }))
    }

    /// Reads a line, or the beginning of a longer one. Returns 0 at the end of the file.
    fn read_line(&mut self) -> io::Result<usize> {
        self.line.clear();
        loop {
            let read = match self.text.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            // The standard library searches bytes half as fast.
            let end = memchr::memchr(b'\n', read);
            let length = end.map_or(read.len(), |end| end + 1);
            let room = MAX_LINE_BYTES + 1 - self.line.len();
            self.line.extend_from_slice(&read[..length.min(room)]);
            self.text.consume(length);
            if end.is_some() || length == 0 {
                return Ok(self.line.len());
            }
        }
    }

    /// Returns an error if NUL bytes replace a part of the lines that were read.
    pub fn check_nuls(&self) -> Result<(), Error> {
        let (lines, first) = self.nuls;
        if lines == 0 {
            return Ok(());
        }
        let (name, lines) = (quoted_name(self.path), count(lines));
        Err(Error::new(
            format!("a part of {name} is lost: NUL bytes replace it, in line {first} (lines with NUL bytes: {lines})"),
            "the host crashed, or a program truncated the file while the server wrote it",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    static GO: AtomicBool = AtomicBool::new(false);

    /// Returns the lines of a file: their texts, and whether they are cut.
    fn lines(bytes: &[u8]) -> Result<Vec<(String, bool)>, Error> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let sources = Sources::new(vec![file.path().into()]);
        let mut all = Vec::new();
        let mut lines = sources.open(0, &GO)?;
        while let Some(line) = lines.next()? {
            all.push((String::from_utf8_lossy(line.text).into(), line.is_cut));
        }
        let is_unfinished = bytes.is_ascii() && !bytes.is_empty() && bytes.last() != Some(&b'\n');
        assert!(lines.is_unfinished || !is_unfinished);
        assert_eq!(sources.done(), Some(if bytes.is_empty() { 0.0 } else { 1.0 }));
        Ok(all)
    }

    fn text(bytes: &[u8]) -> Result<Vec<String>, Error> {
        Ok(lines(bytes)?.into_iter().map(|(text, _)| text).collect())
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(text.as_bytes()).unwrap();
        writer.finish().unwrap()
    }

    fn zstd(text: &str) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn plain_and_compressed_logs_have_the_same_lines() {
        assert_eq!(text(b"").unwrap(), [""; 0]);
        assert_eq!(text(b"one\r\n\ntwo").unwrap(), ["one", "", "two"]);
        assert_eq!(text(&[gzip("one\n"), gzip("two")].concat()).unwrap(), ["one", "two"]);
        assert_eq!(text(&[zstd("one\n"), zstd("two")].concat()).unwrap(), ["one", "two"]);
        let long = "a".repeat(99) + "\n";
        let many = long.repeat(10_000);
        for compressed in [gzip(&many), zstd(&many)] {
            assert_eq!(text(&compressed).unwrap().len(), 10_000);
        }
    }

    #[test]
    fn utf_16_is_decoded() {
        let line = "Sort \u{2014} \u{e4} \u{1f418}";
        let text = format!("\u{feff}{line}\n").repeat(3);
        for bytes in [
            text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>(),
            text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        ] {
            assert_eq!(lines(&bytes).unwrap()[2].0.trim_start_matches('\u{feff}'), line);
        }
        let long = [&b"\xff\xfe"[..], &[b'x', 0].repeat(MAX_UTF16_BYTES as usize / 2)].concat();
        assert!(lines(&long).is_err_and(|error| error.what.contains("longer than 64 MB in UTF-16")));
    }

    #[test]
    fn nul_bytes_are_text() {
        assert_eq!(text(b"a\0\0b").unwrap(), ["a\0\0b"]);
        assert_eq!(text(&gzip("a\0b")).unwrap(), ["a\0b"]);
        for text in [&b""[..], b"a\xe4", &[0; 999], b"LOG:  a\0\0\0b\n"] {
            assert!(!is_binary(text), "{text:?}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_and_the_next_one_is_read() {
        let long = vec![b'x'; 3 * MAX_LINE_BYTES];
        let longest = vec![b'x'; MAX_LINE_BYTES];
        let all = lines(&[&long[..], b"\nnext\n", &longest, b"\n", &long].concat()).unwrap();
        let all: Vec<(usize, bool)> = all.iter().map(|(text, is_cut)| (text.len(), *is_cut)).collect();
        assert_eq!(all, [(KEPT_BYTES, true), (4, false), (MAX_LINE_BYTES, false), (KEPT_BYTES, true)]);
    }

    #[test]
    fn what_cannot_be_a_log_is_refused() {
        for (bytes, why) in
            [(&b"\xfd7zXZ\0\0\x04"[..], "not a text file"), (b"\x7fELF\x02\x01\x01\0\0\0", "not a text file")]
        {
            let error = text(bytes).unwrap_err();
            assert!(error.what.contains(why), "{error}");
        }
        let missing = Sources::new(vec!["/nowhere".into()]);
        assert!(missing.open(0, &GO).is_err_and(|error| error.what.contains("\"/nowhere\"")));
    }

    #[test]
    fn a_stop_ends_the_text() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"text").unwrap();
        let stop = AtomicBool::new(true);
        assert_eq!(Sources::new(vec![file.path().into()]).open(0, &stop).unwrap().next(), Ok(None));
    }

    #[test]
    fn damaged_compressed_files_are_errors() {
        let texts = ["some text ".repeat(100)];
        for (format, bytes) in [("gzip", gzip(&texts[0])), ("zstd", zstd(&texts[0]))] {
            let truncated = [5, bytes.len() / 2, bytes.len() - 3].map(|length| bytes[..length].to_vec());
            let damaged = [&bytes[..], b"something else"].concat();
            for bytes in truncated.into_iter().chain([damaged]) {
                let error = text(&bytes).unwrap_err();
                assert!(error.what.contains("to its end: ") && error.hint.contains(format), "{error}");
            }
        }
    }
}
