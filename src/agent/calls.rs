//! Tool calls: what is made of them, and of their answers.

use crate::Agent;
use crate::arguments::{compact, kept, object};
use crate::entry::Outcome;
use crate::guard::{self, Seen, Verdict};
use crate::skill::{self, Asked};
use crate::state::{Pending, Phase, Reply, Stage};
use crate::step::ActKind;
use crate::text::{clean, shorten};
use crate::tools::{self, Tool};
use crate::{context, delegate, stored, todos};
use agentrun_core::text::one_line;
use agentrun_protocol::agent::{CallPlace, StopReason};
use agentrun_protocol::chat::{Finish, Message, ToolCall};
use agentrun_protocol::tool::ToolName;
use std::fmt::Write as _;

/// Calls of one turn; more are dropped, and the agent is told.
const MAX_CALLS: usize = 64;
/// The longest answer of a tool, and the least that many in a turn may have each.
const MAX_TEXT: usize = 64 * 1024;
const MIN_TEXT: usize = 1_000;
/// Arguments in the conversation.
const MAX_KEPT: usize = 16 * 1024;
/// Arguments of calls that were not made.
const MAX_REFUSED: usize = 500;
/// Bytes of images that one agent may look at (64 MiB); they are in the journal.
const MAX_IMAGES: usize = 64 << 20;

const CUT: &str = "the call was cut off, since your answer reached its length limit; it was not made. Write less at once: \
                   a long file in several calls of write_file, with append.";
const NO_LONGER_SHOWN: &str = "\n[the image is not shown any more]";
const INTERRUPTED: &str = "the call was interrupted by a restart of the sandbox. It may have been done wholly, in part or \
                           not at all: look before you make it again.";

impl Agent {
    /// Takes the calls of a turn.
    pub(crate) fn take_calls(&mut self, text: String, calls: &[ToolCall], finish: Finish) {
        let dropped = calls.len().saturating_sub(MAX_CALLS);
        let calls = &calls[..calls.len() - dropped];
        let mut delegated = 0;
        let mut pending: Vec<Pending> = Vec::new();
        for (number, call) in (0..).zip(calls) {
            let is_last = pending.len() + 1 == calls.len();
            let is_cut = finish == Finish::Length && is_last && dropped == 0;
            pending.push(self.plan(number, call, is_cut, &mut delegated));
        }
        self.state.push(Message::Assistant {
            text,
            tool_calls: pending.iter().map(|pending| pending.call.clone()).collect(),
        });
        self.state.phase = Phase::Acting { pending, dropped };
        self.settle();
    }

    fn plan(&mut self, number: u32, call: &ToolCall, is_cut: bool, delegated: &mut u32) -> Pending {
        let at = CallPlace {
            turn: self.state.turn,
            call: number,
        };
        let tool = Tool::named(&call.name);
        let name = tool.map_or_else(|| one_line(&call.name, 64), |tool| tool.as_str().to_owned());
        let understood = object(&call.arguments);
        let (print, stage) = match &understood {
            Ok(_) if is_cut && call.arguments.trim().is_empty() => (0, Err(CUT.to_owned())),
            Err(_) if is_cut => (0, Err(CUT.to_owned())),
            Err(problem) => {
                let fields = tool
                    .map(|tool| tools::fields(&self.specs, tool))
                    .filter(|fields| !fields.is_empty());
                let fields = fields
                    .map(|fields| format!(". {name} takes: {fields}"))
                    .unwrap_or_default();
                (
                    guard::print(&name, &call.arguments),
                    Err(format!("{problem}{fields}")),
                )
            }
            Ok(arguments) => {
                let text = compact(arguments);
                let mut meant = arguments.clone();
                // For people; a model that repeats itself likes to vary it.
                if tool != Some(Tool::Task) {
                    meant.remove("description");
                }
                let print = guard::print(&name, &compact(&meant));
                (print, self.route(tool, &name, text, at, delegated))
            }
        };
        let stage = match stage {
            Ok(stage) => stage,
            Err(problem) => Stage::Over(Reply::refused(format!("not done: {problem}"))),
        };
        let most = if matches!(&stage, Stage::Over(reply) if reply.refused) {
            MAX_REFUSED
        } else {
            MAX_KEPT.min(self.room(1))
        };
        let arguments = match understood {
            Ok(arguments) => kept(&arguments, most),
            // The conversation has to stay one that every endpoint can read.
            Err(_) => serde_json::json!({ "malformed": shorten(&clean(&call.arguments), most) }).to_string(),
        };
        let call = ToolCall {
            // Unique, and in the form of the endpoint that asks most of it: nine letters and digits.
            id: format!("t{:04}c{number:03}", at.turn),
            name: if name.is_empty() {
                "unnamed".to_owned()
            } else {
                name
            },
            arguments,
        };
        Pending {
            at,
            call,
            print,
            stage,
        }
    }

    fn route(
        &mut self,
        tool: Option<Tool>,
        name: &str,
        arguments: String,
        at: CallPlace,
        delegated: &mut u32,
    ) -> Result<Stage, String> {
        let held = tools::held(&self.setup);
        let Some(tool) = tool.filter(|tool| held.contains(tool)) else {
            return Err(format!(
                "there is no tool {name:?}; you have: {}",
                tools::names(&held)
            ));
        };
        let allowed = tools::allowed(&self.setup, self.state.followed.as_deref());
        if !allowed.contains(&tool) {
            let skill = self.state.followed.as_deref().unwrap_or_default();
            return Err(format!(
                "the skill {skill} that you follow allows only: {}. Call skill with {{\"done\": true}} when you are \
                 through with it",
                tools::names(&allowed)
            ));
        }
        match tool {
            Tool::Sandbox(ToolName::ReadFile) => match stored::read(&self.state, &arguments) {
                Some(Ok(kind)) => Ok(Stage::Waits(kind)),
                Some(Err(reply)) => Ok(Stage::Over(reply)),
                None => Ok(Stage::Waits(ActKind::Tool {
                    tool: ToolName::ReadFile,
                    arguments,
                })),
            },
            Tool::Sandbox(tool) => Ok(Stage::Waits(ActKind::Tool { tool, arguments })),
            Tool::Todos => {
                self.state.todos = todos::parse(&arguments)?;
                Ok(Stage::Over(Reply::told("the list is kept".to_owned())))
            }
            Tool::Skill => match skill::parse(&arguments, &self.setup.terms.skills)? {
                Asked::Load { name, path } => Ok(Stage::Waits(ActKind::LoadSkill { name, path })),
                Asked::Done => {
                    self.state.followed = None;
                    let names = tools::names(&held);
                    Ok(Stage::Over(Reply::told(format!(
                        "you have all your tools again: {names}"
                    ))))
                }
            },
            Tool::Task => self.delegate(&arguments, at, delegated),
        }
    }

    /// Surplus is cut and told, never queued.
    fn delegate(&mut self, arguments: &str, at: CallPlace, delegated: &mut u32) -> Result<Stage, String> {
        let Some(terms) = &self.setup.terms.delegation else {
            return Err("you may not delegate".to_owned());
        };
        let (delegation, context) = delegate::parse(arguments, at, terms)?;
        if self.state.delegations >= terms.max_per_run {
            return Err(format!(
                "all {} delegations of this run are used up. Finish with what you have",
                terms.max_per_run
            ));
        }
        if *delegated >= terms.max_per_turn {
            return Err(format!(
                "at most {} delegations in one turn. Ask again in a later turn if it is still needed",
                terms.max_per_turn
            ));
        }
        *delegated += 1;
        self.state.delegations += 1;
        Ok(Stage::Waits(ActKind::Delegate { delegation, context }))
    }

    /// Takes what came of an act; what nobody waits for is nothing.
    pub(crate) fn take_outcome(&mut self, at: CallPlace, outcome: Outcome) {
        let Phase::Acting { pending, .. } = &self.state.phase else {
            return;
        };
        let calls = pending.len();
        let is_waiting = |call: &Pending| call.at == at && matches!(call.stage, Stage::Waits(_));
        let Some(index) = pending.iter().position(is_waiting) else {
            return;
        };
        let arguments = pending[index].call.arguments.clone();
        let Stage::Waits(kind) = pending[index].stage.clone() else {
            return;
        };
        let stage = self.reply(&kind, outcome, &arguments, calls);
        if let Phase::Acting { pending, .. } = &mut self.state.phase {
            pending[index].stage = stage;
        }
        self.settle();
    }

    fn reply(&mut self, kind: &ActKind, outcome: Outcome, arguments: &str, calls: usize) -> Stage {
        let most = MAX_TEXT.min(self.room(3) / calls.max(1)).max(MIN_TEXT);
        let fit = |text: &str| shorten(&clean(text), most);
        Stage::Over(match outcome {
            Outcome::Tool { text, images } => {
                let size = context::size(&images);
                let mut reply = Reply::told(fit(&text));
                if images.is_empty() {
                    return Stage::Over(reply);
                }
                if self.shown_in_turn() + size > context::MAX_IMAGES {
                    reply.text = format!(
                        "not shown: the images of one turn have at most {} MiB together; look at it in a turn of its own",
                        context::MAX_IMAGES >> 20
                    );
                    return Stage::Over(reply);
                }
                if self.state.image_bytes + size > MAX_IMAGES {
                    reply.text = format!(
                        "not shown: you have looked at {} MiB of images, the most there may be",
                        MAX_IMAGES >> 20
                    );
                    return Stage::Over(reply);
                }
                self.state.image_bytes += size;
                reply.images = images;
                reply
            }
            Outcome::File { text: Err(problem) } => Reply::refused(fit(&problem)),
            Outcome::File { text: Ok(text) } => match kind {
                ActKind::LoadSkill { name, path } => self.loaded(name, path, &fit(&text)),
                _ => Reply::told(fit(&stored::window(&delegate::text_of_stored(&text), arguments))),
            },
            Outcome::Delegate { state, stored } => {
                return delegate::answer(&mut self.state, &state, stored.as_deref());
            }
        })
    }

    /// Bytes of the images that this turn's calls show.
    fn shown_in_turn(&self) -> usize {
        let Phase::Acting { pending, .. } = &self.state.phase else {
            return 0;
        };
        let shown = pending.iter().map(|call| match &call.stage {
            Stage::Over(reply) => context::size(&reply.images),
            _ => 0,
        });
        shown.sum()
    }

    fn loaded(&mut self, name: &str, path: &str, text: &str) -> Reply {
        if path != skill::MAIN {
            return Reply::told(text.to_owned());
        }
        let card = self.setup.terms.skills.iter().find(|card| card.name == name);
        let narrows = card.is_some_and(|card| card.allowed_tools.is_some());
        self.state.followed = narrows.then(|| name.to_owned());
        let mut reply = format!("The skill {name}; its files lie below /mnt/skills/{name}.\n");
        if narrows {
            let allowed = tools::allowed(&self.setup, Some(name));
            let _ = writeln!(reply, "While you follow it you have: {}.", tools::names(&allowed));
        }
        Reply::told(format!("{reply}\n{text}"))
    }

    /// A restart: what may have been done in part is not done again.
    pub(crate) fn interrupt(&mut self) {
        let Phase::Acting { pending, .. } = &mut self.state.phase else {
            return;
        };
        for call in pending.iter_mut() {
            if matches!(&call.stage, Stage::Waits(kind) if !may_be_repeated(kind)) {
                call.stage = Stage::Over(Reply::told(INTERRUPTED.to_owned()));
            }
        }
        self.settle();
    }

    /// When all calls are answered, the model has its turn again.
    pub(crate) fn settle(&mut self) {
        let Phase::Acting { pending, dropped } = &self.state.phase else {
            return;
        };
        if pending
            .iter()
            .any(|pending| !matches!(pending.stage, Stage::Over(_)))
        {
            return;
        }
        let (pending, dropped) = (pending.clone(), *dropped);
        self.state.phase = Phase::Turn;
        let seen = pending.iter().filter_map(|pending| match &pending.stage {
            Stage::Over(reply) => Some(Seen {
                call: pending.print,
                answer: &reply.text,
                refused: reply.refused,
            }),
            _ => None,
        });
        let verdict = self.state.guard.observe(seen);
        for pending in pending {
            if let Stage::Over(reply) = pending.stage {
                self.state.push(Message::Tool {
                    id: pending.call.id,
                    name: pending.call.name,
                    text: reply.text,
                    images: reply.images,
                });
            }
        }
        self.state.forget_images(context::MAX_IMAGES, NO_LONGER_SHOWN);
        if dropped > 0 {
            self.state.advise(&format!(
                "{dropped} more calls of your last turn were dropped: at most {MAX_CALLS} calls in one turn."
            ));
        }
        match verdict {
            Verdict::Fine => {}
            Verdict::Told(advice) => self.state.advise(advice),
            Verdict::Stopped => self.stop(StopReason::LoopCapped),
        }
        self.before_turn();
    }
}

/// Whether an act that was perhaps done may be done again.
fn may_be_repeated(kind: &ActKind) -> bool {
    match kind {
        ActKind::Delegate { .. } | ActKind::LoadSkill { .. } | ActKind::ReadStored { .. } => true,
        ActKind::Tool { tool, arguments } => match tool {
            ToolName::Bash | ToolName::StrReplace => false,
            // Writing the same once more changes nothing; appending does.
            ToolName::WriteFile => object(arguments).is_ok_and(|fields| {
                !fields
                    .get("append")
                    .is_some_and(|append| *append != serde_json::Value::Bool(false))
            }),
            _ => true,
        },
    }
}
