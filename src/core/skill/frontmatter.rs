//! The head of SKILL.md. The keys are exactly those that the public skills of others use, so that they load here.

use serde::Deserialize;
use serde_json::Value;

/// The longest name.
pub const MAX_NAME: usize = 64;
/// The longest description.
pub const MAX_DESCRIPTION: usize = 1024;

/// What SKILL.md says of itself. An unknown key makes the skill invalid: a misspelt restriction must not be lost.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Frontmatter {
    /// `^[a-z0-9-]+$`, at most 64 characters.
    pub name: String,
    /// At most 1,024 characters.
    pub description: String,
    /// Its licence.
    #[serde(default)]
    pub license: Option<String>,
    /// Tools that agents may use while they follow this skill: a list, or one string.
    #[serde(default)]
    pub allowed_tools: Option<Value>,
    /// Secrets that it needs: for people, nothing checks that a task has them.
    #[serde(default)]
    pub required_secrets: Option<Value>,
    /// Whether agents may use the secrets without asking. Only true can be kept: whoever has the sandbox has its secrets.
    #[serde(default)]
    pub secrets_autonomous: Option<bool>,
    /// Anything.
    #[serde(default)]
    pub metadata: Option<Value>,
    /// What it runs on.
    #[serde(default)]
    pub compatibility: Option<Value>,
    /// Its version.
    #[serde(default)]
    pub version: Option<Value>,
    /// Who wrote it.
    #[serde(default)]
    pub author: Option<Value>,
    /// Words that suggest it.
    #[serde(default)]
    pub triggers: Option<Value>,
    /// Packages that must be in the image: for people, nothing checks that they are there.
    #[serde(default)]
    pub dependencies: Option<Value>,
}

/// The most words of a list, and the most characters of one, that a status holds.
const MAX_WORDS: usize = 64;
const MAX_WORD: usize = 128;

impl Frontmatter {
    /// The words that suggest the skill.
    pub fn trigger_words(&self) -> Vec<String> {
        self.triggers
            .as_ref()
            .map(|given| words(given, &[',', '\n']))
            .unwrap_or_default()
    }

    /// The only tools that may be used while the skill is followed. `None` where it says nothing.
    pub fn tools(&self) -> Option<Vec<String>> {
        self.allowed_tools
            .as_ref()
            .filter(|given| !given.is_null())
            .map(|given| words(given, &[',', ' ', '\n']))
    }
}

/// A list, or one string that is one.
fn words(given: &Value, separators: &[char]) -> Vec<String> {
    let words: Vec<&str> = match given {
        Value::String(text) => text.split(separators).collect(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let kept = words.into_iter().map(str::trim).filter(|word| !word.is_empty());
    let short = kept.filter(|word| word.chars().count() <= MAX_WORD);
    short.take(MAX_WORDS).map(str::to_owned).collect()
}

pub(super) fn parse(text: &str) -> Result<Frontmatter, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let head = text
        .strip_prefix("---\n")
        .or_else(|| text.strip_prefix("---\r\n"));
    let head = head.ok_or("begins without a frontmatter: the first line must be ---")?;
    let end = head.lines().scan(0, |at, line| {
        let start = *at;
        *at += line.len() + 1;
        Some((start, line))
    });
    let end = end
        .into_iter()
        .find(|(_, line)| line.trim_end() == "---")
        .map(|(start, _)| start);
    let end = end.ok_or("the frontmatter has no end: a line --- is missing")?;
    let head = head.get(..end).unwrap_or_default();
    let parsed: Frontmatter =
        serde_saphyr::from_str(head).map_err(|error| format!("frontmatter: {error}"))?;
    check(&parsed)?;
    Ok(parsed)
}

fn check(head: &Frontmatter) -> Result<(), String> {
    let name_fits = !head.name.is_empty()
        && head.name.len() <= MAX_NAME
        && head
            .name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if !name_fits {
        return Err(format!(
            "name is {:?}, allowed are a-z, 0-9 and -, at most {MAX_NAME} characters",
            head.name
        ));
    }
    let length = head.description.chars().count();
    if length == 0 || length > MAX_DESCRIPTION {
        return Err(format!(
            "description has {length} characters, allowed are 1 to {MAX_DESCRIPTION}"
        ));
    }
    if head.secrets_autonomous == Some(false) {
        return Err("secrets-autonomous is false, which cannot be kept: an agent has the secrets of its sandbox whether it \
                    asks or not. Leave the key out, and name the secrets only in tasks that may use them"
            .to_owned());
    }
    Ok(())
}
