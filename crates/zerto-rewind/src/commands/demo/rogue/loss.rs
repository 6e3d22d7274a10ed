//! A change that the rogue has made, and where what was lost is pinned.
use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};

use super::{evidence, obeyed};
use crate::commands::demo::{
    Stopped, agent::Agent, guest_ops::Order, narrator::fact, stage::Stage,
};

pub struct Loss {
    pub order: Order,
    /// What the file was.
    pub original: Vec<u8>,
    /// The first pin.
    pub vpg: String,
    pub checkpoint: String,
    receipt: Value,
}

impl Loss {
    /// Lets the rogue make a change, and sees that it was made and pinned on these VPGs.
    pub async fn suffer(
        stage: &Stage,
        rogue: &Agent,
        order: Order,
        vpgs: &[&str],
    ) -> Result<Self, Stopped> {
        let (vm, path) = order.file();
        let original = fs::read(stage.guest_path(vm, path)?)?;
        let answer = obeyed(rogue, &order).await?;
        let receipt = answer
            .receipt()
            .and_then(|receipt| receipt.pointer("/receipts/0"))
            .ok_or_else(|| Stopped::Broken(format!("no receipt came with: {}", answer.words)))?;
        let text = |pointer: &str| text(receipt, pointer);
        let pins = receipt.get("pins").and_then(Value::as_array);
        let mut pinned = BTreeSet::new();
        for pin in pins.into_iter().flatten() {
            let (vpg, checkpoint) = (self::text(pin, "/vpg")?, self::text(pin, "/checkpoint")?);
            let seconds = pin.get("seconds").and_then(Value::as_f64);
            fact(
                "pinned",
                &format!(
                    "VPG {vpg}, checkpoint {checkpoint}, listed after {:.1} s",
                    seconds.unwrap_or_default()
                ),
            );
            pinned.insert(vpg);
        }
        if pinned != vpgs.iter().copied().collect()
            || Some(text("/action")?) != evidence::action(&order).as_deref()
        {
            return Err(Stopped::Broken(format!(
                "the receipt is for something else: {receipt}"
            )));
        }
        fact("tag", text("/tag")?);
        let loss = Self {
            vpg: text("/pins/0/vpg")?.to_owned(),
            checkpoint: text("/pins/0/checkpoint")?.to_owned(),
            receipt: receipt.clone(),
            original,
            order,
        };
        loss.still_made(stage)?;
        fact("answer", &answer.words);
        Ok(loss)
    }

    /// What of the receipt a person wants to see.
    pub fn receipt_shown(&self) -> String {
        let of = |name: &str| self.receipt.get(name).cloned().unwrap_or_default();
        let pins = json!([{ "vpg": self.vpg, "checkpoint": self.checkpoint }]);
        let lines = [
            ("vm", of("vm")),
            ("agent", of("agent")),
            ("action", of("action")),
            ("change_id", of("change_id")),
            ("pins", pins),
        ];
        let lines = lines.map(|(name, value)| format!("  \"{name}\": {value}"));
        format!(
            "\"{}\":\n{}\n  …",
            rewind_mcp::proxy::RECEIPT_KEY,
            lines.join("\n")
        )
    }

    /// Sees that the guest is as the change has left it.
    pub fn still_made(&self, stage: &Stage) -> Result<(), Stopped> {
        let (vm, path) = self.order.file();
        let file = stage.guest_path(vm, path)?;
        let made = match &self.order {
            Order::Read { .. } => true,
            Order::Write { content, .. } => fs::read(file)? == content.as_bytes(),
            Order::Move { to, .. } => {
                !file.try_exists()? && fs::read(stage.guest_path(vm, to)?)? == self.original
            }
            Order::Delete { .. } => !file.try_exists()?,
        };
        if !made {
            return Err(Stopped::Broken(format!(
                "{path} on {vm} is not as the agent has left it"
            )));
        }
        Ok(())
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> Result<&'a str, Stopped> {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .ok_or_else(|| Stopped::Broken(format!("the receipt has no {pointer}: {value}")))
}
