//! A server's answer gets a receipt, and every other byte of it stays.
use rewind_mcp::proxy::{Head, with_meta};
use serde_json::{Value, json};

use crate::driver::Target;

const TARGET: Target = Target {
    name: "proxy_receipt",
    words: &[
        "\"result\":",
        "\"_meta\":",
        "\"k/r\":",
        "\"k\\/r\":",
        "{}",
        "null",
        "[]",
        "{",
        "}",
        ",",
        "\"a\":1.50e+1",
        "\\ud800",
        " ",
        "\"id\":1",
        "\"RESULT\":",
        "9007199254740993",
    ],
    memory: (256 << 10, 64),
};

#[test]
fn a_receipt_changes_nothing_else() {
    TARGET.run(|message| {
        let Ok(head) = Head::read(message) else {
            return 0;
        };
        let Some(result) = head.result else { return 1 };
        let Some(changed) = with_meta(message, result, "k/r", "[1]") else {
            return 2;
        };
        // One piece was put in, or took the place of another one.
        let same =
            |one: &mut dyn Iterator<Item = (&u8, &u8)>| one.take_while(|(a, b)| a == b).count();
        let start = same(&mut message.iter().zip(&changed));
        let end = same(&mut message.iter().rev().zip(changed.iter().rev()));
        let end = end.min(message.len() - start).min(changed.len() - start);
        let piece = &changed[start..changed.len() - end];
        let old = message.len() - start - end;
        assert!(
            piece.len() <= "\"_meta\":{\"k/r\":[1]},".len() || old > 0,
            "{}",
            String::from_utf8_lossy(&changed)
        );
        let read = Head::read(&changed)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&changed)));
        if let (Ok(mut before), Ok(after)) = (
            serde_json::from_str::<Value>(result.get()),
            serde_json::from_str::<Value>(read.result.unwrap().get()),
        ) {
            if before["_meta"].is_null() {
                before["_meta"] = json!({});
            }
            before["_meta"]["k/r"] = json!([1]);
            assert_eq!(before, after);
        }
        3 + usize::from(old > 0)
    });
}
