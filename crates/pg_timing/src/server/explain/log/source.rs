//! Opens a log file, and decompresses it while it is read.

use super::zstd::ZstdFrames;
use crate::error::Error;
use crate::human::reason;
use flate2::read::MultiGzDecoder;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
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

    /// Opens a file, and returns its text. `stop` ends the text.
    pub fn open<'a>(&self, file: usize, stop: &'a AtomicBool) -> Result<Box<dyn Read + Send + 'a>, Error> {
        let path = &self.paths[file];
        let name = self.name(file);
        let not_read = |error: io::Error| {
            Error::new(format!("could not read {name}: {}", reason(&error)), "give a file, or - for stdin")
        };
        let file = match is_stdin(path) {
            true => io::stdin().as_fd().try_clone_to_owned().map(File::from),
            false => File::open(path),
        };
        let file = file.map_err(not_read)?;
        let raw = Stoppable { file, stop, read: Arc::clone(&self.read) };
        let mut counted = BufReader::with_capacity(BUFFER, raw);
        let start = counted.fill_buf().map_err(not_read)?;
        match Compression::of(start) {
            Compression::None => {
                check_text(start).map_err(|(what, hint)| Error::new(format!("{name}: {what}"), hint))?;
                Ok(Box::new(counted))
            }
            Compression::Gzip => Ok(Box::new(MultiGzDecoder::new(counted))),
            Compression::Zstd => Ok(Box::new(ZstdFrames::new(counted))),
            Compression::Other(program) => Err(Error::new(
                format!("{name} is compressed with {program}; only gzip and zstd are read"),
                format!("decompress it: {program} -dc FILE | pg_timing explain --plan - --all"),
            )),
        }
    }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
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

/// Returns an error if a file cannot be a log.
fn check_text(start: &[u8]) -> Result<(), (&'static str, &'static str)> {
    let utf_16 = start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]);
    match utf_16 || start.contains(&0) {
        true => {
            Err(("not a text file", "if it is text in another encoding, convert it to UTF-8, for example with iconv"))
        }
        false => Ok(()),
    }
}

/// A file that ends if the user stops the program. It counts the bytes that were read.
struct Stoppable<'a> {
    file: File,
    stop: &'a AtomicBool,
    read: Arc<AtomicU64>,
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
        let bytes = self.file.read(to)?;
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
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
    fn what_cannot_be_a_log_is_refused() {
        for (bytes, why) in [
            (&b"BZh91AY"[..], "compressed with bzip2"),
            (b"\xfd7zXZ\0", "compressed with xz"),
            (b"\xff\xfea\0", "not a text file"),
            (b"a\0b", "not a text file"),
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
    fn truncated_compressed_files_are_errors() {
        let sources = |bytes: &[u8]| {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(bytes).unwrap();
            let result =
                Sources::new(vec![file.path().into()]).open(0, &GO).unwrap().read_to_string(&mut String::new());
            result.is_err()
        };
        let gzip = gzip(&"some text ".repeat(100));
        assert!(sources(&gzip[..gzip.len() - 9]));
        let zstd = ruzstd::encoding::compress_to_vec(&b"some text"[..], ruzstd::encoding::CompressionLevel::Fastest);
        assert!(sources(&zstd[..zstd.len() - 3]));
        assert!(sources(&zstd[..5]));
    }
}
