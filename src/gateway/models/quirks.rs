//! What an endpoint turned out not to know; pure.

/// Something that not every endpoint takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quirk {
    /// `stream_options` is refused: usage comes unasked or not at all.
    StreamOptions,
    /// `response_format` is refused: the agent checks the answer anyway.
    ResponseFormat,
    /// `max_tokens` is refused: it is called `max_completion_tokens` there.
    MaxTokens,
}

/// The quirks of one endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Quirks(u8);

impl Quirks {
    /// Whether it has this one.
    pub(super) fn has(self, quirk: Quirk) -> bool {
        self.0 & bit(quirk) != 0
    }

    /// Adds one; false if it was known.
    pub(super) fn learn(&mut self, quirk: Quirk) -> bool {
        let new = !self.has(quirk);
        self.0 |= bit(quirk);
        new
    }
}

fn bit(quirk: Quirk) -> u8 {
    1 << quirk as u8
}
