//! Things that are kept until somebody comes for them: not for ever, and not too many.
use std::{
    collections::HashMap,
    hash::Hash,
    time::{Duration, Instant},
};

/// How many are kept at most.
const MOST: usize = 1024;

/// See the module.
#[derive(Debug)]
pub struct Waiting<K, V> {
    kept: HashMap<K, (Instant, V)>,
    longest: Duration,
}

impl<K: Eq + Hash + Clone, V> Waiting<K, V> {
    /// Nothing yet; each thing is kept for `longest`.
    pub fn new(longest: Duration) -> Self {
        Self {
            kept: HashMap::new(),
            longest,
        }
    }

    /// Keeps a thing. Returns those that are not kept any more.
    #[must_use]
    pub fn insert(&mut self, key: K, value: V) -> Vec<V> {
        let now = Instant::now();
        let longest = self.longest;
        let expired = |since: &Instant| now.duration_since(*since) >= longest;
        let mut gone: Vec<V> = self
            .kept
            .extract_if(|_, (since, _)| expired(since))
            .map(|(_, (_, value))| value)
            .collect();
        if self.kept.len() >= MOST
            && let Some(oldest) = self
                .kept
                .iter()
                .min_by_key(|(_, (since, _))| *since)
                .map(|(key, _)| key.clone())
        {
            gone.extend(self.kept.remove(&oldest).map(|(_, value)| value));
        }
        gone.extend(self.kept.insert(key, (now, value)).map(|(_, value)| value));
        gone
    }

    /// Hands a thing out, once, if its time is not over.
    pub fn take<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: std::borrow::Borrow<Q>,
    {
        let (since, _) = self.kept.get(key)?;
        if since.elapsed() >= self.longest {
            return None;
        }
        self.kept.remove(key).map(|(_, value)| value)
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Hands everything out.
    #[must_use]
    pub fn drain(&mut self) -> Vec<V> {
        self.kept.drain().map(|(_, (_, value))| value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thing_is_handed_out_once_and_in_time() {
        let mut waiting = Waiting::new(Duration::from_secs(60));
        assert!(waiting.insert("a", 1).is_empty());
        assert_eq!(waiting.insert("a", 2), vec![1]);
        assert_eq!(waiting.take("a"), Some(2));
        assert_eq!(waiting.take("a"), None);
        let mut over = Waiting::new(Duration::ZERO);
        assert!(over.insert("a", 1).is_empty());
        assert_eq!(over.take("a"), None);
        assert_eq!(over.insert("b", 2), vec![1]);
        assert_eq!(over.drain(), vec![2]);
    }

    #[test]
    fn the_oldest_gives_way() {
        let mut waiting = Waiting::new(Duration::from_secs(60));
        for i in 0..MOST {
            assert!(waiting.insert(i, i).is_empty());
        }
        assert_eq!(waiting.insert(MOST, MOST).len(), 1);
        assert_eq!(waiting.kept.len(), MOST);
    }
}
