// SPDX-License-Identifier: Apache-2.0
// Iterators, closures, maps and sorting for bench/structure: the most frequent words of a text.
use std::collections::{BTreeMap, HashMap};
use std::io::Read;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Word {
    text: String,
    count: usize,
    lines: Vec<usize>,
}

fn count_words(text: &str) -> HashMap<String, Word> {
    let mut words: HashMap<String, Word> = HashMap::new();
    for (number, line) in text.lines().enumerate() {
        for word in line
            .split(|c: char| !c.is_alphanumeric())
            .filter(|w| !w.is_empty())
        {
            let entry = words
                .entry(word.to_lowercase())
                .or_insert_with(|| Word {
                    text: word.to_lowercase(),
                    count: 0,
                    lines: Vec::new(),
                });
            entry.count += 1;
            entry.lines.push(number + 1);
        }
    }
    words
}

fn by_length(words: &[Word]) -> BTreeMap<usize, Vec<&Word>> {
    let mut lengths = BTreeMap::new();
    for word in words {
        lengths
            .entry(word.text.chars().count())
            .or_insert_with(Vec::new)
            .push(word);
    }
    lengths
}

fn mean_distance(word: &Word) -> f64 {
    let sum: usize = word
        .lines
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .sum();
    sum as f64 / word.lines.len().max(1) as f64
}

fn main() {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .expect("text on standard input");
    let mut words: Vec<Word> = count_words(&text).into_values().collect();
    words.sort_by(|a, b| {
        b.count
            .cmp(&a.count)
            .then_with(|| a.text.cmp(&b.text))
    });
    for word in words.iter().take(10) {
        println!(
            "{:6} {:20} {:.1}",
            word.count,
            word.text,
            mean_distance(word)
        );
    }
    for (length, group) in by_length(&words) {
        let longest = group
            .iter()
            .max_by_key(|w| w.lines.len())
            .map(|w| w.text.as_str());
        println!("{} {} {:?}", length, group.len(), longest);
    }
}
