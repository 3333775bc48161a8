//! Writing results: whole files or nothing.
//!
//! A file is written under a temporary name in the directory of the target, and renamed over it. So no reader sees half
//! a file, and an error leaves the old file alone. What is not a regular file (`/dev/stdout`, a pipe) is written
//! directly.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Writes `bytes` as the file `path`, replacing it as a whole.
///
/// A symbolic link stays one: the file it points to is replaced. Permissions of an existing file are kept.
///
/// # Errors
/// The directory does not exist or is not writable, `path` is a directory, or the device is full. The old content of
/// `path` is then untouched, and no temporary file is left.
pub fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let old = match fs::metadata(path) {
        Ok(old) if old.is_dir() => return Err(io::Error::new(ErrorKind::IsADirectory, "is a directory")),
        Ok(old) if !old.is_file() => return OpenOptions::new().write(true).open(path)?.write_all(bytes),
        Ok(old) => Some(old),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => return Err(e),
    };
    let path = if old.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
    let (temp, mut file) = create_in_same_dir(&path)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| match &old {
            Some(old) => file.set_permissions(old.permissions()),
            None => Ok(()),
        })
        .and_then(|()| {
            drop(file);
            fs::rename(&temp, &path)
        });
    if written.is_err() {
        let _ = fs::remove_file(&temp);
    }
    written
}

/// Whether two paths name one regular file, through links of either kind too: writing one would lose what is read from the other.
pub fn same_file(a: &Path, b: &Path) -> bool {
    let (Ok(a_data), Ok(b_data)) = (fs::metadata(a), fs::metadata(b)) else { return false };
    if !a_data.is_file() || !b_data.is_file() {
        return false;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        (a_data.dev(), a_data.ino()) == (b_data.dev(), b_data.ino())
    }
    #[cfg(not(unix))]
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

/// A new file in the directory of `path`, opened for writing; never an existing one.
fn create_in_same_dir(path: &Path) -> io::Result<(PathBuf, fs::File)> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(ErrorKind::InvalidInput, "has no file name"));
    };
    for attempt in 0..100u32 {
        let mut temp = std::ffi::OsString::from(".");
        temp.push(name);
        temp.push(format!(".{}.{attempt}.tmp", std::process::id()));
        let temp = path.with_file_name(temp);
        match OpenOptions::new().write(true).create_new(true).open(&temp) {
            Ok(file) => return Ok((temp, file)),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, "no free temporary name beside it"))
}

/// Writes `bytes` to standard output. A reader that has gone away is not an error.
///
/// # Errors
/// Any other failure to write.
pub fn write_stdout(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Writes `text` to standard error, and gives up quietly if that is closed.
pub fn write_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A separate directory for a test, removed at the end.
    struct Dir(PathBuf);

    impl Dir {
        fn new(name: &str) -> Dir {
            let dir = std::env::temp_dir().join(format!("tilec-output-{}-{name}", std::process::id()));
            fs::create_dir_all(&dir).expect("a directory for the test");
            Dir(dir)
        }

        fn names(&self) -> Vec<String> {
            let mut names: Vec<String> = fs::read_dir(&self.0)
                .expect("readable")
                .map(|e| e.expect("entry").file_name().to_string_lossy().into_owned())
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn files_are_created_and_replaced_and_nothing_else_stays() {
        let dir = Dir::new("replace");
        let file = dir.0.join("x.ptx");
        write_file(&file, b"old old").expect("creates");
        write_file(&file, b"new").expect("replaces");
        assert_eq!(fs::read(&file).expect("exists"), b"new");
        assert_eq!(dir.names(), ["x.ptx"]);
    }

    #[test]
    fn a_failure_leaves_nothing() {
        let dir = Dir::new("fail");
        assert!(write_file(&dir.0.join("no/such/x.ptx"), b"x").is_err());
        assert!(write_file(&dir.0, b"x").is_err(), "a directory is no file");
        assert!(dir.names().is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_are_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = Dir::new("links");
        let real = dir.0.join("real");
        let link = dir.0.join("link");
        write_file(&real, b"1").expect("creates");
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).expect("chmod");
        symlink("real", &link).expect("symlink");
        write_file(&link, b"2").expect("writes through");
        assert_eq!(fs::read(&real).expect("exists"), b"2");
        assert!(fs::symlink_metadata(&link).expect("exists").is_symlink());
        assert_eq!(fs::metadata(&real).expect("exists").permissions().mode() & 0o777, 0o640);
    }

    #[cfg(unix)]
    #[test]
    fn one_file_has_many_names() {
        let dir = Dir::new("names");
        let at = |name: &str| dir.0.join(name);
        write_file(&at("a"), b"1").expect("creates");
        write_file(&at("b"), b"1").expect("creates");
        std::os::unix::fs::symlink("a", at("symbolic")).expect("symlink");
        fs::hard_link(at("a"), at("hard")).expect("link");
        for name in ["a", "./a", "symbolic", "hard"] {
            assert!(same_file(&at("a"), &at(name)), "{name}");
        }
        assert!(!same_file(&at("a"), &at("b")) && !same_file(&at("a"), &at("absent")));
        assert!(!same_file(Path::new("/dev/null"), Path::new("/dev/null")), "nothing is lost there");
    }

    #[cfg(unix)]
    #[test]
    fn special_files_are_written_directly() {
        write_file(Path::new("/dev/null"), b"x").expect("writes");
        assert!(!fs::metadata("/dev/null").expect("exists").is_file());
    }
}
