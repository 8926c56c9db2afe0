//! Commands as WHISPER's port has them (memcached-1.2.4-mtm): each call that took `cache_lock` in
//! memcached 1.2.4 is a transaction of its own there, under the same name with `mt_` before it. A
//! SET is `process_update_command` and `complete_nread` there, a GET `process_get_command` and
//! the calls after the answer is sent.

use model::workload::{Pm, Ptr, Step, Stop};

use super::item;
use super::server::{Server, Set};
use super::{Client, Command};
use crate::heap::Heap;
use crate::keyed::{OPERATION_WORK, locked};

/// The next call of a command.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    /// The value of a SET has come: the item is linked.
    Store(Set, Ptr),
    /// A GET has found an item.
    Update(Ptr),
    /// The answer to a GET is sent.
    Answer(Ptr),
    /// A SET is done with an item.
    Remove(Ptr),
}

impl Client {
    /// Does the next call of a command, or the first of the next command.
    pub(super) fn call(&mut self, pm: &mut Pm<'_>) -> Step {
        self.next = self.next.take().or_else(|| self.held.pop().map(Ptr::to).map(Call::Remove));
        let Some(call) = self.next.take() else {
            let command = self.draw();
            pm.work(OPERATION_WORK);
            return self.begin(pm, command);
        };
        match call {
            Call::Store(set, new) => {
                // The server copies the value from its buffer, outside of every transaction.
                let (kind, _) = &self.server.shape().sizes[set.size];
                kind.store_value(pm, new, set.number, set.stamp);
                self.within(pm, |server, pm, heap| server.store_item(pm, heap, set, new))?;
                self.next = Some(Call::Remove(new));
            }
            Call::Update(found) => {
                let now = self.commands;
                self.within(pm, |server, pm, _| server.item_update(pm, found, now))?;
                self.next = Some(Call::Answer(found));
            }
            Call::Answer(found) => {
                let (kind, _) = self.server.shape().kind_of(item::sizes_of(pm, found))?;
                kind.load(pm, found);
                self.within(pm, |server, pm, _| server.item_remove(pm, found))?;
            }
            Call::Remove(new) => self.within(pm, |server, pm, _| server.item_remove(pm, new))?,
        }
        Ok(())
    }

    /// Does the first call of a command. If the table grows, that transaction also moves a bucket
    /// (ours: in the port that is a transaction of its own).
    pub(super) fn begin(&mut self, pm: &mut Pm<'_>, command: Command) -> Step {
        self.next = self.within(pm, |server, pm, heap| {
            let next = match command {
                Command::Set(set) => {
                    let new = server.item_alloc(pm, heap, set)?;
                    new.map(|new| Call::Store(set, new))
                }
                Command::Get(number) => server.item_get(pm, number).map(Call::Update),
            };
            server.move_bucket(pm, heap);
            Ok(next)
        })?;
        Ok(())
    }

    /// Does a call as a transaction behind the lock.
    fn within<T>(
        &mut self,
        pm: &mut Pm<'_>,
        body: impl FnOnce(&Server, &mut Pm<'_>, &mut Heap) -> Step<T>,
    ) -> Step<T> {
        let (server, heap, mut answer) = (&self.server, &mut self.heap, None);
        locked(pm, self.lock, |pm| {
            answer = Some(pm.tx(|pm| body(server, pm, heap))?);
            Ok(())
        })?;
        answer.ok_or_else(|| Stop::Failed("a call without an answer".to_owned()))
    }
}

/// The calls.
impl Server {
    /// Makes an item without a value, to which the caller has a reference, if there is room.
    fn item_alloc(&self, pm: &mut Pm<'_>, heap: &mut Heap, set: Set) -> Step<Option<Ptr>> {
        let (kind, class) = &self.shape().sizes[set.size];
        let Some(new) = self.chunk(pm, heap, *class)? else { return Ok(None) };
        kind.store_name(pm, new, set.number, self.shape().classes[*class].number);
        Ok(Some(new))
    }

    /// Links an item.
    fn store_item(&self, pm: &mut Pm<'_>, heap: &mut Heap, set: Set, new: Ptr) -> Step {
        let sizes = item::sizes_of(pm, new);
        item::set_linked(pm, new, sizes, true);
        item::store_version(pm, new, set.stamp, set.now);
        self.link(pm, heap, set.number, self.shape().sizes[set.size].1, new)
    }

    /// Finds the item of a key, and takes a reference to it.
    fn item_get(&self, pm: &mut Pm<'_>, number: u64) -> Option<Ptr> {
        let (_, found) = self.find(pm, number);
        if found.is_null() {
            return None;
        }
        item::hold(pm, found);
        Some(found)
    }

    /// Moves an item in its list, unless others have unlinked it meanwhile.
    fn item_update(&self, pm: &mut Pm<'_>, found: Ptr, now: u64) -> Step {
        let sizes = item::sizes_of(pm, found);
        if item::is_linked(sizes) {
            let (_, class) = self.shape().kind_of(sizes)?;
            self.update(pm, class, found, now);
        }
        Ok(())
    }

    /// Drops a reference to an item, and frees the item if that was the last one and no key leads
    /// to it.
    fn item_remove(&self, pm: &mut Pm<'_>, at: Ptr) -> Step {
        if item::let_go(pm, at) {
            let (_, class) = self.shape().kind_of(item::sizes_of(pm, at))?;
            self.free(pm, class, at);
        }
        Ok(())
    }
}
