//! Errors of compressed files, in words that say what to do.

use std::fmt;
use std::io::{self, Read};

/// Decompresses a file. Its errors are [`Damaged`].
pub struct Decompressed<R> {
    format: &'static str,
    text: R,
    has_text: bool,
}

impl<R> Decompressed<R> {
    pub fn new(format: &'static str, text: R) -> Decompressed<R> {
        Decompressed { format, text, has_text: false }
    }
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self.text.read(to) {
            Ok(bytes) => {
                self.has_text |= bytes > 0;
                Ok(bytes)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) if is_of_file(&error) => Err(error),
            Err(error) => {
                let why = match why(&error) {
                    Why::OtherData if !self.has_text => Why::Data,
                    why => why,
                };
                Err(io::Error::other(Damaged { format: self.format, why }))
            }
        }
    }
}

/// What is wrong with a compressed file.
#[derive(Debug)]
pub struct Damaged {
    format: &'static str,
    why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    Truncated,
    Data,
    /// what follows has no beginning of compressed data
    OtherData,
    /// in MB: the text may refer to what is so far before it
    Window(u64),
    Dictionary,
}

impl Damaged {
    pub fn hint(&self) -> String {
        let format = self.format;
        match self.why {
            Why::Truncated | Why::Data => {
                format!("check it with {format} -t FILE, and copy it again; plans up to this place were read")
            }
            Why::OtherData => "files with and without compression may be joined; give each of them on its own".into(),
            Why::Window(_) => "decompress it: zstd -dc --long=31 FILE | pg_timing explain --plan - --all".into(),
            Why::Dictionary => "decompress it with its dictionary: zstd -dc -D DICTIONARY FILE".into(),
        }
    }
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let format = self.format;
        match self.why {
            Why::Truncated => write!(f, "the file is truncated: the end of its {format} data is missing"),
            Why::Data => write!(f, "its {format} data is damaged"),
            Why::OtherData => write!(f, "something that is not {format} data follows the compressed data"),
            Why::Window(mb) => write!(f, "its {format} data needs a window of {mb} MB, which is too large"),
            Why::Dictionary => write!(f, "its {format} data needs a dictionary"),
        }
    }
}

impl std::error::Error for Damaged {}

/// Returns whether the file itself could not be read. The decoders' own errors have no number.
fn is_of_file(error: &io::Error) -> bool {
    error.raw_os_error().is_some()
}

/// Returns what is wrong. ZstdFrames returns the reason itself, as an error that contains it.
fn why(error: &io::Error) -> Why {
    if let Some(Reason(why)) = error.get_ref().and_then(|error| error.downcast_ref()) {
        return *why;
    }
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Why::Truncated,
        // What flate2 returns if there is no header.
        io::ErrorKind::InvalidInput if error.to_string().contains("header") => Why::OtherData,
        _ => Why::Data,
    }
}

/// A reason that a decoder knows.
#[derive(Debug)]
pub struct Reason(pub Why);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl std::error::Error for Reason {}
