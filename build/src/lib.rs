//! `tilec-build`: kernels of `.tile` files as Rust functions. In a build script,
//!
//! ```no_run
//! tilec_build::Build::new("kernels").targets(&["sm_80", "sm_90a"]).compile();
//! ```
//!
//! compiles every `kernels/*.tile`, and writes a module with a typed launcher for each kernel and a struct `Launchers`
//! with all of them. Element type, rank and access are in the types of a launcher's arguments. Include it in the crate
//! by
//!
//! ```text
//! mod kernels {
//!     include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
//! }
//! ```
//!
//! and add a dependency on `tilec-launch`, which the launchers use. The binary contains PTX for all targets; the image for the
//! device is chosen when a kernel is loaded. A mistake in a `.tile` file fails the build with a message that points into that file.
//!
//! A file is compiled again only if it, the options or this crate have changed.

mod interface;
mod launcher;
mod messages;
mod names;
mod settings;

pub use settings::Settings;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use tilec::bench::variants;
use tilec::compile::bundle::{Cubins, bundle};
use tilec::{CompileOptions, Diagnostics, Target};
use tilec_launch::Bundle;
use tilec_launch::contract::hash::hash;

/// The files to compile, and the settings.
#[derive(Clone, Debug)]
pub struct Build {
    folder: PathBuf,
    targets: Vec<String>,
    all: Settings,
    of_files: Vec<(String, Settings)>,
    cubins: Cubins,
}

/// Why the build failed.
#[derive(Debug)]
pub enum BuildError {
    /// A file could not be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The folder of kernels could not be read.
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// An invalid option.
    Option(String),
    /// A program has errors.
    Program(Box<Diagnostics>),
    /// A kernel for which there is no launcher.
    Kernel {
        /// The file.
        path: PathBuf,
        /// The kernel, and the feature that launchers do not support.
        what: String,
    },
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BuildError::File { path, error } => write!(f, "{}: {error}", path.display()),
            BuildError::Folder { path, error } => write!(
                f,
                "the folder of kernels {}: {error}\n`Build::new` takes the folder with the `.tile` files, relative to the package: `Build::new(\"kernels\")`",
                path.display()
            ),
            BuildError::Option(what) => f.write_str(what),
            BuildError::Program(diagnostics) => f.write_str(&messages::errors(diagnostics)),
            BuildError::Kernel { path, what } => write!(f, "{}: {what}", path.display()),
        }
    }
}

impl std::error::Error for BuildError {}

/// What was built.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Built {
    /// The `.tile` files, in order.
    pub sources: Vec<PathBuf>,
    /// The files that were compiled in this run; the others had not changed.
    pub compiled: Vec<PathBuf>,
    /// The warnings of each file that has any, as text; also of files that were not compiled again.
    pub warnings: Vec<String>,
}

impl Build {
    /// All `.tile` files of a folder, for sm_80.
    pub fn new(folder: impl Into<PathBuf>) -> Build {
        Build {
            folder: folder.into(),
            targets: vec!["sm_80".to_owned()],
            all: Settings::new(),
            of_files: Vec::new(),
            cubins: Cubins::None,
        }
    }

    /// Sets the targets (`sm_70`, `sm_80`, `sm_90a`). A device loads the newest that it supports.
    #[must_use]
    pub fn targets(mut self, targets: &[&str]) -> Build {
        self.targets = targets.iter().map(|t| (*t).to_owned()).collect();
        self
    }

    /// Sets a compile-time parameter, as `-D NAME=VALUE` does.
    #[must_use]
    pub fn define(mut self, name: &str, value: &str) -> Build {
        self.all = self.all.define(name, value);
        self
    }

    /// Chooses `auto` parameters for these sizes, as `--for` does; several make variants.
    #[must_use]
    pub fn sizes(mut self, sizes: &[(&str, i64)]) -> Build {
        self.all = self.all.sizes(sizes);
        self
    }

    /// Compiles variants (`ALIGN=8/1`), as `--variant` does.
    #[must_use]
    pub fn variant(mut self, variant: &str) -> Build {
        self.all = self.all.variant(variant);
        self
    }

    /// Settings of one file, by its name without `.tile`, in addition to those of all files:
    ///
    /// ```no_run
    /// use tilec_build::{Build, Settings};
    /// Build::new("kernels").file("attention", Settings::new().variant("D=64/128")).compile();
    /// ```
    #[must_use]
    pub fn file(mut self, stem: &str, settings: Settings) -> Build {
        self.of_files.push((stem.to_owned(), settings));
        self
    }

    /// Also assembles machine code for every target. This needs NVIDIA's ptxas at build time, and avoids the driver's assembler
    /// when kernels are loaded.
    #[must_use]
    pub fn cubins(mut self) -> Build {
        self.cubins = Cubins::Required;
        self
    }

    /// Builds, and prints the directives for cargo. Call it in a build script: errors fail the build, with the place in the `.tile` file.
    pub fn compile(&self) {
        println!("cargo::rerun-if-changed={}", self.folder.display());
        let Some(out) = std::env::var_os("OUT_DIR") else {
            println!("cargo::error=`OUT_DIR` is not set: `Build::compile` is for build scripts");
            return;
        };
        match self.generate(Path::new(&out)) {
            Ok(built) => {
                for source in &built.sources {
                    println!("cargo::rerun-if-changed={}", source.display());
                }
                for line in built.warnings.iter().flat_map(|text| text.lines()).filter(|line| !line.is_empty()) {
                    println!("cargo::warning={line}");
                }
            }
            Err(error) => {
                if let BuildError::Program(diagnostics) = &error {
                    for line in messages::warnings(diagnostics).lines().filter(|line| !line.is_empty()) {
                        println!("cargo::warning={line}");
                    }
                }
                for line in error.to_string().lines().filter(|line| !line.is_empty()) {
                    println!("cargo::error={line}");
                }
            }
        }
    }

    /// Builds into a folder: `kernels.rs`, and a bundle and a module for each `.tile` file.
    ///
    /// # Errors
    /// A file cannot be read or written, a program has errors, or launchers do not support a kernel.
    pub fn generate(&self, out: &Path) -> Result<Built, BuildError> {
        let mut built = Built::default();
        let mut text = String::new();
        let mut types: Vec<(String, PathBuf)> = Vec::new();
        let mut files: Vec<(String, Vec<String>)> = Vec::new();
        let sources = self.sources()?;
        let stem = |source: &Path| source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if let Some((name, _)) = self.of_files.iter().find(|(name, _)| !sources.iter().any(|s| stem(s) == *name)) {
            let what = format!("settings of `{name}`: there is no {name}.tile in {}", self.folder.display());
            return Err(BuildError::Option(what));
        }
        for source in sources {
            let stem = stem(&source);
            let (launchers, kernels) = self.one(&source, &stem, out, &mut built)?;
            for kernel in &kernels {
                let name = names::type_name(kernel);
                let failed = |what| Err(BuildError::Kernel { path: source.clone(), what });
                if name == launcher::ALL {
                    return failed(format!("`{kernel}`: `{name}` is the struct of all launchers"));
                }
                // A launcher has two types.
                let is_of = |other: &str| format!("{name}Launch") == other || format!("{other}Launch") == name;
                if let Some((_, first)) = types.iter().find(|(other, _)| *other == name || is_of(other)) {
                    return failed(format!("a launcher `{name}` is there already, of {}", first.display()));
                }
                types.push((name, source.clone()));
            }
            let _ = writeln!(text, "{launchers}");
            files.push((stem, kernels));
            built.sources.push(source);
        }
        if built.sources.is_empty() {
            return Err(BuildError::Option(format!("there is no .tile file in {}", self.folder.display())));
        }
        text.push_str(&launcher::all(&files));
        write(&out.join("kernels.rs"), text.as_bytes())?;
        Ok(built)
    }

    /// The `.tile` files in order.
    fn sources(&self) -> Result<Vec<PathBuf>, BuildError> {
        let absolute = std::path::absolute(&self.folder).unwrap_or_else(|_| self.folder.clone());
        let failed = |error| BuildError::Folder { path: absolute.clone(), error };
        let entries = std::fs::read_dir(&self.folder).map_err(&failed)?;
        let entries = entries.collect::<Result<Vec<_>, _>>().map_err(&failed)?;
        let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|e| e == "tile"));
        files.sort();
        Ok(files)
    }

    /// The launchers of a file, compiled now or before, and the names of its kernels.
    fn one(&self, path: &Path, stem: &str, out: &Path, built: &mut Built) -> Result<(String, Vec<String>), BuildError> {
        let text = std::fs::read_to_string(path).map_err(|error| BuildError::File { path: path.to_owned(), error })?;
        let [key_file, rust_file, bundle_file, warnings_file] =
            ["key", "rs", "tilec", "warnings"].map(|e| out.join(format!("{stem}.launcher.{e}")));
        let of_file = self.of_files.iter().filter(|(name, _)| name == stem);
        let settings = of_file.fold(self.all.clone(), |all, (_, more)| all.and(more));
        let how = format!("{:?} {settings:?} {:?}", self.targets, self.cubins);
        let key = hash(&[env!("CARGO_PKG_VERSION"), &own_build(), &path.display().to_string(), &how, &text]);
        if std::fs::read_to_string(&key_file).is_ok_and(|before| before == key)
            && let Some(bundle) = std::fs::read(&bundle_file).ok().and_then(|bytes| Bundle::from_bytes(&bytes).ok())
            && let Ok(of_file) = interface::Interface::of_file(&bundle)
            && let Ok(launchers) = std::fs::read_to_string(&rust_file)
            && let Ok(warnings) = std::fs::read_to_string(&warnings_file)
        {
            built.warnings.extend(Some(warnings).filter(|text| !text.is_empty()));
            return Ok((launchers, of_file.into_iter().map(|kernel| kernel.name).collect()));
        }
        let targets = self.targets.iter().map(|name| {
            Target::from_name(name).ok_or_else(|| BuildError::Option(format!("`{name}` is no target of tilec")))
        });
        let targets = targets.collect::<Result<Vec<_>, _>>()?;
        let mut options = CompileOptions {
            source_name: path.display().to_string(),
            defines: settings.defines,
            sizes: settings.sizes,
            report_accesses: false,
            ..CompileOptions::default()
        };
        if !settings.variants.is_empty() {
            let all = variants::variants(&options, &settings.variants).map_err(BuildError::Option)?;
            options.variants = all.into_iter().map(|v| v.options.defines).collect();
        }
        let made = bundle(&text, &options, &targets, self.cubins).map_err(|d| BuildError::Program(Box::new(d)))?;
        let warnings = made.diagnostics.iter().map(ToString::to_string).filter(|text| !text.trim().is_empty());
        let warnings: String = warnings.collect();
        let of_file = interface::Interface::of_file(&made.bundle);
        let of_file = of_file.map_err(|what| BuildError::Kernel { path: path.to_owned(), what })?;
        let launchers = launcher::module(stem, &path.display().to_string(), &bundle_file, &made.bundle, &of_file);
        write(&bundle_file, &made.bundle.to_bytes())?;
        write(&rust_file, launchers.as_bytes())?;
        write(&warnings_file, warnings.as_bytes())?;
        // The key is written last: it asserts that the files exist.
        write(&key_file, key.as_bytes())?;
        built.compiled.push(path.to_owned());
        built.warnings.extend(Some(warnings).filter(|text| !text.is_empty()));
        Ok((launchers, of_file.into_iter().map(|kernel| kernel.name).collect()))
    }
}

/// Tells this build of the compiler from another of the same version: the build script that it is in.
fn own_build() -> String {
    let file = std::env::current_exe().and_then(std::fs::metadata);
    file.map_or_else(|_| String::new(), |file| format!("{} {:?}", file.len(), file.modified().ok()))
}

/// Writes a file, unless it has these bytes already: a later time would make cargo compile what includes it.
fn write(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    if std::fs::read(path).is_ok_and(|before| before == bytes) {
        return Ok(());
    }
    std::fs::write(path, bytes).map_err(|error| BuildError::File { path: path.to_owned(), error })
}
