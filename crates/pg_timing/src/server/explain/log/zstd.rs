//! Reads a zstd file with any number of frames. `cat` and `zstd --rsyncable` write several.

use super::decompressed::{Reason, Why};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::error::Error;
use std::io::{self, BufRead, Read};

/// The text of all frames.
pub struct ZstdFrames<R> {
    input: R,
    decoder: FrameDecoder,
    is_in_frame: bool,
}

impl<R: BufRead> ZstdFrames<R> {
    pub fn new(input: R) -> ZstdFrames<R> {
        ZstdFrames { input, decoder: FrameDecoder::new(), is_in_frame: false }
    }

    /// Reads the header of the next frame. A skippable frame contains no text.
    fn begin_frame(&mut self) -> io::Result<()> {
        match self.decoder.reset(&mut self.input) {
            Ok(()) => self.is_in_frame = true,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                io::copy(&mut self.input.by_ref().take(length.into()), &mut io::sink())?;
            }
            Err(error) => return Err(with_reason(error)),
        }
        Ok(())
    }

    fn end_frame(&mut self) -> io::Result<()> {
        self.is_in_frame = false;
        let stored = self.decoder.get_checksum_from_data();
        match stored.is_some() && stored != self.decoder.get_calculated_checksum() {
            true => Err(io::Error::other(Reason(Why::Data))),
            false => Ok(()),
        }
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_in_frame {
                if self.input.fill_buf()?.is_empty() {
                    return Ok(0);
                }
                self.begin_frame()?;
                continue;
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.input, one).map_err(with_reason)?;
            }
            let bytes = self.decoder.read(to)?;
            if bytes > 0 || to.is_empty() {
                return Ok(bytes);
            }
            self.end_frame()?;
        }
    }
}

/// Returns the reason of a decoder's error.
fn with_reason(error: FrameDecoderError) -> io::Error {
    let why = match &error {
        FrameDecoderError::WindowSizeTooBig { requested, .. } => Why::Window(requested >> 20),
        FrameDecoderError::DictNotProvided { .. } => Why::Dictionary,
        FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::BadMagicNumber(_)) => Why::OtherData,
        _ => {
            match file_error(&error) {
                Some(error) if error.kind() == io::ErrorKind::UnexpectedEof => Why::Truncated,
                // The file could not be read.
                Some(error) if error.raw_os_error().is_some() => {
                    return io::Error::from_raw_os_error(error.raw_os_error().unwrap_or_default());
                }
                _ => Why::Data,
            }
        }
    };
    io::Error::other(Reason(why))
}

/// Returns the error of the file that caused a decoder's error.
fn file_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref() {
            return Some(error);
        }
        cause = error.source();
    }
    None
}
