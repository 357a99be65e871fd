//! What others say, made fit for a message: storages, members and certificates are not ours.

use std::error::Error;

/// The most characters that are repeated of what came back.
const MAX: usize = 300;

/// One line of at most 300 characters, without control characters.
pub fn sanitize(text: &str) -> String {
    let mut line = String::new();
    for word in text.split(|c: char| c.is_control() || c.is_whitespace()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    match line.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

/// The text of an error and of its causes, each once: many libraries repeat the cause in the text.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    sanitize(&text)
}

/// The first error of a type among an error and its causes; also one that an `io::Error` wraps, which is no cause of
/// it.
pub fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if let Some(found) = wrapped.and_then(|inner| find::<E>(inner)) {
            return Some(found);
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn what_came_back_is_one_short_line() {
        assert_eq!(sanitize("a\r\n\u{1b}[31m  b\0"), "a [31m b");
        let long = sanitize(&"ä ".repeat(400));
        assert!(long.ends_with("...") && long.chars().count() == MAX + 3, "{long}");
    }

    #[test]
    fn an_error_inside_an_io_error_is_found() {
        let inner = rustls::Error::General("x".to_owned());
        let error = io::Error::other(io::Error::other(inner));
        assert!(find::<rustls::Error>(&error).is_some());
        assert!(find::<serde_json::Error>(&error).is_none());
    }
}
