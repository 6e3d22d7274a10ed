//! A change of a settings file: shown, made, taken back.
use super::{
    file::SettingsFile,
    harness::{Harness, Place},
    strip,
};
use crate::output;
use similar::TextDiff;

/// A file and what becomes of it.
pub(super) struct Change {
    pub file: SettingsFile,
    pub place: Place,
    /// None: the file is removed.
    pub after: Option<String>,
    /// Nothing of ours is in it: this is what the copy beside it has to hold.
    pub pristine: bool,
}

impl Change {
    /// The file stays as it is.
    pub fn is_none(&self) -> bool {
        self.after == self.file.text
    }

    /// Shows it as a unified diff.
    pub fn show(&self) {
        let path = self.place.path.display().to_string();
        let before = self.file.text.as_deref();
        let after = self.after.as_deref();
        let name = |text: Option<&str>| text.map_or("/dev/null", |_| path.as_str()).to_owned();
        let (old, new) = (name(before), name(after));
        let diff = TextDiff::from_lines(before.unwrap_or_default(), after.unwrap_or_default());
        let diff = diff
            .unified_diff()
            .context_radius(3)
            .header(&old, &new)
            .to_string();
        // A file of a project is not always the person's own: nothing in it steers the terminal.
        let steers = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
        output::print(&diff.replace(steers, "\u{fffd}"));
    }
}

/// Makes every change or none.
pub(super) fn apply(harness: Harness, changes: &[Change]) -> Result<Vec<&Change>, String> {
    let mut written = Vec::new();
    for change in changes.iter().filter(|change| !change.is_none()) {
        let kept = if change.pristine {
            change.file.back_up()
        } else {
            Ok(())
        };
        let result = kept.and_then(|()| change.file.write(change.after.as_deref()));
        if let Err(problem) = result {
            let put_back = undo(harness, &written);
            return Err(format!("{problem}\n{put_back}"));
        }
        written.push(change);
        let path = change.place.path.display();
        match &change.after {
            Some(_) if change.pristine && change.file.text.is_some() => output::print(&format!(
                "wrote {path}; a copy of what was there: {}",
                change.file.backup().display()
            )),
            Some(_) => output::print(&format!("wrote {path}")),
            None => output::print(&format!("removed {path}")),
        }
    }
    Ok(written)
}

/// Puts every file back, and says whether that worked.
pub(super) fn undo(harness: Harness, written: &[&Change]) -> String {
    let problems: Vec<String> = written
        .iter()
        .filter_map(|change| put_back(harness, change).err())
        .collect();
    if problems.is_empty() {
        "The settings are as they were.".to_owned()
    } else {
        format!("Not put back: {}", problems.join("; "))
    }
}

/// As it was; where somebody else has written meanwhile, what they wrote without our entries.
fn put_back(harness: Harness, change: &Change) -> Result<(), String> {
    let now = SettingsFile::read(&change.place.path)?;
    if now.text == change.after {
        change.file.restore()?;
        return if change.pristine {
            change.file.remove_backup()
        } else {
            Ok(())
        };
    }
    match &now.text {
        Some(text) => now.write(Some(&strip(&change.place, harness, text)?)),
        None => Ok(()),
    }
}
