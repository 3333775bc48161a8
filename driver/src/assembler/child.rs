//! Running one external tool.
//!
//! The tool gets a directory of its own (mode 0700, removed afterwards) as working directory and as `TMPDIR`, because
//! ptxas writes temporary files there even when it reads a pipe and writes a pipe. Its input, output and log are files
//! in the directory, so that no pipe can fill up and stop it. The environment is otherwise empty, so that no
//! `NVCC_APPEND_FLAGS` or the like changes the result. Output beyond `MAX_OUTPUT_BYTES` is an error, not a reason to
//! fill the memory.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::Tool;
use crate::assembler::tools::AssemblerError;

/// A cubin or a disassembly of more than this is refused: 256 MiB.
const MAX_OUTPUT_BYTES: u64 = 1 << 28;

/// The output and status of a finished tool.
pub(super) struct Finished {
    pub(super) status: ExitStatus,
    /// Standard output followed by standard error, as text.
    pub(super) log: String,
}

/// A directory only we may enter; removed on drop.
pub(super) struct PrivateDir {
    path: PathBuf,
}

impl PrivateDir {
    pub(super) fn new() -> Result<PrivateDir, AssemblerError> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let base = std::env::temp_dir();
        let mut last = None;
        for _ in 0..16 {
            let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.subsec_nanos());
            let serial = COUNTER.fetch_add(1, Ordering::Relaxed);
            let path = base.join(format!("tilec-{}-{serial}-{clock:08x}", process::id()));
            let mut builder = DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            // `create` fails if the name exists, even as a link, so another user cannot prepare it.
            match builder.create(&path) {
                Ok(()) => return Ok(PrivateDir { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = Some(error),
                Err(source) => {
                    return Err(AssemblerError::Io { what: format!("create `{}`", path.display()), source });
                }
            }
        }
        let source = last.unwrap_or_else(|| io::ErrorKind::AlreadyExists.into());
        Err(AssemblerError::Io { what: format!("create a directory in `{}`", base.display()), source })
    }

    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), AssemblerError> {
        fs::write(self.path.join(name), bytes).map_err(|source| self.error("write", name, source))
    }

    pub(super) fn read(&self, name: &str) -> Result<Vec<u8>, AssemblerError> {
        let mut bytes = Vec::new();
        let read = File::open(self.path.join(name))
            .and_then(|file| file.take(MAX_OUTPUT_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|source| self.error("read", name, source))?;
        if read as u64 > MAX_OUTPUT_BYTES {
            return Err(self.error("read", name, io::Error::other("more than 256 MiB")));
        }
        Ok(bytes)
    }

    fn create(&self, name: &str) -> Result<File, AssemblerError> {
        File::create(self.path.join(name)).map_err(|source| self.error("create", name, source))
    }

    fn error(&self, verb: &str, name: &str, source: io::Error) -> AssemblerError {
        AssemblerError::Io { what: format!("{verb} `{}`", self.path.join(name).display()), source }
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        // A directory that cannot be removed is litter, not a reason to lose the result.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Runs `program` in `dir`. A non-zero exit is not an error here; exceeding `limit` is.
///
/// # Errors
/// `Io` when the program cannot be started or its output not be read, `TimedOut` after `limit`.
pub(super) fn run(
    tool: Tool,
    program: &Path,
    args: &[&str],
    dir: &PrivateDir,
    limit: Duration,
) -> Result<Finished, AssemblerError> {
    let start = |source| AssemblerError::Io { what: format!("run `{}`", program.display()), source };
    if !program.is_absolute() {
        return Err(start(io::Error::other("its path is not absolute")));
    }
    let mut child = Command::new(program)
        .args(args)
        .env_clear()
        .env("TMPDIR", &dir.path)
        .current_dir(&dir.path)
        .stdin(Stdio::null())
        .stdout(dir.create("stdout")?)
        .stderr(dir.create("stderr")?)
        .spawn()
        .map_err(start)?;
    let status = match wait(&mut child, limit) {
        Ok(Some(status)) => status,
        Ok(None) => {
            stop(&mut child);
            return Err(AssemblerError::TimedOut { tool, limit });
        }
        Err(source) => {
            stop(&mut child);
            return Err(start(source));
        }
    };
    let mut log = dir.read("stdout")?;
    log.extend(dir.read("stderr")?);
    Ok(Finished { status, log: String::from_utf8_lossy(&log).into_owned() })
}

/// Waits at most `limit`; `None` when the child still runs then.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let started = Instant::now();
    let mut pause = Duration::from_micros(500);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let Some(left) = limit.checked_sub(started.elapsed()) else {
            return Ok(None);
        };
        std::thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

fn stop(child: &mut Child) {
    // Both fail only for a child that has already gone.
    let _ = child.kill();
    let _ = child.wait();
}

/// The first 2,000 characters, for an error message.
pub(super) fn excerpt(log: &str) -> String {
    log.trim().chars().take(2000).collect()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_slow_tool_is_stopped() {
        let dir = PrivateDir::new().unwrap();
        let started = Instant::now();
        let limit = Duration::from_millis(50);
        let result = run(Tool::Ptxas, Path::new("/bin/sleep"), &["30"], &dir, limit);
        assert!(matches!(result, Err(AssemblerError::TimedOut { .. })));
        assert!(started.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn the_directory_is_private_and_goes_away() {
        let dir = PrivateDir::new().unwrap();
        let path = dir.path.clone();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        drop(dir);
        assert!(!path.exists());
    }

    #[test]
    fn the_environment_is_empty_but_for_the_temporary_directory() {
        let dir = PrivateDir::new().unwrap();
        let done = run(Tool::Ptxas, Path::new("/usr/bin/env"), &[], &dir, Duration::from_secs(10)).unwrap();
        assert_eq!(done.log.trim(), format!("TMPDIR={}", dir.path.display()));
    }

    #[test]
    fn a_relative_program_is_refused() {
        let dir = PrivateDir::new().unwrap();
        assert!(run(Tool::Ptxas, Path::new("sleep"), &["0"], &dir, Duration::from_secs(1)).is_err());
    }
}
