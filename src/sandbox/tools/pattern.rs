//! File name patterns, as in shells and ripgrep.

use super::{Result, ToolError};
use globset::{GlobBuilder, GlobMatcher};
use std::path::Path;

/// The longest pattern.
const MAX_LENGTH: usize = 4096;

/// A compiled pattern.
pub(super) struct Pattern {
    matcher: GlobMatcher,
    /// Without `/`: compared with the name alone.
    name_only: bool,
}

impl Pattern {
    /// `**` crosses folders, `*` does not; `{a,b}` is one of them.
    pub(super) fn new(pattern: &str) -> Result<Pattern> {
        let refuse = |problem: String| ToolError::Pattern {
            pattern: pattern.chars().take(100).collect(),
            problem,
        };
        if pattern.is_empty() || pattern.len() > MAX_LENGTH {
            return Err(refuse(format!(
                "it has {} bytes, allowed is 1 to {MAX_LENGTH}",
                pattern.len()
            )));
        }
        if pattern.starts_with('/') {
            return Err(refuse(
                "it is compared with paths below `path`, so it cannot begin with /; put the folder into `path`"
                    .to_owned(),
            ));
        }
        let glob = pattern.strip_prefix("./").unwrap_or(pattern);
        let matcher = GlobBuilder::new(glob)
            .literal_separator(true)
            .build()
            .map_err(|error| refuse(error.kind().to_string()))?
            .compile_matcher();
        Ok(Pattern {
            matcher,
            name_only: !glob.contains('/'),
        })
    }

    pub(super) fn matches(&self, relative: &Path) -> bool {
        if self.name_only {
            relative
                .file_name()
                .is_some_and(|name| self.matcher.is_match(name))
        } else {
            self.matcher.is_match(relative)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, path: &str, expected: bool) {
        let found = Pattern::new(pattern).unwrap().matches(Path::new(path));
        assert_eq!(found, expected, "{pattern} {path}");
    }

    #[test]
    fn a_pattern_without_a_folder_is_compared_with_names() {
        check("*.py", "a.py", true);
        check("*.py", "src/deep/a.py", true);
        check("src/*.py", "src/a.py", true);
        check("src/*.py", "src/deep/a.py", false);
        check("src/**/*.py", "src/a.py", true);
        check("**/*.{md,txt}", "a/b.md", true);
        check("./a", "a", true);
        check("[ab]?", "ax", true);
    }

    #[test]
    fn one_that_cannot_match_says_why() {
        for pattern in ["", "/mnt/user-data/workspace/*.py", "a[", "{a,{b}"] {
            let error = Pattern::new(pattern).err().map(|error| error.to_string());
            assert!(
                error.is_some_and(|error| error.contains("cannot be used")),
                "{pattern}"
            );
        }
    }
}
