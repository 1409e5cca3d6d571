//! Makes the end of an attempt fit one frame: a message that does not fit would be said again for ever.

use agentrun_api::SubTaskReason;
use agentrun_core::text::one_line;
use agentrun_protocol::channel::ToGateway;
use agentrun_protocol::frame::{self, FrameError, MAX_FRAME};
use agentrun_protocol::result::{AttemptResult, Ending};
use agentrun_protocol::work::AttemptId;

/// The most characters of each text of a result that is too long.
const MAX_TEXT: usize = 1024;

/// `message`, or of a result as much as one frame holds. What is left out is in the file that was stored before the
/// result is posted.
pub(super) fn fitting(message: ToGateway) -> ToGateway {
    let Some(found) = excess(&message) else {
        return message;
    };
    tracing::error!(found, "the end of an attempt is longer than a message may be");
    let ToGateway::Result { id, result } = message else {
        return message;
    };
    let result = without_lists(*result, found);
    let message = said(&id, result.clone());
    if excess(&message).is_none() {
        return message;
    }
    said(&id, without_output(result))
}

/// The length of the message's frame, if that is too much.
fn excess(message: &ToGateway) -> Option<usize> {
    match frame::encode(message) {
        Err(FrameError::TooLong { found }) => Some(found),
        Ok(_) | Err(FrameError::Malformed(_)) => None,
    }
}

fn said(id: &AttemptId, result: AttemptResult) -> ToGateway {
    ToGateway::Result {
        id: id.clone(),
        result: Box::new(result),
    }
}

/// Criteria without a verdict count as unverified, and the files themselves are where they are.
fn without_lists(result: AttemptResult, found: usize) -> AttemptResult {
    let note = format!(
        "the result takes {found} bytes, at most {MAX_FRAME} are sent; its artifacts and criteria stand in result.json below \
         state alone"
    );
    let separator = if result.message.is_empty() { "" } else { "; " };
    AttemptResult {
        message: format!("{}{separator}{note}", one_line(&result.message, MAX_TEXT)),
        stdout_tail: one_line(&result.stdout_tail, MAX_TEXT),
        stderr_tail: one_line(&result.stderr_tail, MAX_TEXT),
        artifacts: Vec::new(),
        acceptance: Vec::new(),
        ..result
    }
}

/// Whoever waits for the output would wait in vain, so that a success is none.
fn without_output(result: AttemptResult) -> AttemptResult {
    let lost = result.output.is_some() && result.ending == Ending::Success;
    let (ending, reason) = if lost {
        (Ending::Error, SubTaskReason::OutputTooLarge.to_string())
    } else {
        (result.ending, one_line(&result.reason, MAX_TEXT))
    };
    AttemptResult {
        ending,
        reason,
        output: None,
        output_ref: None,
        ..result
    }
}
