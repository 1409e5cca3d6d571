//! The version rule of the channel.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// The protocol that this build speaks.
pub const CURRENT: Version = Version { major: 1, minor: 0 };

/// A protocol version, written `major.minor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version {
    /// Changes when an older peer could misread a message.
    pub major: u16,
    /// Changes when messages or fields are added.
    pub minor: u16,
}

impl Version {
    /// Whether a gateway of this build serves a runtime that speaks `self`: the same major version,
    /// and this minor or the one before.
    pub fn is_served(self) -> bool {
        self.major == CURRENT.major && matches!(CURRENT.minor.checked_sub(self.minor), Some(0 | 1))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.to_string()
    }
}

/// The text is no protocol version.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no protocol version, expected MAJOR.MINOR such as {CURRENT}")]
pub struct ParseVersionError(String);

impl FromStr for Version {
    type Err = ParseVersionError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (major, minor) = text.split_once('.')?;
            Some(Version {
                major: major.parse().ok()?,
                minor: minor.parse().ok()?,
            })
        };
        parse().ok_or_else(|| ParseVersionError(text.chars().take(40).collect()))
    }
}

impl TryFrom<String> for Version {
    type Error = ParseVersionError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_minor_and_the_one_before_are_served() {
        assert!(CURRENT.is_served());
        assert!(
            !Version {
                major: CURRENT.major + 1,
                ..CURRENT
            }
            .is_served()
        );
        assert!(
            !Version {
                minor: CURRENT.minor + 1,
                ..CURRENT
            }
            .is_served()
        );
    }

    #[test]
    fn versions_survive_text() {
        assert_eq!("1.0".parse::<Version>().unwrap(), Version { major: 1, minor: 0 });
        assert!("one".parse::<Version>().is_err());
    }
}
