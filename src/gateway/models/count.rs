//! What a call used: the endpoint's figures, or ours where it tells none; and what that costs.

use super::reader::Reply;
use agentrun_api::Price;
use agentrun_core::agents::money;
use agentrun_protocol::chat::{Message, ModelRequest, TokenUsage};

/// Tokens that every message has besides its text, and every answer begins with.
const PER_MESSAGE: usize = 4;
/// Tokens of an image, as models of the size of today count one of about a megapixel.
const PER_IMAGE: usize = 1_000;
/// Tokens that a price is for.
const PRICED: u128 = 1_000_000;

/// Counts a call whose endpoint tells no figures, with the tokenizer of the newer models of OpenAI (o200k): other
/// tokenizers differ by some percent. Takes milliseconds for long texts.
pub(super) fn estimate(request: &ModelRequest, reply: &Reply) -> TokenUsage {
    let tokenizer = bpe_openai::o200k_base();
    let count = |text: &str| tokenizer.count(text);
    let input: usize = request
        .messages
        .iter()
        .map(|message| of_message(message, &count))
        .sum();
    let tools = request.tools.iter().map(|tool| {
        count(&tool.name) + count(&tool.description) + count(&tool.parameters.to_string()) + PER_MESSAGE
    });
    let calls = reply.tool_calls.iter();
    let calls = calls.map(|call| count(&call.name) + count(&call.arguments) + PER_MESSAGE);
    TokenUsage {
        input: figure(input + tools.sum::<usize>()),
        output: figure(count(&reply.text) + calls.sum::<usize>()),
        cached_input: 0,
        estimated: true,
    }
}

fn of_message(message: &Message, count: &impl Fn(&str) -> usize) -> usize {
    PER_MESSAGE
        + match message {
            Message::System { text } => count(text),
            Message::User { text, images } | Message::Tool { text, images, .. } => {
                count(text) + images.len() * PER_IMAGE
            }
            Message::Assistant { text, tool_calls } => {
                let calls = tool_calls.iter();
                count(text)
                    + calls
                        .map(|call| count(&call.name) + count(&call.arguments) + PER_MESSAGE)
                        .sum::<usize>()
            }
        }
}

fn figure(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// What a call costs in millionths of the currency, rounded up.
pub(super) fn cost(price: Option<&Price>, usage: TokenUsage) -> u64 {
    let Some(price) = price else { return 0 };
    let per_million = |decimal: &str| u128::from(money::parse(decimal).unwrap_or(0));
    let input = per_million(&price.input);
    let cached = price.cached_input.as_deref().map_or(input, per_million);
    let fresh = usage.input.saturating_sub(usage.cached_input);
    let all = u128::from(fresh) * input
        + u128::from(usage.cached_input) * cached
        + u128::from(usage.output) * per_million(&price.output);
    u64::try_from(all.div_ceil(PRICED)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentrun_protocol::chat::{Finish, Role, ToolCall};

    #[test]
    fn a_call_without_figures_is_counted_as_the_tokenizer_does() {
        let request = ModelRequest {
            role: Role::Lead,
            model: None,
            messages: vec![Message::User {
                text: "hello world".into(),
                images: Vec::new(),
            }],
            tools: Vec::new(),
            output_schema: None,
        };
        let reply = Reply {
            text: "hello world, hello world".into(),
            tool_calls: vec![ToolCall {
                id: "a".into(),
                name: "ls".into(),
                arguments: "{}".into(),
            }],
            finish: Finish::Stop,
            usage: None,
        };
        let usage = estimate(&request, &reply);
        assert_eq!((usage.input, usage.estimated), (2 + 4, true));
        assert_eq!(usage.output, 5 + 1 + 1 + 4);
    }

    #[test]
    fn a_megabyte_of_one_letter_is_counted_in_no_time() {
        let began = std::time::Instant::now();
        let counted = bpe_openai::o200k_base().count("a".repeat(1 << 20).as_str());
        assert!(counted > 1000);
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }

    #[test]
    fn costs_are_exact_and_rounded_up_once() {
        let price = |input: &str, output: &str, cached: Option<&str>| Price {
            input: input.into(),
            output: output.into(),
            cached_input: cached.map(Into::into),
            currency: None,
        };
        let usage = TokenUsage {
            input: 1000,
            output: 500,
            cached_input: 400,
            estimated: false,
        };
        // 600 × 2.5 + 400 × 0.25 + 500 × 10 millionths.
        assert_eq!(
            cost(Some(&price("2.50", "10", Some("0.25"))), usage),
            1500 + 100 + 5000
        );
        assert_eq!(cost(Some(&price("2.50", "10", None)), usage), 2500 + 5000);
        assert_eq!(cost(Some(&price("0.000001", "0", None)), usage), 1);
        assert_eq!(cost(None, usage), 0);
    }
}
