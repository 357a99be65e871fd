//! The last of what a command says, however much that is: a pipe that nobody reads would hold it up.

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::sanitize::clean;

/// As much as is kept, in bytes.
const KEPT: usize = 16 << 10;
/// As much as a message has of it, in characters.
const SHOWN: usize = 300;

/// The last line of what is said there that is not empty, made fit for a message.
pub(super) async fn last_line(mut output: impl AsyncRead + Unpin) -> String {
    let (mut said, mut piece) = (Vec::new(), vec![0; KEPT]);
    // What was read is shown, whatever ended it.
    while let Ok(length @ 1..) = output.read(&mut piece).await {
        said.extend_from_slice(piece.get(..length).unwrap_or_default());
        let surplus = said.len().saturating_sub(KEPT);
        said.drain(..surplus);
    }
    let said = String::from_utf8_lossy(&said);
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    clean(last.unwrap_or_default(), SHOWN)
}

#[cfg(test)]
mod tests {
    use super::last_line;

    #[tokio::test]
    async fn the_last_line_is_found_behind_whatever_came_before() {
        let long = "x".repeat(100_000);
        let said = format!("first\n{long}\n the \u{1b}last  one \n\n");
        assert_eq!(last_line(said.as_bytes()).await, "the last one");
        assert_eq!(last_line(&b""[..]).await, "");
        assert_eq!(last_line(long.as_bytes()).await.chars().count(), 300);
    }
}
