//! Opens a log file, and decompresses it while it is read.

use super::decompressed::{Damaged, Decompressed};
use super::encoding::{Encoding, Utf16};
use super::lines::Nuls;
use super::zstd::ZstdFrames;
use crate::error::Error;
use crate::human::{count, reason};
use flate2::bufread::MultiGzDecoder;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The logs to read, in their order, and how much of them was read.
#[derive(Debug)]
pub struct Sources {
    pub paths: Vec<PathBuf>,
    /// bytes read so far, before decompression
    read: Arc<AtomicU64>,
    /// size of all files in bytes; `None` if a size is not known
    size: Option<u64>,
}

impl Sources {
    /// Returns the sources. The path `-` is stdin.
    pub fn new(paths: Vec<PathBuf>) -> Sources {
        let size = |path: &PathBuf| std::fs::metadata(path).ok().filter(|file| file.is_file()).map(|file| file.len());
        let size = paths.iter().map(size).sum::<Option<u64>>();
        Sources { paths, read: Arc::default(), size }
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

    /// Returns the name of a file for messages, in quotation marks.
    pub fn name(&self, file: usize) -> String {
        if is_stdin(&self.paths[file]) { self.file(file) } else { format!("\"{}\"", self.file(file)) }
    }

    /// Returns whether the same file comes before this one.
    pub fn is_repeated(&self, file: usize) -> bool {
        self.paths[..file].iter().any(|other| is_same_file(other, &self.paths[file]))
    }

    /// Opens a file, and returns its text. `stop` ends the text.
    pub fn open<'a>(&self, file: usize, stop: &'a AtomicBool) -> Result<Box<dyn Read + Send + 'a>, Error> {
        let (number, path, name) = (file, &self.paths[file], self.name(file));
        let not_read = |error: io::Error| {
            Error::new(format!("could not read {name}: {}", reason(&error)), "give a file, or - for stdin")
        };
        let file = match is_stdin(path) {
            true => io::stdin().as_fd().try_clone_to_owned().map(File::from),
            false => File::open(path),
        };
        let file = file.map_err(not_read)?;
        let raw = BufReader::with_capacity(BUFFER, Stoppable { file, stop });
        let mut counted = Counted { raw, read: Arc::clone(&self.read) };
        let start = counted.fill_buf().map_err(not_read)?;
        let text: Box<dyn Read + Send + 'a> = match Compression::of(start) {
            Compression::None => Box::new(counted),
            Compression::Gzip => Box::new(Decompressed::new("gzip", MultiGzDecoder::new(counted))),
            Compression::Zstd => Box::new(Decompressed::new("zstd", ZstdFrames::new(counted))),
            Compression::Other(program) => {
                return Err(Error::new(
                    format!("{name} is compressed with {program}; only gzip and zstd are read"),
                    format!("decompress it: {program} -dc FILE | pg_timing explain --plan - --all"),
                ));
            }
        };
        let mut text = BufReader::with_capacity(BUFFER, text);
        let encoding = match text.fill_buf() {
            Ok(start) => Encoding::of(start),
            // A stop ends the compressed data, too.
            Err(_) if stop.load(Ordering::Relaxed) => return Ok(Box::new(io::empty())),
            Err(error) => return Err(self.not_read_to_end(number, &error)),
        };
        match encoding {
            Encoding::Ascii => Ok(Box::new(text)),
            Encoding::Utf16(unit) => Ok(Box::new(Utf16::new(text, unit))),
            Encoding::None => Err(Error::new(
                format!("{name}: not a text file"),
                "give the server's log; if it is compressed, use gzip or zstd",
            )),
        }
    }

    /// Returns an error if a part of a file is lost.
    pub fn check_nuls(&self, file: usize, nuls: Nuls) -> Result<(), Error> {
        let Nuls { bytes, lines, first_line } = nuls;
        if lines == 0 {
            return Ok(());
        }
        let (name, bytes) = (self.name(file), count(bytes));
        let places = if lines == 1 {
            format!("line {first_line}")
        } else {
            format!("{} lines; the first one is line {first_line}", count(lines))
        };
        Err(Error::new(
            format!("a part of {name} is lost: {bytes} NUL bytes replace it, in {places}"),
            "the host crashed, or a program truncated the file while the server wrote it",
        ))
    }

    /// Returns the error of a file whose reading failed.
    pub fn not_read_to_end(&self, file: usize, error: &io::Error) -> Error {
        let what = format!("could not read {} to its end: {}", self.name(file), reason(error));
        let hint = error.get_ref().and_then(|error| error.downcast_ref::<Damaged>());
        Error::new(what, hint.map_or_else(|| "read the file again, or copy it first".into(), Damaged::hint))
    }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns whether two paths are the same file, for example through a link.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    match is_stdin(one) || is_stdin(other) {
        true => one == other,
        false => one == other || identity(one).is_some_and(|identity_of_one| identity(other) == Some(identity_of_one)),
    }
}

/// Bytes per read of a file.
const BUFFER: usize = 128 << 10;

enum Compression {
    None,
    Gzip,
    Zstd,
    Other(&'static str),
}

impl Compression {
    /// Returns the compression of a file from its first bytes.
    fn of(start: &[u8]) -> Compression {
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

/// Counts the bytes that were used. The buffer itself can have a whole compressed file, whose text has gigabytes.
struct Counted<R> {
    raw: R,
    read: Arc<AtomicU64>,
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.raw.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.raw.consume(bytes);
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?.read(to)?;
        self.consume(bytes);
        Ok(bytes)
    }
}

/// A file that ends if the user stops the program.
struct Stoppable<'a> {
    file: File,
    stop: &'a AtomicBool,
}

impl Stoppable<'_> {
    /// Waits until there is something to read, or until the user stops the program. Returns whether there is.
    fn wait(&self) -> io::Result<bool> {
        /// A person does not notice this delay.
        const POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&POLL)) {
                // A signal ends the waiting early.
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Read for Stoppable<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if !self.wait()? {
            return Ok(0);
        }
        self.file.read(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    static GO: AtomicBool = AtomicBool::new(false);

    fn read(bytes: &[u8]) -> Result<String, Error> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let sources = Sources::new(vec![file.path().into()]);
        let mut text = String::new();
        sources.open(0, &GO)?.read_to_string(&mut text).unwrap();
        assert_eq!(sources.done(), Some(if bytes.is_empty() { 0.0 } else { 1.0 }));
        Ok(text)
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(text.as_bytes()).unwrap();
        writer.finish().unwrap()
    }

    /// A small file can have gigabytes of text.
    #[test]
    fn the_progress_is_that_of_the_text() {
        let text = "a\n".repeat(4 << 20);
        let zstd = ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
        for compressed in [gzip(&text), zstd] {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(&compressed).unwrap();
            let sources = Sources::new(vec![file.path().into()]);
            let mut opened = sources.open(0, &GO).unwrap();
            let mut done = Vec::new();
            for _ in 0..4 {
                opened.read_exact(&mut vec![0; text.len() / 4]).unwrap();
                done.push((sources.done().unwrap() * 4.0).round());
            }
            assert_eq!(done, [1.0, 2.0, 3.0, 4.0], "{} bytes", compressed.len());
        }
    }

    #[test]
    fn plain_and_compressed_logs_have_the_same_text() {
        assert_eq!(read(b"one\ntwo").unwrap(), "one\ntwo");
        assert_eq!(read(&[gzip("one\n"), gzip("two")].concat()).unwrap(), "one\ntwo");
        let zstd = |text: &str| {
            ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest)
        };
        let skipped = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
        assert_eq!(read(&[&zstd("one\n")[..], &skipped, &zstd("two")].concat()).unwrap(), "one\ntwo");
    }

    #[test]
    fn nul_bytes_and_utf_16_are_text() {
        assert_eq!(read(b"a\0\0b").unwrap(), "a\0\0b");
        assert_eq!(read(b"\xff\xfea\0\n\0").unwrap(), "a\n");
        assert_eq!(read(&gzip("a\0b")).unwrap(), "a\0b");
    }

    #[test]
    fn what_cannot_be_a_log_is_refused() {
        for (bytes, why) in [
            (&b"BZh91AY"[..], "compressed with bzip2"),
            (b"\xfd7zXZ\0", "compressed with xz"),
            (b"\x7fELF\x02\x01\x01\0\0\0", "not a text file"),
        ] {
            let error = read(bytes).unwrap_err();
            assert!(error.what.contains(why), "{error}");
        }
        assert!(
            Sources::new(vec!["/nowhere".into()]).open(0, &GO).is_err_and(|error| error.what.contains("\"/nowhere\""))
        );
    }

    #[test]
    fn a_stop_ends_the_text() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"text").unwrap();
        let stop = AtomicBool::new(true);
        let mut text = String::new();
        Sources::new(vec![file.path().into()]).open(0, &stop).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "");
    }

    #[test]
    fn errors_of_compressed_files_say_what_is_wrong() {
        let error = |bytes: &[u8]| {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(bytes).unwrap();
            let sources = Sources::new(vec![file.path().into()]);
            let read = |mut text: Box<dyn Read + Send>| text.read_to_string(&mut String::new());
            let error =
                sources.open(0, &GO).and_then(|text| read(text).map_err(|error| sources.not_read_to_end(0, &error)));
            let error = error.unwrap_err();
            (error.what.split_once("to its end: ").unwrap().1.to_string(), error.hint)
        };
        let gzip = gzip(&"some text ".repeat(100));
        let zstd = ruzstd::encoding::compress_to_vec(&b"some text"[..], ruzstd::encoding::CompressionLevel::Fastest);
        let truncated = |format| format!("the file is truncated: the end of its {format} data is missing");
        for (format, bytes) in [("gzip", &gzip), ("zstd", &zstd)] {
            for length in [5, bytes.len() / 2, bytes.len() - 3] {
                let (what, hint) = error(&bytes[..length]);
                assert_eq!(what, truncated(format), "{length}");
                assert!(hint.contains(&format!("{format} -t FILE")), "{hint}");
            }
            let mut damaged = bytes.clone();
            let at = damaged.len() - 6;
            damaged[at..].iter_mut().for_each(|byte| *byte ^= 0x55);
            assert_eq!(error(&damaged).0, format!("its {format} data is damaged"));
            let (what, hint) = error(&[&bytes[..], b"some other text"].concat());
            assert_eq!(what, format!("something that is not {format} data follows the compressed data"));
            assert!(hint.contains("joined"), "{hint}");
        }
    }
}
