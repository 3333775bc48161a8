//! The cache of measurements: a line of JSON for each candidate.
//!
//! The key of a line is a hash of everything that determines the time: code, launch, problem, device, driver, and the
//! reference code. So results stay valid if a file is edited, renamed or compiled by another compiler, as long as the
//! code is the same. Lines are only appended, each in one write.

use super::search::{DropReason, Measurement};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// The value of `tune` in every line; another one where lines or the way to measure change.
const FORMAT: u32 = 1;

/// A line.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Line {
    tune: u32,
    key: String,
    /// A description for the reader.
    what: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    us: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spread: Option<f64>,
    /// Time over that of the model's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    /// Why it is out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dropped: Option<String>,
}

/// The results of one file, or of none.
#[derive(Debug, Default)]
pub(super) struct Cache {
    path: Option<PathBuf>,
    known: BTreeMap<String, Result<Measurement, DropReason>>,
    /// Whether the last line lacks its end.
    torn: bool,
}

impl Cache {
    /// The results in the file `path`, to which further ones go; it need not exist.
    ///
    /// # Errors
    /// It is something else, or cannot be read or written.
    pub(super) fn open(path: &Path) -> io::Result<Cache> {
        if let Some(directory) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
            fs::create_dir_all(directory)?;
        }
        let mut bytes = Vec::new();
        match fs::File::open(path) {
            Ok(mut file) => file.read_to_end(&mut bytes).map(|_| ())?,
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
        let text = String::from_utf8_lossy(&bytes);
        let mut cache = Cache { path: Some(path.to_owned()), ..Cache::default() };
        let mut lines = 0;
        // An interrupted process leaves half a line, which is ignored.
        for line in text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
            lines += 1;
            cache.read(line);
        }
        const BEGIN: &str = "{\"tune\"";
        let foreign = |line: &str| !line.trim().is_empty() && !line.starts_with(BEGIN) && !BEGIN.starts_with(line);
        if lines == 0 && text.lines().any(foreign) {
            return Err(io::Error::new(ErrorKind::InvalidData, "it is there and holds something else"));
        }
        cache.torn = !text.is_empty() && !text.ends_with('\n');
        OpenOptions::new().create(true).append(true).open(path)?;
        Ok(cache)
    }

    fn read(&mut self, line: Line) {
        if line.tune != FORMAT {
            return;
        }
        let found = match (line.us, line.spread, line.ratio, line.dropped) {
            (_, _, _, Some(why)) => Err(DropReason { why, for_good: true }),
            (Some(us), Some(spread), Some(ratio), None) if us > 0.0 && ratio > 0.0 => {
                Ok(Measurement { us, spread, ratio })
            }
            _ => return,
        };
        self.known.insert(line.key, found);
    }

    /// What is known.
    pub(super) fn get(&self, key: &str) -> Option<&Result<Measurement, DropReason>> {
        self.known.get(key)
    }

    /// Remembers it, and writes it down.
    ///
    /// # Errors
    /// It cannot be written; it is remembered nevertheless.
    pub(super) fn put(&mut self, key: &str, what: &str, found: &Result<Measurement, DropReason>) -> io::Result<()> {
        if matches!(found, Err(dropped) if !dropped.for_good) {
            return Ok(());
        }
        let look = found.as_ref().ok();
        let line = Line {
            tune: FORMAT,
            key: key.to_owned(),
            what: what.to_owned(),
            us: look.map(|l| l.us),
            spread: look.map(|l| l.spread),
            ratio: look.map(|l| l.ratio),
            dropped: found.as_ref().err().map(|d| d.why.clone()),
        };
        self.known.insert(key.to_owned(), found.clone());
        let Some(path) = &self.path else { return Ok(()) };
        let mut text = String::from(if self.torn { "\n" } else { "" });
        text.push_str(&serde_json::to_string(&line)?);
        text.push('\n');
        OpenOptions::new().append(true).open(path)?.write_all(text.as_bytes())?;
        self.torn = false;
        Ok(())
    }
}

/// The default directory of results: `tilec/tune` in `XDG_CACHE_HOME`, or in `.cache` of the home directory.
pub(super) fn directory() -> Option<PathBuf> {
    let var = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let cache = var("XDG_CACHE_HOME").or_else(|| Some(var("HOME")?.join(".cache")))?;
    Some(cache.join("tilec").join("tune"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    /// A separate file for a test, removed at the end.
    struct File(PathBuf);

    impl File {
        fn new(name: &str) -> File {
            File(std::env::temp_dir().join(format!("tilec-tune-{}-{name}.jsonl", std::process::id())))
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    const LOOK: Measurement = Measurement { us: 12.5, spread: 0.01, ratio: 0.97 };

    #[test]
    fn what_was_found_out_is_there_again() {
        let file = File::new("again");
        let wrong = Err(DropReason { why: "3 elements are wrong".to_owned(), for_good: true });
        let mut cache = Cache::open(&file.0).expect("opens");
        cache.put("a", "gemm BM=128", &Ok(LOOK)).expect("writes");
        cache.put("b", "gemm BM=256", &wrong).expect("writes");
        cache.put("c", "gemm BM=64", &Err(DropReason { why: "memory".to_owned(), for_good: false })).expect("nothing");
        let again = Cache::open(&file.0).expect("opens");
        assert_eq!((again.get("a"), again.get("b"), again.get("c")), (Some(&Ok(LOOK)), Some(&wrong), None));
        assert_eq!(fs::read_to_string(&file.0).expect("exists").lines().count(), 2);
    }

    /// However a line is cut off, the remaining whole lines and lines appended later can be read.
    #[test]
    fn a_torn_line_is_as_if_it_were_not_there() {
        let file = File::new("torn");
        let mut cache = Cache::open(&file.0).expect("opens");
        cache.put("a", "first", &Ok(LOOK)).expect("writes");
        let first = fs::read(&file.0).expect("exists").len();
        cache.put("b", "ü", &Ok(LOOK)).expect("writes");
        let whole = fs::read(&file.0).expect("exists");
        for cut in first..whole.len() {
            fs::write(&file.0, &whole[..cut]).expect("writes");
            let mut cache = Cache::open(&file.0).expect("opens");
            let ends = cut == whole.len() - 1;
            assert_eq!((cache.get("a").is_some(), cache.get("b").is_some()), (true, ends), "{cut}");
            cache.put("c", "third", &Ok(LOOK)).expect("writes");
            let cache = Cache::open(&file.0).expect("opens");
            assert!(cache.get("a").is_some() && cache.get("c").is_some(), "{cut}");
        }
    }

    #[test]
    fn what_is_something_else_is_left_alone() {
        let file = File::new("else");
        for source in ["kernel a(A: gmem f32[N]) {\n}\n", "a line of prose"] {
            fs::write(&file.0, source).expect("writes");
            assert!(Cache::open(&file.0).is_err());
            assert_eq!(fs::read_to_string(&file.0).expect("exists"), source);
        }
        // Lines of another version are ignored and kept.
        fs::write(&file.0, "{\"tune\":0,\"key\":\"a\",\"what\":\"\",\"us\":1,\"spread\":0,\"ratio\":1}\n")
            .expect("writes");
        assert_eq!(Cache::open(&file.0).expect("opens").get("a"), None);
    }
}
