//! What a person is told of recoveries and restores whose process died: each once, with what is known of it.
use crate::{
    plan::{Effect, Plan},
    state::{GuestWrite, InterruptedPlan},
    text,
};

/// One warning.
pub(super) enum Told {
    /// Of a file that was being written in a guest. Whoever reaches that guest knows more.
    OfRestore {
        id: String,
        text: String,
    },
    Of(String),
}

/// `open` are the files that were being written in guests when their process died.
pub(super) fn restores_and_recoveries(
    plans: Vec<InterruptedPlan>,
    mut open: Vec<GuestWrite>,
) -> Vec<Told> {
    let mut told = Vec::new();
    for plan in plans {
        let (guests, writes) = in_guest(&plan);
        let (unsettled, settled): (Vec<_>, Vec<_>) = writes
            .into_iter()
            .partition(|write| write.outcome.is_none());
        open.retain(|write| unsettled.iter().all(|known| known.name != write.name));
        if !unsettled.is_empty() {
            let of_plan = format!(" (plan {})", plan.name);
            told.extend(unsettled.iter().map(|write| being_written(write, &of_plan)));
        } else if settled.iter().any(was_interrupted) {
            // Whoever has reached the guest since has told it.
        } else {
            told.push(Told::Of(match guests {
                0 => placing(&plan.name),
                files => between(&plan.name, files, settled.len()),
            }));
        }
    }
    told.extend(open.iter().map(|write| being_written(write, "")));
    told
}

/// How many files the plan was to write in the guest, and those that were begun.
fn in_guest(plan: &InterruptedPlan) -> (usize, Vec<GuestWrite>) {
    let Ok(read) = serde_json::from_str::<Plan>(&plan.body) else {
        return (0, Vec::new());
    };
    let targets: Vec<&str> = read
        .effects()
        .iter()
        .filter_map(|effect| match effect {
            Effect::Write { in_guest, .. } => Some(in_guest.to.as_str()),
            Effect::Place { .. } | Effect::Omit { .. } => None,
        })
        .collect();
    let of_plan = |write: &&GuestWrite| targets.contains(&write.target.as_str());
    let writes = plan.writes.iter().filter(of_plan).cloned().collect();
    (targets.len(), writes)
}

fn was_interrupted(write: &GuestWrite) -> bool {
    write.why.as_deref() == Some(crate::guest::INTERRUPTED)
}

fn placing(plan: &str) -> String {
    format!(
        "a recovery was interrupted: plan {plan} was begun, and its process ended before it was done. What it had placed is complete; what \
         was not complete is removed"
    )
}

/// No file was being written at that moment.
fn between(plan: &str, files: usize, begun: usize) -> String {
    let what = match (begun, files) {
        (0, _) => "before anything was written in the guest: nothing is changed there".to_owned(),
        (begun, files) => format!(
            "before it was done. {begun} of {files} files had been dealt with in the guest and are whole; of the others nothing was begun"
        ),
    };
    format!(
        "a restore was interrupted: plan {plan} was begun, and its process ended {what}. What it had downloaded to this host is removed"
    )
}

fn being_written(write: &GuestWrite, of_plan: &str) -> Told {
    let text = format!(
        "a restore was interrupted{of_plan}: its process ended while it was writing {} in the guest of {} (restore {}). The file there is the \
         old one or the new one, never a half. What is left beside it is removed when that guest is reached the next time: by a comparison, \
         another restore, or `zerto-rewind undo-restore {}`",
        text::named_exactly(&write.target, 500),
        text::named(&write.vm, 200),
        write.name,
        write.name
    );
    Told::OfRestore {
        id: write.name.clone(),
        text,
    }
}
