//! Earlier contents of blocks, kept as runs of neighbouring blocks.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;

use super::BLOCK;

/// Where the earlier content of a block is.
#[derive(Clone, Debug)]
pub(super) enum Earlier {
    /// The block was all zeros.
    Zero,
    /// The block was saved in a segment of the journal.
    Saved {
        /// The segment; it lives as long as something refers to it.
        segment: Arc<File>,
        /// Offset in bytes.
        at: u64,
    },
}

impl Earlier {
    /// The content of the block `blocks` further on in the same run.
    fn advanced(&self, blocks: u64) -> Self {
        match self {
            Self::Zero => Self::Zero,
            Self::Saved { segment, at } => Self::Saved {
                segment: Arc::clone(segment),
                at: at + blocks * BLOCK as u64,
            },
        }
    }

    /// Whether `next` is where the content of a run of `blocks` blocks that starts here goes on.
    fn continues(&self, blocks: u64, next: &Self) -> bool {
        match (self, next) {
            (Self::Zero, Self::Zero) => true,
            (
                Self::Saved { segment, at },
                Self::Saved {
                    segment: other,
                    at: then,
                },
            ) => Arc::ptr_eq(segment, other) && at + blocks * BLOCK as u64 == *then,
            _ => false,
        }
    }
}

#[derive(Clone, Debug)]
struct Run {
    blocks: u64,
    earlier: Earlier,
}

/// Earlier contents by block number. A 1 GiB change in sequence is a handful of runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    runs: BTreeMap<u64, Run>,
    blocks: u64,
}

impl Runs {
    /// How many blocks have an earlier content here.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The earlier content of `block`, and for how many blocks from there on it goes on in one piece.
    pub(super) fn find(&self, block: u64) -> Option<(Earlier, u64)> {
        let (start, run) = self.runs.range(..=block).next_back()?;
        let into = block - start;
        (into < run.blocks).then(|| (run.earlier.advanced(into), run.blocks - into))
    }

    /// Whether `block` has an earlier content here.
    pub(super) fn covers(&self, block: u64) -> bool {
        self.runs
            .range(..=block)
            .next_back()
            .is_some_and(|(start, run)| block - start < run.blocks)
    }

    /// The first block after `block` at which a run starts.
    pub(super) fn next_start(&self, block: u64) -> Option<u64> {
        self.runs.range(block + 1..).next().map(|(start, _)| *start)
    }

    /// Records the earlier content of a run of blocks, none of which may be covered yet.
    pub(super) fn insert(&mut self, block: u64, blocks: u64, earlier: Earlier) {
        self.blocks += blocks;
        if let Some((start, before)) = self.runs.range_mut(..block).next_back()
            && start + before.blocks == block
            && before.earlier.continues(before.blocks, &earlier)
        {
            before.blocks += blocks;
            return;
        }
        self.runs.insert(block, Run { blocks, earlier });
    }

    /// Takes from `later` what is not covered here: what was overwritten first is what counts for an older view.
    pub(super) fn add_missing(&mut self, later: &Self) {
        for (start, run) in &later.runs {
            let end = start + run.blocks;
            let mut block = *start;
            while block < end {
                if let Some((_, covered)) = self.find(block) {
                    block += covered;
                    continue;
                }
                let until = self.next_start(block).unwrap_or(end).min(end);
                self.insert(block, until - block, run.earlier.advanced(block - start));
                block = until;
            }
        }
    }

    /// Every run: first block, number of blocks, earlier content.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64, &Earlier)> {
        self.runs
            .iter()
            .map(|(start, run)| (*start, run.blocks, &run.earlier))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(segment: &Arc<File>, block: u64) -> Earlier {
        Earlier::Saved {
            segment: Arc::clone(segment),
            at: block * BLOCK as u64,
        }
    }

    /// Offset of the saved block in its segment, in blocks.
    fn place(runs: &Runs, block: u64) -> Option<u64> {
        match runs.find(block)?.0 {
            Earlier::Zero => None,
            Earlier::Saved { at, .. } => Some(at / BLOCK as u64),
        }
    }

    #[test]
    fn neighbours_become_one_run() {
        let segment = Arc::new(tempfile::tempfile().unwrap());
        let mut runs = Runs::default();
        for block in 0..100 {
            runs.insert(10 + block, 1, saved(&segment, 500 + block));
        }
        runs.insert(110, 1, Earlier::Zero);
        assert_eq!(runs.iter().count(), 2);
        assert_eq!(runs.blocks(), 101);
        assert_eq!(place(&runs, 42), Some(532));
        assert_eq!(runs.find(42).map(|(_, blocks)| blocks), Some(68));
        assert!(runs.covers(110) && !runs.covers(111) && !runs.covers(9));
        assert_eq!(runs.next_start(0), Some(10));
        assert_eq!(runs.next_start(110), None);
    }

    #[test]
    fn what_was_overwritten_first_counts() {
        let segment = Arc::new(tempfile::tempfile().unwrap());
        let mut first = Runs::default();
        first.insert(5, 3, saved(&segment, 100));
        first.insert(12, 2, saved(&segment, 200));
        let mut later = Runs::default();
        later.insert(0, 20, saved(&segment, 1000));
        first.add_missing(&later);
        let places: Vec<_> = (0..21).map(|block| place(&first, block)).collect();
        let expected: Vec<_> = (0..21)
            .map(|block| match block {
                5..8 => Some(95 + block),
                12..14 => Some(188 + block),
                20 => None,
                _ => Some(1000 + block),
            })
            .collect();
        assert_eq!(places, expected);
        assert_eq!(first.blocks(), 20);
    }
}
