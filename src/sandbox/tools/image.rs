//! `view_image`.

use super::arguments::ViewImage;
use super::files::{locate, open};
use super::media::media_type;
use super::{Answer, Result, ToolError};
use crate::resolve::Roots;
use agentrun_protocol::Blob;
use agentrun_protocol::tool::Facts;

/// The largest file (3 MiB): providers take 5 MB of base64.
const MAX_BYTES: u64 = 3 << 20;
/// The longest side in pixels, as providers take it.
const MAX_SIDE: u64 = 8_000;
const TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

pub(super) fn run(arguments: &ViewImage, roots: &Roots) -> Result<Answer> {
    let opened = open(roots, locate(&arguments.path)?)?;
    let path = opened.location.to_string();
    let data = opened.whole(
        MAX_BYTES,
        "make a smaller copy with bash, for example with Pillow",
    )?;
    let not_shown = |problem: String| ToolError::NotShown {
        path: path.clone(),
        problem,
        most: MAX_SIDE,
    };
    let media_type = media_type(&path, &data[..data.len().min(super::media::HEAD)]);
    if !TYPES.contains(&media_type) {
        return Err(not_shown(format!("it is {media_type}")));
    }
    let size =
        imagesize::blob_size(&data).map_err(|error| not_shown(format!("its header is damaged ({error})")))?;
    let (width, height) = (size.width as u64, size.height as u64);
    let sides = 1..=MAX_SIDE;
    if !sides.contains(&width) || !sides.contains(&height) {
        return Err(not_shown(format!("it has {width} \u{d7} {height} pixels")));
    }
    let text = format!(
        "{path}: {media_type}, {width} \u{d7} {height} pixels, {} bytes",
        data.len()
    );
    let facts = Facts::Image {
        path,
        media_type: media_type.to_owned(),
        width,
        height,
        data: Blob(data),
    };
    Ok(Answer::new(text, facts))
}
