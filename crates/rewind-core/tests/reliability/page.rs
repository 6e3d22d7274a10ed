//! `docs/reliability.md`, made from the rows.
use crate::row::{Case, Expected, Left, Line, Operation, Outcome, Section, Table};
use std::{fs, path::Path};

const INTRO: &str = "\
# Reliability

What a guard and a recovery do when the network, the ZVM or the VPG fails them: every fault at every step. Each line is played by a
test against the simulated ZVM, with the default settings and in simulated time, and this page is written by it, so that it says what the
program does: `UPDATE_DOCS=1 cargo test --workspace --test reliability`.

A cell says what the user gets (`done`, or the code of the [error](errors.md)), and within which time. *Once* is a fault that
the first try meets and the next does not; *while it lasts* is one that goes on until the operation ends. Times are bounds, not measurements; the\ntest allows 5 s and a tenth more, since what a busy machine does meanwhile passes for simulated time.

These hold in every line, and the test looks whether they do:

- **Done is true.** A receipt's tag is in the VPG's journal, at the checkpoint that the receipt names. A recovered file has the bytes that the guest
  had, and nothing else is in its folder.
- **An error is true.** What it says was inserted, mounted or unmounted is so; what is not known is called so. Nothing is under the file's final name, and no
  temporary file stays.
- **Nothing is inserted twice without need.** A tag is sent again only after the journal was looked at, and no two checkpoints have it.
- **No session stays open that could be closed.** One that could not is told, is known to the state, and the next command unmounts it.
- **When the fault is over, it is over.** The next guard, by another process, gets its receipt.

## The faults

| fault | what happens |
|---|---|
| connection refused | nothing listens; while it lasts, for everything that follows |
| connection reset | before the request has arrived; while it lasts, every later connection too |
| black hole | packets vanish: no answer, no reset; while it lasts, on every later connection too |
| slow drip | the answer's body comes at a byte every five seconds |
| cut in the body | the request is carried out, and the answer breaks off in its middle |
| 401 … 503 | this answer, and the request is not carried out |
| token revoked | right before the step: every token and every login session |
| ZVM restarted | right before the step: tasks, sessions and tokens are forgotten; journals are not |
";

pub fn check(sections: &[Section]) {
    let page = page(sections);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reliability.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &page).unwrap();
    }
    let found = fs::read_to_string(&file)
        .unwrap_or_default()
        .replace("\r\n", "\n");
    assert_eq!(
        found, page,
        "run with UPDATE_DOCS=1 to write docs/reliability.md anew"
    );
}

fn page(sections: &[Section]) -> String {
    let mut page = INTRO.to_owned();
    for section in sections {
        page.push_str(match section.operation {
            Operation::Guard => "\n## A guard\n",
            Operation::Recovery => "\n## A recovery\n",
        });
        for table in &section.tables {
            add_table(&mut page, table);
        }
        page.push_str("\n### What the ZVM does\n");
        page.push_str("\n| what happens | the user gets |\n|---|---|\n");
        for Case { name, expected, .. } in &section.cases {
            page.push_str(&format!("| {name} | {} |\n", cell(*expected)));
        }
    }
    page
}

fn add_table(page: &mut String, table: &Table) {
    let steps: Vec<_> = table.steps.iter().map(|step| step.name).collect();
    page.push_str(&format!("\n### To {}\n\n", steps.join(", to ")));
    page.push_str(table.about);
    page.push_str("\n\n| fault | once | while it lasts |\n|---|---|---|\n");
    let cells = |line: &Line| (cell(line.once), line.lasting.map(cell));
    for alike in table.lines.chunk_by(|a, b| cells(a) == cells(b)) {
        let names: Vec<_> = alike.iter().map(|line| line.fault.name()).collect();
        let (once, lasting) = cells(&alike[0]);
        let lasting = lasting.unwrap_or_default();
        page.push_str(&format!("| {} | {once} | {lasting} |\n", names.join("; ")));
    }
}

fn cell(expected: Expected) -> String {
    let outcome = match expected.outcome {
        Outcome::Done | Outcome::StillOpen => "done".to_owned(),
        Outcome::Fails(code) => format!("`{}`", code.as_str()),
    };
    let done = expected.outcome == Outcome::Done;
    let left = match expected.left {
        Left::Inserts(1) | Left::Unmounted if done => String::new(),
        Left::Inserts(0) => ", nothing inserted".to_owned(),
        Left::Inserts(1) => ", one insert".to_owned(),
        Left::Inserts(inserts) => format!(", {inserts} inserts"),
        Left::NoSession => ", nothing mounted".to_owned(),
        Left::Unmounted => ", unmounted".to_owned(),
        Left::Session => ", **session told as open**".to_owned(),
    };
    format!("{outcome} ≤ {} s{left}", expected.within)
}
