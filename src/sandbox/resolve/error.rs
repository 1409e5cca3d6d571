//! What can be wrong with a path.

use rustix::io::Errno;
use std::io;

/// Why a virtual path cannot be used. Every text names the path as it was given.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// It is not below a folder that can be named.
    #[error(
        "{path:?} cannot be named; allowed are absolute paths below /mnt/user-data/uploads, \
         /mnt/user-data/workspace, /mnt/user-data/outputs and /mnt/skills/NAME"
    )]
    Outside {
        /// As it was given.
        path: String,
    },
    /// `..` or a link leads out of its area.
    #[error(
        "{path:?} leaves {area} by `..` or a link; name the file by its own path, links may only point inside {area}"
    )]
    Leaves {
        /// As it was given.
        path: String,
        /// Virtual path of the area.
        area: String,
    },
    /// There is no such file or folder.
    #[error("{path:?} does not exist")]
    Missing {
        /// As it was given.
        path: String,
    },
    /// It is something else than what was asked for.
    #[error("{path:?} is a {found}, expected a {expected}")]
    WrongKind {
        /// As it was given.
        path: String,
        /// What it is.
        found: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// Its area refuses writes.
    #[error("{path:?} cannot be written; writable are /mnt/user-data/workspace and /mnt/user-data/outputs")]
    ReadOnly {
        /// As it was given.
        path: String,
    },
    /// Files were renamed without pause for as long as it was tried.
    #[error(
        "{path:?} cannot be followed through `..` or a link while files are renamed without pause; end what renames \
         them, or name the file by its own path"
    )]
    Restless {
        /// As it was given.
        path: String,
    },
    /// The system refused.
    #[error("{path:?} cannot be used")]
    System {
        /// As it was given.
        path: String,
        /// Why.
        source: io::Error,
    },
}

impl ResolveError {
    /// Gives a system error its meaning.
    pub(super) fn from_errno(error: Errno, path: String, area: String) -> ResolveError {
        match error {
            Errno::XDEV | Errno::LOOP => ResolveError::Leaves { path, area },
            Errno::NOENT => ResolveError::Missing { path },
            Errno::NOTDIR => ResolveError::WrongKind {
                path,
                found: "file",
                expected: "folder",
            },
            Errno::ISDIR => ResolveError::WrongKind {
                path,
                found: "folder",
                expected: "file",
            },
            Errno::ROFS => ResolveError::ReadOnly { path },
            Errno::AGAIN => ResolveError::Restless { path },
            other => ResolveError::System {
                path,
                source: other.into(),
            },
        }
    }
}
