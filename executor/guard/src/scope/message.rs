//! The one message that is sent to systemd, as D-Bus writes it: little-endian, each value at a multiple of its size.

/// The type of an answer.
pub const RETURN: u8 = 2;
/// The type of a refusal.
pub const ERROR: u8 = 3;

/// How long systemd waits for a scope's processes when the machine goes down.
const STOP_MICROSECONDS: u64 = 10_000_000;

/// `StartTransientUnit` of a scope that holds this process.
pub fn start_scope(name: &str, pid: u32) -> Vec<u8> {
    let mut body = Writer::default();
    body.text(name);
    body.text("fail"); // if there is one already
    body.array(8, |properties| {
        properties.property("Description", "s", |value| value.text("A command of Clusterwright"));
        properties.property("Slice", "s", |value| value.text("clusterwright.slice"));
        properties.property("CollectMode", "s", |value| value.text("inactive-or-failed"));
        properties.property("TimeoutStopUSec", "t", |value| value.long(STOP_MICROSECONDS));
        properties.property("PIDs", "au", |value| value.array(4, |pids| pids.word(pid)));
    });
    body.array(8, |_| ()); // no further units

    let mut message = Writer::default();
    message.0.extend([b'l', 1, 0, 1]); // little-endian, a call, no flags, version 1
    message.word(u32::try_from(body.0.len()).unwrap_or(u32::MAX));
    message.word(1); // its serial number
    message.array(8, |fields| {
        fields.field(1, "o", |value| value.text("/org/freedesktop/systemd1"));
        fields.field(2, "s", |value| value.text("org.freedesktop.systemd1.Manager"));
        fields.field(3, "s", |value| value.text("StartTransientUnit"));
        fields.field(6, "s", |value| value.text("org.freedesktop.systemd1"));
        fields.field(8, "g", |value| value.signature("ssa(sv)a(sa(sv))"));
    });
    message.align(8);
    message.0.extend(body.0);
    message.0
}

/// The message's type, by its first 16 bytes.
pub fn kind(head: &[u8; 16]) -> u8 {
    head[1]
}

/// How much follows its first 16 bytes; nothing if it is in another byte order than ours.
pub fn rest_of(head: &[u8; 16]) -> Option<usize> {
    let word = |at: usize| -> Option<usize> {
        let bytes = head.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    (head[0] == b'l').then_some(())?;
    word(12)?.checked_next_multiple_of(8)?.checked_add(word(4)?)
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }

    fn word(&mut self, value: u32) {
        self.align(4);
        self.0.extend(value.to_le_bytes());
    }

    fn long(&mut self, value: u64) {
        self.align(8);
        self.0.extend(value.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.word(u32::try_from(text.len()).unwrap_or(u32::MAX));
        self.0.extend(text.as_bytes());
        self.0.push(0);
    }

    fn signature(&mut self, text: &str) {
        self.0.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
        self.0.extend(text.as_bytes());
        self.0.push(0);
    }

    /// An array says its length without the padding before its first element.
    fn array(&mut self, align: usize, elements: impl FnOnce(&mut Self)) {
        self.word(0);
        let at = self.0.len();
        self.align(align);
        let begin = self.0.len();
        elements(self);
        let length = u32::try_from(self.0.len() - begin).unwrap_or(u32::MAX);
        self.0[at - 4..at].copy_from_slice(&length.to_le_bytes());
    }

    fn property(&mut self, name: &str, signature: &str, value: impl FnOnce(&mut Self)) {
        self.align(8);
        self.text(name);
        self.signature(signature);
        value(self);
    }

    fn field(&mut self, code: u8, signature: &str, value: impl FnOnce(&mut Self)) {
        self.align(8);
        self.0.push(code);
        self.signature(signature);
        value(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_says_how_long_it_is() {
        let message = start_scope("clusterwright-3-41-7.scope", 7);
        let head: [u8; 16] = message[..16].try_into().unwrap();
        assert_eq!(kind(&head), 1);
        assert_eq!(rest_of(&head), Some(message.len() - 16));
    }

    #[test]
    fn every_value_stands_where_its_size_wants_it() {
        let mut writer = Writer::default();
        writer.property("PIDs", "au", |value| value.array(4, |pids| pids.word(7)));
        let expected = b"\x04\0\0\0PIDs\0\x02au\0\0\0\0\x04\0\0\0\x07\0\0\0";
        assert_eq!(writer.0, expected);
        writer.long(9);
        assert_eq!(writer.0.len(), 32);
    }

    #[test]
    fn a_message_of_another_byte_order_is_not_read() {
        let mut head = [0; 16];
        head[0] = b'B';
        assert_eq!(rest_of(&head), None);
    }
}
