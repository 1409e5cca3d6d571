//! Inputs that are almost good.

/// The longest input.
const MOST: usize = 64 * 1024;

/// What parsers stumble over.
const TOKENS: [&[u8]; 24] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b",",
    b":",
    b"\n",
    b"---\n",
    b"- ",
    b"&a ",
    b"*a",
    b"<<: ",
    b"!!binary ",
    b"NaN",
    b"-0",
    b"1e400",
    b"9007199254740993",
    b"\\ud800",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\0",
    b"\xf0\x9f\x98\x80",
];

/// Makes inputs from others, always the same ones from the same start.
pub(crate) struct Mutator {
    state: u64,
    pool: Vec<Vec<u8>>,
    seeds: usize,
}

impl Mutator {
    pub(crate) fn new(start: u64, seeds: &[&[u8]]) -> Self {
        Mutator {
            state: start,
            pool: seeds.iter().map(|seed| seed.to_vec()).collect(),
            seeds: seeds.len(),
        }
    }

    /// The next input.
    pub(crate) fn next(&mut self) -> Vec<u8> {
        let mut input = self.any().clone();
        for _ in 0..=self.below(4) {
            self.change(&mut input);
        }
        input.truncate(MOST);
        // Mutations of mutations get further from the seeds; the oldest give way.
        if self.below(8) == 0 {
            if self.pool.len() > self.seeds + 64 {
                self.pool.remove(self.seeds);
            }
            self.pool.push(input.clone());
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let end = (at + self.below(16)).min(input.len());
        match self.below(7) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = u8::try_from(self.below(256)).unwrap_or_default(),
            2 => drop(input.drain(at..end)),
            3 => input.truncate(at),
            4 => {
                let token = TOKENS[self.below(TOKENS.len())];
                let times = if self.below(16) == 0 { 500 } else { 1 };
                input.splice(at..at, token.repeat(times));
            }
            5 => {
                let copy = input[at..end].to_vec();
                let to = self.below(input.len() + 1);
                input.splice(to..to, copy);
            }
            _ => {
                let other = self.any().clone();
                let from = self.below(other.len() + 1);
                input.splice(at.., other[from..].iter().copied());
            }
        }
    }

    fn any(&mut self) -> &Vec<u8> {
        let index = self.below(self.pool.len());
        &self.pool[index]
    }

    /// Below `bound`; splitmix64.
    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % bound.max(1) as u64).unwrap_or_default()
    }
}
