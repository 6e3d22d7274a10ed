//! Lines of bytes, read in bounded memory.
use std::io::{self, Read};

/// What is kept of a line that is too long: enough to tell whose it was.
const KEPT: usize = 64 * 1024;
const CHUNK: usize = 64 * 1024;

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// With its line end, as it came; the last one may have none.
    Whole(&'a [u8]),
    /// Longer than allowed: its beginning. The rest is skipped.
    TooLong(&'a [u8]),
}

/// Reads lines of at most a given length.
pub struct Lines<R> {
    from: R,
    longest: usize,
    buffer: Vec<u8>,
    /// Not handed out yet: `start..end` of the buffer.
    start: usize,
    end: usize,
    /// No line end before here.
    searched: usize,
    ended: bool,
}

impl<R: Read> Lines<R> {
    /// Lines of `from`, of at most `longest` bytes each.
    pub fn new(from: R, longest: usize) -> Self {
        Self {
            from,
            longest,
            buffer: vec![0; CHUNK],
            start: 0,
            end: 0,
            searched: 0,
            ended: false,
        }
    }

    /// Whether the next line is there already: if not, asking for it may wait.
    pub fn is_ready(&self) -> bool {
        memchr::memchr(b'\n', self.unread(self.searched)).is_some()
    }

    fn unread(&self, from: usize) -> &[u8] {
        self.buffer.get(from..self.end).unwrap_or_default()
    }

    /// The next line; None at the end.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', self.unread(self.searched)) {
                return Ok(Some(self.take(self.searched + at + 1)));
            }
            self.searched = self.end;
            if self.end - self.start > self.longest {
                return self.skip().map(Some);
            }
            if self.ended {
                let rest = self.end > self.start;
                return Ok(rest.then(|| self.take(self.end)));
            }
            self.fill()?;
        }
    }

    fn take(&mut self, end: usize) -> Line<'_> {
        let start = std::mem::replace(&mut self.start, end);
        self.searched = end;
        let line = self.buffer.get(start..end).unwrap_or_default();
        if line.len() <= self.longest {
            Line::Whole(line)
        } else {
            Line::TooLong(line.get(..KEPT).unwrap_or(line))
        }
    }

    /// Reads more behind what is there.
    fn fill(&mut self) -> io::Result<()> {
        if self.start == self.end {
            (self.start, self.end, self.searched) = (0, 0, 0);
            if self.buffer.len() > 16 * CHUNK {
                self.buffer = vec![0; CHUNK];
            }
        } else if self.end == self.buffer.len() && self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.searched -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            let longer = (self.buffer.len() * 2).min(self.longest + CHUNK);
            self.buffer.resize(longer.max(self.end + CHUNK), 0);
        }
        let read = self.read_behind(self.end)?;
        self.end += read;
        Ok(())
    }

    fn read_behind(&mut self, end: usize) -> io::Result<usize> {
        loop {
            match self
                .from
                .read(self.buffer.get_mut(end..).unwrap_or_default())
            {
                Ok(read) => {
                    self.ended = read == 0;
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Passes over a line that is too long.
    fn skip(&mut self) -> io::Result<Line<'_>> {
        let mut buffer = vec![0; KEPT + CHUNK];
        let kept = self.unread(self.start);
        let kept = kept.get(..KEPT).unwrap_or(kept);
        let length = kept.len();
        if let Some(beginning) = buffer.get_mut(..length) {
            beginning.copy_from_slice(kept);
        }
        self.buffer = buffer;
        (self.start, self.end, self.searched) = (length, length, length);
        while !self.ended {
            let read = self.read_behind(length)?;
            self.end = length + read;
            if let Some(at) = memchr::memchr(b'\n', self.unread(length)) {
                self.start = length + at + 1;
                break;
            }
            self.start = self.end;
        }
        self.searched = self.start;
        Ok(Line::TooLong(self.buffer.get(..length).unwrap_or_default()))
    }
}

/// A line without its line end, and the line end.
pub fn split_end(line: &[u8]) -> (&[u8], &[u8]) {
    let length = match line {
        [.., b'\r', b'\n'] => line.len() - 2,
        [.., b'\n'] => line.len() - 1,
        _ => line.len(),
    };
    line.split_at_checked(length).unwrap_or((line, b""))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte, then two, then three, … per read.
    struct Dribble<'a>(&'a [u8], usize);
    impl Read for Dribble<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 += 1;
            let length = self.1.min(self.0.len()).min(buffer.len());
            let (now, later) = self.0.split_at(length);
            buffer[..length].copy_from_slice(now);
            self.0 = later;
            Ok(length)
        }
    }

    fn all(bytes: &[u8], longest: usize) -> Vec<(bool, Vec<u8>)> {
        let mut lines = Lines::new(Dribble(bytes, 0), longest);
        let mut all = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            all.push(match line {
                Line::Whole(line) => (true, line.to_vec()),
                Line::TooLong(line) => (false, line.to_vec()),
            });
        }
        all
    }

    #[test]
    fn every_byte_comes_out_as_it_went_in() {
        let bytes: Vec<u8> = (0..300_000u32)
            .map(|i| if i % 977 == 0 { b'\n' } else { (i % 251) as u8 })
            .collect();
        let lines = all(&bytes, 1000);
        assert!(
            lines
                .iter()
                .all(|(whole, line)| *whole && line.len() <= 977)
        );
        assert_eq!(
            lines
                .into_iter()
                .flat_map(|(_, line)| line)
                .collect::<Vec<_>>(),
            bytes
        );
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_is_read() {
        let mut bytes = b"first\n{\"id\":5,".to_vec();
        bytes.extend(vec![b'x'; 1_000_000]);
        bytes.extend(b"\nlast");
        let lines = all(&bytes, 200_000);
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0], (true, b"first\n".to_vec()));
        assert!(!lines[1].0 && lines[1].1.starts_with(b"{\"id\":5,") && lines[1].1.len() == KEPT);
        assert_eq!(lines[2], (true, b"last".to_vec()));
        assert!(!all(&vec![b'x'; 300_000], 200_000)[0].0);
        let exactly = [vec![b'x'; 200_000], b"\n".to_vec()].concat();
        assert!(!all(&exactly, 200_000)[0].0 && all(&exactly, 200_001)[0].0);
    }

    #[test]
    fn line_ends_are_split_off() {
        assert_eq!(split_end(b"a\r\n"), (&b"a"[..], &b"\r\n"[..]));
        assert_eq!(split_end(b"a\n"), (&b"a"[..], &b"\n"[..]));
        assert_eq!(split_end(b"a"), (&b"a"[..], &b""[..]));
        assert_eq!(split_end(b"\n"), (&b""[..], &b"\n"[..]));
    }
}
