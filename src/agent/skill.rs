//! Skills: which fit a task, and how they are loaded.

use agentrun_core::agents::tools;
use agentrun_protocol::agent::SkillCard;
use agentrun_protocol::chat::ToolSpec;
use serde::Deserialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// The file that a skill begins with.
pub(crate) const MAIN: &str = "SKILL.md";
/// The longest path of a file of a skill.
const MAX_PATH: usize = 512;

/// From this similarity on a skill is suggested.
const THRESHOLD: f64 = 0.7;
/// What a trigger adds.
const TRIGGER: f64 = 0.2;
/// The usual parameters of BM25.
const K1: f64 = 1.2;
const B: f64 = 0.75;
/// A score of this much is a similarity of one half: about two rare words in common.
const HALF: f64 = 4.0;
/// Documents that are thought to be there besides: with a handful of skills each word would look common.
const OTHERS: f64 = 9.0;

/// What a call asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Load {
        name: String,
        path: String,
    },
    /// The skill that was followed is done with.
    Done,
}

#[derive(Deserialize)]
struct Arguments {
    #[serde(default, alias = "skill", alias = "command")]
    name: Option<String>,
    #[serde(default, alias = "file_path", alias = "file")]
    path: Option<String>,
    #[serde(default)]
    done: bool,
}

pub(crate) fn spec(cards: &[SkillCard]) -> ToolSpec {
    let names: Vec<&str> = cards.iter().map(|card| card.name.as_str()).collect();
    let mut properties = json!({
        "name": {"type": "string", "enum": names, "description": "Name of the skill."},
        "path": {"type": "string", "description": "A file of the skill, relative to its folder; SKILL.md when absent."}
    });
    if cards.iter().any(|card| card.allowed_tools.is_some()) {
        properties["done"] = json!({
            "type": "boolean",
            "description": "The skill that you follow is done with: you have all your tools again."
        });
    }
    ToolSpec {
        name: tools::SKILL.to_owned(),
        description: "Loads a skill: instructions for a kind of task, made by people who know it. Load a skill that fits \
                      before you begin, and follow it. Its scripts and other files lie below /mnt/skills/NAME."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": properties,
            "required": [],
            "additionalProperties": false
        }),
    }
}

/// Understands a call.
pub(crate) fn parse(arguments: &str, cards: &[SkillCard]) -> Result<Asked, String> {
    let asked: Arguments =
        serde_json::from_str(arguments).map_err(|error| format!("{error}; expected is {{\"name\": …}}"))?;
    if asked.done {
        return Ok(Asked::Done);
    }
    let known = || crate::text::listed(cards.iter().map(|card| card.name.as_str()));
    let name = asked.name.unwrap_or_default();
    let name = name.trim().trim_start_matches('/');
    if !cards.iter().any(|card| card.name == name) {
        let shown = agentrun_core::text::one_line(name, 80);
        return Err(format!("there is no skill {shown:?}; there are: {}", known()));
    }
    let path = asked.path.unwrap_or_else(|| MAIN.to_owned());
    let path = relative(&path, name).ok_or_else(|| {
        format!("the path must be relative to the skill's folder, without .., at most {MAX_PATH} bytes")
    })?;
    Ok(Asked::Load {
        name: name.to_owned(),
        path,
    })
}

fn relative(path: &str, name: &str) -> Option<String> {
    let path = path.trim();
    let folder = [
        format!("/mnt/skills/{name}/"),
        format!("/mnt/skills/public/{name}/"),
        format!("/mnt/skills/custom/{name}/"),
    ];
    let path = folder
        .iter()
        .find_map(|folder| path.strip_prefix(folder.as_str()))
        .unwrap_or(path);
    let path = path.trim_start_matches("./");
    let fits = !path.is_empty()
        && path.len() <= MAX_PATH
        && !path.starts_with('/')
        && !path.contains(char::is_control)
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    fits.then(|| path.to_owned())
}

/// Names of the skills that fit a task, the best first: those whose similarity by BM25, with something added for a
/// trigger, reaches the threshold, and one that the task calls by `/NAME`.
pub(crate) fn fitting(cards: &[SkillCard], task: &str) -> Vec<String> {
    let asked: BTreeSet<String> = words(task).into_iter().collect();
    let documents: Vec<Vec<String>> = cards.iter().map(|card| words(&told(card))).collect();
    let total: usize = documents.iter().map(Vec::len).sum();
    let mean = count(total) / count(documents.len().max(1));
    let mut spread: BTreeMap<&str, f64> = BTreeMap::new();
    for document in &documents {
        for word in document.iter().collect::<BTreeSet<_>>() {
            *spread.entry(word).or_default() += 1.0;
        }
    }
    let score = |document: &[String]| -> f64 {
        let length = K1 * (1.0 - B + B * count(document.len()) / mean.max(1.0));
        let of_word = |word: &String| {
            let often = count(document.iter().filter(|other| *other == word).count());
            let with = spread.get(word.as_str()).copied().unwrap_or_default();
            let rare = ((count(documents.len()) + OTHERS - with + 0.5) / (with + 0.5) + 1.0).ln();
            rare * often * (K1 + 1.0) / (often + length)
        };
        asked.iter().map(of_word).sum()
    };
    let called = task
        .trim_start()
        .strip_prefix('/')
        .map(|rest| rest.split_whitespace().next().unwrap_or_default());
    let similarity = |(card, document): (&SkillCard, &Vec<String>)| {
        let score = score(document);
        let triggered = card.triggers.iter().any(|trigger| is_in(trigger, &asked));
        let called = if called == Some(card.name.as_str()) {
            1.0
        } else {
            0.0
        };
        score / (score + HALF) + if triggered { TRIGGER } else { 0.0 } + called
    };
    let rated = cards
        .iter()
        .zip(&documents)
        .map(|pair| (similarity(pair), &pair.0.name));
    let mut fitting: Vec<(f64, &String)> = rated.filter(|(similarity, _)| *similarity >= THRESHOLD).collect();
    fitting.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
    fitting.into_iter().map(|(_, name)| name.clone()).collect()
}

fn told(card: &SkillCard) -> String {
    format!("{} {} {}", card.name, card.description, card.triggers.join(" "))
}

fn is_in(trigger: &str, asked: &BTreeSet<String>) -> bool {
    let trigger = words(trigger);
    !trigger.is_empty() && trigger.iter().all(|word| asked.contains(word))
}

/// Lengths here are far below where a float is inexact.
fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::from(u32::MAX), f64::from)
}

/// Words without case, plural and the commonest ones; of scripts without spaces, pairs of characters.
fn words(text: &str) -> Vec<String> {
    const COMMON: [&str; 28] = [
        "a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "into", "is", "it", "of", "on",
        "or", "that", "the", "them", "this", "to", "use", "when", "which", "who", "with", "you",
    ];
    let mut words = Vec::new();
    for word in text
        .to_lowercase()
        .split(|character: char| !character.is_alphanumeric())
    {
        if word.chars().any(|character| character >= '\u{2e80}') {
            let characters: Vec<char> = word.chars().collect();
            words.extend(
                characters
                    .windows(2.min(characters.len()))
                    .map(|pair| pair.iter().collect()),
            );
        } else if !word.is_empty() && !COMMON.contains(&word) {
            let stem = word
                .strip_suffix('s')
                .filter(|stem| stem.len() > 2)
                .unwrap_or(word);
            words.push(stem.to_owned());
        }
    }
    words
}
