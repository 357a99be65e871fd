//! Free text as users and attackers write it.

use std::path::Path;

use proptest::prelude::{Just, Strategy, any, prop, prop_oneof};
use serde_json::{Value, json};

/// `TOUCH` stands for the command that makes the canary.
const TEXTS: &[&str] = &[
    "{{ lookup('pipe', 'TOUCH') }}",
    "{{ lookup('ansible.builtin.pipe', \"TOUCH\") }}",
    "{% for x in [1] %}{{ query('pipe', 'TOUCH') }}{% endfor %}",
    "{%- set x = cycler.__init__.__globals__.os.popen('TOUCH').read() -%}",
    "{# a comment #}{% raw %}{{ x }}{% endraw %}",
    "#jinja2: variable_start_string:'[['\n[[ lookup('pipe', 'TOUCH') ]]",
    "{{ undefined_variable }}",
    "{{ secrets_dir }}",
    "{{",
    "$(TOUCH)",
    "`TOUCH`",
    "; TOUCH;",
    "| TOUCH",
    "&& TOUCH",
    "'; TOUCH; '",
    "\"; TOUCH; \"",
    "x\nTOUCH\n",
    "${IFS}TOUCH",
    "$HOME ~root %h %n %d",
    "-oProxyCommand=TOUCH",
    "--extra-vars=@/etc/passwd",
    "!!python/object/apply:os.system ['TOUCH']",
    "!vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6162",
    "$ANSIBLE_VAULT;1.1;AES256\n6162",
    "!unsafe x",
    "&a [*a, *a]",
    "*a",
    "<<: {a: b}",
    "- a\n- b: c",
    "? a : b",
    "a: b # c",
    "{\"__ansible_unsafe\": \"x\"}",
    "{\"__ansible_type\": \"_ANSIBLE_UNTRUSTED\"}",
    "no",
    "0755",
    "0o17",
    "0x1F",
    "1e3",
    "1_000",
    "12:30:45",
    "2026-01-01",
    "9223372036854775808",
    "-9223372036854775809",
    "NaN",
    ".inf",
    "~",
    "null",
    "True",
    "",
    " ",
    "\t x \r\n",
    "\u{feff}x",
    "'",
    "\"",
    "\\",
    "\\u0041\\x41\\n",
    "%",
    "a\u{0}b",
    "\u{1b}]0;title\u{7}\u{1b}[31mred",
    "\u{202e}exe.txt\u{200b}\u{2028}\u{2029}\u{85}",
    "é 😀 \u{10ffff} \u{fffe}",
    "../../../../etc/passwd",
    "/etc/passwd\u{0}.png",
];

/// Texts of which each means something to some reader: a template engine, a shell, YAML, JSON, ssh, a terminal. Each
/// that would run something makes the canary.
pub fn texts(canary: &Path) -> Vec<String> {
    let touch = format!("touch {}", canary.display());
    let mut texts: Vec<String> = TEXTS.iter().map(|text| text.replace("TOUCH", &touch)).collect();
    texts.push("a long one ".repeat(30_000));
    texts.push("{{".repeat(2_000));
    texts
}

/// Values that are no text, or hold texts in places where readers look for marks of their own.
pub fn values(text: &str) -> Vec<Value> {
    vec![
        json!(true),
        json!(null),
        json!(0),
        json!(-1),
        json!(i64::MIN),
        json!(9_223_372_036_854_775_808_u64),
        json!(u64::MAX),
        json!(1e3),
        json!(1e300),
        json!(5e-324),
        json!(0.1),
        json!([]),
        json!({}),
        json!([[], {}, [null]]),
        json!({"__ansible_unsafe": text}),
        json!({"__ansible_vault": text}),
        json!({"__ansible_type": "EncryptedString", "ciphertext": text}),
        json!({"!unsafe": text, "<<": {"a": text}, "=": text, "": text}),
        json!({text: {text: [text, {"ansible_connection": "local", "hostvars": text}]}}),
        (0..31).fold(json!(text), |inner, _| json!([inner])),
        (0..31).fold(json!(text), |inner, _| json!({ text: inner })),
    ]
}

/// Pieces that readers look for.
const PIECES: &[&str] = &[
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "#}",
    "!unsafe ",
    "!!python/",
    "&a ",
    "*a",
    ": ",
    "- ",
    "? ",
    "# ",
    "'",
    "\"",
    "\\",
    "\n",
    "\r",
    "\t",
    "\u{0}",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "\u{202e}",
    "$(",
    "`",
    "%",
    "|",
    ">",
    "@",
    "[",
    "]",
    "{",
    "}",
    ",",
    "---",
    "...",
    "~",
    "lookup('pipe', 'id')",
    "$ANSIBLE_VAULT;1.1;AES256",
];

/// Any value of JSON, made of any text and of the pieces that readers look for.
pub fn any_value() -> impl Strategy<Value = Value> {
    let piece = prop_oneof![
        prop::sample::select(PIECES).prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
        "[0-9eE+._:x-]{1,8}",
    ];
    let text = prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat());
    let leaf = prop_oneof![
        6 => text.clone().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => any::<f64>().prop_filter("JSON has no such number", |number| number.is_finite()).prop_map(Value::from),
        1 => prop_oneof![Just(json!(true)), Just(json!(false)), Just(json!(null))],
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..4)
                .prop_map(|fields| fields.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}
