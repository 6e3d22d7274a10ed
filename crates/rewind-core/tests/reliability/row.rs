//! What is played and what is expected of it.
use crate::{fault::Fault, step::Step};
use rewind_core::ErrorCode;

/// How an operation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A receipt, or a file.
    Done,
    /// A file, and it says that the session is still mounted, and why.
    StillOpen,
    Fails(ErrorCode),
}

/// What it leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// So many inserts that the ZVM may have carried out.
    Inserts(usize),
    /// No session was opened.
    NoSession,
    /// The session was unmounted.
    Unmounted,
    /// The session could not be unmounted, or is not known to be. It says so, and the next command looks for it.
    Session,
}

#[derive(Clone, Copy, Debug)]
pub struct Expected {
    pub outcome: Outcome,
    /// Seconds.
    pub within: u64,
    pub left: Left,
}

/// A fault of the network or of a single answer, and what comes of it.
pub struct Line {
    pub fault: Fault,
    pub once: Expected,
    /// Until the operation ends. None: the fault is over as soon as it has happened.
    pub lasting: Option<Expected>,
}

pub struct Table {
    /// All of which answer to faults in the same way.
    pub steps: Vec<Step>,
    /// What is particular to them.
    pub about: &'static str,
    pub lines: Vec<Line>,
}

/// Something that the ZVM does.
pub struct Case {
    pub name: &'static str,
    pub play: Play,
    pub expected: Expected,
}

/// When the ZVM does it, and what: before the operation, or as soon as a step's request is about to come.
pub type Play = (Option<Step>, fn(&crate::world::World));

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Guard,
    Recovery,
}

pub struct Section {
    pub operation: Operation,
    pub tables: Vec<Table>,
    pub cases: Vec<Case>,
}

/// What befalls an operation.
#[derive(Clone, Copy)]
pub enum Trouble {
    Fault {
        step: Step,
        fault: Fault,
        lasting: bool,
    },
    Case {
        name: &'static str,
        play: Play,
    },
}

pub struct Row {
    pub operation: Operation,
    pub trouble: Trouble,
    pub expected: Expected,
}

impl Row {
    pub fn name(&self) -> String {
        let operation = match self.operation {
            Operation::Guard => "guard",
            Operation::Recovery => "recovery",
        };
        match self.trouble {
            Trouble::Fault {
                step,
                fault,
                lasting,
            } => {
                let lasting = if lasting { "lasting" } else { "once" };
                format!("{operation}: {}: {}, {lasting}", step.name, fault.name())
            }
            Trouble::Case { name, .. } => format!("{operation}: {name}"),
        }
    }
}

impl Row {
    pub fn is_at(&self, wanted: Step) -> bool {
        matches!(self.trouble, Trouble::Fault { step, .. } if step.name == wanted.name)
    }
}

impl Section {
    pub fn rows(&self) -> Vec<Row> {
        let operation = self.operation;
        let mut rows = Vec::new();
        for table in &self.tables {
            for (step, line) in table
                .steps
                .iter()
                .flat_map(|step| table.lines.iter().map(move |line| (*step, line)))
            {
                let row = |lasting, expected| Row {
                    operation,
                    trouble: Trouble::Fault {
                        step,
                        fault: line.fault,
                        lasting,
                    },
                    expected,
                };
                rows.push(row(false, line.once));
                rows.extend(line.lasting.map(|expected| row(true, expected)));
            }
        }
        rows.extend(self.cases.iter().map(|case| Row {
            operation,
            trouble: Trouble::Case {
                name: case.name,
                play: case.play,
            },
            expected: case.expected,
        }));
        rows
    }
}
