//! Groups of the journal: commits and ends of consolidations, which count together or not at all
//! (MICRO'19 section 3.3; that groups are appended whole and count in order is ours).

use model::controller::Notify;
use model::design::Below;
use model::meters::Class;
use model::units::Cycle;

use crate::parts::journal::Record;
use crate::ssp::record::Entry;
use crate::ssp::{Ssp, SspEvent, Unfilled, What};

impl Ssp {
    /// Appends the group of a commit. Where commits are grouped (`journal`), it waits for the group
    /// that is being written, unless what waits fills a line.
    pub(super) fn append_commit(&mut self, commit: What, at: Cycle, below: &mut Below<SspEvent>) {
        self.gathered.push(commit);
        let is_full = self.journal.fills_a_line(self.records(&self.gathered));
        if self.params.journal != Unfilled::Group || is_full || !self.journal.is_writing() {
            self.append_gathered(at, below);
        }
    }

    /// Appends the commits in the journal's buffer, and switch records for which they leave room.
    fn append_gathered(&mut self, at: Cycle, below: &mut Below<SspEvent>) {
        if self.gathered.is_empty() {
            return;
        }
        let commits = std::mem::take(&mut self.gathered);
        let mut group = self.switches_beside(&commits);
        group.extend(commits);
        self.append_in_turn(group, at, below);
    }

    /// Appends a group, or has it wait until the ring has room.
    pub(super) fn append_in_turn(
        &mut self,
        group: Vec<What>,
        at: Cycle,
        below: &mut Below<SspEvent>,
    ) {
        if self.stalled.is_empty() && self.fits(&group) {
            return self.append(group, at, below);
        }
        self.counts.groups_stalled += 1;
        self.stalled.push_back(group);
        self.consider_checkpoint(at, below);
    }

    /// How many records a group has of its own.
    pub(super) fn records(&self, group: &[What]) -> u64 {
        let records = |what: &What| match what {
            What::Commit { pages, .. } => pages.len() as u64,
            What::Switch(job) => self.switch_records(*job),
        };
        group.iter().map(records).sum()
    }

    pub(super) fn fits(&self, group: &[What]) -> bool {
        let records = self.records(group);
        self.journal.has_room(records) || !self.rules.stall_when_full
    }

    /// Appends a group to the journal. The running machine goes by what it says from now on.
    pub(super) fn append(&mut self, mut group: Vec<What>, at: Cycle, below: &mut Below<SspEvent>) {
        let mut entries: Vec<Entry> = Vec::new();
        let mut class = Class::Consolidation;
        for what in &mut group {
            match what {
                What::Commit { pages, .. } if self.rules.append_whole_groups => {
                    entries.extend(pages.iter().map(|written| self.publish(written)));
                }
                What::Commit { early, .. } => entries.append(early),
                What::Switch(job) => entries.extend(self.switch_entries(*job, at, below)),
            }
            if let What::Commit { core, pages, lines, .. } = what {
                class = Class::Log;
                if !self.rules.hold_lines_until_durable {
                    self.release_lines(*core, lines, at, below);
                }
                if !self.rules.refer_until_durable {
                    self.drop_references(*core, pages, at, below);
                }
            }
        }
        let notify = Notify::Design(SspEvent::Journaled(self.journal.next()));
        let tid = self.journal.tid();
        let records: Vec<Record> = entries.iter().map(|entry| entry.encode(tid)).collect();
        self.journal.append(records, group, class, at, notify, below);
    }

    /// Notes that a line of a group is durable. Continues what waits for the groups that count now.
    pub(super) fn journaled(&mut self, start: u64, at: Cycle, below: &mut Below<SspEvent>) {
        let learn = |end, record| self.known.learn(end, record);
        for what in
            self.journal.landed(start, self.rules.groups_in_order, learn).into_iter().flatten()
        {
            match what {
                What::Commit { core, pages, lines, .. } => {
                    self.committed(core, &pages, &lines, at, below);
                }
                What::Switch(job) => self.switched(job, at, below),
            }
        }
        if !self.journal.is_writing() {
            self.append_gathered(at, below);
        }
        self.consider_checkpoint(at, below);
    }
}
