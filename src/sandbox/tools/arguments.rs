//! What the tools take. The doc comments are what models read: `schemas.json` is made from these types.
//!
//! Names are those that models know from elsewhere; other habits are understood as aliases. Every tool takes a
//! `description`, which is for people who watch.

use serde::Deserialize;

/// Arguments of `bash`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Bash {
    /// Why, in a few words; shown to people only.
    #[serde(default)]
    pub description: Option<String>,
    /// The command line, at most 65,536 bytes. It starts in the folder where the last one ended; it gets no input.
    pub command: String,
    /// Seconds after which it is ended, at most 1,800; 300 when absent.
    #[serde(default, alias = "timeout")]
    pub timeout_seconds: Option<u64>,
}

/// Arguments of `ls`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Ls {
    /// Why, in a few words; shown to people only.
    #[serde(default)]
    pub description: Option<String>,
    /// The folder; the workspace when absent.
    #[serde(default)]
    pub path: Option<String>,
}

/// Arguments of `read_file`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReadFile {
    /// Why, in a few words; shown to people only.
    #[serde(default)]
    pub description: Option<String>,
    /// The file. A relative path starts at /mnt/user-data/workspace.
    #[serde(alias = "file_path")]
    pub path: String,
    /// Number of the first line, from 1; 1 when absent.
    #[serde(default)]
    pub start_line: Option<u64>,
    /// Number of the last line; -1 or absent for the end of the file.
    #[serde(default)]
    pub end_line: Option<i64>,
}

/// Arguments of `write_file`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    /// Why, in a few words; shown to people only.
    #[serde(default)]
    pub description: Option<String>,
    /// The file, below workspace or outputs; missing folders are made.
    #[serde(alias = "file_path")]
    pub path: String,
    /// The text, at most 1 MiB.
    pub content: String,
    /// Add to the end of the file instead of replacing all of it.
    #[serde(default)]
    pub append: bool,
}

/// Arguments of `str_replace`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StrReplace {
    /// Why, in a few words; shown to people only.
    #[serde(default)]
    pub description: Option<String>,
    /// The file, below workspace or outputs.
    #[serde(alias = "file_path")]
    pub path: String,
    /// The text to replace, exactly as it is in the file, without line numbers. It must occur once.
    #[serde(alias = "old_string")]
    pub old_str: String,
    /// The text to put in its place; empty to delete it.
    #[serde(default, alias = "new_string")]
    pub new_str: String,
    /// Replace it wherever it occurs.
    #[serde(default)]
    pub replace_all: bool,
}

/// Arguments of `glob`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Glob {
    /// Why, in a few words; shown to people only.
    #[serde(default)]
    pub description: Option<String>,
    /// A pattern such as `*.py`, `src/**/*.rs` or `*.{md,txt}`. Without `/` it is compared with names at any depth.
    pub pattern: String,
    /// The folder to look in; the workspace when absent.
    #[serde(default)]
    pub path: Option<String>,
    /// Find folders too.
    #[serde(default)]
    pub include_dirs: bool,
    /// Find what .gitignore and .ignore files leave out too.
    #[serde(default)]
    pub include_ignored: bool,
    /// The most paths to give, at most 1,000; 200 when absent.
    #[serde(default)]
    pub max_results: Option<u64>,
}

/// Arguments of `grep`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Grep {
    /// Why, in a few words; shown to people only.
    #[serde(default)]
    pub description: Option<String>,
    /// A regular expression, compared with each line.
    pub pattern: String,
    /// The folder or file to look in; the workspace when absent.
    #[serde(default)]
    pub path: Option<String>,
    /// Look only into files that this pattern names, as in the tool `glob`.
    #[serde(default)]
    pub glob: Option<String>,
    /// The pattern is plain text and no regular expression.
    #[serde(default)]
    pub literal: bool,
    /// Tell `a` and `A` apart.
    #[serde(default)]
    pub case_sensitive: bool,
    /// Lines to show before and after each match, at most 10.
    #[serde(default)]
    pub context: u64,
    /// Look into what .gitignore and .ignore files leave out too.
    #[serde(default)]
    pub include_ignored: bool,
    /// The most lines to give, at most 1,000; 100 when absent.
    #[serde(default)]
    pub max_results: Option<u64>,
}

/// Arguments of `view_image`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ViewImage {
    /// Why, in a few words; shown to people only.
    #[serde(default)]
    pub description: Option<String>,
    /// A PNG, JPEG, GIF or WebP file of at most 3 MiB.
    #[serde(alias = "image_path", alias = "file_path")]
    pub path: String,
}

/// Arguments of `present_files`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PresentFiles {
    /// Why, in a few words; shown to people only.
    #[serde(default)]
    pub description: Option<String>,
    /// Files below /mnt/user-data/outputs, at most 256. A relative path starts there.
    #[serde(alias = "filepaths")]
    pub paths: Vec<String>,
}
