//! The file for the textfile collector of node_exporter. A reader never sees a part of a page. The name of a partial file does
//! not end in `.prom`, so node_exporter ignores it.
//!
//! The file is removed when the monitor stops, unless it runs with `--samples`. Otherwise node_exporter would go on to show its
//! last figures as if they were new. If the monitor is killed, the file remains, and
//! `pg_timing_monitor_last_sample_timestamp_seconds` shows its age.

use crate::error::Error;
use crate::output_file::{Identity, OutputFile};
use std::path::Path;

/// The end of a name that node_exporter reads.
const END: &str = ".prom";

/// A file for node_exporter.
pub struct Textfile {
    output: OutputFile,
    /// the file that was written last
    last: Option<Identity>,
}

impl Textfile {
    /// Checks that the file can be written.
    pub fn open(path: &Path) -> Result<Textfile, Error> {
        if !path.as_os_str().as_encoded_bytes().ends_with(END.as_bytes()) {
            let what = format!("\"{}\" does not end in {END}, so node_exporter would ignore it", path.display());
            return Err(Error::new(what, "name the file like pg_timing.prom"));
        }
        Ok(Textfile { output: OutputFile::to_replace(path)?, last: None })
    }

    /// Replaces the file. If it returns an error, the old file is still there.
    pub fn write(&mut self, page: &str) -> Result<(), String> {
        self.last = Some(self.output.replace(page.as_bytes()).map_err(|error| self.output.failed(&error))?);
        Ok(())
    }

    /// Removes the file, unless another program has replaced it.
    pub fn remove(&mut self) {
        if let Some(last) = self.last.take() {
            self.output.remove(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::in_process_with_file_limit;
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_file_is_replaced_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pg_timing.prom");
        let mut textfile = Textfile::open(&path).unwrap();
        assert_eq!(names(dir.path()), [""; 0]);
        for page in ["a 1\n", "a 2\n"] {
            textfile.write(page).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), page);
            assert_eq!(names(dir.path()), ["pg_timing.prom"]);
        }
        textfile.remove();
        assert_eq!(names(dir.path()), [""; 0]);
    }

    #[test]
    fn the_file_of_another_monitor_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.prom");
        let (mut first, mut second) = (Textfile::open(&path).unwrap(), Textfile::open(&path).unwrap());
        first.write("1\n").unwrap();
        second.write("2\n").unwrap();
        first.remove();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "2\n");
    }

    #[test]
    fn monitors_in_one_directory_do_not_disturb_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let page = "a 1\n".repeat(1000);
        std::thread::scope(|threads| {
            let writers = ["a.prom", "b.prom"].map(|name| {
                let (mut textfile, page) = (Textfile::open(&path(name)).unwrap(), &page);
                threads.spawn(move || (0..500).try_for_each(|_| textfile.write(page)))
            });
            // Other monitors start meanwhile, also one with the same file.
            while !writers.iter().all(|writer| writer.is_finished()) {
                for name in ["a.prom", "b.prom", "c.prom"] {
                    Textfile::open(&path(name)).unwrap();
                }
            }
            for writer in writers {
                assert_eq!(writer.join().unwrap(), Ok(()));
            }
        });
        for name in ["a.prom", "b.prom"] {
            assert_eq!(std::fs::read_to_string(path(name)).unwrap(), page);
        }
        assert_eq!(names(dir.path()), ["a.prom", "b.prom"]);
    }

    #[test]
    fn a_name_that_node_exporter_ignores_is_refused() {
        let error = Textfile::open(Path::new("a.txt")).err().unwrap();
        assert_eq!(error.what, "\"a.txt\" does not end in .prom, so node_exporter would ignore it");
    }

    #[test]
    fn a_directory_may_vanish_and_return() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("a.prom");
        let mut textfile = Textfile::open(&path).unwrap();
        std::fs::remove_dir(&folder).unwrap();
        let error = textfile.write("a 1\n").unwrap_err();
        assert_eq!(error, format!("could not write \"{}\": No such file or directory", path.display()));
        textfile.remove();
    }

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        in_process_with_file_limit("monitor::textfile::tests::a_failed_write_leaves_the_old_file", 100, || {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a.prom");
            let mut textfile = Textfile::open(&path).unwrap();
            textfile.write("old\n").unwrap();
            let error = textfile.write(&"new\n".repeat(50)).unwrap_err();
            assert!(error.contains("File too large"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "old\n");
            assert_eq!(names(dir.path()), ["a.prom"]);
            textfile.remove();
            assert_eq!(names(dir.path()), [""; 0]);
        });
    }
}
