//! An answer that has to be JSON.

use crate::arguments::unfenced;
use crate::step::Answer;
use agentrun_core::schema::Schema;
use agentrun_core::text::one_line;
use serde_json::Value;

/// Understands an answer, or says what is wrong with it. A code fence around the document is taken off.
pub(crate) fn read(schema: &Value, answer: &str) -> Result<Answer, String> {
    let whole = answer.trim();
    let (text, value) = match serde_json::from_str::<Value>(whole) {
        Ok(value) => (whole, value),
        Err(error) => {
            let inner = unfenced(whole);
            let value = serde_json::from_str(inner).map_err(|_| {
                format!(
                    "it is no JSON document: {error}; it begins with {}",
                    one_line(whole, 80)
                )
            })?;
            (inner, value)
        }
    };
    let compiled = Schema::compile(schema).map_err(|error| error.to_string())?;
    let mistakes = compiled.validate(&value).map_err(|error| error.to_string())?;
    if !mistakes.is_empty() {
        return Err(mistakes.join("; "));
    }
    Ok(Answer::Json {
        text: text.to_owned(),
        value,
    })
}
