//! What a function takes and gives, by the schemas of its functions.yaml.

use super::input::Source;
use super::judge::{MAX_DOCUMENT, Verdict};
use crate::lock::lock;
use crate::settings::Folders;
use crate::store::files::beneath;
use agentrun_api::SubTaskReason;
use agentrun_core::schema::Schema;
use agentrun_core::skill::{self, FUNCTIONS_FILE, MAX_TEXT, Schemas, SkillError};
use agentrun_protocol::result::Ending;
use agentrun_protocol::work::{Assignment, Work};
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read as _};
use std::sync::{Arc, Mutex};

/// Begins the message of an input that does not fit: the code that callers match.
const CODE: &str = "INPUT_VALIDATION_ERROR";

/// The input does not fit, or cannot be checked; the function is not started.
#[derive(Debug, thiserror::Error)]
pub(super) enum SchemaError {
    #[error("{CODE}: the input does not fit input_schema: {}", .0.join("; "))]
    Unfit(Vec<String>),
    #[error("{CODE}: the input is no JSON")]
    NoJson(#[source] serde_json::Error),
    #[error(
        "{CODE}: the input has more than {MAX_DOCUMENT} bytes, and a longer one is not checked against input_schema; \
         hand over the path of a file"
    )]
    TooLarge,
    #[error("the input cannot be read")]
    Input(#[source] io::Error),
    #[error("{FUNCTIONS_FILE} of the skill cannot be read")]
    Unreadable(#[source] io::Error),
    #[error("the skill is no longer valid: its status says more")]
    Skill(#[from] SkillError),
}

impl SchemaError {
    /// The reason for the result.
    pub(super) fn reason(&self) -> SubTaskReason {
        match self {
            Self::Unfit(_) | Self::NoJson(_) | Self::TooLarge => SubTaskReason::InvalidInput,
            Self::Input(_) | Self::Unreadable(_) | Self::Skill(_) => SubTaskReason::InputChanged,
        }
    }
}

/// Skill, digest and function.
type Key = [String; 3];

/// The schemas of the function that was called last: many attempts of one Pod call the same one.
#[derive(Debug, Default)]
pub struct Last(Mutex<Option<(Key, Arc<Schemas>)>>);

impl Last {
    /// The schemas of the work; none for a command. Blocks.
    pub(super) fn of(&self, assignment: &Assignment, folders: &Folders) -> Result<Arc<Schemas>, SchemaError> {
        let Work::Function { skill, name, .. } = &assignment.work else {
            return Ok(Arc::default());
        };
        let mut travelled = assignment.skills.iter().filter(|files| files.name == *skill);
        let digest = travelled
            .next()
            .map(|files| files.digest.clone())
            .unwrap_or_default();
        let key = [skill.clone(), digest, name.clone()];
        if let Some((known, schemas)) = &*lock(&self.0)
            && *known == key
        {
            return Ok(Arc::clone(schemas));
        }
        let schemas = Arc::new(read(folders, skill, name)?);
        *lock(&self.0) = Some((key, Arc::clone(&schemas)));
        Ok(schemas)
    }
}

fn read(folders: &Folders, skill: &str, name: &str) -> Result<Schemas, SchemaError> {
    let path =
        beneath(&folders.skills, skill).map_err(|error| SchemaError::Unreadable(io::Error::other(error)))?;
    let file = match File::open(path.join(FUNCTIONS_FILE)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Schemas::default()),
        Err(error) => return Err(SchemaError::Unreadable(error)),
    };
    let mut text = Vec::new();
    let bound = MAX_TEXT as u64 + 1;
    file.take(bound)
        .read_to_end(&mut text)
        .map_err(SchemaError::Unreadable)?;
    Ok(skill::schemas(&text, name)?)
}

/// Checks an input and gives it back: what was checked is what is handed over. Blocks.
pub(super) fn check_input(schema: &Schema, source: Source) -> Result<Source, SchemaError> {
    let bytes = match source {
        Source::Bytes(bytes) => bytes,
        Source::File(file) => {
            let mut bytes = Vec::new();
            file.take(MAX_DOCUMENT + 1)
                .read_to_end(&mut bytes)
                .map_err(SchemaError::Input)?;
            bytes
        }
    };
    if bytes.len() as u64 > MAX_DOCUMENT {
        return Err(SchemaError::TooLarge);
    }
    let value: Value = serde_json::from_slice(&bytes).map_err(SchemaError::NoJson)?;
    let mistakes = mistakes(schema, &value);
    if mistakes.is_empty() {
        Ok(Source::Bytes(bytes))
    } else {
        Err(SchemaError::Unfit(mistakes))
    }
}

/// What is told of an output that does not fit.
pub(super) fn check_output(schema: &Schema, output: &Value) -> Option<Verdict> {
    let mistakes = mistakes(schema, output);
    (!mistakes.is_empty()).then(|| Verdict {
        ending: Ending::ParseError,
        reason: SubTaskReason::InvalidOutput,
        message: format!("the output does not fit output_schema: {}", mistakes.join("; ")),
        exit_code: None,
        output: None,
    })
}

/// What is wrong with a value; that it cannot be checked at all is wrong too.
fn mistakes(schema: &Schema, value: &Value) -> Vec<String> {
    schema
        .validate(value)
        .unwrap_or_else(|error| vec![error.to_string()])
}
