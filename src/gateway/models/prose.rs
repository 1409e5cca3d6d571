//! The text of an answer as it comes: without the model's thoughts, and what of it people may follow; pure.

const THINK: &str = "<think>";
const THOUGHT: &str = "</think>";
/// What a tool call that is written as text begins with.
pub(super) const CALL: &str = "<tool_call>";

/// Text that grows.
#[derive(Debug, Default)]
pub(super) struct Prose {
    /// What is not decided yet.
    open: String,
    /// The text, without thoughts.
    kept: String,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Nothing but white space and thoughts so far.
    #[default]
    Start,
    /// Inside a thought.
    Thinking,
    /// The answer itself.
    Answer,
    /// A tool call that is written as text, and whatever follows it.
    Call,
}

impl Prose {
    /// Takes more text and gives back what of it people may read.
    pub(super) fn push(&mut self, more: &str) -> String {
        self.open.push_str(more);
        let mut shown = String::new();
        while self.step(&mut shown) {}
        shown
    }

    /// Bytes that are kept.
    pub(super) fn len(&self) -> usize {
        self.kept.len()
            + if self.stage == Stage::Thinking {
                0
            } else {
                self.open.len()
            }
    }

    /// The whole text.
    pub(super) fn finish(mut self) -> String {
        if self.stage != Stage::Thinking {
            self.kept.push_str(&self.open);
        }
        without_late_thought(&self.kept).trim().to_owned()
    }

    /// Decides about a part of what is open; false when more text is needed for it.
    fn step(&mut self, shown: &mut String) -> bool {
        match self.stage {
            Stage::Start => self.start(),
            Stage::Thinking => self.think(),
            Stage::Answer => self.answer(shown),
            Stage::Call => {
                self.kept.push_str(&self.open);
                self.open.clear();
                false
            }
        }
    }

    fn start(&mut self) -> bool {
        let text = self.open.trim_start();
        if let Some(rest) = text.strip_prefix(THINK) {
            self.open = rest.to_owned();
            self.stage = Stage::Thinking;
        } else if THINK.starts_with(text) {
            return false;
        } else {
            self.open = text.to_owned();
            self.stage = Stage::Answer;
        }
        true
    }

    fn think(&mut self) -> bool {
        if let Some(end) = self.open.find(THOUGHT) {
            self.open.drain(..end + THOUGHT.len());
            self.stage = Stage::Start;
            return true;
        }
        // Thoughts may be long; only a beginning of their end is of interest.
        let keep = self.open.len() - may_begin(&self.open, THOUGHT);
        self.open.drain(..keep);
        false
    }

    fn answer(&mut self, shown: &mut String) -> bool {
        let call = self.open.find(CALL);
        let end = call.unwrap_or(self.open.len() - may_begin(&self.open, CALL));
        let text = &self.open[..end];
        shown.push_str(text);
        self.kept.push_str(text);
        self.open.drain(..end);
        if call.is_some() {
            self.stage = Stage::Call;
        }
        call.is_some()
    }
}

/// How many bytes at the end of `text` may be the beginning of `mark`.
fn may_begin(text: &str, mark: &str) -> usize {
    let longest = mark.len().min(text.len() + 1);
    (1..longest)
        .rev()
        .find(|size| text.ends_with(&mark[..*size]))
        .unwrap_or(0)
}

/// Where the template has opened the thought, the answer shows only its end, on a line's end.
fn without_late_thought(text: &str) -> &str {
    let Some(end) = text.find(THOUGHT).map(|start| start + THOUGHT.len()) else {
        return text;
    };
    let rest = &text[end..];
    match rest.is_empty() || rest.starts_with(['\n', '\r']) {
        true => rest,
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text and what was shown, for text that comes in pieces of every size.
    fn read(text: &str) -> (String, String) {
        let mut seen = Vec::new();
        for size in 1..=text.len().max(1) {
            let mut prose = Prose::default();
            let mut shown = String::new();
            let mut rest = text;
            while !rest.is_empty() {
                let mut end = size.min(rest.len());
                while !rest.is_char_boundary(end) {
                    end += 1;
                }
                shown.push_str(&prose.push(&rest[..end]));
                rest = &rest[end..];
            }
            seen.push((prose.finish(), shown));
        }
        seen.dedup();
        assert_eq!(seen.len(), 1, "cuts change what is read: {seen:?}");
        seen.remove(0)
    }

    #[test]
    fn thoughts_at_the_beginning_are_dropped_wherever_the_text_is_cut() {
        assert_eq!(read(" <think>hm, ü <b></think>\n\nYes.").0, "Yes.");
        assert_eq!(read("<think>a</think><think>b</think>Yes").0, "Yes");
        assert_eq!(read("<think>never ends").0, "");
        assert_eq!(read("the template opened it\n</think>\nYes").0, "Yes");
    }

    #[test]
    fn an_answer_that_speaks_of_thoughts_is_left_alone() {
        for text in [
            "Write <think>x</think> there",
            "a < b",
            "<thin",
            "use `</think>` here",
        ] {
            assert_eq!(read(text).0, text);
        }
    }

    #[test]
    fn calls_as_text_are_kept_but_not_shown() {
        let (text, shown) = read("Look: <tool_call>{\"name\":\"ls\"}</tool_call>");
        assert_eq!(text, "Look: <tool_call>{\"name\":\"ls\"}</tool_call>");
        assert_eq!(shown, "Look: ");
        assert_eq!(read("a <tool").0, "a <tool");
    }
}
